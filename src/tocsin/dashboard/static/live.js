/** Follow one of the dashboard's own topics: what was, then what comes, each message once. */

import { connect } from "./tocsin.js";
import { addresses, askPatiently, lastingToken, setState } from "./shell.js";

let session = null;
let link = "";

/** The one connection of this page, over the protocol that subscribers use. */
async function connected() {
  session ??= connect({
    broker: location.origin,
    token: lastingToken,
    settings: { backoffMaxMs: 5_000 },
    onstate(name) {
      link = name;
      showLink();
    },
  });
  return session;
}

function showLink() {
  if (link === "connected") setState("live", addresses.replay ? "playing a recording" : "live");
  else if (link === "disconnected") setState("lost", "connection lost, trying again");
  else if (link) setState("lost", "disconnected");
}

/** `begin` gets the past that `path` has, and again after a gap; `take` gets every message after it. */
export async function follow(topic, path, begin, take) {
  for (;;) {
    const found = await askPatiently(path, { onwait: () => setState("lost", "no answer, trying again") });
    showLink();
    begin(found);
    if (await untilGap(topic, found.position ?? null, take)) return;
  }
}

/** Whether it ended for good. */
async function untilGap(topic, position, take) {
  const subscription = (await connected()).topic(topic, position === null ? {} : { position });
  for await (const item of subscription) {
    if (item.type === "gap" || isToBegin(take, item.payload)) {
      await subscription.unsubscribe();
      return false;
    }
  }
  return true;
}

/** Whether to begin again after a message, as after one that the page could not make sense of. */
function isToBegin(take, message) {
  try {
    return take(message) === "again";
  } catch (problem) {
    console.warn("a message was not understood", problem);
    return true;
  }
}
