// Loads the client into a world that has what browsers have and nothing of Node's, and tells a short story there.
// WebSocket and fetch are as strict as a browser's are.
import { readFile } from "node:fs/promises";
import vm from "node:vm";

const WEB = [
  "AbortSignal", "TextDecoder", "TextEncoder", "URL", "atob", "clearInterval", "clearTimeout", "crypto", "queueMicrotask",
  "setInterval", "setTimeout",
];
const said = [];

class StrictSocket {
  static last = null;
  readyState = 0;

  constructor(url, protocols) {
    if (!/^wss?:/.test(url)) throw new SyntaxError(`not the address of a WebSocket: ${url}`);
    StrictSocket.last = this;
    said.push(["open", url, protocols]);
    queueMicrotask(() => {
      this.readyState = 1;
      this.onopen();
    });
  }

  send(text) {
    if (this.readyState !== 1) throw new Error("InvalidStateError");
    const message = JSON.parse(text);
    said.push(["send", message.type]);
    queueMicrotask(() => this.answer(message));
  }

  close(code) {
    if (code !== undefined && code !== 1000 && !(code >= 3000 && code <= 4999)) throw new Error("InvalidAccessError");
    said.push(["close", code]);
    this.readyState = 3;
  }

  answer({ type, request }) {
    const standing = [{ id: "n", stream: "topic:news", position: "00", recovered: true }];
    if (type === "login") this.hear({ type: "welcome", request, user: "ann", broker: "a", ping_s: 25, subscriptions: [] });
    if (type === "subscribe") this.hear({ type: "subscribed", request, subscription: standing[0] });
    if (type === "confirm" || type === "logout") this.hear({ type: "done", request });
  }

  hear(message) {
    this.onmessage({ data: JSON.stringify(message) });
  }
}

function fetchPlacement(url) {
  if (this !== undefined && this !== world) throw new TypeError("Illegal invocation");
  said.push(["fetch", url]);
  return Promise.resolve({ ok: true, status: 200, json: () => Promise.resolve({ url: "https://a.example", ticket: "t" }) });
}

const reported = [];
const reportError = ({ message }) => reported.push(message);
const world = vm.createContext({ WebSocket: StrictSocket, fetch: fetchPlacement, reportError });
for (const name of WEB) world[name] = globalThis[name];
const source = await readFile(process.argv[2], "utf8");
const module = new vm.SourceTextModule(source, { context: world });
await module.link((name) => {
  throw new Error(`a browser cannot import ${name}`);
});
await module.evaluate();

const { connect, topic } = module.namespace;
const onstate = () => {
  throw new Error("the application's own");
};
const session = await connect({ coordinator: "https://c.example", user: "ann", token: "t", onstate });
const news = session.subscribe(topic("news"), { id: "n" });
await news.ready;
StrictSocket.last.hear({ type: "notification", stream: "topic:news", after: "00", through: "01", payload: { n: 1 } });
const { value } = await news.next();
await session.close();
console.log(JSON.stringify({ said, payload: value.payload, reported }));
process.exit(0);
