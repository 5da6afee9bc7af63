/** The papers' claims and figures, and a study of one's own. */

import { drawPlain } from "./charts.js";
import { count, decimal, el, fill, plural, rate, write } from "./format.js";
import { palette } from "./palette.js";
import { addresses, ask, onTheme, open, setState, token } from "./shell.js";
import { hasAnyBrokers, question, SCHEMES } from "./study.js";

const byId = (id) => document.getElementById(id);
let last = null;

// --- claims ---------------------------------------------------------------------------------------------------

async function showPapers() {
  const { papers } = await ask("/api/lab/claims");
  const known = papers.filter(({ claims, figures }) => claims.length || figures.length);
  const all = known.flatMap(({ claims }) => claims);
  write(byId("agreed"), all.length ? `${all.filter(({ agrees }) => agrees).length} of ${plural(all.length, "claim")} agree` : "");
  fill(byId("papers"), known.length ? known.flatMap(paper) : el("p", { class: "empty" }, "No paper was reproduced here yet. ", el("code", {}, "make papers"), " takes some minutes, and writes the figures and the report that this page shows."));
}

function paper({ id, title, claims, figures }) {
  return [
    el("h3", {}, title),
    figures.length
      ? el("ul", { class: "figures" }, figures.map((name) => el("li", {}, el("a", { href: figureUrl(id, name), target: "_blank" }, el("img", { src: figureUrl(id, name), alt: label(name), loading: "lazy" }), label(name)))))
      : el("p", { class: "quiet small" }, "The figures are not here; ", el("code", {}, "make papers"), " draws them."),
    el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": `Claims of ${title}` }, el("table", {},
      el("thead", {}, el("tr", {}, ["Section", "Claim", "Published", "Measured", "Agrees"].map((name) => el("th", { scope: "col" }, name)))),
      el("tbody", {}, claims.map(claim)))),
  ];
}

const figureUrl = (id, name) => `/api/lab/figures/${id}/${name}`;
const label = (name) => name.replace(/\.png$/, "").replace(/^figure0*/, "Figure ");

function claim({ section, claim: text, published, measured, agrees, note }) {
  return el("tr", {},
    el("td", { class: "quiet" }, section), el("td", {}, text), el("td", {}, published),
    el("td", {}, measured, note ? el("span", { class: "note" }, note) : null),
    el("td", {}, el("span", { class: `tag ${agrees ? "good" : "bad"}` }, agrees ? "yes" : "no")));
}

// --- a study ----------------------------------------------------------------------------------------------------

async function run(event) {
  event.preventDefault();
  const form = byId("study");
  const wanted = new FormData(form);
  const chosen = wanted.getAll("scheme");
  if (!chosen.length) {
    fill(byId("result"), el("p", { class: "empty error" }, "Choose at least one scheme to run."));
    return;
  }
  if (!token() && !addresses.insecure) {
    fill(byId("result"), el("p", { class: "empty error", role: "alert" }, "You have to log in to run a study: choose “Log in” at the top right, and paste a token with the capability ", el("code", {}, "coordinator"), "."));
    return;
  }
  const button = form.querySelector("button");
  button.disabled = true;
  fill(byId("result"), el("p", { class: "empty" }, "Simulating … the first study takes up to half a minute longer, for the policies are compiled then."));
  try {
    const found = await ask("/api/lab/study", { method: "POST", body: question(wanted) });
    last = { ...found, names: chosen.map((name) => SCHEMES[name].name) };
    show();
  } catch (problem) {
    fill(byId("result"), el("p", { class: "empty error", role: "alert" }, `The study did not run: ${problem.message}`));
  }
  button.disabled = false;
}

function show() {
  const { schemes, names, seconds } = last;
  write(byId("took"), `simulated in ${decimal(seconds)} s`);
  const cell = (text) => el("td", { class: "number" }, text);
  fill(byId("result"), el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Results" }, el("table", { id: "schemes" },
    el("thead", {}, el("tr", {}, ["Scheme", "cov, second half", "Highest load", "Migrations", "Plans"].map((name, at) => el("th", { scope: "col", class: at ? "number" : null }, name)))),
    el("tbody", {}, schemes.map((one, at) => el("tr", {}, el("th", { scope: "row" }, el("span", { class: "chip", style: { "--c": palette()[at] } }), names[at]), cell(decimal(one.mean_cov, 3)), cell(rate(one.peak)), cell(count(one.migrations)), cell(count(one.plans))))))));
  byId("curves").hidden = false;
  const line = (y, at) => ({ name: names[at], x: schemes[at].minutes, y, colour: palette()[at] });
  drawPlain(byId("study-cov"), schemes.map((one, at) => line(one.cov, at)), { xTitle: "minutes", title: "cov" });
  drawPlain(byId("study-max"), schemes.map((one, at) => line(one.minutes.map((_, when) => Math.max(...one.loads.map((load) => load[when]))), at)), { xTitle: "minutes", unit: "B/s", title: "highest load" });
}

function showBrokers() {
  const isAny = hasAnyBrokers(byId("study").elements.world.value);
  byId("study").elements.brokers.disabled = !isAny;
  byId("five").hidden = isAny;
}

onTheme(() => last && show());
byId("study").addEventListener("submit", run);
byId("study").elements.world.addEventListener("change", showBrokers);
showBrokers(); // a browser may remember what was chosen
await open({ needsToken: false });
setState(token() || addresses.insecure ? "live" : "", token() || addresses.insecure ? "ready" : "log in to run a study");
showPapers().catch((problem) => fill(byId("papers"), el("p", { class: "empty error" }, problem.message)));
