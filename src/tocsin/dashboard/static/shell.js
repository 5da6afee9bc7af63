/**
 * What every page has: the bar, light and dark, a token, and ways to say something.
 *
 * The token stays in this tab. It comes from the address that `tocsin dashboard` printed, once, or is pasted. Every
 * request carries it, and nobody else's.
 */

import { el, fill, time, write } from "./format.js";

const PAGES = { "/operator": "Operator", "/city": "City map", "/me": "My page", "/lab": "Lab" };
const KEY = "tocsin.token";
const ENDS_SOON_S = 120;
const AGAIN_MS = 5_000;
const BELL = '<svg viewBox="0 0 24 24" aria-hidden="true"><path d="M12 2a1.6 1.6 0 0 0-1.6 1.6v.5C7.3 4.8 5 7.500 5 10.800V15l-2 3v1h18v-1l-2-3v-4.200c0-3.300-2.300-6-5.400-6.700v-.5A1.600 1.600 0 0 0 12 2Zm-2.600 18a2.700 2.700 0 0 0 5.200 0Z"/></svg>';

const BAD_TOKEN = 4400; // the code with which a broker closes a connection

export let addresses = null;
let isTokenNeeded = true;
let state;

/** Draw the bar; resolves when there is a token, or none is needed. */
export async function open({ needsToken = true } = {}) {
  drawBar();
  addresses = await (await fetch("/api/addresses")).json();
  isTokenNeeded = needsToken && !addresses.insecure;
  await enter();
  if (isTokenNeeded && !token()) await logIn();
  return addresses;
}

export const token = () => sessionStorage.getItem(KEY);

/** For a connection that lasts: asks for another token in the minutes before this one ends. */
export async function lastingToken() {
  const { exp } = claims();
  if (exp && exp - Date.now() / 1000 < ENDS_SOON_S) await logIn(`Your token ends at ${time(exp)}. Paste another one to go on.`);
  return token();
}

/** The claims of a token, unverified: for showing a name, never for deciding. */
export function claims(of = token()) {
  try {
    const body = of.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(atob(body), (c) => c.charCodeAt(0))));
  } catch {
    return {};
  }
}

/** A request with the token; rejects with the sentence of the problem. */
export async function ask(url, { method = "GET", body = null } = {}) {
  const headers = { ...(token() ? { Authorization: `Bearer ${token()}` } : {}), ...(body === null ? {} : { "Content-Type": "application/json" }) };
  let answer;
  try {
    answer = await fetch(url, { method, headers, body: body === null ? null : JSON.stringify(body) });
  } catch {
    throw new Error(`${new URL(url, location.href).origin} cannot be reached from this page.`);
  }
  const isJson = (answer.headers.get("content-type") ?? "").includes("json");
  const found = isJson ? await answer.json() : null;
  if (!answer.ok) throw Object.assign(new Error(found?.detail ?? `The answer was ${answer.status}.`), { status: answer.status });
  return found;
}

/** Whether another token may overcome a problem, of a request or of a session. */
export const isOfToken = ({ status, code, number }) => status === 401 || code === "unauthenticated" || number === BAD_TOKEN;

/** The pause before something is tried again. */
export const onceMore = () => new Promise((resolve) => setTimeout(resolve, AGAIN_MS));

/** As `ask`, again and again while nobody answers; what is refused for good is thrown. */
export async function askPatiently(url, { onwait = () => {} } = {}) {
  for (;;) {
    try {
      return await ask(url);
    } catch (problem) {
      if (problem.status === 401) await logIn(problem.message);
      else if (problem.status < 500) throw problem;
      else {
        onwait();
        await onceMore();
      }
    }
  }
}

export const coordinator = (path, options) => ask(addresses.coordinator + path, options);

/** `state` is live, lost or empty; `text` is what to say beside it. */
export function setState(name, text) {
  write(state, text);
  if (state.dataset.state === name) return;
  state.dataset.state = name;
  dispatchEvent(new Event("tocsin-state"));
}

/** Called whenever the connection is lost or there again. */
export const onState = (work) => addEventListener("tocsin-state", work);

export const isLost = () => state.dataset.state === "lost";

let fading;
export function say(text, { isBad = false } = {}) {
  document.querySelector(".toast")?.remove();
  document.body.append(el("div", { class: "toast", role: isBad ? "alert" : "status", "data-bad": isBad }, text));
  clearTimeout(fading);
  fading = setTimeout(() => document.querySelector(".toast")?.remove(), isBad ? 12_000 : 5_000);
}

