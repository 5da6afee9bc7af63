/** Fields for the parameters of a channel, and their values as the channel takes them. */

import { el } from "./format.js";

const NUMBERS = new Set(["DOUBLE", "FLOAT", "INT", "INTEGER", "SMALLINT", "TINYINT"]);
export const KINDS = ["fire", "flood", "crash", "storm", "gas", "crime", "medical", "outage"];
const DEFAULTS = { radius: "1000", severity: "3" };

/** `one` is a parameter as the cluster tells it. */
export function parameterField(one, user) {
  const { name, type } = one;
  const isNumber = NUMBERS.has(base(type));
  const input = base(type) === "BOOLEAN" ? el("select", { name }, ["true", "false"].map((value) => el("option", { value }, value))) : el("input", {
    name, required: true, type: isNumber ? "number" : "text", step: isNumber ? "any" : null, autocomplete: "off",
    list: name === "kind" ? "kinds" : null,
    value: name === "user" ? user : DEFAULTS[name] ?? null,
  });
  return el("label", {}, `${name} (${type.toLowerCase()})`, input, name === "kind" ? el("datalist", { id: "kinds" }, KINDS.map((value) => el("option", { value }))) : null);
}

/** By name; numbers where the type is one that a page can hold exactly, texts otherwise. `fieldOf` gives a name's field. */
export function values(parameters, fieldOf) {
  return Object.fromEntries(parameters.map(({ name, type }) => {
    const written = fieldOf(name).value.trim();
    if (!NUMBERS.has(base(type))) return [name, base(type) === "BOOLEAN" ? written === "true" : written];
    const number = Number(written);
    if (!Number.isFinite(number)) throw new Error(`${name}: expected a number, got “${written}”.`);
    return [name, number];
  }));
}

const base = (type) => type.toUpperCase().split("(")[0];
