/** What an operator should look at, or that there is nothing; and how old that is where the connection is lost. */

import { el, fill, moment, plural } from "./format.js";

const PLAYED = "This is a recording: people and reports are recorded; brokers, their loads and who is at which are made up for the replay.";
const CALM = "within its budgets: lag, balance, loss.";

/** `isLost`: nothing has come since this sample, of the time `at`; it is `now`. */
export function showAlerts(list, { at, alerts, problems }, { isLost = false, isPlayed = false, now = Date.now() / 1000 } = {}) {
  const found = [
    ...alerts.map((alert) => el("li", {}, alert.text, el("span", {}, `since ${moment(alert.since, now)}`))),
    ...problems.map((text) => el("li", { class: "note" }, text)),
  ];
  if (isPlayed) found.unshift(el("li", { class: "calm" }, PLAYED));
  else if (!found.length) found.push(el("li", { class: "calm" }, `Everything ${isLost ? "was" : "is"} ${CALM}`));
  if (isLost) found.unshift(el("li", {}, `The connection is lost: this page is as of ${moment(at, now)}.`));
  const said = JSON.stringify([isLost, found.map((line) => line.textContent)]);
  if (list.dataset.said === said) return;
  list.dataset.said = said;
  list.classList.toggle("old", isLost);
  fill(list, found);
}

/** What is to be read out of samples: how many alerts there are and the newest, or null where none has come or gone. */
export class Heard {
  #known = new Set();

  take({ alerts, problems }) {
    const found = new Map([...alerts.map(({ id, text }) => [id, text]), ...problems.map((text) => [text, text])]);
    const news = [...found.keys()].filter((id) => !this.#known.has(id));
    const isSame = !news.length && found.size === this.#known.size;
    this.#known = new Set(found.keys());
    if (isSame) return null;
    if (!found.size) return `Everything is ${CALM}`;
    return `${plural(found.size, "alert")}${news.length ? `; newest: ${found.get(news.at(-1))}` : " left."}`;
  }
}
