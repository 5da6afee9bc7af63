/** What the lab's form asks for. */

export const SCHEMES = {
  none: { name: "no balancing", scheme: { placement: "nearest" } },
  ldm: { name: "LDM", scheme: { placement: "nearest", migrate: "ldm" } },
  gsh: { name: "GSH", scheme: { placement: "nearest", shuffle: "gsh" } },
  xbal: { name: "xbal + simsh", scheme: { placement: "nearest", migrate: "xbal", shuffle: "simsh" } },
};

/** Whether one may say how many brokers a world has; the emergency city has its own. */
export const hasAnyBrokers = (world) => world !== "prototype";

/** The question to the dashboard; `wanted` are the form's data, in which what is disabled is missing. */
export function question(wanted) {
  const numbers = ["subscribers", "brokers", "seed", "alpha"].filter((name) => wanted.has(name));
  return {
    world: wanted.get("world"),
    schemes: wanted.getAll("scheme").map((name) => SCHEMES[name].scheme),
    ...Object.fromEntries(numbers.map((name) => [name, Number(wanted.get(name))])),
    duration_s: 60 * Number(wanted.get("minutes")),
    moves_per_s: wanted.get("moves_per_s") ? Number(wanted.get("moves_per_s")) : null,
  };
}
