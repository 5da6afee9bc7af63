/**
 * Tocsin's client for browsers and for Node 20 or later: one module, nothing to build.
 *
 *   const session = await connect({ coordinator: "https://coordinator.example", token: () => askMyServer() });
 *   for await (const item of session.subscribe(channel("Near", { kind: "fire", x: 120, y: 80 }))) {
 *     if (item.type === "gap") console.log("missed", item.count, item.reason);
 *     else console.log(item.payload);
 *   }
 *
 * It behaves as the Python client does, and passes the same conformance suite: every notification once and in
 * order, or a gap that covers it; it comes back, catches up and moves by itself. The rules are told where the
 * Python client keeps them: tocsin/protocol/client_session.py and tocsin/protocol/inbox.py.
 *
 * Node 20 has no WebSocket of its own unless started with --experimental-websocket: pass a class as `WebSocket`.
 */

export const SUBPROTOCOL = "tocsin.v1";

export const DEFAULTS = Object.freeze({
  connectTimeoutMs: 30_000, // how long the first login is tried
  subscribeTimeoutMs: 30_000, // how long a new subscription that no broker can serve now is tried again
  loginTimeoutMs: 10_000, // a connection that has not logged in after so long is given up
  backoffMinMs: 500, // pauses are drawn between zero and so much, doubled at each failure
  backoffMaxMs: 30_000,
  stableAfterMs: 5_000, // a connection that lasted so long was a good one
  ackIntervalMs: 1_000, // how often the broker is told what the application has taken
  lingerMs: 5_000, // how long the old connection may take for its last answers
  silence: 2.5, // ping intervals without any message before a connection is given up
  renewBeforeMs: 60_000, // a token is renewed so long before its end
  queueItems: 10_000, // waiting items of a subscription; beyond it the oldest become a gap
  queueBytes: 64_000_000, // the same, in characters of messages
  maxRequests: 10_000, // requests that wait for a connection or an answer; beyond it another fails at once
  maxMessageBytes: 16_000_000, // a longer message ends the session, which would only be sent it again
});

const NORMAL = 1000;
const ABNORMAL = 1006;
const BAD_TOKEN = 4400;
const BAD_MESSAGE = 4401;
const TOO_BIG = 4402;
const REPLACED = 4406;
const SILENT = 4002;
const MAX_HOLES = 10_000;
const MAX_POSITION = 64;
const NUMBERED = 24; // bytes that a request's number adds, at most
const AROUND_ACK = 32; // bytes of an acknowledgement beside its positions, and some
const PASSING = new Set(["unavailable", "limit-exceeded", "internal"]); // refusals that another try may overcome

const comesBack = (code) => !(code >= 4400 && code < 4500);
const asksWhere = (code) => code >= 4100 && code < 4200;

/** `code` names the reason; `number` is the close code where the session has ended. */
export class TocsinError extends Error {
  constructor(code, detail, { number = null, retryAfterS = null } = {}) {
    super(detail);
    Object.assign(this, { name: "TocsinError", code, number, retryAfterS });
  }
}

/** A channel with its arguments: an object by name, or an array in order. */
export const channel = (name, args = []) => ({ kind: "channel", name, arguments: args });

/** Everything that is published under a name. */
export const topic = (name) => ({ kind: "topic", name });

/** The id of a subscription whose application chose none: the same for equal targets. */
export function defaultId(target) {
  let digest = 0xcbf29ce484222325n; // 64-bit FNV-1a
  for (const byte of new TextEncoder().encode(JSON.stringify(sorted(target)))) {
    digest = ((digest ^ BigInt(byte)) * 0x100000001b3n) & 0xffffffffffffffffn;
  }
  return `${[...target.name].slice(0, 40).join("")}-${digest.toString(16).padStart(16, "0")}`;
}

/** A session that has logged in; rejects where that fails, or takes longer than `settings.connectTimeoutMs`. */
export async function connect(options) {
  const session = new Session(options);
  await session._start();
  return session;
}

/** What one subscription has received and its application has not taken yet. */
class Inbox {
  constructor(subscription, settings, position) {
    this.subscription = subscription;
    this.settings = settings;
    this.queue = [];
    this.size = 0;
    this.holes = []; // announced and not reached, in order
    this.stream = null;
    this.position = position; // up to here everything was received or told missing
    this.taken = position; // up to here the application has it
    this.isTurned = false; // the stream was never there, and the application does not know it yet
  }

  stand({ stream, position, recovered = true }) {
    if (this.stream !== null && this.stream !== stream) {
      this.holes = [];
      this.put(this.missed(stream, "", position, null, "lost"));
    } else if (this.position === null) {
      this.moveTo(position);
    } else if (recovered && position > this.position) {
      this.moveTo(position);
      this.passHoles();
    }
    this.stream = stream;
  }

  deliver({ stream, after, through, payload }, size) {
    if (this.position === null || through <= this.position) return false;
    if (after > this.position) {
      this.reach(after);
      if (through <= this.position) return true;
    }
    const { subscription, position } = this;
    this.put({ type: "notification", subscription, stream, after: position, through, payload, count: 1, size });
    this.passHoles();
    return true;
  }

  announce({ holes, reason }) {
    if (reason === "ahead" && holes.length) return this.turnBack(holes.at(-1).through);
    const before = this.queue.length;
    for (const hole of holes) if (hole.through > (this.position ?? "")) this.holes.push({ ...hole, reason });
    this.holes.sort((a, b) => order(a.after, b.after) || order(a.through, b.through));
    this.passHoles();
    if (this.holes.length > MAX_HOLES) {
      this.miss(this.holes.at(-1).through, null, "lost");
      this.holes = [];
    }
    return this.queue.length !== before;
  }

  /**
   * The stream is at `through`. Beyond it, it has never been: who stands there goes on from it, and what was announced
   * means nothing. Who stands before it is not meant.
   */
  turnBack(through) {
    if (this.position === null || this.position <= through) return false;
    this.holes = [];
    this.miss(through, null, "ahead");
    this.isTurned = true;
    return true;
  }

