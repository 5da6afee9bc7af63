/** What lies on top of the map: reports that fade, and marks that stay, with their labels. */

import { beside, boxOf, widthOf, write } from "./labels.js";
import { token } from "./palette.js";

const REPORT_S = 20; // how long a report is seen
const RING_S = 2; // how long a ring grows around a severe one
const SEVERE = 3;
const KEPT = 600; // reports; of more in 20 seconds the oldest go at once

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

  draw(context, view, now) {
    context.strokeStyle = context.fillStyle = token("bad");
    context.lineWidth = 1;
    for (const { x, y, radius, severity, at } of this.#seen) {
      const age = (now - at) / 1000;
      const [px, py] = view.at(x, y);
      const size = 1 + severity / 2;
      context.globalAlpha = 0.85 * Math.max(0, 1 - age / REPORT_S);
      context.fillRect(px - size / 2, py - size / 2, size, size);
      if (age >= RING_S || severity < SEVERE) continue;
      context.globalAlpha = 0.6 * (1 - age / RING_S);
      circle(context, [px, py], Math.max(2, (radius * view.factor * age) / RING_S));
      context.stroke();
    }
    context.globalAlpha = 1;
  }
}

/** Marks are {x, y, radius, label}; labels keep out of the boxes that are `taken`. */
export function drawMarks(context, marks, view, taken) {
  const [ink, rim] = [token("accent"), token("land")];
  for (const { x, y, radius = 0 } of marks) drawMark(context, view.at(x, y), radius * view.factor, ink);
  const boxes = [...taken];
  for (const { x, y, label = "" } of marks) {
    if (!label) continue;
    const width = widthOf(context, label);
    const spot = beside(view.at(x, y), width, view.box, boxes);
    write(context, label, spot, { ink, rim });
    boxes.push(boxOf(spot, width));
  }
}

function drawMark(context, spot, radius, colour) {
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 2.5;
  if (radius > 0) {
    circle(context, spot, radius);
    context.globalAlpha = 0.14;
    context.fill();
    context.globalAlpha = 1;
    context.stroke();
  }
  circle(context, spot, 4.5);
  context.fill();
}

function circle(context, [x, y], radius) {
  context.beginPath();
  context.arc(x, y, radius, 0, 2 * Math.PI);
}
