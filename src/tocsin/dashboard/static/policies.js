/** Which policies are in force, choosing others, and what each would do now. */

import { asked, changesOf, namesOf, NONE, Recent } from "./choice.js";
import { count, decimal, el, fill, rate } from "./format.js";
import { addresses, confirm, coordinator, say } from "./shell.js";
import * as words from "./words.js";

const MIGRATE = ["xbal", "ldm", "sdm", "gmove"]; // not made for shuffling everybody
const SHUFFLE = ["simsh", "gsh"]; // nor these for a move now and then
const form = document.getElementById("policies");
const recent = new Recent();
let shown = null; // by field, what was in force when the form was filled
let known = "";
let isSwitching = false;

export function setUpPolicies() {
  if (addresses.replay) {
    onlyShow();
    return;
  }
  form.addEventListener("submit", choose);
  form.addEventListener("change", offer);
  const button = document.getElementById("compare");
  button.addEventListener("click", () => compare(button));
}

/** A recording has no coordinator that could be asked for anything. */
function onlyShow() {
  document.getElementById("compare").disabled = true;
  fill(form, el("p", { class: "quiet small" }, "This is a recording, and no policy decides here: the replay puts people to the nearest broker, and every half minute spreads them evenly or takes that back."));
  fill(document.getElementById("comparison"), el("p", { class: "empty" }, "A recording has no coordinator whose policies could be compared. On a running system they are compared here, and nobody is moved by asking."));
}

/** Follow what the coordinator has, unless somebody is choosing. */
export function showPolicies(policies) {
  const said = JSON.stringify(policies);
  if (!recent.take(policies) || isSwitching || said === known || (shown && pending().length)) return;
  known = said;
  fillIn(policies);
}

function fillIn(policies) {
  shown = namesOf(policies);
  options(form.elements.placement, policies.known, shown.placement);
  options(form.elements.migrate, [NONE, ...policies.known_balancing.filter((name) => !SHUFFLE.includes(name))], shown.migrate);
  options(form.elements.shuffle, [NONE, ...policies.known_balancing.filter((name) => !MIGRATE.includes(name))], shown.shuffle);
  offer();
}

const pending = () => changesOf(shown, Object.fromEntries(new FormData(form)));

const offer = () => (form.querySelector("button").disabled = isSwitching || !shown || !pending().length);

function options(select, names, chosen) {
  const all = names.includes(chosen) ? names : [chosen, ...names];
  fill(select, all.map((name) => el("option", { value: name, selected: name === chosen }, name)));
}

async function choose(event) {
  event.preventDefault();
  const changes = pending();
  const isWanted = await confirm({ title: "Switch policies?", text: words.switching(changes), action: "Switch policies" });
  if (!isWanted) return;
  isSwitching = true;
  offer();
  try {
    const body = asked(await coordinator("/policies"), changes);
    const found = await coordinator("/policies", { method: "PUT", body });
    recent.switched();
    known = JSON.stringify(found);
    fillIn(found);
    say("These policies are in force now.");
  } catch (problem) {
    say(`The policies stay as they were: ${problem.message}`, { isBad: true });
  }
  isSwitching = false;
  offer();
}

async function compare(button) {
  const target = document.getElementById("comparison");
  button.disabled = true;
  fill(target, el("p", { class: "empty" }, "Every policy plans with the people who are online now. The first time this takes up to half a minute, for the policies are compiled then."));
  try {
    show(target, await coordinator("/rebalance", { method: "POST", body: { policy: "all", dry_run: true } }));
  } catch (problem) {
    fill(target, el("p", { class: "empty error", role: "alert" }, `Nothing to compare: ${problem.message}`));
  }
  button.disabled = false;
}

function show(target, found) {
  const best = words.mostEven(found.trials);
  const rows = [row("as it is", found.now, null), ...found.trials.map((trial) => row(trial.policy, trial.after, trial, best))];
  fill(target,
    el("p", { class: "quiet small" }, words.compared(found, Date.now() / 1000)),
    el("div", { class: "scroll", tabindex: 0, role: "group", "aria-label": "Comparison of policies" },
      el("table", { id: "trials" },
        el("thead", {}, el("tr", {}, ["Policy", "Highest load", "Of the least possible", "cov", "Load in all", "Moves", "Took", "Ended"].map((name, at) => el("th", { scope: "col", class: at && at < 7 ? "number" : null }, name)))),
        el("tbody", {}, rows))));
}

function row(name, figures, trial, best = null) {
  const cell = (text) => el("td", { class: "number" }, text);
  return el("tr", {},
    el("th", { scope: "row" }, name, trial && figures.cov === best ? el("span", { class: "tag good", style: { "margin-left": ".5em" } }, "most even") : null),
    cell(rate(figures.maximum)), cell(`× ${decimal(figures.ratio, 2)}`), cell(decimal(figures.cov, 3)), cell(rate(figures.total)),
    cell(trial ? count(trial.moves) : "–"), cell(trial ? `${trial.milliseconds.toFixed(0)} ms` : "–"),
    el("td", { class: "quiet" }, trial ? `${trial.status}: ${trial.reason}` : "now"));
}
