/** A notification as a card: what happened, and what the channel added to it. A payload may be anything, and is shown
 * in any case, what is long not to its end. */

import { count, el, moment, plural, time } from "./format.js";

const HEADLINE = ["kind", "severity", "text", "report_id", "x", "y", "metres", "shelters"];

const LONGEST = 2_000; // characters of a value
const MOST = 50; // values
const HEARD = 160; // characters that are read out of a text

/** `now` in Unix seconds: what was missed meanwhile is received now, too, whenever it happened. */
export function card(payload, target, now = Date.now() / 1000) {
  const found = fieldsOf(payload);
  const has = (...names) => names.every((name) => (found[name] ?? null) !== null); // a column may be NULL
  const at = momentOf(found.at);
  const inHead = new Set(at === null ? HEADLINE : [...HEADLINE, "at"]);
  const rest = Object.entries(found).filter(([name]) => !inHead.has(name)).slice(0, MOST);
  const about = [
    has("metres") ? ["from you", metres(found.metres)] : null,
    has("x", "y") ? ["place", `${number(found.x)} / ${metres(found.y)}`] : null,
    ...rest.map(([name, value]) => [shown(name), shown(value)]),
  ].filter(Boolean);
  const severity = numeric(found.severity, 0);
  return el("li", { class: "fresh" },
    el("header", {},
      el("h3", {}, shown(found.kind ?? target.name), " ", has("severity") ? el("span", { class: `tag ${severity >= 4 ? "bad" : severity >= 3 ? "warn" : ""}` }, `severity ${shown(found.severity)}`) : null),
      el("span", { class: "quiet small" }, [target.name, at === null ? null : moment(at, now), `received ${time(now)}`].filter(Boolean).join(" · "))),
    found.text ? el("p", {}, shown(found.text)) : null,
    about.length || found.shelters ? el("dl", {}, about.map(([name, value]) => [el("dt", {}, name), el("dd", {}, value)]).flat(), ...shelters(found)) : null);
}

const fieldsOf = (payload) => (payload !== null && typeof payload === "object" && !Array.isArray(payload) ? payload : { value: payload });

/** Unix seconds of a timestamp, a number of these or a text that says its time zone; null for anything else. */
export function momentOf(at) {
  if (typeof at === "string" && /^\d{4}-\d\d-\d\d[T ].*(Z|[+-]\d\d:?\d\d)$/.test(at)) return Number.isNaN(Date.parse(at)) ? null : Date.parse(at) / 1000;
  return typeof at === "number" && at > 1e9 && at < 1e11 ? at : null;
}

/** What is read out of notifications: how many there are, and the newest in short. */
export function heard(received, payload, target) {
  const { kind, severity, text } = fieldsOf(payload);
  const newest = [shown(kind ?? target.name), (severity ?? null) === null ? null : `severity ${shown(severity)}`, text ? shown(text) : null].filter(Boolean);
  return `${plural(received, "notification")}; newest: ${newest.join(", ").slice(0, HEARD)}`;
}

function shelters(found) {
  const lines = sheltersOf(found).map((one) => el("li", {}, `${shown(one.name)}${(one.d ?? null) === null ? "" : `, ${metres(one.d)}`}`));
  if (!lines.length) return [];
  return [el("dt", {}, "shelters"), el("dd", {}, el("ol", {}, lines))];
}

const sheltersOf = (found) => (Array.isArray(found?.shelters) ? found.shelters.filter((one) => typeof one?.name === "string").slice(0, MOST) : []);

const numeric = (value, otherwise) => (typeof value === "number" ? value : otherwise);

const number = (value) => (typeof value === "number" ? count(value) : shown(value));

const metres = (value) => `${number(value)}\u00a0m`; // never the unit alone on a line

/** Any value as text. */
export function shown(value) {
  if (value === null) return "–";
  const text = value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST)} … (${count(text.length)} characters)` : text;
}

const REASONS = { retention: "it is no longer kept", slow: "this page was too slow", owner: "its owner died", lost: "it was lost", unannounced: "nobody knows why" };

export const gapText = ({ count: missing, reason }, target) => `${missing === null ? "Something" : plural(missing, "notification")} of ${target.name} will not come: ${REASONS[reason] ?? reason}.`;

export const gapCard = (gap, target) => el("li", { class: "gap" }, gapText(gap, target));

/** Where something is, if it says so. */
export function placeOf(found) {
  if (found === null || typeof found !== "object" || typeof found.x !== "number" || typeof found.y !== "number") return null;
  return { x: found.x, y: found.y, radius: Math.max(0, numeric(found.radius, 0)) };
}

/** A notification as a report on the map, if it says where. */
export function reportOf(found, id) {
  const place = placeOf(found);
  return place && [id, "", numeric(found.severity, 1), place.x, place.y, numeric(found.radius, 300)];
}

/** The shelters that a notification names as marks on the map, the nearest with its name. */
export function sheltersOn(world, found) {
  return sheltersOf(found).flatMap(({ name }, at) => {
    const [, x, y] = world?.shelters.find(([known]) => known === name) ?? [];
    return x === undefined ? [] : [{ x, y, name, isShelter: true, label: at === 0 ? name.split(",")[0] : "" }];
  });
}

/** Arguments in one line. */
export const short = (args) => (Array.isArray(args) ? args.join(", ") : Object.entries(args).map(([name, value]) => `${name} ${value}`).join(", "));
