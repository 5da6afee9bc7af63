/** What a subscriber sees: choose a channel, fill in its parameters, be told. */

import { paced } from "./announce.js";
import { el, fill, plural, time, write } from "./format.js";
import { parameterField, values } from "./form.js";
import { CityMap } from "./map.js";
import { card, gapCard, gapText, heard as inShort, placeOf, reportOf, sheltersOn, short } from "./notice.js";
import { addresses, ask, claims, isOfToken, lastingToken, logIn, onceMore, onTheme, open, say, setState } from "./shell.js";
import { channel, connect, defaultId } from "./tocsin.js";
import { setUpZoom } from "./zoom.js";

const KEPT = 200;
const LOOK_AGAIN_MS = 5_000;
const READ_OUT_EVERY_MS = 5_000;
const byId = (id) => document.getElementById(id);
const map = new CityMap(byId("my-map"), { onpick: pick });
const readOut = paced((text) => write(byId("heard"), text), READ_OUT_EVERY_MS);
const held = new Map(); // id → {subscription, target}
let channels = [];
let session = null;
let positions = {}; // of the last one
let onend = () => {}; // of this one
let received = 0;
let added = []; // marks of what the last notification's channel added to it
let lastBroker = null;
let wasLost = false; // since that one
let looking = 0; // the timer of the next look

// --- the form -------------------------------------------------------------------------------------------------

/** What was chosen and written stays, also while there is nothing to choose from: it may be that nobody knows. */
function showChannels(found) {
  byId("no-channels").hidden = found.length > 0;
  byId("subscribe").hidden = !found.length;
  if (!found.length || JSON.stringify(found) === JSON.stringify(channels)) return;
  const before = chosen();
  channels = found;
  fill(byId("channel"), channels.map(({ name, mode }) => el("option", { value: name, selected: name === before?.name }, `${name} (${mode})`)));
  if (JSON.stringify(chosen().parameters) !== JSON.stringify(before?.parameters)) showParameters();
}

const chosen = () => channels.find(({ name }) => name === byId("channel").value);

function showParameters() {
  const user = claims().sub ?? "local";
  fill(byId("parameters"), (chosen()?.parameters ?? []).map((one) => parameterField(one, user)));
  showPlace();
}

/** By name among the parameters alone: a form has names of its own. */
const fieldOf = (name) => [...byId("parameters").querySelectorAll("[name]")].find((field) => field.name === name);

/** A click on the map fills the fields that mean a place. */
function pick(x, y) {
  if (!fieldOf("x") || !fieldOf("y")) {
    say("This channel has no place among its parameters.");
    return;
  }
  fieldOf("x").value = x;
  fieldOf("y").value = y;
  showPlace();
}

function showPlace() {
  const written = (name) => fieldOf(name)?.value ?? "";
  byId("pick").hidden = !map.world || !fieldOf("x") || !fieldOf("y");
  const marks = [...held.values()].map(({ target }) => placeOf(target.arguments)).filter(Boolean);
  if (written("x") && written("y")) marks.push({ ...placeOf({ x: Number(written("x")), y: Number(written("y")), radius: Number(written("radius")) }), label: "here" });
  map.setMarks([...marks, ...added]);
}

async function subscribe(event) {
  event.preventDefault();
  write(byId("problem"), "");
  try {
    const target = channel(chosen().name, values(chosen().parameters, fieldOf));
    const button = byId("subscribe-button");
    button.disabled = true;
    try {
      await add(target, defaultId(target));
      say("Subscribed.");
    } finally {
      button.disabled = session === null;
    }
  } catch (problem) {
    write(byId("problem"), problem.message);
  }
}

// --- subscriptions ------------------------------------------------------------------------------------------------

async function add(target, id) {
  if (held.has(id)) throw new Error("You have this subscription already.");
  const subscription = session.subscribe(target, { id });
  held.set(id, { subscription, target });
  try {
    await subscription.ready;
  } catch (problem) {
    drop(subscription);
    throw problem;
  } finally {
    showMine();
  }
  read(subscription, target);
}

/** Unless the same was subscribed to again meanwhile. */
function drop(subscription) {
  if (held.get(subscription.id)?.subscription === subscription) held.delete(subscription.id);
}

async function read(subscription, target) {
  try {
    for await (const item of subscription) {
      if (item.type === "gap") missed(item, target);
      else told(item, target);
    }
  } catch (problem) {
    say(`${target.name}: ${problem.message}`, { isBad: true });
  }
  drop(subscription);
  showMine();
}

function missed(gap, target) {
  put(gapCard(gap, target));
  readOut(gapText(gap, target));
}

function told({ payload }, target) {
  received += 1;
  put(card(payload, target));
  readOut(inShort(received, payload, target));
  write(byId("counted"), plural(received, "notification"));
  added = sheltersOn(map.world, payload);
  write(byId("marked"), added.length ? `The newest names ${added.map(({ name }) => name).join("; ")}.` : "");
  showPlace();
  const report = reportOf(payload, received);
  if (report) map.addReports({ reports: [report] });
}

