/**
 * Which part of the city is on the screen: positions are metres from the south-west corner, and y grows upwards there
 * and downwards on a screen.
 */

const CLOSEST = 8; // times the size at which the whole city is seen

export class View {
  #size = [1, 1];
  #box = [1, 1];
  #zoom = 1;
  #shift = [0, 0];

  /** A city of `size` metres in a box of so many pixels. */
  fit(size, width, height) {
    [this.#size, this.#box] = [size, [width, height]];
    this.pan(0, 0);
  }

  /** Its width and height in pixels. */
  get box() {
    return this.#box;
  }

  get isWhole() {
    return this.#zoom === 1;
  }

  /** Pixels a metre. */
  get factor() {
    return this.#zoom * Math.min(this.#box[0] / this.#size[0], this.#box[1] / this.#size[1]);
  }

  /** Where the south-west corner is. */
  get origin() {
    const [wide, high] = this.#size.map((side) => side * this.factor);
    return [(this.#box[0] - wide) / 2 + this.#shift[0], (this.#box[1] + high) / 2 + this.#shift[1]];
  }

  at(x, y) {
    const [left, bottom] = this.origin;
    return [left + x * this.factor, bottom - y * this.factor];
  }

  /** The place at a pixel in whole metres, or null beside the city. */
  metres(px, py) {
    const [left, bottom] = this.origin;
    const [x, y] = [Math.round((px - left) / this.factor), Math.round((bottom - py) / this.factor)];
    return x >= 0 && y >= 0 && x <= this.#size[0] && y <= this.#size[1] ? [x, y] : null;
  }

  /** Closer, or farther away; never smaller than the whole city. */
  zoom(by) {
    const before = this.#zoom;
    this.#zoom = Math.min(CLOSEST, Math.max(1, before * by));
    this.#shift = this.#shift.map((way) => (way * this.#zoom) / before);
    this.pan(0, 0);
  }

  /** By so many pixels, and never past the city's edge. */
  pan(dx, dy) {
    this.#shift = [dx, dy].map((by, axis) => {
      const spare = Math.max(0, (this.#size[axis] * this.factor - this.#box[axis]) / 2);
      return Math.min(spare, Math.max(-spare, this.#shift[axis] + by));
    });
  }
}
