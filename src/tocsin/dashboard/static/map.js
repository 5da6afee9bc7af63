/**
 * The city on canvases, one above the other: what stands still is drawn once, and of the rest in every frame only what
 * moves in it.
 */

import { drawGround, drawNames, drawShelters } from "./ground.js";
import { brokerBoxes, drawBrokers, drawLabels, drawMarks, Reports } from "./marks.js";
import { colourOf, isRepeated } from "./palette.js";
import { People } from "./people.js";
import { View } from "./view.js";

const LAYERS = ["ground", "regions", "people", "marks", "names"];
const FINEST = 2; // finer screens are drawn on as if they had so many pixels to one
const DRAGGED_PX = 4; // a pointer that moved less has clicked

export class CityMap {
  #box;
  #layers;
  #world = null;
  #view = new View();
  #people = new People();
  #reports = new Reports();
  #image = null;
  #fine = 1; // pixels of the canvases to one of the page's, across
  #marks = [];
  #brokers = []; // {x, y, label}, of those of which it is known where they stand
  #names = []; // the boxes that the names of districts take
  #shows = { people: true, regions: true, shelters: true, reports: true, brokers: true };
  #areRegionsOld = true;
  #isOld = true; // all that is drawn in frames
  #wasDragged = false;

  constructor(box, { onpick = null } = {}) {
    this.#box = box;
    this.#layers = Object.fromEntries(LAYERS.map((name) => [name, layer(box, name)]));
    new ResizeObserver(() => this.#resize()).observe(box);
    if (onpick) box.addEventListener("click", (event) => this.#clicked(event, onpick));
    box.addEventListener("wheel", (event) => this.#wheeled(event), { passive: false });
    box.addEventListener("pointerdown", (event) => this.#dragged(event));
    const frame = (now) => {
      if (this.#image && this.#fine !== fineness()) this.#resize(); // on another screen, which nobody else tells
      if (this.#image) this.#drawFrame(now);
      requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  get world() {
    return this.#world;
  }

  setWorld(world) {
    this.#world = world;
    [this.#people, this.#reports, this.#brokers] = [new People(), new Reports(), []];
    this.#resize();
  }

  show(what, isShown) {
    this.#shows[what] = isShown;
    this.redraw();
  }

  movePeople(message) {
    this.#people.move(message, performance.now());
    this.#isOld = true;
  }

  place(message) {
    this.#people.place(message);
    this.#areRegionsOld = this.#isOld = true;
    const stand = standing(message);
    if (JSON.stringify(stand) === JSON.stringify(this.#brokers)) return;
    this.#brokers = stand;
    this.redraw();
  }

  counts() {
    return this.#people.counts();
  }

  addReports(message) {
    this.#reports.add(message, performance.now());
  }

  forgetReports() {
    this.#reports = new Reports();
    this.#isOld = true;
  }

  /** Marks that stay: {x, y, radius, label, isShelter}. */
  setMarks(marks) {
    this.#marks = marks;
    this.#isOld = true;
  }

  redrawRegions() {
    this.#areRegionsOld = true;
  }

  zoom(by) {
    this.#view.zoom(by);
    this.redraw();
  }

  pan(dx, dy) {
    this.#view.pan(dx, dy);
    this.redraw();
  }

  /** All of it, in the colours and the view of now. */
  redraw() {
    this.#areRegionsOld = this.#isOld = true;
    this.#box.classList.toggle("closer", !this.#view.isWhole);
    if (!this.#image) return;
    const { ground, names } = this.#layers;
    drawGround(this.#clear(ground), this.#world, this.#view);
    this.#clear(names);
    if (this.#shows.shelters) drawShelters(names, this.#world, this.#view);
    const brokers = this.#shows.brokers ? this.#brokers.map(coloured) : [];
    const boxes = brokerBoxes(brokers, this.#view);
    this.#names = [...boxes, ...drawNames(names, this.#world, this.#view, boxes)];
    drawBrokers(names, brokers, this.#view, this.#names);
  }

  #resize() {
    const { clientWidth: width, clientHeight: height } = this.#box;
    if (!width || !height || !this.#world) return;
    this.#fine = fineness();
    for (const [name, { canvas }] of Object.entries(this.#layers)) {
      const fine = name === "people" ? 1 : this.#fine; // dots are as coarse as their image, and as quick
      Object.assign(canvas, { width: Math.round(width * fine), height: Math.round(height * fine) });
    }
    this.#image = this.#layers.people.createImageData(width, height);
    this.#view.fit(this.#world.size_m, width, height);
    this.redraw();
  }

  #drawFrame(now) {
    const isOld = this.#isOld;
    const areSeen = this.#reports.areSeen(now);
    this.#isOld = areSeen || this.#people.areMoving(now); // then the next frame differs from this one
    if (this.#areRegionsOld) this.#drawRegions();
    if (!isOld && !this.#isOld) return;
    this.#drawPeople(now);
    const marks = this.#clear(this.#layers.marks);
    drawMarks(marks, this.#marks, this.#view);
    if (this.#shows.reports) this.#reports.draw(marks, this.#view, now);
    drawLabels(marks, this.#marks, this.#view, this.#names);
  }

  #drawRegions() {
    this.#areRegionsOld = false;
    const context = this.#clear(this.#layers.regions);
    if (this.#shows.regions) this.#people.drawRegions(context, this.#world.size_m, this.#view);
  }

  #drawPeople(now) {
    new Uint32Array(this.#image.data.buffer).fill(0);
    if (this.#shows.people && this.#people.count) this.#people.draw(this.#image, this.#world.size_m, this.#view, now);
    this.#layers.people.putImageData(this.#image, 0, 0);
  }

  /** Empty, and drawn on in pixels of the page. */
  #clear(context) {
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, context.canvas.width, context.canvas.height);
    context.setTransform(this.#fine, 0, 0, this.#fine, 0, 0);
    return context;
  }

  #clicked(event, onpick) {
    if (!this.#world || this.#wasDragged) return;
    const box = this.#box.getBoundingClientRect();
    const place = this.#view.metres(event.clientX - box.left, event.clientY - box.top);
    if (place) onpick(...place);
  }

  #wheeled(event) {
    if (!this.#world || !event.ctrlKey) return; // without it the page scrolls
    event.preventDefault();
    this.zoom(event.deltaY < 0 ? 1.25 : 0.8);
  }

  #dragged(start) {
    this.#wasDragged = false;
    if (!start.isPrimary || this.#view.isWhole) return;
    const ending = new AbortController();
    const { signal } = ending;
    let last = start;
    addEventListener("pointermove", (event) => {
      if (!event.isPrimary) return;
      if (Math.hypot(event.clientX - start.clientX, event.clientY - start.clientY) > DRAGGED_PX) this.#wasDragged = true;
      this.pan(event.clientX - last.clientX, event.clientY - last.clientY);
      last = event;
    }, { signal });
    for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => ending.abort(), { signal });
  }
}

/** Brokers that say where they are; a message without that has none. */
export function standing({ brokers, at = [] }) {
  return brokers.flatMap((label, number) => (at[number] ? [{ x: at[number][0], y: at[number][1], label }] : []));
}

const coloured = (broker) => ({ ...broker, colour: colourOf(broker.label), isHollow: isRepeated(broker.label) });

function layer(box, name) {
  const canvas = document.createElement("canvas");
  canvas.className = `layer ${name}`;
  canvas.setAttribute("aria-hidden", "true");
  box.append(canvas);
  return canvas.getContext("2d", { alpha: true, willReadFrequently: name === "people" });
}

/** Pixels of the screen to one of the page's, across. */
const fineness = () => Math.min(FINEST, Math.max(1, devicePixelRatio));