function put(line) {
  byId("no-told").hidden = true;
  const list = byId("told");
  list.prepend(line);
  while (list.children.length > KEPT) list.lastChild.remove();
}

function showMine() {
  const focused = byId("mine").contains(document.activeElement) ? document.activeElement.dataset.id : null;
  byId("no-mine").hidden = held.size > 0;
  fill(byId("mine"), [...held].map(([id, { subscription, target }]) => el("li", {},
    el("span", {}, el("strong", {}, target.name), " ", el("span", { class: "quiet small" }, short(target.arguments))),
    el("button", { onclick: () => leave(subscription), "data-id": id, "aria-label": `End ${target.name} ${short(target.arguments)}` }, "End"))));
  if (focused !== null) ([...byId("mine").querySelectorAll("button")].find(({ dataset }) => dataset.id === focused) ?? byId("mine-title")).focus();
  showPlace();
}

async function leave(subscription) {
  try {
    await subscription.unsubscribe();
  } catch (problem) {
    say(problem.message, { isBad: true });
  }
  drop(subscription);
  showMine();
}

// --- the connection ---------------------------------------------------------------------------------------------

function heard(state, detail) {
  if (state === "connected") {
    noteLink(arrival(detail));
    [lastBroker, wasLost] = [detail, false];
    setState("live", `at ${detail}`);
    byId("link").dataset.broker = detail;
  } else if (state === "disconnected") {
    wasLost = true;
    setState("lost", "connection lost, trying again");
    noteLink("the connection broke; trying again");
  } else {
    wasLost = true;
    setState("lost", "disconnected");
    noteLink(detail ? `the session ended: ${detail.message}` : "the session ended");
    onend(detail);
  }
}

/** How one came to `broker`. A move has no break; after one, what is gone for good is told by a card. */
function arrival(broker) {
  if (lastBroker === null) return `connected to ${broker}`;
  if (!wasLost) return `moved from ${lastBroker} to ${broker}, without a break`;
  return `${broker === lastBroker ? `back at ${broker}` : `back, at ${broker} instead of ${lastBroker}`}; what was missed follows`;
}

function noteLink(text) {
  if (byId("link").firstChild?.lastChild.textContent === text) byId("link").firstChild.remove(); // once is enough
  byId("link").prepend(el("li", {}, el("time", {}, time(Date.now() / 1000)), el("span", {}, text)));
  while (byId("link").children.length > 50) byId("link").lastChild.remove();
}

/** Channels to choose from and a city to show may come later than this page; one timer looks for them. */
async function look() {
  clearTimeout(looking);
  try {
    showChannels((await ask("/api/channels")).channels);
    if (!map.world) {
      const { world } = await ask("/api/city");
      byId("no-map").hidden = world !== null;
      if (world !== null) map.setWorld(world);
      showPlace();
    }
  } finally {
    if (!addresses.replay) looking = setTimeout(() => look().catch(() => {}), LOOK_AGAIN_MS);
  }
}

async function showRecording() {
  await look();
  write(byId("no-channels"), "This is a recording: it has no brokers that anybody could subscribe at.");
  setState("", "a recording");
}

/** A session from its login to its end; rejects with the reason of that. */
async function stay() {
  if (!channels.length) await look();
  const ended = new Promise((resolve) => (onend = resolve));
  session = await connect({ coordinator: addresses.coordinator, token: lastingToken, user: claims().sub ?? "local", positions, onstate: heard, settings: { backoffMaxMs: 5_000 } });
  try {
    byId("subscribe-button").disabled = false;
    for (const { id, target } of await session.held()) if (target.kind === "channel") await add(target, id).catch((problem) => say(problem.message, { isBad: true }));
    write(byId("absent"), "");
    throw await ended;
  } finally {
    await leaveSession();
  }
}

/** The next one goes on where this one was. */
async function leaveSession() {
  const left = session;
  [session, positions] = [null, left.positions];
  byId("subscribe-button").disabled = true;
  held.clear();
  showMine();
  await left.close();
}

setUpZoom(document.querySelector(".zoom"), map, "map-keys");
byId("channel").addEventListener("change", showParameters);
byId("parameters").addEventListener("input", showPlace);
byId("subscribe").addEventListener("submit", subscribe);
onTheme(() => map.redraw());
await open();
setState("", "connecting");
for (;;) {
  try {
    await (addresses.replay ? showRecording() : stay());
    break;
  } catch (problem) {
    setState("lost", "not connected, trying again");
    write(byId("absent"), isOfToken(problem) ? "" : problem.message);
    await (isOfToken(problem) ? logIn(problem.message) : onceMore());
  }
}
