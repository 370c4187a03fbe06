// The nodes of a scene: which there are, which of them are in the document, where they are on their way to new places.
import { GLIDE, ease } from "./camera.js";
import { nodeElement, paintNode, placeNode, tint } from "./nodes.js";
import { svg } from "./common.js";
import { LIVELY } from "./sight.js";

const LOOKS = ["x", "y", "w", "h", "label", "sublabel", "gradient", "aria", "kind", "state", "fold"];

export class Boxes {
  // `look` is what paintNode takes; `far` is told what to paint again; `leave()` takes the focus of a node that goes.
  constructor(look, far, leave) {
    Object.assign(this, { look, far, leave, active: null, here: null, gliding: new Set(), fades: false });
    this.entries = new Map(); // key -> {key, node, index, g, x, y, from, since, born}; g null: nobody can see it
    this.shown = new Set(); // entries that are in the document
    this.lively = new Set(); // keys of nodes to which something happens now
    this.folds = 0; // how many can be opened or closed
    this.edges = null;
    this.frames = svg("g", { class: "lab-frames" });
    this.others = svg("g");
  }

  // The node with its place of now.
  at = (key) => {
    const entry = this.entries.get(key);
    return entry && (entry.from ? { ...entry.node, x: entry.x, y: entry.y } : entry.node);
  };

  // `some`: keys of those that are new or others; null: any may be, and any may be gone.
  update(wanted, some, now, still) {
    const { entries } = this;
    const keys = some ?? Object.keys(wanted);
    for (const key of keys) {
      const [entry, node] = [entries.get(key), wanted[key]];
      if (!entry) this.add(key, node);
      else if (entry.node !== node) this.change(entry, node, now, still);
    }
    if (some) return;
    keys.forEach((key, index) => (entries.get(key).index = index));
    for (const [key, entry] of entries.size > keys.length ? entries : []) if (!Object.hasOwn(wanted, key)) this.remove(entry);
  }

  add(key, node) {
    const { entries, far } = this;
    entries.set(key, { key, node, index: entries.size, g: null, x: node.x, y: node.y, from: null, since: 0, born: this.fades, clipped: false });
    this.heed(key, null, node);
    if (node.kind === "frame") far.soil(null);
    far.soil(key);
  }

  remove(entry) {
    this.hide(entry);
    this.entries.delete(entry.key);
    this.heed(entry.key, entry.node, null);
    this.far.soil(null);
    if (this.active === entry.key) this.active = null;
  }

  heed(key, before, node) {
    this.folds += Boolean(node?.fold) - Boolean(before?.fold);
    if (LIVELY.has(node?.state)) this.lively.add(key);
    else this.lively.delete(key);
  }

  change(entry, node, now, still) {
    const before = entry.node;
    entry.node = node;
    this.heed(entry.key, before, node);
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
    if ((before.kind === "frame") !== (node.kind === "frame")) this.replace(entry);
    else if (LOOKS.every((name) => before[name] === node[name])) tint(entry, this.look);
    else paintNode(entry, this.look);
  }

  // A group that opens or closes is another element, in another place of the document; who had the focus on it keeps it there.
  replace(entry) {
    const old = entry.g;
    if (!old.contains(document.activeElement)) return this.hide(entry);
    this.forget(entry);
    this.show(entry);
    entry.g.focus({ preventScroll: true });
    old.remove();
    return undefined;
  }

  repaint() {
    for (const entry of this.shown) paintNode(entry, this.look);
  }

  show(entry) {
    const { key, node } = entry;
    entry.g = nodeElement(key);
    this.shown.add(entry);
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
    this.forget(entry);
  }

  forget(entry) {
    this.shown.delete(entry);
    entry.g = entry.from = entry.body = entry.texts = null;
    [entry.x, entry.y] = [entry.node.x, entry.node.y];
    this.gliding.delete(entry);
  }

  // Have these in the document, and the active one, and no others.
  keep(near) {
    const kept = new Set(near);
    if (this.entries.has(this.active)) kept.add(this.entries.get(this.active));
    for (const entry of this.shown) if (!kept.has(entry)) this.hide(entry);
    for (const entry of kept) if (!entry.g) this.show(entry);
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