  take() {
    const item = this.queue.shift();
    if (item === undefined) return null;
    this.size -= item.size;
    this.taken = this.queue.length ? item.through : this.position;
    if (item.stream !== this.stream) this.taken = null; // a position of another stream: nothing of this one
    if (item.reason === "ahead") this.isTurned = this.queue.some(({ reason }) => reason === "ahead");
    return item;
  }

  clear() {
    this.queue = [];
    this.size = 0;
  }

  reach(after) {
    this.passHoles();
    while (this.position < after) {
      const ahead = this.holes.length ? this.holes[0].after : after;
      this.miss(ahead < after ? ahead : after, null, "unannounced");
      this.passHoles();
    }
  }

  passHoles() {
    while (this.holes.length && this.holes[0].after <= (this.position ?? "")) {
      const hole = this.holes.shift();
      if (hole.through <= (this.position ?? "")) continue;
      this.miss(hole.through, hole.after === this.position ? hole.count : null, hole.reason);
    }
  }

  miss(through, count, reason) {
    this.put(this.missed(this.stream ?? "", this.position ?? "", through, count, reason));
  }

  missed(stream, after, through, count, reason) {
    return { type: "gap", subscription: this.subscription, stream, after, through, count, reason, size: 0 };
  }

  moveTo(position) {
    this.position = position;
    if (!this.queue.length) this.taken = position;
  }

  put(item) {
    this.position = item.through;
    this.queue.push(item);
    this.size += item.size;
    const { queueItems, queueBytes } = this.settings;
    while (this.queue.length > 1 && (this.queue.length > queueItems || this.size > queueBytes)) this.shed();
  }

  /** The two oldest become one gap; that a stream led back is told rather than that we were slow. */
  shed() {
    const [first, second] = [this.queue.shift(), this.queue[0]];
    this.size -= first.size + second.size;
    const count = first.count === null || second.count === null ? null : first.count + second.count;
    const reason = [first.reason, second.reason].includes("ahead") ? "ahead" : "slow";
    this.queue[0] = this.missed(second.stream, first.after, second.through, count, reason);
  }
}

/** A subscription as its application holds it: `await subscription.ready`, and iterate over it. */
class Subscription {
  constructor(session, id, target, inbox) {
    Object.assign(this, { id, target, _session: session, _inbox: inbox, _error: null, _isOver: false });
    this._wakers = [];
    this._isNew = true; // while its first answer is to come
    this._retryAt = null;
    this._refusals = 0;
    this._refusedAt = null;
    this.ready = new Promise((resolve, reject) => Object.assign(this, { _resolve: resolve, _reject: reject }));
    this.ready.catch(() => {});
  }

  [Symbol.asyncIterator]() {
    return this;
  }

  /** The next item: a notification or a gap. */
  async next() {
    for (;;) {
      const item = this._session._take(this._inbox);
      if (item) return { value: item, done: false };
      if (this._error) throw this._error;
      if (this._isOver) return { value: undefined, done: true };
      await new Promise((resolve) => this._wakers.push(resolve));
    }
  }

  unsubscribe() {
    return this._session.unsubscribe(this.id);
  }

  _wake() {
    for (const waker of this._wakers.splice(0)) waker();
  }

  _stand(standing) {
    this._inbox.stand(standing);
    this._isNew = false;
    this._retryAt = null;
    this._refusals = 0;
    this._refusedAt = null;
    this._resolve(standing);
    this._wake();
  }

  _stop(error = null) {
    this._error = error;
    this._isOver = true;
    if (error) this._reject(error);
    else this._resolve(null);
    this._wake();
  }

  _wanted() {
    const wanted = { id: this.id, target: this.target };
    return this._inbox.position === null ? wanted : { ...wanted, position: this._inbox.position };
  }
}

/** Made by `connect`. `user`, `broker` and `isConnected` tell where it stands; `onstate` hears of changes. */
class Session {
  #settings;
  #options;
  #sessionName;
  #subscriptions = new Map();
  #streams = new Map(); // stream → subscriptions
  #acked = new Map();
  #links = new Set();
  #current = null; // the link that serves the session
  #coming = null; // the one that is to do so
  #leaving = new Map(); // by id: subscriptions to end
  #waiting = []; // requests that no link has taken yet
  #timers = new Map();
  #url;
  #failures = 0;
  #wasRenewed = false;
  #isClosing = false;
  #forgets = false;
  #notForgotten = null; // why subscriptions that were to end with the session may not have
  #isOver = false;
  #error = null;
  #number = 0;
  #maxBytes = Infinity; // of a message, as the last broker told; a longer one would end the session
  #problem = "no answer";
  #first = null;
  #closed = null;

