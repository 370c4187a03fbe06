// The edges of a scene: where they run is worked out when somebody can see them; which share both their nodes, always.
import { clip, setText, svg, textWidth } from "./common.js";
import { edgeShape, lanes } from "./geometry.js";
import { LIVELY } from "./sight.js";

export class Edges {
  // `at(key)` gives a node with its place of now.
  constructor(at) {
    Object.assign(this, { at, family: "", lit: new Set(), fades: false });
    this.lines = svg("g", { "aria-hidden": "true", class: "lab-lines" });
    this.labels = svg("g", { "aria-hidden": "true", class: "lab-edge-labels" });
    this.entries = new Map(); // key -> {key, edge, lane, box, g, line, head, text}; g null: nobody can see it, text: no label
    this.shown = new Set(); // entries that are in the document
    this.lively = new Set(); // keys of edges along which something runs now
    this.of = new Map(); // node key -> Set of keys
    this.pairs = new Map(); // both nodes -> keys
  }

  // `some`: keys of those that are new or others; null: any may be, and any may be gone. Returns which are new, and
  // whether others have changed or gone.
  update(wanted, some) {
    const { entries } = this;
    const stale = new Set(); // pairs that gained or lost one
    const fresh = [];
    let others = false;
    const all = some ?? Object.keys(wanted);
    for (const key of all) {
      const edge = wanted[key];
      let entry = entries.get(key);
      if (entry?.edge === edge) continue;
      if (entry) others = true;
      else fresh.push(key);
      if (entry && (entry.edge.s !== edge.s || entry.edge.t !== edge.t || !entry.edge.bends !== !edge.bends)) this.unlink(entry, stale);
      if (!entry) entries.set(key, (entry = { key, lane: 0, g: null, line: null, born: this.fades, pair: null, text: null }));
      entry.edge = edge;
      this.heed(key, edge);
      if (entry.pair === null) this.link(entry, stale);
      if (entry.g) this.paint(entry);
      this.moved(entry);
    }
    for (const [key, entry] of !some && entries.size > all.length ? entries : []) {
      if (Object.hasOwn(wanted, key)) continue;
      this.hide(entry);
      entries.delete(key);
      this.heed(key, null);
      this.unlink(entry, stale);
      others = true;
    }
    for (const pair of stale) {
      const keys = [...(this.pairs.get(pair) ?? [])];
      const offsets = lanes(keys.map((key) => [key, entries.get(key).edge]));
      for (const key of keys) {
        const entry = entries.get(key);
        if (entry.lane === (offsets.get(key) ?? 0)) continue;
        entry.lane = offsets.get(key) ?? 0;
        this.moved(entry);
      }
    }
    return { fresh, others };
  }

  heed(key, edge) {
    if (LIVELY.has(edge?.state)) this.lively.add(key);
    else this.lively.delete(key);
  }

  link(entry, stale) {
    const { s, t, bends } = entry.edge;
    for (const end of [s, t]) {
      if (!this.of.has(end)) this.of.set(end, new Set());
      this.of.get(end).add(entry.key);
    }
    entry.ends = [s, t];
    entry.pair = bends ? "" : s < t ? `${s}\0${t}` : `${t}\0${s}`;
    if (!entry.pair) return;
    if (!this.pairs.has(entry.pair)) this.pairs.set(entry.pair, new Set());
    this.pairs.get(entry.pair).add(entry.key);
    if (this.pairs.get(entry.pair).size > 1) stale.add(entry.pair);
  }

  unlink(entry, stale) {
    for (const end of entry.ends) this.of.get(end)?.delete(entry.key);
    this.pairs.get(entry.pair)?.delete(entry.key);
    if (entry.pair) stale.add(entry.pair);
    [entry.pair, entry.lane] = [null, 0];
  }

  // One of its ends is elsewhere, or it runs otherwise.
  moved(entry) {
    entry.box = null;
    entry.stale = true;
    if (entry.g) this.route(entry);
  }

