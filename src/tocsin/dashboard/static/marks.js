/** What lies on top of the map: marks that stay, reports that fade, and the labels of marks. */

import { beside, boxOf, widthOf, write } from "./labels.js";
import { isStill } from "./motion.js";
import { isDark, token } from "./palette.js";

const REPORT_S = 20; // how long a report is seen
const RING_S = 2.5; // how long a ring grows around a severe one
const SEVERE = 3;
const WORST = 5;
const KEPT = 600; // reports; of more in 20 seconds the oldest go at once
const FAINTEST = 0.3; // of a report that is about to go
const STAMP_PX = 16; // room for a diamond and its rim
const DOT_PX = 4.5;

export class Reports {
  #seen = [];

  add({ reports }, now) {
    for (const [, , severity, x, y, radius] of reports) this.#seen.push({ severity, x, y, radius, at: now });
    this.#seen.splice(0, this.#seen.length - KEPT);
  }

  /** Whether there are any; those whose time is over are forgotten. */
  areSeen(now) {
    this.#seen = this.#seen.filter(({ at }) => now - at < REPORT_S * 1000);
    return this.#seen.length > 0;
  }

  /** Diamonds, the newest above the others, so that nobody takes them for people. */
  draw(context, view, now) {
    context.strokeStyle = token("report");
    context.lineWidth = 2;
    for (const { x, y, radius, severity, at } of this.#seen) {
      const age = (now - at) / 1000;
      const [px, py] = view.at(x, y);
      context.globalAlpha = FAINTEST + (1 - FAINTEST) * Math.max(0, 1 - age / REPORT_S);
      context.drawImage(stamp(severity), Math.round(px) - STAMP_PX / 2, Math.round(py) - STAMP_PX / 2, STAMP_PX, STAMP_PX);
      if (age >= RING_S || severity < SEVERE || isStill()) continue;
      context.globalAlpha = 0.9 * (1 - age / RING_S);
      circle(context, [px, py], Math.max(4, (radius * view.factor * age) / RING_S));
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

/** From corner to corner of a report's diamond, without its rim. */
export const diamondPx = (severity) => 5 + Math.round(Math.min(WORST, Math.max(1, severity)));

/** Diamonds, drawn once for each severity, in the light and in the dark. */
const stamps = new Map();

function stamp(severity) {
  const key = `${diamondPx(severity)} ${isDark()}`;
  if (!stamps.has(key)) stamps.set(key, drawnStamp(diamondPx(severity) / 2));
  return stamps.get(key);
}

function drawnStamp(half) {
  const context = document.createElement("canvas").getContext("2d");
  context.canvas.width = context.canvas.height = 2 * STAMP_PX; // for fine screens
  context.scale(2, 2);
  context.translate(STAMP_PX / 2, STAMP_PX / 2);
  context.beginPath();
  for (const [x, y] of [[0, -half], [half, 0], [0, half], [-half, 0]]) context.lineTo(x, y);
  context.closePath();
  context.lineJoin = "round";
  context.lineWidth = 3;
  context.strokeStyle = token("land");
  context.stroke();
  context.fillStyle = token("report");
  context.fill();
  return context.canvas;
}

/** Marks are {x, y, radius, label, isShelter}. */
export function drawMarks(context, marks, view) {
  const [ink, rim] = [token("accent"), token("land")];
  for (const { x, y, radius = 0, isShelter = false } of marks) {
    if (radius > 0) drawReach(context, view.at(x, y), radius * view.factor, ink);
    (isShelter ? drawCross : drawDot)(context, view.at(x, y), ink, rim);
  }
}

/** The labels of marks keep out of the boxes that are `taken`. */
export function drawLabels(context, marks, view, taken, ink = token("accent")) {
  const boxes = [...taken];
  for (const { x, y, label = "" } of marks) {
    if (!label) continue;
    const width = widthOf(context, label);
    const spot = beside(view.at(x, y), width, view.box, boxes);
    write(context, label, spot, { ink, rim: token("land") });
    boxes.push(boxOf(spot, width));
  }
}

/** The boxes that brokers take, which leave room for their names. */
export const brokerBoxes = (brokers, view) => brokers.map(({ x, y }) => view.at(x, y)).map(([px, py]) => [px - 7, py - 7, px + 7, py + 7]);

/** Where brokers stand, {x, y, label, colour, isHollow}: a large dot of its colour each, with its name. */
export function drawBrokers(context, brokers, view, taken) {
  const [ink, rim] = [token("ink"), token("land")];
  for (const { x, y, colour, isHollow } of brokers) {
    for (const [radius, fill] of [[8.5, rim], [7, ink], [5.5, colour], ...(isHollow ? [[2.5, rim]] : [])]) {
      circle(context, view.at(x, y), radius);
      context.fillStyle = fill;
      context.fill();
    }
  }
  drawLabels(context, brokers, view, taken, ink);
}

function drawReach(context, spot, radius, colour) {
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 2.5;
  circle(context, spot, radius);
  context.globalAlpha = 0.14;
  context.fill();
  context.globalAlpha = 1;
  context.stroke();
}

function drawDot(context, spot, colour, rim) {
  for (const [radius, fill] of [[DOT_PX + 1.5, rim], [DOT_PX, colour]]) {
    circle(context, spot, radius);
    context.fillStyle = fill;
    context.fill();
  }
}

/** As shelters are drawn, but larger. */
function drawCross(context, [px, py], colour, rim) {
  for (const [long, thick, fill] of [[17, 8, rim], [14, 5, colour]]) {
    context.fillStyle = fill;
    context.fillRect(px - long / 2, py - thick / 2, long, thick);
    context.fillRect(px - thick / 2, py - long / 2, thick, long);
  }
}

function circle(context, [x, y], radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}
