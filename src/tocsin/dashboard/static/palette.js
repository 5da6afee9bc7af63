/** The colours of the page, and those of brokers: Paul Tol's muted scheme, which colour-blind people can tell apart, lighter in the dark. */

import { byName, el } from "./format.js";

const LIGHT = ["#332288", "#cc6677", "#117733", "#c8a415", "#3e9fd0", "#882255", "#2f9c8c", "#8a8a1f", "#aa4499", "#8c4b1f"];
const DARK = ["#8f83e8", "#e58794", "#4fb873", "#e3cf76", "#88ccee", "#d96a9c", "#5cc9b7", "#c3c35a", "#d27ac6", "#d99b6c"];

export const isDark = () => document.documentElement.dataset.theme === "dark";

export const palette = () => (isDark() ? DARK : LIGHT);

/** A broker keeps its number, and so its colour, while the page is open. */
const numbers = new Map();

export function numberOf(name) {
  if (!numbers.has(name)) numbers.set(name, numbers.size);
  return numbers.get(name);
}

/** Of brokers that are met together: in the order of their names, so that they look the same on every page. */
export const numberAll = (names) => [...names].sort(byName).forEach(numberOf);

export const colourOf = (name) => palette()[numberOf(name) % LIGHT.length];

/** Whether another broker had this colour before: then its chip is hollow, and its line dotted. */
export const isRepeated = (name) => numberOf(name) >= LIGHT.length;

/** The colour of a broker, beside its name. */
export const chip = (name) => el("span", { class: isRepeated(name) ? "chip hollow" : "chip", style: { "--c": colourOf(name) } });

/** A colour of the style sheet; read once for light and once for dark, for it is asked for in every frame. */
const tokens = new Map();

export function token(name) {
  const key = `${name} ${isDark()}`;
  if (!tokens.has(key)) tokens.set(key, getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim());
  return tokens.get(key);
}
