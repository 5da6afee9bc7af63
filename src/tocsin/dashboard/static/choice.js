/** What somebody chooses among the policies, and which samples the form follows meanwhile. */

export const NONE = "(none)";
const LATE = 2; // so many samples after a switch may still be of the time before it

/** By field of the form, the names of the policies in force. */
export const namesOf = ({ placement, balancing }) => ({
  placement: placement.name,
  migrate: balancing.migrate?.name ?? NONE,
  shuffle: balancing.shuffle?.name ?? NONE,
});

/** Which fields are `wanted` to be something else than was `shown`. */
export const changesOf = (shown, wanted) =>
  Object.keys(shown).filter((field) => wanted[field] !== shown[field]).map((field) => ({ field, from: shown[field], to: wanted[field] }));

/** What to ask the coordinator for: the changes, and for the rest what is in force `now`, which another may have chosen. */
export function asked(now, changes) {
  const chosen = Object.fromEntries(changes.map(({ field, to }) => [field, to === NONE ? null : { name: to, options: {} }]));
  const { placement, ...balancing } = chosen;
  return {
    ...(placement ? { placement } : {}),
    ...(Object.keys(balancing).length ? { balancing: { ...now.balancing, ...balancing } } : {}),
  };
}

/** Tells samples that are older than a switch from those that are not: by what was in force before it. */
export class Recent {
  #said = "";
  #before = "";
  #late = 0;

  /** A switch was made: what samples said last is over. */
  switched() {
    [this.#before, this.#late] = [this.#said, LATE];
  }

  /** Whether a sample's policies are those of now. */
  take(policies) {
    this.#said = JSON.stringify(policies);
    const isLate = this.#late > 0 && this.#said === this.#before;
    this.#late = isLate ? this.#late - 1 : 0;
    return !isLate;
  }
}
