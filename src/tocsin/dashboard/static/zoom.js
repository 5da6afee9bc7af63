/** Ways to come closer to a map and to move it, for who has no wheel: two buttons, and arrow keys on them. */

import { el, fill } from "./format.js";

const CLOSER = 1.4;
const STEP_PX = 60;
const ARROWS = { ArrowLeft: [STEP_PX, 0], ArrowRight: [-STEP_PX, 0], ArrowUp: [0, STEP_PX], ArrowDown: [0, -STEP_PX] };

/** Into `target`; the text with the id `about` says how they are used. */
export function setUpZoom(target, map, about) {
  const button = (label, by, sign) => el("button", { type: "button", onclick: () => map.zoom(by), "aria-label": label, "aria-describedby": about }, sign);
  fill(target, button("Closer", CLOSER, "+"), button("Farther away", 1 / CLOSER, "−"));
  target.addEventListener("keydown", (event) => {
    if (!ARROWS[event.key]) return;
    event.preventDefault();
    map.pan(...ARROWS[event.key]);
  });
}
