/** The operator's page: the system at a glance, and what an operator may do to it. */

import { Heard, showAlerts } from "./alerts.js";
import { paced } from "./announce.js";
import { showBrokers } from "./brokers.js";
import { showChannels } from "./channels.js";
import { drawPast, Past } from "./past.js";
import { count, decimal, el, fill, milliseconds, moment, perSecond, plural, rate, rateParts, seconds, write } from "./format.js";
import { follow } from "./live.js";
import { numberAll } from "./palette.js";
import { setUpPolicies, showPolicies } from "./policies.js";
import { addresses, isLost, onState, onTheme, open, setState } from "./shell.js";
import * as words from "./words.js";

const CHARTS_EVERY_MS = 2_000;
const SHOWN_EVENTS = 120;
const UNHEARD_S = 60; // so long a move that has not ended is shown after it was last told
const READ_OUT_EVERY_MS = 5_000;
const byId = (id) => document.getElementById(id);

const past = new Past();
const heard = new Heard();
const readOut = paced((text) => write(byId("heard"), text), READ_OUT_EVERY_MS);
const events = new Map(); // id → {at, text, kind, until}
let last = null; // sample
let drawnAt = 0;

function begin({ past: found }) {
  numberAll(Object.keys(found.brokers));
  past.begin(found);
  events.clear();
  drawEvents(0);
  if (found.now) show(found.now);
}

function take(sample) {
  if (sample.n <= past.n) return;
  past.add(sample);
  show(sample);
}

function show(sample) {
  last = sample;
  tellAlerts();
  const news = heard.take(sample);
  if (news) readOut(news);
  showTiles(sample);
  showBrokers(sample.brokers);
  showChannels(sample);
  showEvents(sample);
  if (sample.policies) {
    showPolicies(sample.policies);
    write(byId("no-events"), words.undecided(sample.policies));
  }
  const now = performance.now();
  if (now - drawnAt < CHARTS_EVERY_MS || document.hidden || !window.Plotly) return;
  drawnAt = now;
  drawPast(past);
}

const tellAlerts = () => showAlerts(byId("alerts"), last, { isLost: isLost(), isPlayed: addresses.replay });

function showTiles({ figures, brokers, channels, cluster }) {
  const online = brokers.reduce((sum, { online }) => sum + online, 0);
  const serving = brokers.filter(({ state }) => state === "live").length;
  tiles({
    ...(figures ? told(figures, online, serving) : NO_COORDINATOR),
    ...(words.isAway(channels, cluster) ? NO_CLUSTER : run(channels, cluster)),
    "Spark": spark(cluster),
  });
}

const away = (who, ...names) => Object.fromEntries(names.map((name) => [name, ["–", "", `the ${who} is away`]]));
const NO_COORDINATOR = away("coordinator", "Balance (cov)", "Load in all", "People online");
const NO_CLUSTER = away("cluster", "Results", "Record to result");

/** What the coordinator tells of the brokers. */
function told(figures, online, serving) {
  return {
    "Balance (cov)": [decimal(figures.cov, 3), "", figures.total === 0 ? "no load yet" : `highest ${rate(figures.maximum)}`],
    "Load in all": [...rateParts(figures.total), `mean ${rate(figures.mean)} a broker`],
    "People online": [count(online), "", `at ${plural(serving, "live broker")}`],
  };
}

/** What the cluster tells of the channels. */
function run(channels, { latency_ms }) {
  const results = channels.reduce((sum, { results_per_s }) => sum + results_per_s, 0);
  const lag = Math.max(0, ...channels.map(({ lag_s }) => lag_s));
  return {
    "Results": [perSecond(results), "/s", plural(channels.length, "channel")],
    "Record to result": [milliseconds(latency_ms), "", lag > 1 ? `${seconds(lag)} behind at most` : "nothing waits"],
  };
}

function spark({ is_ready, reason, spark: found, started_at }) {
  if (addresses.replay) return ["–", "", "none in a recording"];
  if (!is_ready) return ["away", "", reason];
  const since = started_at ? `since ${moment(Date.parse(started_at) / 1000, Date.now() / 1000).slice(0, -3)}` : "";
  return ["ready", "", [found.version, found.master, since].filter(Boolean).join(", ") || reason];
}

function tiles(wanted) {
  const list = byId("tiles");
  if (!list.children.length) {
    fill(list, Object.keys(wanted).map((name) => el("div", { class: "tile" }, el("dt", {}, name), el("dd"), el("dd", { class: "note" }))));
  }
  Object.values(wanted).forEach(([value, unit, note], at) => {
    const [, shown, beside] = list.children[at].children;
    const text = `${value}${unit ? ` ${unit}` : ""}`;
    if (shown.dataset.text !== text) {
      shown.dataset.text = text;
      fill(shown, String(value), unit ? el("small", {}, unit) : null);
    }
    write(beside, note);
    beside.title = note;
  });
}

function showEvents({ at, decisions, moves, plans }) {
  for (const one of decisions) note(`d${one.at}`, one.at, words.decision(one), one.action === "nothing" ? "nothing" : "decision");
  for (const one of plans) note(`p${one.id}`, one.created_at, words.plan(one), "plan");
  for (const one of moves) note(`m${one.id}`, one.ended_at ?? one.created_at, words.move(one), "move", words.hasEnded(one) ? Infinity : at + UNHEARD_S);
  const isForgotten = forget(at);
  if (decisions.length || moves.length || plans.length || isForgotten) drawEvents(at);
}

function drawEvents(now) {
  const newest = [...events.values()].sort((a, b) => b.at - a.at).slice(0, SHOWN_EVENTS);
  byId("no-events").hidden = newest.length > 0;
  byId("events").hidden = !newest.length;
  fill(byId("events"), newest.map(({ at, text, kind }) => el("li", {},
    el("time", {}, at > 1e9 ? moment(at, now) : `${decimal(at, 0)} s`),
    el("span", { class: kind === "nothing" ? "quiet" : null }, text))));
}

function note(id, at, text, kind, until = Infinity) {
  const [lastId, last] = [...events].at(-1) ?? [];
  if (kind === "nothing" && last?.kind === kind && last.text === text) events.delete(lastId); // the same again
  events.set(id, { at, text, kind, until });
  if (events.size > 4 * SHOWN_EVENTS) events.delete(events.keys().next().value);
}

/** Whether there was a move of which nothing more is told: of very many at once, the samples have only the newest. */
function forget(now) {
  const old = [...events].filter(([, { until }]) => until < now);
  for (const [id] of old) events.delete(id);
  return old.length > 0;
}

onTheme(() => {
  drawnAt = 0;
  if (past.n) drawPast(past);
});
onState(() => last && isLost() && tellAlerts()); // what is not old any more is told by the next sample
await open();
setUpPolicies();
if (addresses.replay) write(byId("no-events"), "Nobody was arranged anew yet: the replay does that every half minute.");
follow("system", "/api/history", begin, take).catch((problem) => {
  setState("lost", "no data");
  fill(byId("alerts"), el("li", {}, problem.message));
  readOut(problem.message);
});
