/** The table of brokers, and the way to empty one. */

import { byName, count, el, fill, perSecond, plural, rate } from "./format.js";
import { colourOf, isRepeated } from "./palette.js";
import { addresses, confirm, coordinator, say } from "./shell.js";

const STATES = { live: "good", silent: "bad", dead: "bad", draining: "warn" };
const rows = new Map();

export function showBrokers(brokers) {
  const body = document.getElementById("brokers").tBodies[0];
  document.getElementById("no-brokers").hidden = brokers.length > 0;
  const sorted = [...brokers].sort((a, b) => byName(a.name, b.name));
  const most = Math.max(1, ...brokers.map(({ bytes_in, bytes_out }) => bytes_in + bytes_out));
  for (const name of [...rows.keys()]) if (!brokers.some((one) => one.name === name)) rows.delete(name);
  const wanted = sorted.map((one) => {
    if (!rows.has(one.name)) rows.set(one.name, row(one.name));
    update(rows.get(one.name), one, most);
    return rows.get(one.name).line;
  });
  if (wanted.length !== body.children.length || wanted.some((line, at) => body.children[at] !== line)) fill(body, wanted);
}

function row(name) {
  const cells = {
    chip: el("span", { class: "chip" }), state: el("span", { class: "tag" }),
    in: el("i"), out: el("i"), bytesIn: number(), bytesOut: number(), online: number(), sent: number(), lost: number(),
    drain: el("button", { onclick: () => drain(name), "aria-label": `Drain ${name}` }, "Drain …"),
  };
  cells.bar = el("div", { class: "load" }, cells.in, cells.out);
  cells.line = el("tr", { "data-broker": name },
    el("th", { scope: "row" }, cells.chip, name), el("td", {}, cells.state), el("td", {}, cells.bar),
    cells.bytesIn, cells.bytesOut, cells.online, cells.sent, cells.lost, el("td", { class: "number" }, cells.drain));
  return cells;
}

const number = () => el("td", { class: "number" });

function update(cells, one, most) {
  const text = {
    state: one.state === "draining" && !one.online ? "drained" : one.state,
    bytesIn: rate(one.bytes_in), bytesOut: rate(one.bytes_out), online: count(one.online),
    sent: perSecond(one.deliveries_per_s), lost: one.lost ? count(one.lost) : "–",
  };
  for (const [name, value] of Object.entries(text)) if (cells[name].textContent !== value) cells[name].textContent = value;
  cells.state.className = `tag ${STATES[one.state] ?? ""}`;
  cells.lost.classList.toggle("error", one.lost > 0);
  const colour = colourOf(one.name);
  cells.chip.style.setProperty("--c", colour);
  cells.chip.classList.toggle("hollow", isRepeated(one.name));
  cells.bar.style.setProperty("--c", colour);
  cells.in.style.width = `${(100 * one.bytes_in) / most}%`;
  cells.out.style.width = `${(100 * one.bytes_out) / most}%`;
  cells.drain.disabled = one.state !== "live" || addresses.replay;
  cells.online.dataset.online = one.online;
}

async function drain(name) {
  const online = Number(rows.get(name).online.dataset.online);
  const isWanted = await confirm({
    title: `Drain ${name}?`,
    text: `${plural(online, "person", "people")} online will be moved to the other brokers, and nobody new is placed there. They notice nothing. A drained broker serves again after it was restarted.`,
    action: `Drain ${name}`,
  });
  if (!isWanted) return;
  try {
    await coordinator(`/brokers/${encodeURIComponent(name)}/drain`, { method: "POST" });
    say(`${name} drains: its people are moved to the others.`);
  } catch (problem) {
    say(`${name} was not drained: ${problem.message}`, { isBad: true });
  }
}