/** Ask before something is done; resolves with whether it was wanted. */
export function confirm({ title, text, action }) {
  return new Promise((resolve) => {
    const dialog = el("dialog", { "aria-labelledby": "confirm-title" },
      el("form", { method: "dialog" },
        el("h2", { id: "confirm-title" }, title),
        el("p", {}, text),
        el("div", { class: "row" },
          el("button", { value: "yes", class: "danger" }, action),
          el("button", { value: "no", autofocus: true }, "Leave it as it is"))));
    dialog.addEventListener("close", () => {
      resolve(dialog.returnValue === "yes");
      dialog.remove();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

let asking = null;

/** A dialog in which a token is pasted, one at a time; resolves when there is one, or none is needed and none was given. */
export function logIn(problem = "") {
  asking ??= askToken(problem).finally(() => (asking = null));
  return asking;
}

function askToken(problem) {
  const before = claims().sub;
  return new Promise((resolve) => {
    const pasted = el("input", { type: "password", required: true, spellcheck: "false", autocomplete: "off", id: "pasted-token" });
    const wrong = el("p", { class: "error", role: "alert" }, problem);
    const dialog = el("dialog", { "aria-labelledby": "login-title" },
      el("form", {},
        el("h2", { id: "login-title" }, "Who is there?"),
        el("p", { class: "quiet" }, "What you see and may do follows from your token. It stays in this tab."),
        el("label", { for: "pasted-token" }, "Token", pasted),
        el("p", { class: "quiet small" }, "Make one with ", el("code", {}, "tocsin token NAME --data-dir DIR --can read --can 'topic:*'"), "; who subscribes needs ", el("code", {}, "--can 'subscribe:*'"), ", an operator ", el("code", {}, "--can admin"), ". DIR is where the system keeps its data: ", el("code", {}, ".tocsin"), " unless another was named, ", el("code", {}, ".demo/data"), " for a demo."),
        wrong,
        el("div", { class: "row" },
          el("button", { class: "primary" }, "Log in"),
          isTokenNeeded ? null : el("button", { type: "button", onclick: () => dialog.close() }, "Cancel"))));
    let isGiven = false;
    dialog.addEventListener("close", () => { // by Esc, too, which a page can refuse only once
      if (isTokenNeeded && !isGiven) {
        dialog.showModal();
        return;
      }
      dialog.remove();
      resolve();
    });
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      const given = pasted.value.trim();
      const { sub } = claims(given);
      if (!sub) {
        write(wrong, "This is not a token: expected three parts with points between them.");
        return;
      }
      sessionStorage.setItem(KEY, given);
      if (before && sub !== before) {
        location.reload(); // what is shown is another's
        return;
      }
      showUser();
      isGiven = true;
      dialog.close();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}

export function logOut() {
  sessionStorage.removeItem(KEY);
  location.reload();
}

/** Called whenever light becomes dark or the other way round. */
export const onTheme = (work) => addEventListener("tocsin-theme", work);

async function enter() {
  const ticket = new URLSearchParams(location.hash.slice(1)).get("enter");
  if (!ticket) return;
  history.replaceState(null, "", location.pathname + location.search);
  try {
    const { token: given } = await ask("/api/enter", { method: "POST", body: { ticket } });
    sessionStorage.setItem(KEY, given);
    showUser();
  } catch (problem) {
    if (!token()) await logIn(problem.message); // one who is in already came by the address before
  }
}

function drawBar() {
  const here = location.pathname;
  state = el("span", { class: "state", role: "status" }, "connecting");
  const bar = el("div", {},
    el("a", { class: "brand", href: "/operator" }),
    el("nav", { "aria-label": "Pages" }, Object.entries(PAGES).map(([path, name]) => el("a", { href: path, "aria-current": path === here ? "page" : null }, name))),
    state,
    el("button", { class: "plain", id: "theme", onclick: switchTheme }),
    el("button", { class: "plain", id: "user", onclick: () => (token() ? logOut() : logIn()) }));
  bar.firstChild.innerHTML = BELL;
  bar.firstChild.append("Tocsin");
  const header = el("header", { class: "bar" }, bar);
  document.body.prepend(el("a", { class: "skip", href: "#main" }, "Skip to the page"), header);
  showTheme();
  onTheme(showTheme);
  showUser();
}

function showUser() {
  const button = document.getElementById("user");
  write(button, token() ? `Log out ${claims().sub ?? ""}` : "Log in");
}

function showTheme() {
  const isDark = document.documentElement.dataset.theme === "dark";
  const button = document.getElementById("theme");
  fill(button, el("span", { "aria-hidden": "true" }, isDark ? "☀" : "☾"));
  button.setAttribute("aria-label", isDark ? "Switch to light" : "Switch to dark");
}

function switchTheme() {
  const next = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  document.documentElement.dataset.theme = next;
  localStorage.setItem("tocsin.theme", next);
  dispatchEvent(new Event("tocsin-theme"));
}
