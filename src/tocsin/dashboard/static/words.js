/** Decisions, plans and moves in words. */

import { count, decimal, plural, rate } from "./format.js";

const ACTIONS = { migrate: "Moves", shuffle: "Arranges everyone anew:" };

/** One decision of the balancer as a sentence. */
export function decision(one) {
  const by = one.is_asked ? ", as asked" : "";
  if (one.action === "nothing") return `Nothing to do${by}: ${one.reason}.`;
  const figures = one.before && one.after
    ? ` The highest load goes from ${rate(one.before.maximum)} to ${rate(one.after.maximum)}, cov from ${decimal(one.before.cov, 3)} to ${decimal(one.after.cov, 3)}.`
    : "";
  return `${ACTIONS[one.action] ?? one.action} ${plural(one.moves, one.action === "shuffle" ? "move" : "subscriber")} by ${one.policy ?? "plan"}${by}, because ${one.reason}.${figures}`;
}

const STATES = {
  planned: "is to go",
  adopting: "is awaited: the new broker attaches the subscriptions",
  sending: "is on the way",
  done: "has moved",
  refused: "stays",
  "timed out": "stays, the move took too long",
  superseded: "stays, a newer plan came",
};

/** One move as a sentence. */
export function move(one) {
  const way = `from ${one.source ?? "nowhere"} to ${one.to}`;
  const why = one.cause ? ` because ${one.cause}` : "";
  const end = one.outcome && one.state !== "done" ? ` (${one.outcome})` : "";
  return `${one.user} ${STATES[one.state] ?? one.state} ${way}${why}${end}.`;
}

/** A plan with many moves, counted. */
export function plan(one) {
  const total = Object.values(one.states).reduce((a, b) => a + b, 0);
  const parts = Object.entries(one.states).map(([name, number]) => `${count(number)} ${name}`);
  return `Plan ${one.id} (${one.kind}: ${one.cause}): ${plural(total, "move")}${parts.length ? `, ${parts.join(", ")}` : ""}.`;
}
