// The stage of a scene: what of it is in the document, from where it was drawn, and how it moves without being drawn anew.
// A large picture lies on a plane that is moved as a whole, like a map under a window: only what comes into sight is
// drawn, and when nothing has come or moved for a moment, all of it, from where the reader looks now.
import { html, svg } from "./common.js";
import { both, edgesIn, nodesIn, within } from "./sight.js";

const FEW = 300; // so many nodes are all in the document: a browser without a graphics card draws them 60 times a second
const MANY = 1500; // more in sight go to the canvas, be they readable or not
const FAR = 0.35; // zoomed out further, text cannot be read
const AROUND = 0.25; // of the stage's size: how far beyond its borders a large scene is drawn, for panning
const PLANE = 1; // of the stage's size: how far the plane reaches beyond its borders, however long the scene; scene.css says the same
const REST = 140; // ms without a movement after which all is drawn anew

export class Stage {
  constructor(camera, look, { boxes, edges, marks, far }) {
    Object.assign(this, { camera, look, boxes, edges, far });
    this.list = svg("g", { class: "lab-nodes" }, boxes.frames, edges.lines, boxes.others);
    this.world = svg("g", {}, marks.below, this.list, edges.labels, marks.above);
    this.title = svg("title");
    this.picture = svg("svg", { class: "lab-svg", role: "group" }, this.title, svg("rect", { class: "lab-ground" }), this.world);
    this.canvas = html("canvas", { class: "lab-canvas", "aria-hidden": "true", hidden: "" }); // for tokens
    this.element = html("div", { class: "lab-stage" }, far.element, this.picture, this.canvas);
    this.heavy = false; // too many nodes to have all of them in the document
    this.isFar = false;
    this.stale = false; // something changed that has not been drawn
    this.drawn = null; // {view, size, sight, plane}: from where it was drawn, how far around, and how far it may be moved
    this.resting = 0;
  }

  // The size that the camera knows of; returns whether it is new. In a box that is not in the page yet it comes later.
  sized() {
    const { clientWidth: w, clientHeight: h } = this.element;
    const { size } = this.camera;
    if (!w || (w === size.w && h === size.h)) return false;
    this.camera.size = { w, h };
    return true;
  }

  weigh(nNodes) {
    if (this.heavy === nNodes > FEW) return;
    this.heavy = nNodes > FEW;
    this.drawn = null;
    this.element.toggleAttribute("data-heavy", this.heavy);
  }

  // The view is another, or the scene; moving: more will follow at once.
  follow(moving) {
    clearTimeout(this.resting);
    if (!moving || !this.heavy || !this.drawn || !this.shift()) return this.redraw();
    if (this.stale) this.cull();
    this.resting = setTimeout(() => this.redraw(), REST);
    return undefined;
  }

  // Move what is drawn already, and say what has to be drawn besides; false when that would show a gap or a blur.
  shift() {
    const { camera, drawn } = this;
    const { view: { k, x, y }, size, glide } = camera;
    const ratio = k / drawn.view.k;
    if (size !== drawn.size || ratio < 0.5 || ratio > 2 || (ratio !== 1 && glide?.to.k === k)) return false;
    const sight = camera.sight();
    if (!within(sight, drawn.sight)) {
      if (ratio !== 1 || !within(sight, drawn.plane)) return false;
      drawn.sight = this.around();
      this.far.soil(null);
      this.stale = true;
    }
    const by = [x - drawn.view.x * ratio, y - drawn.view.y * ratio].map(ratio === 1 ? toPixel : Number);
    this.move(`translate(${by[0]}px, ${by[1]}px) scale(${ratio})`);
    return true;
  }

  // What is drawn: what can be seen, and what will be at once.
  around() {
    const { camera } = this;
    const goal = camera.glide?.to;
    if (!goal || goal.k === camera.view.k) return camera.sight(AROUND);
    const all = both(camera.sight(), camera.sight(0, goal));
    return goal.k < FAR || !within(all, camera.sight(PLANE)) ? camera.sight() : all; // drawn at once, all of a long way would be huge
  }

  move(transform) {
    for (const { style } of [this.picture, this.far.element]) if (style.transform !== transform) style.transform = transform;
  }

  redraw() {
    clearTimeout(this.resting);
    const { camera, drawn, picture, far } = this;
    const { view, size } = camera;
    const same = drawn && view.k === drawn.view.k && view.x === drawn.view.x && view.y === drawn.view.y && size === drawn.size;
    this.move("");
    if (!same) {
      this.world.setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.k.toFixed(4)})`);
      picture.classList.toggle("lab-far", view.k < FAR);
      far.soil(null);
      this.drawn = { view, size, sight: this.around(), plane: camera.sight(PLANE) };
    }
    if (!same || this.stale) this.cull();
  }

  // Bring into the document what can be seen and read, and take out what cannot; the node that has the focus stays.
  cull() {
    const { camera, boxes, edges, far, heavy } = this;
    const { view, sight } = this.drawn ?? { view: camera.view, sight: camera.sight() };
    const goal = camera.whole ? view : (camera.glide?.to ?? view); // on the run, what nobody can read at its end is not drawn to be read
    const k = Math.min(view.k, goal.k);
    this.isFar = heavy && (k < FAR || nodesIn(camera.sight(), boxes.entries).length > MANY);
    this.element.toggleAttribute("data-far", this.isFar);
    const kept = boxes.keep(this.isFar ? [] : heavy ? nodesIn(sight, boxes.entries) : boxes.entries.values());
    if (heavy) for (const entry of kept) boxes.count(entry);
    edges.keep(this.isFar ? [] : heavy ? edgesIn(sight, edges) : edges.entries.values());
    far.element.hidden = !this.isFar;
    if (this.isFar) far.paint(view, sight, boxes.entries, edges, this.look);
    this.stale = false;
  }

  dispose() {
    clearTimeout(this.resting);
  }
}

// Text that moves by whole pixels of the screen stays as sharp as it was drawn, and is moved much faster.
function toPixel(value) {
  const scale = window.devicePixelRatio || 1;
  return Math.round(value * scale) / scale;
}
