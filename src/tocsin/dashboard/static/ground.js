/** What stands still on the map: parks, the river, streets; shelters, and the names of districts. */

import { around, boxOf, widthOf, write } from "./labels.js";
import { isDark, token } from "./palette.js";

const LIGHT = { water: "#cfe3ee", green: "#dfecd6", street: "#e3e0d8", road: "#c9c4b8" };
const DARK = { water: "#16303c", green: "#16291d", street: "#2b3735", road: "#465653" };

export function drawGround(context, world, view) {
  const { water, green, street, road } = isDark() ? DARK : LIGHT;
  context.transform(view.factor, 0, 0, -view.factor, ...view.origin);
  context.save();
  context.beginPath();
  context.rect(0, 0, ...world.size_m);
  context.clip();
  drawParks(context, world.parks, green);
  drawRiver(context, world.river, water);
  context.restore();
  for (const [rank, colour, width] of [[0, street, 1], [1, street, 1.8], [2, road, 2.6]]) {
    drawStreets(context, world, rank, colour, width / view.factor);
  }
}

function drawParks(context, parks, colour) {
  context.fillStyle = colour;
  for (const [, x, y, radius] of parks) {
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fill();
  }
}

function drawRiver(context, { points, width_m }, colour) {
  context.strokeStyle = colour;
  context.lineWidth = width_m;
  context.beginPath();
  for (let at = 0; at < points.length; at += 2) context.lineTo(points[at], points[at + 1]);
  context.stroke();
}

function drawStreets(context, { points, edges }, rank, colour, width) {
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

/** Small crosses. */
export function drawShelters(context, { shelters }, view) {
  context.fillStyle = token("accent");
  for (const [, x, y] of shelters) {
    const [px, py] = view.at(x, y);
    context.fillRect(px - 2.5, py - 0.8, 5, 1.6);
    context.fillRect(px - 0.8, py - 2.5, 1.6, 5);
  }
}

/** The names of districts whose middle is on the screen, beside what is `taken`; the boxes that they take. */
export function drawNames(context, { districts }, view, taken = []) {
  const [wide, high] = view.box;
  const colours = { ink: token("soft"), rim: token("land") };
  const boxes = [];
  for (const [name, x, y] of districts) {
    const [px, py] = view.at(x, y);
    if (px < 0 || py < 0 || px > wide || py > high) continue;
    const width = widthOf(context, name);
    const spot = around([px, py], width, view.box, [...taken, ...boxes]);
    write(context, name, spot, colours);
    boxes.push(boxOf(spot, width));
  }
  return boxes;
}
