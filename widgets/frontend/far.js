// Boxes and edges from far away, on two canvases beneath the picture: thousands of them, as far as they can be told apart.
// Their colours are those of the style sheet, and a mark at its corner still says what happens to a box. Only what
// changed is painted again.
import { html, table, toneColour } from "./common.js";
import { edgesIn, nodesIn } from "./sight.js";

const OUTLINES = { new: "forward", active: "forward", done: "done", trouble: "trouble" };
const RUNS = { forward: "forward", backward: "backward", store: "backward", done: "done" };
const DASHES = { backward: [8, 5], store: [4, 4], none: [1, 5] };
const FADED = { soft: 0.25, contrast: 0.6 }; // in high contrast nothing is hardly seen
const THIN = 0.55; // of the many edges along which nothing runs
const TINY = 7; // pixels: a box no wider has no outline of its own
const CROWDED = 6; // scene units in a pixel: from there on thousands of lines run through the same few pixels
const ONE_BY_ONE = 48; // more boxes that changed, and all are painted again

const faded = (mode) => (mode.startsWith("contrast") ? FADED.contrast : FADED.soft);

export class Far {
  constructor() {
    [this.lower, this.upper] = [html("canvas"), html("canvas")]; // frames and edges, boxes
    this.element = html("div", { class: "lab-under", "aria-hidden": "true" }, this.lower, this.upper);
    this.size = "";
    this.dirty = { boxes: null, lines: null }; // keys of what has to be painted again; null: all
  }

  // A box looks different now; null: anything may.
  soil(key) {
    if (key === null) this.dirty = { boxes: null, lines: null };
    else this.dirty.boxes?.add(key);
  }

  soilLine(key) {
    if (key === null) this.dirty.lines = null;
    else this.dirty.lines?.add(key);
  }

  // What `shown` covers, a rectangle of the scene, as far as it is not painted yet.
  paint(view, shown, nodes, edges, look) {
    const { boxes, lines } = this.dirty;
    const colours = table().colours[look.mode];
    this.fit(view, shown);
    this.thin = 1 / view.k; // one pixel of the stage
    if (!lines) {
      const context = this.begin(this.lower, view, true);
      const frames = nodesIn(shown, nodes).filter(({ node: { kind, w, h } }) => kind === "frame" && w > 2 * this.thin && h > this.thin / 8); // others: specks
      frames.sort((a, b) => b.node.w * b.node.h - a.node.w * a.node.h);
      for (const entry of frames) this.frame(context, entry, colours, look);
      this.lines(context, edgesIn(shown, edges), colours, look, edges.at);
    } else if (lines.size) {
      const some = [...lines].map((key) => edges.entries.get(key)).filter(Boolean);
      this.lines(this.begin(this.lower, view, false), some, colours, look, edges.at);
    }
    if (!boxes || boxes.size > ONE_BY_ONE) this.boxes(this.begin(this.upper, view, true), nodesIn(shown, nodes), colours, look);
    else if (boxes.size) {
      const context = this.begin(this.upper, view, false);
      for (const key of boxes) if (nodes.has(key)) this.again(context, nodes.get(key), nodes, colours, look);
    }
    this.dirty = { boxes: new Set(), lines: new Set() };
  }

  fit(view, { left, top, right, bottom }) {
    const box = [left * view.k + view.x, top * view.k + view.y, (right - left) * view.k, (bottom - top) * view.k].map(Math.round);
    if (this.size === String(box)) return;
    this.size = String(box);
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    for (const { style } of [this.lower, this.upper]) {
      [style.left, style.top, style.width, style.height] = box.map((value) => `${value}px`);
    }
    for (const canvas of [this.lower, this.upper]) [canvas.width, canvas.height] = [box[2] * scale, box[3] * scale];
    Object.assign(this, { scale, corner: box });
  }

  begin(canvas, view, clear) {
    const context = canvas.getContext("2d");
    const { scale, corner } = this;
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.globalAlpha = 1;
    if (clear) context.clearRect(0, 0, canvas.width, canvas.height);
    const k = view.k * scale;
    context.setTransform(k, 0, 0, k, (view.x - corner[0]) * scale, (view.y - corner[1]) * scale);
    return context;
  }

  // One stroke for all edges that look alike.
  lines(context, edges, colours, { lit, mode }, at) {
    const { thin } = this;
    const alike = new Map();
    for (const { key, edge } of edges) {
      const style = `${edge.state ?? "idle"} ${lit.size ? (lit.has(key) ? "lit" : "faded") : ""}`;
      if (!alike.has(style)) alike.set(style, []);
      alike.get(style).push(edge);
    }
    for (const [style, some] of alike) {
      const [state, stands] = style.split(" ");
      context.beginPath();
      const drawn = thin > CROWDED ? new Set() : null;
      for (const { s, t, bends } of some) {
        const [source, target] = [at(s), at(t)];
        if (!source || !target) continue;
        const places = [[source.x, source.y], ...(bends ?? []), [target.x, target.y]];
        if (drawn) this.pieces(context, places, drawn);
        else places.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
      }
      context.globalAlpha = stands === "faded" ? faded(mode) : state === "idle" && thin > 2 ? THIN : 1;
      context.strokeStyle = colours[RUNS[state] ?? "line"];
      const lively = state !== "idle" && state !== "done" && state !== "none";
      context.lineWidth = Math.max((lively || stands === "lit" ? 2 : 0.8) * thin, 1.5 + (lively ? 0.75 : 0));
      context.setLineDash((DASHES[state] ?? []).map((length) => Math.max(length, (length / 2) * thin)));
      context.stroke();
    }
    context.setLineDash([]);
  }

