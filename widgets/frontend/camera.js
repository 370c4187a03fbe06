// Where the reader looks: pan, zoom, fit, and, when all of it cannot be read, the part that matters now.
import { calm } from "./common.js";
import { magnified } from "./look.js";

export const GLIDE = 350;
export const ease = (part) => 1 - (1 - part) ** 3;
const mix = (a, b, part) => a + (b - a) * part;
const MARGIN = { desk: 28, phone: 8 };
const PHONE = 480; // px: in a stage that narrow, all room is for the picture
const LEAP = 12; // stages: over a longer way nothing could be seen, and each frame of it would be drawn anew
const NEARLY = 0.02; // of its size: a picture so much larger or smaller looks the same while it moves
// Below this the smallest text has less than 11 px: then only a part is shown, the one that matters now.
export const readable = () => 0.9 * magnified();
// All of it is worth letters that are somewhat smaller, where they are large: on a projector.
const worth = () => (magnified() > 1 ? 0.8 : 1) * readable();
const largest = () => 1.25 * magnified();

export class Camera {
  // `changed(moving)` is called when the view is another; moving: more of it will follow at once. `took()`: by the reader.
  // `column(left, right)`: from where to where the picture reaches there, as {top, h}; null: nothing stands there.
  constructor(changed, took, column) {
    Object.assign(this, { changed, took, column, view: { k: 1, x: 0, y: 0 }, size: { w: 0, h: 0 } });
    this.box = this.drawn = { left: 0, top: 0, w: 1, h: 1 }; // all that there will be, and what there is
    this.taken = false; // the reader has panned or zoomed: leave the view alone
    this.whole = false; // the reader wants to see all of it, readable or not
    this.glide = null;
  }

  get margin() {
    return this.size.w < PHONE ? MARGIN.phone : MARGIN.desk;
  }

  toStage = (x, y) => [x * this.view.k + this.view.x, y * this.view.k + this.view.y];
  toScene = (x, y) => [(x - this.view.x) / this.view.k, (y - this.view.y) / this.view.k];

  // The part of the scene in the stage, and `more` of the stage's size at each side of it.
  sight(more = 0, { k, x, y } = this.view) {
    const { w, h } = this.size;
    return { left: (-w * more - x) / k, top: (-h * more - y) / k, right: (w * (1 + more) - x) / k, bottom: (h * (1 + more) - y) / k };
  }

  // The sides of the stage beyond which the picture goes on.
  beyond() {
    const { drawn } = this;
    const [left, top] = this.toStage(drawn.left, drawn.top);
    const [right, bottom] = this.toStage(drawn.left + drawn.w, drawn.top + drawn.h);
    const over = { left: left < -1, right: right > this.size.w + 1, top: top < -1, bottom: bottom > this.size.h + 1 };
    return Object.keys(over).filter((side) => over[side]).join(" ");
  }

  // How high the stage shall be for this picture, at `least` so large.
  height(most, least) {
    const k = Math.min(largest(), Math.max((this.size.w - 2 * this.margin) / this.box.w, least));
    return Math.round(Math.min(most, Math.max(160, this.box.h * k + 2 * this.margin)));
  }

  scaleFor(box) {
    return Math.min((this.size.w - 2 * this.margin) / box.w, (this.size.h - 2 * this.margin) / box.h);
  }

  readable(box) {
    return this.scaleFor(box) >= readable();
  }

  // To all of it, or to `lively()`, the part that matters now, if all cannot be read.
  fit(glides, lively) {
    const goal = this.glide?.to ?? this.view;
    const to = this.wanted(goal, lively);
    if (Math.abs(goal.k - to.k) < 1e-4 && Math.abs(goal.x - to.x) < 0.5 && Math.abs(goal.y - to.y) < 0.5) return this.changed(true);
    if (glides && !calm() && !this.leaps(to)) {
      this.glide = { from: this.nearly(to.k), to, since: performance.now() };
      return this.changed(true);
    }
    this.glide = null;
    this.view = to;
    return this.changed(false);
  }

  // Whether the way to this view is too long to be seen: so many stages lie between, at the larger of both scales.
  leaps(to) {
    const [a, b] = [this.sight(), this.sight(0, to)];
    const k = Math.max(this.view.k, to.k);
    const [across, high] = [Math.max(a.right, b.right) - Math.min(a.left, b.left), Math.max(a.bottom, b.bottom) - Math.min(a.top, b.top)];
    return across * k > LEAP * this.size.w || high * k > LEAP * this.size.h;
  }

  // The view of now at this scale, if it nearly has it: what only moves need not be drawn anew.
  nearly(k) {
    const { view, size: { w, h } } = this;
    const ratio = k / view.k;
    return Math.abs(ratio - 1) > NEARLY ? view : { k, x: w / 2 - (w / 2 - view.x) * ratio, y: h / 2 - (h / 2 - view.y) * ratio };
  }

