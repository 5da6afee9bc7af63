/**
 * The city on canvases, one above the other: what stands still is drawn once, people are dots written straight into
 * an image, and marks (reports, places that were clicked) lie on top.
 *
 * Positions are metres from the south-west corner; y grows upwards there and downwards on a screen.
 */

import { isDark, palette, token } from "./palette.js";

const REPORT_S = 20; // how long a report is seen
const RING_S = 2; // how long a ring grows around a severe one
const CELLS = 56; // of the regions, across
const NOWHERE = 255;

export class CityMap {
  #box;
  #layers;
  #world = null;
  #scale = 1;
  #view = { x: 0, y: 0, zoom: 1 };
  #people = { count: 0, from: null, to: null, at: 0, lastMs: 1 };
  #placed = null; // a byte a person
  #numbers = []; // of brokers, in the palette
  #image = null;
  #sketch = document.createElement("canvas").getContext("2d"); // regions, a pixel a cell
  #reports = [];
  #marks = [];
  #isDirty = true;
  #shows = { people: true, regions: true, shelters: true, reports: true };

  constructor(box, { onpick = null } = {}) {
    this.#box = box;
    this.#layers = ["base", "regions", "people", "names", "marks"].map((name) => {
      const canvas = document.createElement("canvas");
      canvas.className = `layer ${name}`;
      canvas.setAttribute("aria-hidden", "true");
      box.append(canvas);
      return canvas.getContext("2d", { alpha: true, willReadFrequently: name === "people" });
    });
    new ResizeObserver(() => this.resize()).observe(box);
    box.addEventListener("click", (event) => this.#clicked(event, onpick));
    box.addEventListener("wheel", (event) => this.#wheeled(event), { passive: false });
    box.addEventListener("pointerdown", (event) => this.#dragged(event));
    const frame = (now) => {
      this.#draw(now);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  get world() {
    return this.#world;
  }

  setWorld(world) {
    this.#world = world;
    this.#people = { count: 0, from: null, to: null, at: 0, lastMs: 1 };
    this.#reports = [];
    this.#placed = null;
    this.resize();
    if (world.placed) this.place(world.placed);
  }

  show(what, isShown) {
    this.#shows[what] = isShown;
    this.redraw();
  }

  /** Everybody is on the way to these places now, and there when the next message is due. */
  movePeople({ xy }) {
    const bytes = Uint8Array.from(atob(xy), (c) => c.charCodeAt(0));
    const to = new Uint16Array(bytes.buffer);
    const now = performance.now();
    const people = this.#people;
    const isSame = people.to && people.to.length === to.length;
    people.lastMs = isSame ? Math.min(2_000, Math.max(200, now - people.at)) : 1_000;
    people.from = isSame ? this.#present(now) : to;
    Object.assign(people, { to, count: to.length / 2, at: now });
  }

  /** Who is at which broker: `brokers` are names, `of` a byte for each person. */
  place({ brokers, of }, numberOf = (name) => brokers.indexOf(name)) {
    this.#numbers = brokers.map(numberOf);
    this.#placed = Uint8Array.from(atob(of), (c) => c.charCodeAt(0));
    this.#isDirty = true;
  }

  /** How many people each broker has, by the order of the last `place`. */
  counts() {
    const counts = new Array(this.#numbers.length).fill(0);
    for (const number of this.#placed ?? []) if (number !== NOWHERE) counts[number] += 1;
    return counts;
  }

  addReports({ reports }) {
    const now = performance.now();
    for (const [id, kind, severity, x, y, radius] of reports) this.#reports.push({ id, kind, severity, x, y, radius, at: now });
    if (this.#reports.length > 600) this.#reports.splice(0, this.#reports.length - 600);
  }

  /** Marks that stay: {x, y, radius, colour, label}. */
  setMarks(marks) {
    this.#marks = marks;
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.#box;
    if (!width || !height || !this.#world) return;
    for (const { canvas } of this.#layers) Object.assign(canvas, { width, height });
    const [wide, high] = this.#world.size_m;
    this.#scale = Math.min(width / wide, height / high);
    this.#image = this.#layers[2].createImageData(width, height);
    this.redraw();
  }

  redrawRegions() {
    this.#isDirty = true;
  }

  redraw() {
    this.#isDirty = true;
    if (this.#world) this.#drawBase();
  }

  // --- where things are on the screen ---------------------------------------------------------------------

  #factor() {
    return this.#scale * this.#view.zoom;
  }

  #origin() {
    const { clientWidth: width, clientHeight: height } = this.#box;
    const [wide, high] = this.#world.size_m;
    const factor = this.#factor();
    return [(width - wide * factor) / 2 + this.#view.x, (height + high * factor) / 2 + this.#view.y];
  }

  #at(x, y) {
    const factor = this.#factor();
    const [left, bottom] = this.#origin();
    return [left + x * factor, bottom - y * factor];
  }

  #metres(px, py) {
    const factor = this.#factor();
    const [left, bottom] = this.#origin();
    return [(px - left) / factor, (bottom - py) / factor];
  }

  #clicked(event, onpick) {
    if (!onpick || !this.#world || this.#wasDragged) return;
    const box = this.#box.getBoundingClientRect();
    const [x, y] = this.#metres(event.clientX - box.left, event.clientY - box.top);
    const [wide, high] = this.#world.size_m;
    if (x >= 0 && y >= 0 && x <= wide && y <= high) onpick(Math.round(x), Math.round(y));
  }

  #wheeled(event) {
    if (!this.#world || !event.ctrlKey) return; // without it the page scrolls
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8);
  }

  /** Closer, or farther away; never smaller than the whole city. */
  zoom(by) {
    const before = this.#view.zoom;
    this.#view.zoom = Math.min(8, Math.max(1, before * by));
    const change = this.#view.zoom / before;
    this.#view.x *= change;
    this.#view.y *= change;
    if (this.#view.zoom === 1) Object.assign(this.#view, { x: 0, y: 0 });
    this.redraw();
  }

  #wasDragged = false;
  #dragged(start) {
    this.#wasDragged = false;
    let { clientX: x, clientY: y } = start;
    const move = (event) => {
      if (this.#view.zoom === 1) return;
      if (Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > 4) this.#wasDragged = true;
      this.#view.x += event.clientX - x;
      this.#view.y += event.clientY - y;
      [x, y] = [event.clientX, event.clientY];
      this.redraw();
    };
    const stop = () => {
      removeEventListener("pointermove", move);
      removeEventListener("pointerup", stop);
    };
    addEventListener("pointermove", move);
    addEventListener("pointerup", stop);
  }

  // --- drawing ----------------------------------------------------------------------------------------------

  #draw(now) {
    if (!this.#world || !this.#image) return;
    if (this.#isDirty) this.#drawRegions();
    if (this.#people.to) this.#drawPeople(now);
    this.#drawMarks(now);
  }

  #clear(context) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
  }

  #drawBase() {
    const context = this.#layers[0];
    const world = this.#world;
    const [water, green, street, road] = isDark()
      ? ["#16303c", "#16291d", "#2b3735", "#465653"]
      : ["#cfe3ee", "#dfecd6", "#e3e0d8", "#c9c4b8"];
    this.#clear(context);
    const [left, bottom] = this.#origin();
    const factor = this.#factor();
    context.setTransform(factor, 0, 0, -factor, left, bottom);
    context.save();
    context.beginPath();
    context.rect(0, 0, ...world.size_m);
    context.clip();
    context.fillStyle = green;
    for (const [, x, y, radius] of world.parks) {
      context.beginPath();
      context.arc(x, y, radius, 0, 2 * Math.PI);
      context.fill();
    }
    context.strokeStyle = water;
    context.lineWidth = world.river.width_m;
    context.beginPath();
    for (let at = 0; at < world.river.points.length; at += 2) context.lineTo(world.river.points[at], world.river.points[at + 1]);
    context.stroke();
    context.restore();
    for (const [rank, colour, width] of [[0, street, 1], [1, street, 1.8], [2, road, 2.6]]) this.#streets(context, rank, colour, width / factor);
    this.#drawNames(this.#layers[3]);
  }

  #streets(context, rank, colour, width) {
    const { points, edges } = this.#world;
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    for (let at = 0; at < edges.length; at += 3) {
      if (edges[at + 2] !== rank) continue;
      const [a, b] = [2 * edges[at], 2 * edges[at + 1]];
      context.moveTo(points[a], points[a + 1]);
      context.lineTo(points[b], points[b + 1]);
    }
    context.stroke();
  }

  #drawNames(context) {
    this.#clear(context);
    if (this.#shows.shelters) {
      context.fillStyle = token("accent");
      for (const [, x, y] of this.#world.shelters) {
        const [px, py] = this.#at(x, y);
        context.fillRect(px - 2.5, py - 0.8, 5, 1.6);
        context.fillRect(px - 0.8, py - 2.5, 1.6, 5);
      }
    }
    context.font = "600 12px system-ui, sans-serif";
    context.textAlign = "center";
    context.lineJoin = "round";
    context.lineWidth = 3;
    context.strokeStyle = drawn("land") + "cc";
    context.fillStyle = token("soft");
    for (const [name, x, y] of this.#world.districts) {
      const [px, py] = this.#at(x, y);
      context.strokeText(name, px, py);
      context.fillText(name, px, py);
    }
  }

  /** Where each broker's people are: a cell has the colour of the one with the most. */
  #drawRegions() {
    this.#isDirty = false;
    const context = this.#layers[1];
    this.#clear(context);
    const present = this.#people.to;
    if (!this.#shows.regions || !present || !this.#placed || !this.#numbers.length) return;
    const [wide, high] = this.#world.size_m;
    const down = Math.round((CELLS * high) / wide);
    const most = this.#busiest(present, CELLS, down);
    const colours = palette().map(packed);
    const small = new ImageData(CELLS, down);
    const pixels = new Uint32Array(small.data.buffer);
    most.forEach((broker, cell) => {
      const line = down - 1 - Math.floor(cell / CELLS);
      if (broker >= 0) pixels[line * CELLS + (cell % CELLS)] = colours[this.#numbers[broker] % colours.length];
    });
    this.#sketch.canvas.width = CELLS;
    this.#sketch.canvas.height = down;
    this.#sketch.putImageData(small, 0, 0);
    const [left, bottom] = this.#origin();
    const factor = this.#factor();
    context.globalAlpha = isDark() ? 0.34 : 0.3;
    context.drawImage(this.#sketch.canvas, left, bottom - high * factor, wide * factor, high * factor);
    context.globalAlpha = 1;
  }

  #busiest(present, across, down) {
    const brokers = this.#numbers.length;
    const counts = new Uint16Array(across * down * brokers);
    for (let person = 0; person < this.#people.count; person += 1) {
      const broker = this.#placed[person];
      if (broker === undefined || broker === NOWHERE) continue;
      const column = Math.min(across - 1, Math.floor((present[2 * person] / 65_536) * across));
      const line = Math.min(down - 1, Math.floor((present[2 * person + 1] / 65_536) * down));
      counts[(line * across + column) * brokers + broker] += 1;
    }
    return Array.from({ length: across * down }, (_, cell) => {
      let best = -1;
      for (let broker = 0; broker < brokers; broker += 1) {
        const found = counts[cell * brokers + broker];
        if (found > 0 && (best < 0 || found > counts[cell * brokers + best])) best = broker;
      }
      return best;
    });
  }

  /** Where people are between two messages. */
  #present(now) {
    const { from, to, at, lastMs } = this.#people;
    const share = Math.min(1, (now - at) / lastMs);
    if (share === 1 || !from) return to;
    const present = new Uint16Array(to.length);
    for (let i = 0; i < to.length; i += 1) present[i] = from[i] + (to[i] - from[i]) * share;
    return present;
  }

  #drawPeople(now) {
    const context = this.#layers[2];
    const { width, height, data } = this.#image;
    const pixels = new Uint32Array(data.buffer);
    pixels.fill(0);
    if (this.#shows.people) {
      const present = this.#present(now);
      const [wide, high] = this.#world.size_m;
      const factor = this.#factor();
      const [left, bottom] = this.#origin();
      const [stepX, stepY] = [(wide * factor) / 65_535, (high * factor) / 65_535];
      const colours = [...palette().map(packed)];
      const nobody = packed(isDark() ? "#6d7d79" : "#8d9793");
      const size = this.#people.count > 3_000 ? 2 : 3;
      for (let person = 0; person < this.#people.count; person += 1) {
        const x = Math.round(left + present[2 * person] * stepX);
        const y = Math.round(bottom - present[2 * person + 1] * stepY);
        if (x < 1 || y < 1 || x >= width - 2 || y >= height - 2) continue;
        const broker = this.#placed ? this.#placed[person] ?? NOWHERE : NOWHERE;
        const colour = broker === NOWHERE ? nobody : colours[this.#numbers[broker] % colours.length];
        for (let line = 0; line < size; line += 1) {
          const start = (y + line) * width + x;
          pixels.fill(colour, start, start + size);
        }
      }
    }
    context.putImageData(this.#image, 0, 0);
  }

  #drawMarks(now) {
    const context = this.#layers[4];
    this.#clear(context);
    const factor = this.#factor();
    this.#reports = this.#reports.filter(({ at }) => now - at < REPORT_S * 1000);
    if (this.#shows.reports) {
      context.strokeStyle = drawn("bad");
      context.fillStyle = drawn("bad");
      for (const { x, y, radius, severity, at } of this.#reports) {
        const age = (now - at) / 1000;
        const [px, py] = this.#at(x, y);
        const size = 1 + severity / 2;
        context.globalAlpha = 0.85 * (1 - age / REPORT_S);
        context.fillRect(px - size / 2, py - size / 2, size, size);
        if (age >= RING_S || severity < 3) continue;
        context.globalAlpha = 0.6 * (1 - age / RING_S);
        context.beginPath();
        context.arc(px, py, Math.max(2, (radius * factor * age) / RING_S), 0, 2 * Math.PI);
        context.stroke();
      }
      context.globalAlpha = 1;
    }
    for (const { x, y, radius = 0, colour, label = "" } of this.#marks) {
      const [px, py] = this.#at(x, y);
      context.strokeStyle = context.fillStyle = colour ?? drawn("accent");
      context.lineWidth = 2.5;
      if (radius) {
        context.beginPath();
        context.arc(px, py, radius * factor, 0, 2 * Math.PI);
        context.globalAlpha = 0.14;
        context.fill();
        context.globalAlpha = 1;
        context.stroke();
      }
      context.beginPath();
      context.arc(px, py, 4.5, 0, 2 * Math.PI);
      context.fill();
      if (label) {
        context.font = "600 12px system-ui, sans-serif";
        context.textAlign = "left";
        context.strokeStyle = drawn("land") + "cc";
        context.lineWidth = 4;
        context.strokeText(label, px + 8, py + 4);
        context.fillText(label, px + 8, py + 4);
      }
    }
  }
}

/** A colour as the bytes of a pixel have it. */
function packed(colour) {
  const value = parseInt(colour.slice(1), 16);
  return (0xff000000 | ((value & 0xff) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
}

/** As `token`, kept for the many times that it is asked for while drawing. */
const kept = new Map();
function drawn(name) {
  const key = `${name} ${isDark()}`;
  if (!kept.has(key)) kept.set(key, token(name));
  return kept.get(key);
}