  // The pieces of a line from pixel to pixel, those that are not drawn yet: a browser takes seconds for thousands of lines
  // one on the other.
  pieces(context, places, drawn) {
    const { thin } = this;
    let last = null;
    for (const [x, y] of places) {
      const here = [Math.round(x / thin), Math.round(y / thin)];
      const key = `${last} ${here}`;
      if (last && (last[0] !== here[0] || last[1] !== here[1]) && !drawn.has(key)) {
        drawn.add(key);
        context.moveTo(last[0] * thin, last[1] * thin);
        context.lineTo(here[0] * thin, here[1] * thin);
      }
      last = here;
    }
  }

  // Fills one by one, outlines that look alike in one stroke, marks last.
  boxes(context, entries, colours, look) {
    const { thin } = this;
    const outlines = new Map();
    const marked = [];
    for (const entry of entries) {
      const { key, node, x, y } = entry;
      const { w, h, kind } = node;
      if (kind === "frame") continue;
      const state = node.state ?? "idle";
      const [lit, found] = [look.lit.has(key), look.found.has(key)];
      const dim = look.lit.size > 0 && !lit;
      const tiny = w < TINY * thin;
      const strong = state === "active" || state === "trouble" || lit || found;
      const stroke = found ? colours.accent : colours[OUTLINES[state] ?? "line"];
      const [across, high] = [Math.max(w, 1.5 * thin), Math.max(h, 1.5 * thin)];
      context.globalAlpha = dim ? faded(look.mode) : 1;
      if (node.tone !== undefined) context.fillStyle = toneColour(node.tone, look.palette, look.mode);
      else context.fillStyle = tiny ? stroke : colours[kind] ?? colours.op;
      if (kind === "rank") {
        context.beginPath();
        context.ellipse(x, y, across / 2, high / 2, 0, 0, 2 * Math.PI);
        context.fill();
      } else context.fillRect(x - across / 2, y - high / 2, across, high);
      if (!tiny || strong) {
        const style = `${dim ? faded(look.mode) : 1} ${strong ? Math.max(2 * thin, 2.75) : Math.max(0.8 * thin, 1.25)} ${stroke}`;
        if (!outlines.has(style)) outlines.set(style, []);
        outlines.get(style).push(entry);
      }
      if (state === "active" || state === "trouble" || state === "new") marked.push(entry);
    }
    for (const [style, some] of outlines) {
      const [alpha, width, colour] = style.split(" ");
      [context.globalAlpha, context.lineWidth, context.strokeStyle] = [Number(alpha), Number(width), colour];
      context.beginPath();
      for (const { node: { w, h, kind }, x, y } of some) {
        if (kind !== "rank") context.rect(x - w / 2, y - h / 2, w, h);
        else {
          context.moveTo(x + w / 2, y);
          context.ellipse(x, y, w / 2, h / 2, 0, 0, 2 * Math.PI);
        }
      }
      context.stroke();
    }
    context.globalAlpha = 1;
    for (const { node, x, y } of marked) this.badge(context, node.state, x + node.w / 2, y - node.h / 2, colours);
  }

  // One box, and what its mark may cover of others.
  again(context, { node, x, y }, nodes, colours, look) {
    const more = Math.max(6 * this.thin, 10);
    const [w, h] = [node.w / 2 + more, node.h / 2 + more];
    context.save();
    context.beginPath();
    context.rect(x - w, y - h, 2 * w, 2 * h);
    context.clip();
    context.clearRect(x - w, y - h, 2 * w, 2 * h);
    const around = { left: x - w - more, right: x + w + more, top: y - h - more, bottom: y + h + more };
    this.boxes(context, nodesIn(around, nodes), colours, look);
    context.restore();
  }

  // At least five pixels, however far away.
  badge(context, state, x, y, colours) {
    const radius = Math.max(5 * this.thin, 7.5);
    const colour = colours[OUTLINES[state]];
    context.save();
    context.translate(x, y);
    context.scale(radius / 7.5, radius / 7.5);
    context.beginPath();
    context.arc(0, 0, 7.5, 0, 2 * Math.PI);
    context.fillStyle = state === "new" ? colours.surface : colour;
    context.fill();
    context.lineWidth = 1.5;
    context.strokeStyle = colour;
    context.stroke();
    context.lineWidth = 1.75;
    context.strokeStyle = context.fillStyle = state === "new" ? colour : colours.surface;
    const path = new Path2D(table().marks[state]);
    if (state === "active") context.fill(path);
    context.stroke(path);
    context.restore();
  }

  frame(context, { node, x, y }, colours, look) {
    const { thin } = this;
    context.globalAlpha = 0.35;
    context.fillStyle = colours.group;
    context.fillRect(x - node.w / 2, y - node.h / 2, node.w, node.h);
    context.globalAlpha = 1;
    context.lineWidth = thin;
    context.strokeStyle = colours.line;
    context.strokeRect(x - node.w / 2, y - node.h / 2, node.w, node.h);
    if (node.w < 70 * thin || node.h < 24 * thin || !node.label) return;
    context.font = `600 ${12 * thin}px ${look.family}`;
    context.fillStyle = colours.text;
    context.fillText(node.label, x - node.w / 2 + 6 * thin, y - node.h / 2 + 15 * thin, node.w - 12 * thin);
  }
}
