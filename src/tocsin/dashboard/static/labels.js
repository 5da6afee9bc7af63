/** Where a text goes on the map, so that it is neither cut nor written over another. Boxes are [left, top, right, bottom]. */

export const FONT = "600 12px system-ui, sans-serif";
const HIGH = 12; // of a line, above its base
const DEEP = 4; // below it
const AWAY = 8; // from the mark that it belongs to
const MARGIN = 3; // to the edge

/** The base point of a text of this width that begins at the left. */
export const boxOf = ([x, y], width) => [x, y - HIGH, x + width, y + DEEP];

/** Beside the mark at [px, py]: right of it, left of it, above or below, the first that has room; else what is not cut. */
export function beside([px, py], width, [wide, high], taken = []) {
  const middle = centred(px, width, wide);
  const spots = [[px + AWAY, py + DEEP], [px - AWAY - width, py + DEEP], [middle, py - AWAY - DEEP], [middle, py + AWAY + HIGH]];
  const whole = spots.filter((spot) => isWithin(boxOf(spot, width), wide, high));
  return whole.find((spot) => isFree(boxOf(spot, width), taken)) ?? whole[0] ?? spots[0];
}

/** Centred at [px, py], or above or below it where that is taken. */
export function around([px, py], width, [wide], taken = []) {
  const spots = [py, py - AWAY - HIGH, py + AWAY + HIGH].map((y) => [centred(px, width, wide), y]);
  return spots.find((spot) => isFree(boxOf(spot, width), taken)) ?? spots[0];
}

/** Centred at px, or as near to that as it is not cut. */
export const centred = (px, width, wide) => Math.max(MARGIN, Math.min(wide - MARGIN - width, px - width / 2));

const isWithin = ([left, top, right, bottom], wide, high) => left >= MARGIN && top >= 0 && right <= wide - MARGIN && bottom <= high;
const isFree = (box, taken) => !taken.some((other) => overlap(other, box));
const overlap = (a, b) => a[0] < b[2] && b[0] < a[2] && a[1] < b[3] && b[1] < a[3];

/** A text with a rim that sets it off from what is below. */
export function write(context, text, [x, y], { ink, rim }) {
  context.font = FONT;
  context.textAlign = "left";
  context.lineJoin = "round";
  context.lineWidth = 4;
  context.strokeStyle = `${rim}cc`;
  context.fillStyle = ink;
  context.strokeText(text, x, y);
  context.fillText(text, x, y);
}

export function widthOf(context, text) {
  context.font = FONT;
  return context.measureText(text).width;
}
