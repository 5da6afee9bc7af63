/** The city: who is where, at which broker, and what is reported. */

import { byName, count, decimal, el, fill, write } from "./format.js";
import { follow } from "./live.js";
import { CityMap, standing } from "./map.js";
import { chip, isRepeated } from "./palette.js";
import { addresses, onTheme, open, setState } from "./shell.js";
import { setUpZoom } from "./zoom.js";

const SHOWN_REPORTS = 30;
const REGIONS_EVERY_MS = 3_000;
const byId = (id) => document.getElementById(id);
const map = new CityMap(byId("city-map"));
let brokers = [];
let regionsAt = 0;

function begin({ world, people }) {
  byId("no-city").hidden = world !== null;
  if (world === null) return;
  map.setWorld(world);
  if (world.placed) place(world.placed);
  if (people) move(people);
}

function take(message) {
  if (message.k === "world" || !map.world) return "again"; // a city that this page has not, or not yet
  if (message.k === "people") move(message);
  else if (message.k === "placed") place(message);
  else if (message.k === "begins") forgetReports();
  else if (message.k === "reports") report(message);
  return null;
}

function move(message) {
  if (!map.world) return;
  map.movePeople(message);
  write(byId("clock"), `${decimal(message.t, 0)} s from the beginning`);
  const now = performance.now();
  if (now - regionsAt < REGIONS_EVERY_MS) return;
  regionsAt = now;
  map.redrawRegions();
}

function place(message) {
  brokers = message.brokers;
  map.place(message);
  byId("show-brokers").hidden = !standing(message).length;
  showLegend();
}

function showLegend() {
  const counts = map.counts();
  byId("nobody").hidden = !map.world || counts.reduce((a, b) => a + b, 0) >= map.world.people;
  byId("shared").hidden = !brokers.some(isRepeated);
  const lines = brokers.map((name, at) => ({ name, people: counts[at] })).sort((a, b) => byName(a.name, b.name));
  fill(byId("legend"), lines.map(({ name, people }) => el("li", {}, el("span", {}, chip(name), name), el("span", {}, count(people)))));
}

function report(message) {
  map.addReports(message);
  byId("no-reports").hidden = true;
  const list = byId("reports");
  const lines = message.reports.slice(-SHOWN_REPORTS).map(([, kind, severity, x, y]) => el("li", {},
    el("time", {}, `${decimal(message.t, 0)} s`),
    el("span", {}, `${kind}, severity\u00a0${severity}, at\u00a0${count(x)}\u00a0/\u00a0${count(y)}\u00a0m`)));
  list.prepend(...lines.reverse());
  while (list.children.length > SHOWN_REPORTS) list.lastChild.remove();
}

/** Those of the last time that it was played. */
function forgetReports() {
  map.forgetReports();
  fill(byId("reports"));
  byId("no-reports").hidden = false;
}

byId("layers").addEventListener("change", ({ target }) => map.show(target.name, target.checked));
setUpZoom(document.querySelector(".zoom"), map, "map-keys");
onTheme(() => {
  map.redraw();
  showLegend();
});
await open();
byId("played").hidden = !addresses.replay;
follow("city", "/api/city", begin, take).catch((problem) => {
  setState("lost", "no data");
  byId("no-city").hidden = false;
  fill(byId("no-city"), el("span", {}, problem.message));
});
