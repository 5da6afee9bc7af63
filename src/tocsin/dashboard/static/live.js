/** Follow one of the dashboard's own topics: what was, then what comes, each message once. */

import { connect } from "./tocsin.js";
import { addresses, askPatiently, isOfToken, lastingToken, logIn, onceMore, setState } from "./shell.js";

let session = null; // a promise
let link = "";

/** The one connection of this page, over the protocol that subscribers use. */
function connected() {
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

const GIVEN_UP = new Set(["forbidden", "bad-argument"]); // by who may not see this, whatever is tried

/**
 * `begin` gets the past that `path` has, and again after a gap; `take` gets every message after it. For as long as the
 * page is open: where the session or the subscription ended, another is begun. Rejects with what is refused for good.
 */
export async function follow(topic, path, begin, take) {
  for (;;) {
    try {
      await followOnce(topic, path, begin, take);
    } catch (problem) {
      if (problem.status || GIVEN_UP.has(problem.code)) throw problem;
      if (isOfToken(problem)) await logIn(problem.message);
      setState("lost", "connection lost, trying again");
    }
    await leave();
    await onceMore();
  }
}

/** The next try has a connection of its own. */
async function leave() {
  const left = session;
  session = null;
  await left?.then((one) => one.close()).catch(() => {}); // it may never have been there
}

async function followOnce(topic, path, begin, take) {
  const past = async () => {
    const found = await askPatiently(path, { onwait: () => setState("lost", "no answer, trying again") });
    showLink();
    begin(found);
    return found.position ?? "";
  };
  let position = await past();
  const subscription = (await connected()).topic(topic, position ? { position } : {});
  for await (const item of subscription) {
    if (item.type !== "gap" && item.through <= position) continue; // was in the past already
    if (item.type === "gap" || isToBegin(take, item.payload)) position = await past();
  }
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
