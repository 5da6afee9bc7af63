/** The last minutes as columns, and the charts of them. */

import { draw } from "./charts.js";
import { byName } from "./format.js";
import { colourOf, isRepeated, token } from "./palette.js";

/** As many samples as the dashboard itself keeps; a broker that is in none of them any more is forgotten. */
export class Past {
  n = 0;
  kept = 0;
  at = [];
  cov = [];
  maximum = [];
  mean = [];
  brokers = new Map(); // name → {bytes_in, bytes_out, online}

  begin(found) {
    Object.assign(this, { n: found.n, kept: found.kept, at: found.at.map(dated), cov: found.cov, maximum: found.maximum, mean: found.mean });
    this.brokers = new Map(Object.entries(found.brokers));
  }

  add(sample) {
    const length = this.at.length;
    this.n = sample.n;
    this.at.push(dated(sample.at));
    for (const name of ["cov", "maximum", "mean"]) this[name].push(sample.figures?.[name] ?? null);
    for (const { name } of sample.brokers) {
      if (!this.brokers.has(name)) this.brokers.set(name, { bytes_in: zeros(length), bytes_out: zeros(length), online: zeros(length) });
    }
    const now = new Map(sample.brokers.map((broker) => [broker.name, broker]));
    for (const [name, columns] of this.brokers) {
      const { state, ...found } = now.get(name) ?? {};
      for (const column of Object.keys(columns)) columns[column].push(state === "unknown" ? null : found[column] ?? 0);
    }
    while (this.at.length > this.kept) this.#shorten(now);
  }

  #shorten(now) {
    for (const column of [this.at, this.cov, this.maximum, this.mean]) column.shift();
    for (const [name, columns] of this.brokers) {
      for (const column of Object.values(columns)) column.shift();
      if (!now.has(name) && Object.values(columns).every(isEmpty)) this.brokers.delete(name);
    }
  }

  names() {
    return [...this.brokers.keys()].sort(byName);
  }
}

/** All four charts. */
export function drawPast(past) {
  const names = past.names();
  const of = (name) => past.brokers.get(name);
  const byId = (id) => document.getElementById(id);
  const accent = token("accent");
  draw(byId("cov-chart"), past.at, [{ name: "cov", y: past.cov, colour: accent, isArea: true }]);
  draw(byId("max-chart"), past.at, [
    { name: "highest", y: past.maximum, colour: accent, isArea: true },
    { name: "mean", y: past.mean, colour: token("ink"), dash: "dash" },
  ], { unit: "B/s" });
  draw(byId("load-chart"), past.at, names.map((name) => {
    const { bytes_in, bytes_out } = of(name);
    return { name, y: bytes_in.map((value, at) => (value === null ? null : value + bytes_out[at])), colour: colourOf(name) };
  }), { unit: "B/s", isStacked: true });
  draw(byId("people-chart"), past.at, names.map((name) => ({ name, y: of(name).online, colour: colourOf(name), dash: isRepeated(name) ? "dot" : "solid" })));
}

const dated = (at) => new Date(at * 1000);
const isEmpty = (column) => column.every((value) => !value);
const zeros = (length) => new Array(length).fill(0);