  constructor(options) {
    const { coordinator = null, broker = null, positions = {}, settings = {}, session } = options;
    if (!coordinator && !broker) throw new TocsinError("bad-argument", "expected the address of a coordinator or of a broker");
    if (coordinator) address(coordinator, "coordinator");
    if (broker) address(broker, "broker");
    must(["string", "function"].includes(typeof (options.token ?? "")), "a text, or a function that gives one", "token");
    const unknown = Object.keys(settings).filter((name) => !(name in DEFAULTS));
    if (unknown.length) throw new TocsinError("bad-argument", `unknown settings: ${unknown.join(", ")}`);
    this.#options = { WebSocket: globalThis.WebSocket, fetch: globalThis.fetch, random: Math.random, ...options };
    if (!this.#options.WebSocket) throw new TocsinError("bad-argument", "there is no WebSocket here: pass a class as `WebSocket`, or start Node 20 with --experimental-websocket");
    this.#settings = { ...DEFAULTS, ...settings };
    this.#sessionName = session ?? Array.from(globalThis.crypto.getRandomValues(new Uint8Array(8)), (b) => b.toString(16).padStart(2, "0")).join("");
    this.#url = broker;
    for (const position of Object.values(positions)) positionAs(position);
    this._imported = { ...positions };
    this.user = options.user ?? null;
    this.broker = null;
    this.isConnected = false;
    this.onstate = options.onstate ?? null;
  }

  // --- what the application does ------------------------------------------------------------------------

  /** Subscribe now. The subscription outlives the session until it is unsubscribed; `id` names it. */
  subscribe(target, { id = null, position = null } = {}) {
    this.#checkOpen();
    const asked = wanted(id, target, position);
    ({ id } = asked);
    if (this.#subscriptions.has(id)) throw new TocsinError("already-exists", `subscription '${id}' exists already`);
    const start = position ?? this._imported[id] ?? null;
    this.#checkSize(JSON.stringify({ type: "subscribe", ...asked, position: start }));
    delete this._imported[id];
    const subscription = new Subscription(this, id, asked.target, new Inbox(id, this.#settings, start));
    this.#subscriptions.set(id, subscription);
    if (this.#current) {
      const leaving = this.#leaving.get(id);
      if (leaving?.isRefused) this.#sendUnsubscribe(this.#current, leaving);
      this.#sendSubscribe(this.#current, subscription);
    }
    return subscription;
  }

  topic(name, options) {
    return this.subscribe(topic(name), options);
  }

  /** End a subscription, here and at the broker; nothing of it can be taken from now on. */
  unsubscribe(id) {
    this.#checkOpen();
    const subscription = this.#subscriptions.get(id);
    if (!subscription) throw new TocsinError("not-found", `there is no subscription '${id}'`);
    this.#subscriptions.delete(id);
    this.#index();
    subscription._inbox.clear();
    subscription._stop();
    return new Promise((resolve, reject) => {
      const waiting = [...(this.#leaving.get(id)?.waiting ?? []), { resolve, reject }];
      const leaving = { id, waiting, isRefused: false, refusals: 0, refusedAt: null };
      this.#leaving.set(id, leaving);
      if (this.#current) this.#sendUnsubscribe(this.#current, leaving);
    });
  }

  /** Publish under a topic; the position that its owner gave. */
  async publish(topicName, payload) {
    textAs(topicName, "topic");
    return (await this.#request(`{"type":"publish","topic":${json(topicName, "topic")},"payload":${json(payload, "payload")}}`)).position;
  }

  /** Append records to a dataset; resolves with counts once they are durable. */
  async records(dataset, records) {
    textAs(dataset, "dataset");
    must(Array.isArray(records), "an array of records", "records");
    const rows = records.map((record) => json(record, "record")).join(",");
    const { accepted, rejected } = await this.#request(`{"type":"records","dataset":${json(dataset, "dataset")},"records":[${rows}]}`);
    return { accepted, rejected };
  }

  /** Every subscription that the user has, those of other sessions included. */
  async held() {
    return (await this.#request('{"type":"list"}')).subscriptions;
  }

  /** Show another token on the connection there is, and from now on. */
  async refresh(token) {
    textAs(token, "token");
    if (typeof this.#options.token !== "function") this.#options.token = token;
    await this.#renewed(token);
  }

  /** By subscription, up to where the application has taken it: to be given to a later `connect`. */
  get positions() {
    const found = { ...this._imported };
    for (const { id, _inbox } of this.#subscriptions.values()) if (_inbox.taken !== null) found[id] = _inbox.taken;
    return found;
  }

  /**
   * Tell the broker what was taken, and leave; with `forget` every subscription of the user ends. Nothing can be taken
   * any more. Rejects where they were to end, and it is not known that they have.
   */
  close({ forget = false } = {}) {
    const told = () => {
      if (forget && this.#notForgotten) throw this.#notForgotten;
    };
    if (!this.#isOver && !this.#isClosing) this.#leave(forget);
    else if (forget && !this.#forgets) this.#notForgotten = this.#error ?? new TocsinError("session-ended", "the session is closed", { number: NORMAL });
    return (this.#closed?.promise ?? Promise.resolve()).then(told);
  }

  #leave(forget) {
    [this.#isClosing, this.#closed, this.#forgets] = [true, deferred(), forget];
    if (forget) this.#notForgotten = new TocsinError("uncertain", "no broker has answered that the subscriptions have ended; they may have or not");
    if (!this.#current) this.#end(null);
    else {
      this.#acknowledge();
      this.#send(this.#current, { kind: "logout" }, forget ? { type: "logout", forget } : { type: "logout" });
      this.#after("close", this.#settings.lingerMs, () => this.#end(null));
    }
  }

  _start() {
    this.#first = deferred();
    this.#after("connect", this.#settings.connectTimeoutMs, () => this.#end(new TocsinError("unavailable", `no login: ${this.#problem}`)));
    this.#comeBack(Boolean(this.#options.coordinator) || this.#url === null);
    return this.#first.promise;
  }

  /** Nothing from `close` on, when no broker could be told: it comes to whoever goes on. */
  _take(inbox) {
    const item = this.#isClosing ? null : inbox.take();
    if (item && !this.#timers.has("ack") && this.#current) this.#after("ack", this.#settings.ackIntervalMs, () => this.#acknowledge());
    if (!item) return null;
    const { size, ...shown } = item;
    if (item.type === "notification") delete shown.count;
    return shown;
  }

  // --- where to connect -----------------------------------------------------------------------------------

  #comeBack(asks) {
    if ((asks && this.#options.coordinator) || this.#url === null) this.#locate();
    else this.#open(this.#url, null, false);
  }

  async #locate() {
    try {
      const placement = await this.#askCoordinator();
      if (this.#isOver || this.#coming || this.#current) return;
      this.#url = placement.url;
      this.#open(placement.url, placement.ticket, false);
    } catch (problem) {
      this.#notLocated(problem);
    }
  }

  #notLocated(problem) {
    if (this.#isOver || this.#coming || this.#current) return;
    this.#problem = problem.message;
    const isOfTheToken = problem.code === "unauthenticated";
    const isFinal = isOfTheToken || problem.code === "placement-refused";
    if (isFinal && !(isOfTheToken && this.#mayRenew(BAD_TOKEN))) this.#end(problem);
    else if (this.#url !== null && !isFinal) this.#open(this.#url, null, false);
    else this.#after("retry", this.#pauseMs(), () => this.#comeBack(true));
  }

  async #askCoordinator() {
    const { coordinator, location = null, fetch } = this.#options;
    const token = await this.#token();
    const isOutdated = () => typeof this.#options.token !== "function" && token !== (this.#options.token ?? null);
    const user = this.user ?? claims(token).sub;
    if (!user) throw new TocsinError("unauthenticated", token ? "the token does not name its user; give one as `user`" : "no token was given, and no `user`");
    const headers = { "Content-Type": "application/json", ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const answer = await fetch(`${coordinator.replace(/\/+$/, "")}/users/${encodeURIComponent(user)}/placement`, {
      method: "POST", headers, body: JSON.stringify(location ? { location } : {}), signal: AbortSignal.timeout(this.#settings.loginTimeoutMs),
    });
    const body = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new TocsinError(isOutdated() ? "unavailable" : refusal(answer.status), String(body.detail ?? `the coordinator answered ${answer.status}`));
    if (typeof body.url !== "string") throw new TocsinError("unavailable", "what answers is not a coordinator");
    return body;
  }

  async #token() {
    const { token = null } = this.#options;
    if (typeof token !== "function") return token;
    const given = await withinMs(token(), this.#settings.loginTimeoutMs);
    must(typeof given === "string", "a function that gives a text", "token");
    return given;
  }

  #pauseMs(failures = this.#failures++) {
    const { backoffMinMs, backoffMaxMs } = this.#settings;
    return this.#options.random() * Math.min(backoffMaxMs, backoffMinMs * 2 ** Math.min(failures, 40));
  }

  #mayRenew(code) {
    const may = code === BAD_TOKEN && typeof this.#options.token === "function" && !this.#wasRenewed;
    this.#wasRenewed ||= may;
    return may;
  }

  #planRenewal(token) {
    const end = claims(token).exp;
    if (typeof end !== "number" || typeof this.#options.token !== "function") return;
    const lastsMs = end * 1000 - Date.now();
    const leastMs = this.#settings.backoffMinMs; // it may be the same one as before
    this.#after("renew", Math.max(lastsMs - this.#settings.renewBeforeMs, 0.8 * lastsMs, leastMs), () => this.#renew());
  }

  async #renew() {
    try {
      await this.#renewed(await this.#token());
    } catch {
      this.#after("renew", this.#pauseMs(), () => this.#renew());
    }
  }

  #renewed(token) {
    this.#planRenewal(token);
    for (const link of this.#links) if (link.phase === "logging in") link.newerToken = token;
    const links = [...this.#links].filter(({ phase }) => phase === "ready" || phase === "confirming");
    const answers = links.map((link) => new Promise((resolve, reject) => this.#send(link, { kind: "request", resolve, reject }, { type: "refresh", token })));
    return Promise.race(answers.length ? answers : [Promise.resolve()]);
  }

  // --- links ----------------------------------------------------------------------------------------------------

  #open(url, ticket, isMove) {
    if (this.#isOver) return;
    const link = { url, ticket, isMove, phase: "opening", readyAt: null, asked: new Map(), standing: new WeakSet(), problem: null, newerToken: null, heardAt: 0, timer: null, pinger: null };
    this.#coming = link;
    this.#links.add(link);
    link.timer = setTimeout(() => this.#drop(link, NORMAL, `no login at ${url} in time`), this.#settings.loginTimeoutMs);
    try {
      link.socket = new this.#options.WebSocket(`${url.replace(/\/+$/, "").replace(/^http/, "ws")}/connect`, [SUBPROTOCOL]);
    } catch (problem) {
      queueMicrotask(() => this.#gone(link, ABNORMAL, problem.message));
      return;
    }
    link.socket.binaryType = "arraybuffer";
    link.socket.onopen = () => this.#opened(link);
    link.socket.onmessage = ({ data }) => this.#received(link, data);
    link.socket.onclose = ({ code, reason }) => this.#gone(link, code, reason);
    link.socket.onerror = () => this.#failed(link);
  }

  /** Node 20 tells no close after an error while connecting; where one is told, it comes first. */
  #failed(link) {
    if (link.phase === "opening") setTimeout(() => this.#gone(link, ABNORMAL, `${link.url} cannot be reached`), 0);
  }

  async #opened(link) {
    let token;
    try {
      token = await this.#token();
    } catch (problem) {
      this.#drop(link, NORMAL, problem.message);
      return;
    }
    if (!this.#links.has(link)) return;
    this.#planRenewal(token);
    link.phase = "logging in";
    const shown = { ...(token ? { token } : {}), ...(link.ticket ? { ticket: link.ticket } : {}) };
    const login = { type: "login", ...shown, session: this.#sessionName, subscriptions: [] };
    const told = this.#fitting(login);
    login.subscriptions = told.map((subscription) => subscription._wanted());
    this.#send(link, { kind: "login", named: named(told) }, login);
  }

  /** What a login names: as much as it has room for. The rest is asked for behind the welcome. */
  #fitting(login) {
    const told = [];
    let room = this.#maxBytes - bytes(JSON.stringify(login)) - NUMBERED;
    for (const subscription of this.#subscriptions.values()) {
      if (subscription._retryAt !== null || this.#leaving.has(subscription.id)) continue;
      room -= bytes(JSON.stringify(subscription._wanted())) + 1;
      if (room < 0) break;
      told.push(subscription);
    }
    return told;
  }

  #received(link, data) {
    if (!this.#links.has(link)) return;
    link.heardAt = Date.now();
    const most = this.#settings.maxMessageBytes;
    if ((data.length ?? data.byteLength) > most) {
      closeSocket(link.socket, TOO_BIG);
      this.#gone(link, TOO_BIG, `${link.url}: a message of more than ${most} bytes`);
      return;
    }
    try {
      const text = typeof data === "string" ? data : new TextDecoder("utf-8", { fatal: true }).decode(data);
      const message = JSON.parse(text);
      must(message !== null && typeof message === "object" && typeof message.type === "string", "a message of this protocol");
      const handler = HANDLERS[message.type];
      must(handler, `a known type, got '${message.type}'`);
      CHECKS[message.type](message);
      this[handler](link, message, text.length);
    } catch (problem) {
      this.#drop(link, BAD_MESSAGE, problem.message);
    }
  }

  _onNotification(link, message, size) {
    for (const subscription of this.#streams.get(message.stream) ?? []) {
      if (link.standing.has(subscription) && subscription._inbox.deliver(message, size)) subscription._wake();
    }
  }

  _onGap(link, message) {
    for (const subscription of this.#streams.get(message.stream) ?? []) {
      if (link.standing.has(subscription) && subscription._inbox.announce(message)) subscription._wake();
    }
  }

  /** One that was asked for anew has its answer still to come, and that counts. */
  _onEnded(link, { id, code, detail }) {
    const subscription = this.#subscriptions.get(id);
    if (!subscription || subscription._isNew) return;
    this.#subscriptions.delete(id);
    this.#index();
    subscription._stop(new TocsinError(code, detail));
  }

  _onWelcome(link, message) {
    const asked = this.#answered(link, message.request, "login");
    const refused = message.refused ?? [];
    if (link.isMove && this.#current && refused.some(({ code }) => PASSING.has(code))) {
      this.#drop(link, NORMAL, "the destination cannot serve every subscription now");
      return;
    }
    link.readyAt = Date.now();
    link.pingMs = message.ping_s * 1000;
    this.#maxBytes = message.max_message_bytes ?? Infinity;
    this.#wasRenewed = false;
    for (const standing of message.subscriptions) this.#stands(link, standing, asked.named);
    for (const { id, code, detail } of refused) this.#refused(id, asked.named, new TocsinError(code, detail));
    Object.assign(this, { user: message.user, broker: message.broker, isConnected: true });
    if (link.isMove) {
      link.phase = "confirming";
      this.#sendRest(link, asked.named);
    }
    if (link.newerToken !== null) this.#send(link, { kind: "refresh" }, { type: "refresh", token: link.newerToken });
    link.newerToken = null;
    if (link.ticket !== null) this.#send(link, { kind: "confirm" }, { type: "confirm" });
    if (!link.isMove || !this.#current) this.#promote(link);
    clearTimeout(this.#timers.get("connect"));
    this.#timers.delete("connect");
    this.#first.resolve();
    this.#tell("connected", this.broker);
  }

  _onSubscribed(link, message) {
    const asked = this.#answered(link, message.request, "subscribe");
    this.#stands(link, message.subscription, asked.named);
    this.#letGo(link);
  }

  _onMove(link, { url, ticket }) {
    if (link !== this.#current || this.#isClosing) return;
    if (this.#coming) this.#drop(this.#coming, NORMAL, "a newer move");
    this.#open(url, ticket, true);
  }

  _onAnswer(link, message) {
    const asked = this.#answered(link, message.request);
    must(asked.kind !== "login" && asked.kind !== "subscribe", `the answer of a ${asked.kind}`);
    if (asked.kind === "confirm" && link === this.#coming) this.#promote(link);
    else if (asked.kind === "logout") {
      this.#notForgotten = null;
      this.#end(null);
    } else if (asked.kind === "unsubscribe") this.#unsubscribed(asked.leaving);
    else asked.resolve?.(message);
    this.#letGo(link);
  }

  _onFailed(link, message) {
    if (message.request === undefined || message.request === null) {
      link.problem = message;
      return;
    }
    const asked = this.#answered(link, message.request);
    const error = new TocsinError(message.code, message.detail, { retryAfterS: message.retry_after_s ?? null });
    const isMoving = link === this.#coming && link.isMove && this.#current !== null;
    if (asked.kind === "login") link.problem = message;
    else if (asked.kind === "subscribe" && !isMoving) for (const id of asked.named.keys()) this.#refused(id, asked.named, error);
    else if (asked.kind === "unsubscribe") this.#notUnsubscribed(asked.leaving, error);
    else if (asked.kind === "logout") {
      this.#notForgotten &&= error;
      this.#end(null);
    } else asked.reject?.(error);
    if (isMoving) this.#drop(link, NORMAL, message.detail);
    this.#letGo(link);
  }

  #answered(link, number, kind = null) {
    const asked = link.asked.get(number);
    must(asked && (kind === null || kind === asked.kind), `the number of a request that waits, got ${number}`);
    link.asked.delete(number);
    return asked;
  }

  /** From now on `link` serves the session; what it does not know yet is said to it. */
  #promote(link) {
    const old = this.#current;
    [this.#current, this.#coming, this.#url, link.phase] = [link, null, link.url, "ready"];
    clearTimeout(link.timer);
    this.#watch(link);
    for (const leaving of this.#leaving.values()) this.#sendUnsubscribe(link, leaving);
    this.#sendRest(link, new Map());
    this.#sendWaiting();
    this.#acked.clear(); // what was told may not have been heard
    this.#after("ack", this.#settings.ackIntervalMs, () => this.#acknowledge());
    if (!old) return;
    old.phase = "leaving";
    old.timer = setTimeout(() => this.#forget(old), this.#settings.lingerMs);
    this.#letGo(old);
  }

  /** Ping a link, and give it up where nothing comes. */
  #watch(link) {
    link.pinger = setInterval(() => this.#send(link, { kind: "ping" }, { type: "ping" }), link.pingMs);
    const silentMs = link.pingMs * this.#settings.silence;
    const look = () => {
      const leftMs = link.heardAt + silentMs - Date.now();
      if (leftMs <= 0) this.#drop(link, SILENT, `nothing came from ${link.url} for too long`);
      else link.watcher = setTimeout(look, leftMs);
    };
    link.watcher = setTimeout(look, silentMs);
  }

  #letGo(link) {
    if (link.phase === "leaving" && [...link.asked.values()].every(({ kind }) => kind === "ping")) this.#forget(link);
  }

  #forget(link) {
    this.#detach(link);
    closeSocket(link.socket, NORMAL);
  }

  #drop(link, code, reason) {
    closeSocket(link.socket, code);
    this.#gone(link, ABNORMAL, reason);
  }

  #detach(link) {
    this.#links.delete(link);
    clearTimeout(link.timer);
    clearTimeout(link.watcher);
    clearInterval(link.pinger);
    for (const { kind, reject } of link.asked.values()) {
      if (kind === "request") reject(new TocsinError("uncertain", "the connection broke before the answer; it may have been done or not"));
    }
    link.asked.clear();
  }

  #gone(link, code, reason) {
    if (!this.#links.has(link)) return;
    this.#detach(link);
    if (link === this.#current) this.#current = null;
    else if (link === this.#coming) this.#coming = null;
    else return;
    const detail = link.problem?.detail ?? (reason || `the connection to ${link.url} broke`);
    if (this.#isClosing && this.#current) return;
    if (this.#isClosing) this.#end(null);
    else if (!this.#current && !this.#mayComeBack(link, code)) this.#end(new TocsinError("session-ended", detail, { number: code }));
    else if (!this.#current && !this.#coming) this.#lost(link, code, detail);
    else if (this.#coming?.phase === "confirming") this.#promote(this.#coming);
  }

  /**
   * By the code, or with another token than the one that was refused, or on the link that is under way: it may be the
   * newer connection itself that replaced this one.
   */
  #mayComeBack(link, code) {
    const hasNewer = code === BAD_TOKEN && link.newerToken !== null;
    const isOurs = code === REPLACED && this.#coming !== null;
    return comesBack(code) || hasNewer || isOurs || this.#mayRenew(code);
  }

  #lost(link, code, detail) {
    this.#problem = detail;
    this.isConnected = false;
    this.#tell("disconnected", detail);
    if (link.readyAt !== null && Date.now() - link.readyAt >= this.#settings.stableAfterMs) this.#failures = 0;
    const isSentAway = asksWhere(code);
    if (isSentAway && link.problem?.url) this.#url = link.problem.url;
    const isFirst = this.#failures === 0;
    let pauseMs = this.#pauseMs();
    if (isSentAway && isFirst) pauseMs = 0;
    pauseMs += (link.problem?.retry_after_s ?? 0) * 1000;
    this.#after("retry", pauseMs, () => this.#comeBack(isSentAway || link.readyAt === null));
  }

  // --- subscriptions ----------------------------------------------------------------------------------------------

  /**
   * The answer is about the subscription that was asked for, and says what follows the position named then. One that
   * stood elsewhere meanwhile is told to the link again; until then nothing is taken for it from there.
   */
  #stands(link, standing, asked) {
    const subscription = this.#asked(standing.id, asked);
    if (!subscription) return;
    const { position } = asked.get(standing.id);
    const mine = subscription._inbox.position;
    if (mine !== null && (position === null || position > mine)) {
      if (link.phase === "ready") this.#sendSubscribe(link, subscription);
      return;
    }
    link.standing.add(subscription);
    const isNew = subscription._inbox.stream !== standing.stream;
    subscription._stand(standing);
    if (isNew) this.#index();
  }

  /** The subscription, if it is the one that was asked for, and no later one with its id. */
  #asked(id, asked) {
    const subscription = this.#subscriptions.get(id);
    return subscription && asked.get(id)?.subscription === subscription ? subscription : null;
  }

  #refused(id, asked, error) {
    const subscription = this.#asked(id, asked);
    if (!subscription) return;
    if (this.#mayStandLater(subscription, error.code)) {
      const pauseMs = error.retryAfterS === null ? this.#pauseMs(subscription._refusals++) : error.retryAfterS * 1000;
      subscription._retryAt = Date.now() + pauseMs;
      this.#after(`subscribe ${id}`, pauseMs, () => this.#tryAgain(subscription));
      return;
    }
    this.#subscriptions.delete(id);
    this.#index();
    subscription._stop(error);
  }

  #mayStandLater(subscription, code) {
    subscription._refusedAt ??= Date.now();
    if (subscription._inbox.position !== null) return PASSING.has(code);
    return code === "unavailable" && Date.now() < subscription._refusedAt + this.#settings.subscribeTimeoutMs;
  }

  #tryAgain(subscription) {
    subscription._retryAt = null;
    const isHeld = this.#subscriptions.get(subscription.id) === subscription;
    if (isHeld && this.#current) this.#sendSubscribe(this.#current, subscription);
  }

  /** Tried again where that may help, unless it was subscribed again: that would be ended with it. */
  #notUnsubscribed(leaving, error) {
    if (this.#leaving.get(leaving.id) !== leaving) return;
    leaving.refusedAt ??= Date.now();
    const mayHelp = PASSING.has(error.code) && Date.now() < leaving.refusedAt + this.#settings.subscribeTimeoutMs;
    if (!mayHelp || this.#subscriptions.has(leaving.id)) {
      this.#unsubscribed(leaving, error.code === "not-found" ? null : error);
      return;
    }
    leaving.isRefused = true;
    const pauseMs = error.retryAfterS === null ? this.#pauseMs(leaving.refusals++) : error.retryAfterS * 1000;
    this.#after(`unsubscribe ${leaving.id}`, pauseMs, () => {
      const isToEnd = leaving.isRefused && this.#leaving.get(leaving.id) === leaving;
      if (isToEnd && this.#current) this.#sendUnsubscribe(this.#current, leaving);
    });
  }

  #unsubscribed(leaving, error = null) {
    if (this.#leaving.get(leaving.id) !== leaving) return;
    this.#leaving.delete(leaving.id);
    for (const { resolve, reject } of leaving.waiting) {
      if (error) reject(error);
      else resolve();
    }
  }

  #index() {
    this.#streams = new Map();
    for (const subscription of this.#subscriptions.values()) {
      const { stream } = subscription._inbox;
      if (stream === null) continue;
      if (!this.#streams.has(stream)) this.#streams.set(stream, []);
      this.#streams.get(stream).push(subscription);
    }
  }

  #acknowledge() {
    clearTimeout(this.#timers.get("ack"));
    this.#timers.delete("ack");
    if (!this.#current) return;
    let [positions, size] = [{}, 0];
    const tell = () => size && this.#transmit(this.#current, JSON.stringify({ type: "ack", positions }));
    for (const [stream, holders] of this.#streams) {
      const taken = holders.map(({ _inbox }) => (_inbox.isTurned ? "" : (_inbox.taken ?? ""))).reduce((a, b) => (a < b ? a : b));
      if (!taken || taken === this.#acked.get(stream)) continue;
      this.#acked.set(stream, taken);
      const more = bytes(JSON.stringify({ [stream]: taken }));
      if (size + more + AROUND_ACK > this.#maxBytes) {
        tell();
        [positions, size] = [{}, 0];
      }
      positions[stream] = taken;
      size += more;
    }
    tell();
  }

  // --- sending --------------------------------------------------------------------------------------------------------

  /** `message` is text already, since whatever cannot be said is the caller's concern, and not that of the link. */
  #request(message) {
    this.#checkOpen();
    const { maxRequests } = this.#settings;
    if (this.#waiting.length + (this.#current?.asked.size ?? 0) >= maxRequests) {
      throw new TocsinError("limit-exceeded", `requests under way: at most ${maxRequests}`);
    }
    this.#checkSize(message);
    return new Promise((resolve, reject) => {
      this.#waiting.push({ asked: { kind: "request", resolve, reject }, message });
      this.#sendWaiting();
    });
  }

  #checkSize(text) {
    if (text.length * 3 + NUMBERED <= this.#maxBytes) return; // no character takes more bytes
    const size = bytes(text) + NUMBERED;
    if (size > this.#maxBytes) throw new TocsinError("limit-exceeded", `bytes of a message: at most ${this.#maxBytes}, got ${size}`);
  }

  #sendWaiting() {
    while (this.#current && this.#waiting.length) {
      const { asked, message } = this.#waiting.shift();
      this.#send(this.#current, asked, message);
    }
  }

  #sendSubscribe(link, subscription) {
    this.#send(link, { kind: "subscribe", named: named([subscription]) }, { type: "subscribe", ...subscription._wanted() });
  }

  /** Ask for what does not stand there and was not named to it; what is to end first waits until the link serves. */
  #sendRest(link, told) {
    const isPassed = (id) => told.has(id) || (link.phase !== "ready" && this.#leaving.has(id));
    for (const subscription of this.#subscriptions.values()) {
      const isMissing = !link.standing.has(subscription) && subscription._retryAt === null && !isPassed(subscription.id);
      if (isMissing) this.#sendSubscribe(link, subscription);
    }
  }

  #sendUnsubscribe(link, leaving) {
    leaving.isRefused = false;
    this.#send(link, { kind: "unsubscribe", leaving }, { type: "unsubscribe", id: leaving.id });
  }

  #send(link, asked, message) {
    this.#number += 1;
    link.asked.set(this.#number, asked);
    const text = typeof message === "string" ? message : JSON.stringify(message);
    this.#transmit(link, `${text.slice(0, -1)},"request":${this.#number}}`);
  }

  #transmit(link, text) {
    if (link.socket.readyState === 1) link.socket.send(text);
  }

  // --- the end ----------------------------------------------------------------------------------------------------------

  #end(error) {
    if (this.#isOver) return;
    [this.#isOver, this.#error] = [true, error];
    this.isConnected = false;
    [this.#current, this.#coming] = [null, null];
    for (const link of [...this.#links]) this.#forget(link);
    for (const timer of this.#timers.values()) clearTimeout(timer);
    this.#timers.clear();
    const over = error ?? new TocsinError("session-ended", "the application closed it", { number: NORMAL });
    for (const { asked } of this.#waiting.splice(0)) asked.reject(over);
    for (const { waiting } of this.#leaving.values()) for (const { reject } of waiting) reject(over);
    this.#leaving.clear();
    for (const subscription of this.#subscriptions.values()) subscription._stop(error);
    if (error) this.#first.reject(error);
    this.#closed?.resolve();
    this.#tell("ended", error);
  }

  /** What the application does with it must not cost the session. */
  #tell(state, detail) {
    try {
      this.onstate?.(state, detail);
    } catch (problem) {
      (globalThis.reportError ?? console.error)(problem);
    }
  }

  #checkOpen() {
    if (this.#error) throw this.#error;
    if (this.#isOver || this.#isClosing) throw new TocsinError("session-ended", "the session is closed", { number: NORMAL });
  }

  /** Do `work` later, unless something else is planned under its name or the session is over. */
  #after(name, ms, work) {
    if (this.#isOver) return;
    clearTimeout(this.#timers.get(name));
    const run = () => {
      this.#timers.delete(name);
      work();
    };
    this.#timers.set(name, setTimeout(run, Math.min(ms, 2 ** 31 - 1)));
  }
}

const HANDLERS = Object.assign(Object.create(null), {
  notification: "_onNotification", gap: "_onGap", ended: "_onEnded", welcome: "_onWelcome", subscribed: "_onSubscribed", move: "_onMove", error: "_onFailed",
  subscriptions: "_onAnswer", published: "_onAnswer", accepted: "_onAnswer", done: "_onAnswer", pong: "_onAnswer",
});

const text = (value, name) => must(typeof value === "string", `a text as ${name}`);
const number = (value, name) => must(typeof value === "number", `a number as ${name}`);
const list = (value, name) => must(Array.isArray(value), `an array as ${name}`);
const numbered = ({ request }) => number(request, "request");

function standing(value) {
  must(value !== null && typeof value === "object", "a subscription");
  for (const name of ["id", "stream", "position"]) text(value[name], name);
}

const CHECKS = {
  notification(message) {
    for (const name of ["stream", "after", "through"]) text(message[name], name);
    must("payload" in message, "a payload");
  },
  gap({ stream, holes, reason }) {
    text(stream, "stream");
    text(reason, "reason");
    list(holes, "holes");
    for (const hole of holes) {
      text(hole?.after, "after");
      text(hole.through, "through");
      must(hole.count === null || Number.isInteger(hole.count), "a count");
    }
  },
  ended(message) {
    for (const name of ["id", "code", "detail"]) text(message[name], name);
  },
  welcome(message) {
    numbered(message);
    text(message.user, "user");
    text(message.broker, "broker");
    number(message.ping_s, "ping_s");
    number(message.max_message_bytes ?? 0, "max_message_bytes");
    list(message.subscriptions, "subscriptions");
    message.subscriptions.forEach(standing);
    list(message.refused ?? [], "refused");
    for (const refusal of message.refused ?? []) for (const name of ["id", "code", "detail"]) text(refusal?.[name], name);
  },
  subscribed(message) {
    numbered(message);
    standing(message.subscription);
  },
  move({ url, ticket }) {
    text(url, "url");
    text(ticket, "ticket");
  },
  error({ code, detail }) {
    text(code, "code");
    text(detail, "detail");
  },
  subscriptions(message) {
    numbered(message);
    list(message.subscriptions, "subscriptions");
  },
  published(message) {
    numbered(message);
    text(message.position, "position");
  },
  accepted(message) {
    numbered(message);
    number(message.accepted, "accepted");
    number(message.rejected, "rejected");
  },
  done: numbered,
  pong: numbered,
};

function must(holds, expected, name = "message") {
  if (!holds) throw new TocsinError("bad-argument", `${name}: expected ${expected}`);
}

// --- what the application hands over: looked at before anything is held or sent, since it must not cost the session ---

const textAs = (value, name) => must(typeof value === "string", "a text", name);
const positionAs = (value) => must(typeof value === "string" && value.length <= MAX_POSITION, `a text of at most ${MAX_POSITION} characters`, "position");

/** In a page it may be relative to that. */
function address(value, name) {
  let protocol = "";
  try {
    ({ protocol } = new URL(value, globalThis.location?.href));
  } catch {
    // told below
  }
  must(typeof value === "string" && /^(http|ws)s?:$/.test(protocol), `a URL such as http://127.0.0.1:8440, got '${value}'`, name);
}

/** A value as JSON; refuses one that has none, such as NaN and infinity, for which JSON.stringify writes null. */
function json(value, name) {
  let text;
  try {
    text = JSON.stringify(value);
    if (/null|\\ud/.test(text)) JSON.stringify(value, whole);
  } catch (problem) {
    must(false, `a value that JSON can hold (${problem.message})`, name);
  }
  must(text !== undefined, "a value that JSON can hold", name);
  return text;
}

function whole(key, value) {
  encodeURIComponent(`${key} ${typeof value === "string" ? value : ""}`); // throws at half a surrogate pair
  if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${value} is none`);
  return value;
}

/** A subscription as a broker will read it, whatever becomes of `target` later. */
function wanted(id, target, position) {
  const { kind, name, arguments: args = [], ...others } = JSON.parse(json(target, "target")) ?? {};
  const isKnown = (kind === "topic" && !args.length) || (kind === "channel" && args !== null && typeof args === "object");
  must(isKnown && typeof name === "string" && !Object.keys(others).length, "what channel() or topic() gives", "target");
  if (id) textAs(id, "id");
  if (position !== null) positionAs(position);
  const asked = kind === "topic" ? topic(name) : channel(name, args);
  return { id: id || defaultId(asked), target: asked };
}

const order = (a, b) => (a < b ? -1 : a > b ? 1 : 0);

/** Subscriptions by id, each with where it stands when a link is told of it. */
function named(subscriptions) {
  return new Map(subscriptions.map((subscription) => [subscription.id, { subscription, position: subscription._inbox.position }]));
}

const bytes = (text) => new TextEncoder().encode(text).length;

/** What `promised` gives, unless it takes too long. */
function withinMs(promised, ms) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new TocsinError("unavailable", `the function that gives tokens gave none within ${ms} ms`)), ms);
  });
  return Promise.race([promised, late]).finally(() => clearTimeout(timer));
}

function deferred() {
  const made = {};
  made.promise = new Promise((resolve, reject) => Object.assign(made, { resolve, reject }));
  made.promise.catch(() => {});
  return made;
}

function sorted(value) {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sorted(value[name])]));
}

/** A token's claims, unverified: that is the broker's part. */
function claims(token) {
  try {
    const body = token.split(".")[1].replace(/-/g, "+").replace(/_/g, "/");
    const bytes = Uint8Array.from(atob(body), (c) => c.charCodeAt(0));
    return JSON.parse(new TextDecoder().decode(bytes)) ?? {};
  } catch {
    return {};
  }
}

/** What a coordinator's status means; only what is `unavailable` may be another time. */
function refusal(status) {
  if (status === 401 || status === 403) return "unauthenticated";
  return status >= 400 && status < 500 && ![408, 425, 429].includes(status) ? "placement-refused" : "unavailable";
}

function closeSocket(socket, code) {
  if (!socket) return;
  socket.onopen = socket.onmessage = socket.onclose = null;
  try {
    socket.close(code);
  } catch {
    // it was never open
  }
}
