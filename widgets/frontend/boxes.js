// The nodes of a scene: which there are, which of them are in the document, where they are on their way to new places.
import { GLIDE, ease } from "./camera.js";
import { nodeElement, paintNode, placeNode, tint } from "./nodes.js";
import { svg } from "./common.js";

const LOOKS = ["x", "y", "w", "h", "label", "sublabel", "gradient", "aria", "kind", "state", "fold"];

export class Boxes {
  // `look` is what paintNode takes; `far` is told what to paint again; `leave()` takes the focus of a node that goes.
  constructor(look, far, leave) {
    Object.assign(this, { look, far, leave, active: null, here: null, gliding: new Set() });
    this.entries = new Map(); // key -> {key, node, index, g, x, y, from, since, born}; g null: nobody can see it
    this.edges = null;
    this.frames = svg("g", { class: "lab-frames" });
    this.others = svg("g");
  }

  // The node with its place of now.
  at = (key) => {
    const entry = this.entries.get(key);
    return entry && (entry.from ? { ...entry.node, x: entry.x, y: entry.y } : entry.node);
  };

  // Returns whether one of them can be opened or closed.
  update(wanted, now, still) {
    const { entries, far } = this;
    let index = 0;
    let opens = false;
    for (const key in wanted) {
      const node = wanted[key];
      opens ||= Boolean(node.fold);
      const entry = entries.get(key);
      if (!entry) {
        entries.set(key, { key, node, index, g: null, x: node.x, y: node.y, from: null, since: 0, born: !still, clipped: false });
        if (node.kind === "frame") far.soil(null);
        far.soil(key);
      } else {
        entry.index = index;
        if (entry.node !== node) this.change(entry, node, now, still);
      }
      index += 1;
    }
    for (const [key, entry] of entries.size > index ? entries : []) {
      if (Object.hasOwn(wanted, key)) continue;
      this.hide(entry);
      entries.delete(key);
      far.soil(null);
      if (this.active === key) this.active = null;
    }
    return opens;
  }

  change(entry, node, now, still) {
    const before = entry.node;
    entry.node = node;
    const moves = before.x !== node.x || before.y !== node.y;
    if (moves && (still || !entry.g)) {
      [entry.x, entry.y, entry.from] = [node.x, node.y, null];
      this.gliding.delete(entry);
      placeNode(entry);
    } else if (moves) {
      [entry.from, entry.since] = [[entry.x, entry.y], now];
      this.gliding.add(entry);
    }
    if (moves || before.w !== node.w || before.h !== node.h || before.kind !== node.kind) {
      this.far.soil(null);
      for (const edge of this.edges.of.get(entry.key) ?? []) this.edges.moved(this.edges.entries.get(edge));
    } else this.far.soil(entry.key);
    if (!entry.g) return;
    if ((before.kind === "frame") !== (node.kind === "frame")) this.hide(entry);
    else if (LOOKS.every((name) => before[name] === node[name])) tint(entry, this.look);
    else paintNode(entry, this.look);
  }

  repaint() {
    for (const entry of this.entries.values()) if (entry.g) paintNode(entry, this.look);
  }

  show(entry) {
    const { key, node } = entry;
    entry.g = nodeElement(key);
    if (entry.born) entry.g.classList.add("lab-born");
    entry.born = false;
    if (key === this.active) entry.g.setAttribute("tabindex", "0");
    entry.g.toggleAttribute("data-here", key === this.here);
    if (node.kind === "frame") this.frames.insertBefore(entry.g, this.inside(node));
    else this.others.append(entry.g);
    paintNode(entry, this.look);
    placeNode(entry);
  }

  // The first frame that is smaller: larger ones lie below.
  inside({ w, h }) {
    const size = (element) => {
      const { node } = this.entries.get(element.dataset.key);
      return node.w * node.h;
    };
    return [...this.frames.children].find((other) => size(other) < w * h) ?? null;
  }

  hide(entry) {
    if (!entry.g) return;
    if (entry.g.contains(document.activeElement)) this.leave();
    entry.g.remove();
    entry.g = entry.from = entry.body = entry.texts = null;
    [entry.x, entry.y] = [entry.node.x, entry.node.y];
    this.gliding.delete(entry);
  }

  // Have these in the document, and the active one, and no others.
  keep(near) {
    const kept = new Set(near);
    if (this.entries.has(this.active)) kept.add(this.entries.get(this.active));
    for (const entry of this.entries.values()) {
      if (!kept.has(entry)) this.hide(entry);
      else if (!entry.g) this.show(entry);
    }
    return kept;
  }

  // The others are not in the document: a screen reader is told which of how many this one is.
  count({ g, index }) {
    for (const [name, value] of [["aria-setsize", this.entries.size], ["aria-posinset", index + 1]]) {
      if (g.getAttribute(name) !== String(value)) g.setAttribute(name, value);
    }
  }

  // One frame of all glides; true while there are more.
  tick(now) {
    const touched = new Set();
    for (const entry of this.gliding) {
      const part = ease(Math.min(1, (now - entry.since) / GLIDE));
      entry.x = entry.from[0] + (entry.node.x - entry.from[0]) * part;
      entry.y = entry.from[1] + (entry.node.y - entry.from[1]) * part;
      if (part === 1) {
        entry.from = null;
        this.gliding.delete(entry);
      }
      placeNode(entry);
      for (const edge of this.edges.of.get(entry.key) ?? []) touched.add(edge);
    }
    for (const key of touched) this.edges.moved(this.edges.entries.get(key));
    return this.gliding.size > 0;
  }
}
