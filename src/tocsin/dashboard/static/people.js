/** People as dots written straight into an image, on their way between two messages, in the colour of their broker. */

import { isStill } from "./motion.js";
import { isDark, numberAll, numberOf, palette } from "./palette.js";

const NOWHERE = 255;
const CELLS = 56; // of the regions, across
const PARTS = 65_536; // of the city's size, in which positions are told
const CROWD = 3_000; // from so many people on, dots are smaller
const EXPECTED_MS = 1_000; // between messages, before any two have come
const LEAST_MS = 200;
const MOST_MS = 2_000;
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

export class People {
  #from = null;
  #to = null;
  #at = 0;
  #takesMs = EXPECTED_MS;
  #placed = new Uint8Array(0); // the broker of each, a byte
  #numbers = []; // of brokers, in the palette
  #sketch = document.createElement("canvas").getContext("2d"); // regions, a pixel a cell

  get count() {
    return this.#to ? this.#to.length / 2 : 0;
  }

  /** Everybody is on the way to these places now, and there when the next message is due; or at once, where none is to move. */
  move({ xy }, now) {
    const to = new Uint16Array(bytesOf(xy).buffer);
    const isSame = this.#to?.length === to.length;
    this.#from = isSame && !isStill() ? this.#present(now) : to;
    this.#takesMs = isSame ? Math.min(MOST_MS, Math.max(LEAST_MS, now - this.#at)) : EXPECTED_MS;
    [this.#to, this.#at] = [to, now];
  }

  /** Who is at which broker: `brokers` are names, `of` a byte for each person. */
  place({ brokers, of }) {
    numberAll(brokers);
    this.#numbers = brokers.map(numberOf);
    this.#placed = bytesOf(of);
  }

  /** How many people each broker has, by the order of the last `place`. */
  counts() {
    const counts = new Array(this.#numbers.length).fill(0);
    for (const broker of this.#placed) if (broker !== NOWHERE) counts[broker] += 1;
    return counts;
  }

  areMoving(now) {
    return this.#from !== this.#to && now - this.#at < this.#takesMs;
  }

  #present(now) {
    const [from, to, share] = [this.#from, this.#to, Math.min(1, (now - this.#at) / this.#takesMs)];
    if (share === 1 || from === to) return to;
    const present = new Uint16Array(to.length);
    for (let i = 0; i < to.length; i += 1) present[i] = from[i] + (to[i] - from[i]) * share;
    return present;
  }

  /** Dots into `image`, which is empty before. */
  draw(image, [wide, high], view, now) {
    const { width, height, data } = image;
    const pixels = new Uint32Array(data.buffer);
    const present = this.#present(now);
    const [left, bottom] = view.origin;
    const [stepX, stepY] = [(wide * view.factor) / (PARTS - 1), (high * view.factor) / (PARTS - 1)];
    const size = this.count > CROWD ? 2 : 3;
    const colours = this.#colours();
    for (let person = 0; person < this.count; person += 1) {
      const x = Math.round(left + present[2 * person] * stepX);
      const y = Math.round(bottom - present[2 * person + 1] * stepY);
      if (x < 1 || y < 1 || x >= width - size || y >= height - size) continue;
      const colour = colours[this.#placed[person] ?? NOWHERE];
      for (let start = y * width + x, line = 0; line < size; line += 1) pixels.fill(colour, start + line * width, start + line * width + size);
    }
  }

  /** By the byte of a person. */
  #colours() {
    const known = palette().map(packed);
    const colours = new Uint32Array(NOWHERE + 1).fill(packed(isDark() ? "#6d7d79" : "#8d9793"));
    this.#numbers.forEach((number, broker) => (colours[broker] = known[number % known.length]));
    return colours;
  }

  /** Where each broker's people are: a cell has the colour of the one with the most. */
  drawRegions(context, [wide, high], view) {
    if (!this.#to || !this.#numbers.length) return;
    const down = Math.round((CELLS * high) / wide);
    const small = new ImageData(CELLS, down);
    const pixels = new Uint32Array(small.data.buffer);
    const colours = this.#colours();
    busiest(this.#to, this.#placed, this.#numbers.length, CELLS, down).forEach((broker, cell) => {
      const line = down - 1 - Math.floor(cell / CELLS);
      if (broker >= 0) pixels[line * CELLS + (cell % CELLS)] = colours[broker];
    });
    Object.assign(this.#sketch.canvas, { width: CELLS, height: down });
    this.#sketch.putImageData(small, 0, 0);
    const [left, bottom] = view.origin;
    context.globalAlpha = isDark() ? 0.34 : 0.3;
    context.drawImage(this.#sketch.canvas, left, bottom - high * view.factor, wide * view.factor, high * view.factor);
    context.globalAlpha = 1;
  }
}

/** For each cell, from the south-west on, the broker with the most people there, or -1 where nobody is. */
export function busiest(spots, placed, brokers, across, down) {
  const counts = new Uint32Array(across * down * brokers);
  for (let person = 0; 2 * person < spots.length; person += 1) {
    const broker = placed[person] ?? NOWHERE;
    if (broker === NOWHERE) continue;
    const column = Math.floor((spots[2 * person] / PARTS) * across);
    const line = Math.floor((spots[2 * person + 1] / PARTS) * down);
    counts[(line * across + column) * brokers + broker] += 1;
  }
  return Array.from({ length: across * down }, (_, cell) => {
    const found = counts.subarray(cell * brokers, (cell + 1) * brokers);
    const most = Math.max(...found);
    return most > 0 ? found.indexOf(most) : -1;
  });
}

/** A colour as the bytes of a pixel have it. */
function packed(colour) {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}
