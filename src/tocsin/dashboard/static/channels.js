/** The table of channels: how each runs, and what it costs. */

import { count, el, fill, milliseconds, perSecond, plural, seconds, write } from "./format.js";

const STATES = { running: "good", failing: "bad", paused: "warn" };
const FIGURES = ["subscriptions", "backends", "behind", "matched", "results", "latency", "execution", "executions"];
const rows = new Map();

export function showChannels({ channels, cluster }) {
  const table = document.getElementById("channels");
  document.getElementById("no-channels").hidden = channels.length > 0;
  table.hidden = !channels.length;
  for (const name of [...rows.keys()]) if (!channels.some((one) => one.name === name)) rows.delete(name);
  const wanted = channels.map((one) => {
    if (!rows.has(one.name)) rows.set(one.name, row(one.name));
    update(rows.get(one.name), one);
    return rows.get(one.name).line;
  });
  const body = table.tBodies[0];
  if (wanted.length !== body.children.length || wanted.some((line, at) => body.children[at] !== line)) fill(body, wanted);
  write(document.getElementById("spark"), cluster.is_ready ? held(cluster.totals ?? {}) : cluster.reason);
}

const held = ({ records = 0, subscriptions = 0, backends = 0 }) =>
  `${plural(Number(records), "record")}, ${plural(Number(subscriptions), "subscription")} on ${plural(Number(backends), "parameter set")}`;

function row(name) {
  const cells = { mode: el("td"), state: el("span", { class: "tag" }), strategy: el("span", { class: "quiet small" }) };
  for (const figure of FIGURES) cells[figure] = el("td", { class: "number" });
  cells.line = el("tr", {},
    el("th", { scope: "row" }, name), cells.mode, el("td", {}, cells.state, " ", cells.strategy), FIGURES.map((figure) => cells[figure]));
  return cells;
}

function update(cells, one) {
  const isTold = one.state !== "unknown";
  const text = {
    mode: one.mode, state: one.state, strategy: one.strategy,
    subscriptions: count(one.subscriptions), backends: count(one.backends), executions: count(one.executions),
    behind: one.lag_s < 0.05 ? "–" : seconds(one.lag_s), // unknown is below that, too
    matched: isTold ? `${perSecond(one.matched_per_s)} / ${perSecond(one.considered_per_s)}` : "–",
    results: isTold ? perSecond(one.results_per_s) : "–",
    latency: milliseconds(one.latency_ms), execution: milliseconds(one.execution_ms),
  };
  for (const [name, value] of Object.entries(text)) write(cells[name], value);
  cells.state.className = `tag ${STATES[one.state] ?? ""}`;
  cells.state.title = one.problem ?? "";
}