  // A part that is in sight already stays where it is.
  wanted(now, lively) {
    const { box, size, margin } = this;
    const all = this.scaleFor(box);
    const part = this.whole || all >= worth() ? null : lively();
    const k = Math.max(Math.min(0.01, all), Math.min(largest(), part ? Math.max(all, Math.min(readable(), this.scaleFor(part))) : all));
    const along = (from, length, room, last, at, span) => {
      if (length * k <= room - margin / 2) return room / 2 - (from + length / 2) * k;
      const seen = Math.abs(now.k - k) < 1e-4 && at * k + last >= margin && (at + span) * k + last <= room - margin;
      const centred = seen ? last : room / 2 - (at + span / 2) * k;
      return Math.max(room - margin - (from + length) * k, Math.min(margin - from * k, centred));
    };
    const goal = part ?? box;
    return { k, x: along(box.left, box.w, size.w, now.x, goal.left, goal.w), y: along(box.top, box.h, size.h, now.y, goal.top, goal.h) };
  }

  // One frame of a glide; true while there are more.
  tick(now) {
    if (!this.glide) return false;
    const { from, to, since } = this.glide;
    const part = ease(Math.min(1, (now - since) / GLIDE));
    this.view = { k: mix(from.k, to.k, part), x: mix(from.x, to.x, part), y: mix(from.y, to.y, part) };
    if (part === 1) this.glide = null;
    this.changed(part < 1 || from.k === to.k);
    return part < 1;
  }

  // This view, moved back as far as it takes to see something: half a stage of the picture, or half of one that is smaller.
  held({ k, x, y }) {
    const { drawn, size } = this;
    const along = (from, length, room, at) => {
      const least = Math.min(room, length * k) / 2;
      return Math.max(least - (from + length) * k, Math.min(room - least - from * k, at));
    };
    const beside = along(drawn.left, drawn.w, size.w, x);
    const { left, right } = this.sight(0, { k, x: beside, y });
    const { top, h } = this.column(left, right) ?? drawn;
    return { k, x: beside, y: along(top, h, size.h, y) };
  }

  // The picture or the stage is another: the reader stays where they were, if anything is there. Where nothing is any
  // more they see all of it, if that can be read.
  stay(lively) {
    const { view } = this;
    const to = this.held(view);
    if ((to.x !== view.x || to.y !== view.y) && this.readable(this.box)) {
      this.taken = false;
      return this.fit(false, lively);
    }
    this.view = to;
    return this.changed(false);
  }

  takeOver(next, moving = false) {
    if (!this.size.w) return; // nobody can have seen it
    this.taken = true;
    this.glide = null;
    this.view = this.held(next);
    this.took();
    this.changed(moving);
  }

  zoom(factor, [cx, cy] = [this.size.w / 2, this.size.h / 2], moving = false) {
    const { view } = this;
    const k = Math.min(6, Math.max(Math.min(0.05, this.scaleFor(this.box)), view.k * factor));
    const ratio = k / view.k;
    this.takeOver({ k, x: cx - (cx - view.x) * ratio, y: cy - (cy - view.y) * ratio }, moving);
  }

  pan(dx, dy, moving = false) {
    this.takeOver({ ...this.view, x: this.view.x + dx, y: this.view.y + dy }, moving);
  }

  centre(x, y, moving = false) {
    this.takeOver({ ...this.view, x: this.size.w / 2 - x * this.view.k, y: this.size.h / 2 - y * this.view.k }, moving);
  }

  // So that a place of the scene can be seen.
  reveal(x, y) {
    const [sx, sy] = this.toStage(x, y);
    if (sx > 20 && sy > 20 && sx < this.size.w - 20 && sy < this.size.h - 20) return;
    const { box, size: { w, h }, view: { k } } = this;
    // Into the middle, but no further than the picture goes: beyond its end nothing can be seen.
    const held = (from, length, room, at) => {
      if (length * k <= room - 2 * this.margin) return room / 2 - (from + length / 2) * k;
      return Math.max(room - this.margin - (from + length) * k, Math.min(this.margin - from * k, room / 2 - at * k));
    };
    this.takeOver({ k, x: held(box.left, box.w, w, x), y: held(box.top, box.h, h, y) });
  }
}

// Pan with one finger or the mouse, zoom with two or Ctrl and the wheel. Returns whether the last press was a drag.
export function gestures(picture, stage, camera) {
  const pointers = new Map();
  let dragged = false;
  const inStage = (x, y) => {
    const box = stage.getBoundingClientRect();
    return [x - box.left, y - box.top];
  };
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) dragged = false;
  });
  picture.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (!dragged && Math.hypot(dx, dy) < 4) return;
    dragged = true;
    picture.setPointerCapture(event.pointerId);
    if (pointers.size === 1) camera.pan(dx, dy, true);
    else if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const factor = Math.hypot(now[0] - other[0], now[1] - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1);
      camera.zoom(factor, inStage((now[0] + other[0]) / 2, (now[1] + other[1]) / 2), true);
    }
    pointers.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel"]) {
    picture.addEventListener(name, (event) => {
      if (pointers.delete(event.pointerId) && dragged) camera.changed(false);
    });
  }
  picture.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // plain wheels scroll the notebook
      event.preventDefault();
      camera.zoom(Math.exp(-event.deltaY * 0.01), inStage(event.clientX, event.clientY), true);
    },
    { passive: false },
  );
  return () => dragged;
}
