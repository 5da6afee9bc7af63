/** Colours of brokers: Paul Tol's muted scheme, which colour-blind people can tell apart, lighter in the dark. */

const LIGHT = ["#332288", "#cc6677", "#117733", "#c8a415", "#3e9fd0", "#882255", "#2f9c8c", "#8a8a1f", "#aa4499", "#8c4b1f"];
const DARK = ["#8f83e8", "#e58794", "#4fb873", "#e3cf76", "#88ccee", "#d96a9c", "#5cc9b7", "#c3c35a", "#d27ac6", "#d99b6c"];

export const isDark = () => document.documentElement.dataset.theme === "dark";

export const palette = () => (isDark() ? DARK : LIGHT);

/** A broker keeps its number, and so its colour, while the page is open; names with numbers begin in their order. */
const numbers = new Map();

export function numberOf(name) {
  if (!numbers.has(name)) numbers.set(name, numbers.size);
  return numbers.get(name);
}

export const colourOf = (name) => palette()[numberOf(name) % LIGHT.length];

export const token = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