  // About where it is: enough to know whether it can be in sight.
  boxOf(entry) {
    if (entry.box) return entry.box;
    const { edge, lane } = entry;
    const [source, target] = [this.at(edge.s), this.at(edge.t)];
    if (!source || !target) return null;
    const more = Math.abs(lane) + (edge.s === edge.t ? source.w / 2 + 32 : 0) + 8;
    let [left, right] = [Math.min(source.x, target.x), Math.max(source.x, target.x)];
    let [top, bottom] = [Math.min(source.y, target.y), Math.max(source.y, target.y)];
    for (const [x, y] of edge.bends ?? []) {
      [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
    }
    entry.box = { left: left - more, right: right + more, top: top - more, bottom: bottom + more };
    return entry.box;
  }

  show(entry) {
    if (entry.g) return;
    const line = entry.line ?? svg("path", { class: "lab-line" });
    const head = svg("path", { class: "lab-head" });
    const g = svg("g", { class: "lab-edge", "data-key": entry.key }, svg("path", { class: "lab-hit" }), line, head);
    if (entry.born) g.classList.add("lab-born");
    Object.assign(entry, { g, line, head, born: false });
    this.shown.add(entry);
    this.lines.append(g);
    this.paint(entry);
    this.route(entry);
  }

  repaint() {
    for (const entry of this.shown) this.paint(entry);
  }

  // Have these in the document, and no others.
  keep(near) {
    const kept = new Set(near);
    for (const entry of this.shown) if (!kept.has(entry)) this.hide(entry);
    for (const entry of kept) this.show(entry);
  }

  hide(entry) {
    if (!entry.g) return;
    entry.g.remove();
    entry.text?.remove();
    this.shown.delete(entry);
    Object.assign(entry, { g: null, head: null, text: null, line: null, born: false });
  }

  // Its line, in the picture or not: tokens run along it in either case.
  lineOf(entry) {
    if (!entry.line) {
      entry.line = svg("path", { class: "lab-line" });
      entry.stale = true;
    }
    if (entry.stale && !entry.g) {
      const shape = this.shape(entry);
      if (shape) entry.line.setAttribute("d", shape.line);
      entry.stale = false;
    }
    return entry.line;
  }

  paint(entry) {
    const { key, edge, g } = entry;
    const [state, lit] = [edge.state ?? "idle", this.lit.has(key)];
    g.dataset.state = state;
    g.style.setProperty("--lab-width", edge.width ?? 1.5);
    g.toggleAttribute("data-lit", lit);
    this.label(entry, state, lit);
  }

  label(entry, state, lit) {
    const font = `500 12px ${this.family}`;
    const words = clip(entry.edge.label ?? "", font, 180);
    if (!words) {
      entry.text?.remove();
      entry.text = null;
      return;
    }
    if (!entry.text) {
      entry.text = svg("g", { class: "lab-edge-label" }, svg("rect", { rx: 6, height: 18, y: -9 }), svg("text", { dy: "0.35em" }));
      this.labels.append(entry.text);
    }
    const { text } = entry;
    const across = textWidth(words, font) + 10;
    text.dataset.state = state;
    text.toggleAttribute("data-lit", lit);
    setText(text.lastChild, words);
    text.firstChild.setAttribute("width", across);
    text.firstChild.setAttribute("x", -across / 2);
  }

  shape({ edge, lane }) {
    const [source, target] = [this.at(edge.s), this.at(edge.t)];
    return source && target ? edgeShape(edge, source, target, lane) : null;
  }

  route(entry) {
    const shape = this.shape(entry);
    if (!shape) return;
    entry.line.setAttribute("d", shape.line);
    entry.g.firstChild.setAttribute("d", shape.line);
    entry.head.setAttribute("d", shape.head);
    entry.text?.setAttribute("transform", `translate(${shape.middle[0]} ${shape.middle[1]})`);
    entry.stale = false;
  }
}
