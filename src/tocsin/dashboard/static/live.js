/** Follow one of the dashboard's own topics: what was, then what comes, each message once. */

import { connect } from "./tocsin.js";
import { addresses, ask, logIn, setState, token } from "./shell.js";

let session = null;

/** The one connection of this page, over the protocol that subscribers use. */
async function connected() {
  session ??= connect({
    broker: location.origin,
    token: token(),
    settings: { backoffMaxMs: 5_000 },
    onstate(name) {
      if (name === "connected") setState("live", addresses.replay ? "playing a recording" : "live");
      else if (name === "disconnected") setState("lost", "connection lost, trying again");
      else setState("lost", "disconnected");
    },
  });
  return session;
}

/** `begin` gets the past that `path` has, and again after a gap; `take` gets every message after it. */
export async function follow(topic, path, begin, take) {
  for (;;) {
    let position = null;
    try {
      const found = await ask(path);
      position = found.position ?? null;
      begin(found);
    } catch (problem) {
      if (problem.status !== 401) throw problem;
      await logIn(problem.message);
      continue;
    }
    if (await untilGap(topic, position, take)) return;
  }
}

/** Whether it ended for good. */
async function untilGap(topic, position, take) {
  const subscription = (await connected()).topic(topic, position === null ? {} : { position });
  for await (const item of subscription) {
    if (item.type === "gap" || take(item.payload) === "again") {
      await subscription.unsubscribe();
      return false;
    }
  }
  return true;
}
