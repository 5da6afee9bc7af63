/** A notification as a card: what happened, and what the channel added to it. */

import { count, el, time } from "./format.js";

const HEADLINE = new Set(["kind", "severity", "text", "report_id", "x", "y", "metres", "shelters"]);

export function card(payload, target) {
  const found = payload !== null && typeof payload === "object" && !Array.isArray(payload) ? payload : { value: payload };
  const rest = Object.entries(found).filter(([name]) => !HEADLINE.has(name));
  const about = [
    "metres" in found ? ["from you", `${count(found.metres)} m`] : null,
    "x" in found && "y" in found ? ["place", `${count(found.x)} / ${count(found.y)} m`] : null,
    ...rest.map(([name, value]) => [name, shown(value)]),
  ].filter(Boolean);
  return el("li", { class: "fresh" },
    el("header", {},
      el("h3", {}, found.kind ?? target.name, " ", "severity" in found ? el("span", { class: `tag ${found.severity >= 4 ? "bad" : found.severity >= 3 ? "warn" : ""}` }, `severity ${found.severity}`) : null),
      el("span", { class: "quiet small" }, `${target.name} · ${time(Date.now() / 1000)}`)),
    found.text ? el("p", {}, found.text) : null,
    about.length || found.shelters ? el("dl", {}, about.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]).flat(), ...(shelters(found.shelters) ?? [])) : null);
}

function shelters(list) {
  if (!Array.isArray(list) || !list.length) return null;
  const lines = list.map((one) => el("li", {}, `${one.name}${one.d === undefined ? "" : `, ${count(one.d)} m`}`));
  return [el("dt", {}, "shelters"), el("dd", {}, el("ol", {}, lines))];
}

const shown = (value) => (value !== null && typeof value === "object" ? JSON.stringify(value) : String(value));

const REASONS = { retention: "it is no longer kept", slow: "this page was too slow", owner: "its owner died", lost: "it was lost", unannounced: "nobody knows why" };

export function gapCard({ count: missing, reason }, target) {
  return el("li", { class: "gap" }, `${missing === null ? "Something" : `${count(missing)} notifications`} of ${target.name} will not come: ${REASONS[reason] ?? reason}.`);
}

/** Where something is, if it says so. */
export function placeOf(found) {
  if (found === null || typeof found !== "object" || typeof found.x !== "number" || typeof found.y !== "number") return null;
  return { x: found.x, y: found.y, radius: typeof found.radius === "number" ? found.radius : 0 };
}

/** The shelters that a notification names as marks on the map, the nearest with its name. */
export function sheltersOn(world, found) {
  const named = Array.isArray(found?.shelters) ? found.shelters : [];
  return named.flatMap(({ name }, at) => {
    const [, x, y] = world?.shelters.find(([known]) => known === name) ?? [];
    return x === undefined ? [] : [{ x, y, name, label: at === 0 ? name.split(",")[0] : "" }];
  });
}

/** Arguments in one line. */
export const short = (args) => (Array.isArray(args) ? args.join(", ") : Object.entries(args).map(([name, value]) => `${name} ${value}`).join(", "));
