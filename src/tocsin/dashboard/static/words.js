/** Decisions, plans and moves in words. */

import { NONE } from "./choice.js";
import { count, decimal, plural, rate, time } from "./format.js";

const ACTIONS = { migrate: "Moves", shuffle: "Arranges everyone anew:" };

/** One decision of the balancer as a sentence. */
export function decision(one) {
  if (one.action === "made up") return `Made up for the replay: ${one.reason}.`;
  const by = one.is_asked ? ", as asked" : "";
  if (one.action === "nothing") return `Nothing to do${by}: ${one.reason}.`;
  const figures = one.before && one.after
    ? ` The highest load goes from ${rate(one.before.maximum)} to ${rate(one.after.maximum)}, cov from ${decimal(one.before.cov, 3)} to ${decimal(one.after.cov, 3)}.`
    : "";
  return `${ACTIONS[one.action] ?? one.action} ${plural(one.moves, one.action === "shuffle" ? "move" : "subscriber")} by ${one.policy ?? "plan"}${by}; it ended with: ${one.reason}.${figures}`;
}

const STATES = {
  planned: "is to go",
  adopting: "is awaited: the new broker attaches the subscriptions",
  sending: "is on the way",
  done: "has moved",
};
const FAILED = ["refused", "timed out", "superseded"];

/** One move as a sentence. */
export function move(one) {
  const way = `from ${one.source ?? "nowhere"} to ${one.to}`;
  if (FAILED.includes(one.state)) return `${one.user} does not go ${way}: ${one.outcome || one.state}.`;
  const why = one.cause ? ` (${one.cause})` : "";
  return `${one.user} ${STATES[one.state] ?? one.state} ${way}${why}.${one.expected ? foreseen(one, one.expected) : ""}`;
}

function foreseen({ source, to }, { source_before, source_after, target_before, target_after }) {
  return ` Foreseen: ${source} from ${rate(source_before)} to ${rate(source_after)}, ${to} from ${rate(target_before)} to ${rate(target_after)}.`;
}

/** Whether nothing more will be heard of a move. */
export const hasEnded = ({ state }) => state === "done" || FAILED.includes(state);

/** A plan with many moves, counted. */
export function plan(one) {
  const total = Object.values(one.states).reduce((a, b) => a + b, 0);
  const parts = Object.entries(one.states).map(([name, number]) => `${count(number)} ${name}`);
  const about = one.cause.startsWith(one.kind) ? one.cause : `${one.kind}: ${one.cause}`;
  return `Plan ${one.id} (${about}): ${total ? plural(total, "move") : "no moves"}${parts.length ? `, ${parts.join(", ")}` : ""}.`;
}

/** Whether nobody tells how channels run. */
export const isAway = (channels, cluster) => (channels.length ? channels.some(({ state }) => state === "unknown") : !cluster.is_ready);

/** While there is no decision yet. */
export function undecided({ balancing, balance_every_s }) {
  if (!balancing.migrate && !balancing.shuffle) return "Nothing was decided yet, and balancing is off: neither policy is chosen.";
  return `Nothing was decided yet. The coordinator looks every ${balance_every_s} s.`;
}

const CHANGED = { placement: "Newcomers will be placed by", migrate: "Some will be moved by", shuffle: "Everyone will be arranged anew by" };

/** What is asked before policies are switched; `changes` are {field, from, to}. */
export function switching(changes) {
  const name = (policy) => (policy === NONE ? "no policy" : policy);
  return `${changes.map(({ field, from, to }) => `${CHANGED[field]} ${name(to)} instead of ${name(from)}.`).join(" ")} That holds at once, for the whole system.`;
}

/** With what policies were compared. */
export function compared({ brokers, users, streams, pinned }, at) {
  const rest = pinned ? `; ${count(pinned)} of them ${pinned === 1 ? "stays" : "stay"} in place for now` : "";
  return `${plural(users, "person", "people")} with ${plural(streams, "stream")} at ${plural(brokers, "broker")}${rest}. As of ${time(at)}.`;
}

/** The least cov, which is to be pointed out; null without load, and where all are equal. */
export function mostEven(trials) {
  const covs = trials.filter(({ after }) => after.total > 0).map(({ after }) => after.cov);
  return new Set(covs).size > 1 ? Math.min(...covs) : null;
}
