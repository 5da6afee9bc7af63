// The JavaScript client, driven by lines of JSON on standard input; see drivers.py.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const { channel, connect, topic } = await import(pathToFileURL(process.argv[2]).href);

const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`);
const told = (error) => ({ code: error.code ?? "fault", number: error.number ?? null, detail: String(error.message) });

/** What one story does with the client. */
class Story {
  session = null;
  subscriptions = new Map();
  reads = true;
  readers = [];
  tokensAsked = 0;

  constructor(name) {
    this.name = name;
  }

  async read(subscription) {
    try {
      for (;;) {
        if (!this.reads) await new Promise((resolve) => this.readers.push(resolve));
        const { value, done } = await subscription.next();
        if (done) break;
        say({ story: this.name, event: "item", item: value });
      }
      say({ story: this.name, event: "over", id: subscription.id });
    } catch (error) {
      say({ story: this.name, event: "stopped", id: subscription.id, error: told(error) });
    }
  }

  async connect({ options: { tokens, token_takes_ms: tokenTakesMs = 0, settings_ms: settingsMs = {}, settings = {}, ...options } }) {
    const camel = (name) => name.replace(/_(.)/g, (_, letter) => letter.toUpperCase());
    const times = Object.entries(settingsMs).map(([name, value]) => [`${camel(name)}Ms`, value]);
    const others = Object.entries(settings).map(([name, value]) => [camel(name), value]);
    const nextToken = async () => {
      this.tokensAsked += 1;
      await new Promise((resolve) => setTimeout(resolve, tokenTakesMs));
      return tokens.length > 1 ? tokens.shift() : tokens[0];
    };
    const token = tokens ? nextToken : options.token;
    this.session = await connect({ ...options, token, settings: Object.fromEntries([...times, ...others]) });
    return { user: this.session.user, broker: this.session.broker };
  }

  async asked_tokens() {
    return this.tokensAsked;
  }

  async subscribe({ id, target, position }) {
    const subscription = this.session.subscribe(target, { id, position });
    this.subscriptions.set(id, subscription);
    this.read(subscription);
    const { stream, position: stands } = (await subscription.ready) ?? {};
    return { stream, position: stands };
  }

  async reading({ on }) {
    this.reads = on;
    if (on) for (const go of this.readers.splice(0)) go();
    return {};
  }

  async unsubscribe({ id }) {
    await this.subscriptions.get(id).unsubscribe();
    return {};
  }

  async publish({ topic, payload }) {
    return { position: await this.session.publish(topic, payload) };
  }

  async records({ dataset, records }) {
    return this.session.records(dataset, records);
  }

  async misuse({ what }) {
    const { session } = this;
    const news = topic("news");
    const wrong = {
      "a target without JSON": () => session.subscribe(channel("Near", [1n]), { id: "bad" }),
      "a target with no number": () => session.subscribe(channel("Near", { x: [NaN] }), { id: "bad" }),
      "a target that is none": () => session.subscribe("news", { id: "bad" }),
      "a target with half a character": () => session.subscribe(channel("Near", ["\ud800"]), { id: "bad" }),
      "an id that is no text": () => session.subscribe(news, { id: 5 }),
      "a position that is no text": () => session.subscribe(news, { id: "bad", position: 5 }),
      "a position that is too long": () => session.subscribe(news, { id: "bad", position: "x".repeat(65) }),
      "a payload without JSON": () => session.publish("t", 10n),
      "a payload that is no number": () => session.publish("t", { x: [null, Infinity] }),
      "a payload that is nothing": () => session.publish("t", undefined),
      "a topic that is no text": () => session.publish(5, 1),
      "a dataset that is no text": () => session.records(null, [1]),
      "records that are no list": () => session.records("Places", undefined),
      "one record instead of a list": () => session.records("Places", { x: 1 }),
      "a record without JSON": () => session.records("Places", [() => 1]),
      "a token that is no text": () => session.refresh(5),
    };
    await wrong[what]();
    return {};
  }

  async held() {
    return { ids: (await this.session.held()).map(({ id }) => id) };
  }

  async refresh({ token }) {
    await this.session.refresh(token);
    return {};
  }

  async positions() {
    return this.session.positions;
  }

  async close({ forget } = {}) {
    await this.session?.close({ forget });
    return {};
  }
}

const stories = new Map();
for await (const line of createInterface({ input: process.stdin })) {
  const { story: name, number, do: command, ...rest } = JSON.parse(line);
  if (!stories.has(name)) stories.set(name, new Story(name));
  stories.get(name)[command](rest).then(
    (value) => say({ story: name, number, value }),
    (error) => say({ story: name, number, error: told(error) }),
  );
}
process.exit(0);
