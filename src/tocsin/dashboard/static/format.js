/** Numbers and times as all pages write them. */

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });

const day = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric" });

export const count = (value) => whole.format(value);

export const decimal = (value, digits = 1) => value.toFixed(digits);

/** Bytes a second, with a unit that leaves one to three digits before the point. */
export function rate(value) {
  const [number, unit] = rateParts(value);
  return `${number} ${unit}`;
}

export function rateParts(value) {
  const units = ["B/s", "kB/s", "MB/s", "GB/s"];
  let at = 0;
  while (value >= 999.5 && at < units.length - 1) [value, at] = [value / 1000, at + 1];
  return [value >= 100 || at === 0 ? value.toFixed(0) : value.toFixed(1), units[at]];
}

export const perSecond = (value) => (value >= 100 ? count(value) : decimal(value));

export const milliseconds = (value) => (value === null ? "–" : value >= 1000 ? `${decimal(value / 1000)} s` : `${value.toFixed(0)} ms`);

export const seconds = (value) => (value < 1 ? `${(value * 1000).toFixed(0)} ms` : value < 120 ? `${decimal(value)} s` : `${(value / 60).toFixed(0)} min`);

/** Unix seconds as time of day. */
export const time = (at) => clock.format(new Date(at * 1000));

/** The same, with the day and the year where these are others than `now`. */
export function moment(at, now) {
  const [then, present] = [new Date(at * 1000), new Date(now * 1000)];
  if (date.format(then) === date.format(present)) return time(at);
  return `${(then.getFullYear() === present.getFullYear() ? day : date).format(then)} ${time(at)}`;
}

export const plural = (number, noun, many = `${noun}s`) => `${count(number)} ${number === 1 ? noun : many}`;

/** Names in order, broker_2 before broker_10. */
export const byName = (a, b) => a.localeCompare(b, "en", { numeric: true });

/** An element with attributes and children; texts are never read as markup. */
export function el(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, set] of Object.entries(value)) made.style.setProperty(key, set);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Put `children` in place of what is there. */
export function fill(target, ...children) {
  target.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
}

/** Rewrite a text only where it changed, so that nothing is announced or drawn for nothing. */
export function write(target, text) {
  if (target.textContent !== text) target.textContent = text;
}
