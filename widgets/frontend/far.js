// Boxes and edges from far away, on a canvas beneath the picture: thousands of them, as far as they can be told apart.
// Their colours are those of the style sheet, and a mark at its corner still says what happens to a box.
import { table, toneColour } from "./common.js";

const OUTLINES = { new: "forward", active: "forward", done: "done", trouble: "trouble" };
const RUNS = { forward: "forward", backward: "backward", store: "backward", done: "done" };
const DASHES = { backward: [8, 5], store: [4, 4], none: [1, 5] };
const FADED = 0.25;

export class Far {
  constructor() {
    this.canvas = document.createElement("canvas");
    this.canvas.className = "lab-under";
    this.canvas.setAttribute("aria-hidden", "true");
    this.context = this.canvas.getContext("2d");
    this.size = "";
  }

  // All that `shown` covers, a rectangle of the scene; nodes and edges are those that meet it.
  paint(view, shown, nodes, edges, look) {
    const { context, canvas } = this;
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    const [left, top] = [shown.left * view.k + view.x, shown.top * view.k + view.y];
    const [w, h] = [(shown.right - shown.left) * view.k, (shown.bottom - shown.top) * view.k];
    const size = `left:${left}px;top:${top}px;width:${w}px;height:${h}px`;
    if (size !== this.size) {
      canvas.style.cssText = this.size = size;
      canvas.width = Math.round(w * scale);
      canvas.height = Math.round(h * scale);
    }
    context.setTransform(1, 0, 0, 1, 0, 0);
    context.clearRect(0, 0, canvas.width, canvas.height);
    const k = view.k * scale;
    context.setTransform(k, 0, 0, k, (view.x - left) * scale, (view.y - top) * scale);
    this.thin = 1 / view.k; // one pixel of the stage
    const colours = table().colours[look.mode];
    const frames = nodes.filter((entry) => entry.node.kind === "frame");
    frames.sort((a, b) => b.node.w * b.node.h - a.node.w * a.node.h);
    for (const entry of frames) this.frame(entry, colours, look);
    this.lines(edges, colours, look);
    this.boxes(nodes, colours, look);
    context.globalAlpha = 1;
  }

  // One stroke for all edges that look alike.
  lines(edges, colours, { lit, at }) {
    const { context, thin } = this;
    const alike = new Map();
    for (const { key, edge } of edges) {
      const style = `${edge.state ?? "idle"} ${lit.size ? (lit.has(key) ? "lit" : "faded") : ""}`;
      if (!alike.has(style)) alike.set(style, []);
      alike.get(style).push(edge);
    }
    for (const [style, some] of alike) {
      const [state, stands] = style.split(" ");
      context.beginPath();
      for (const { s, t, bends } of some) {
        const [source, target] = [at(s), at(t)];
        if (!source || !target) continue;
        context.moveTo(source.x, source.y);
        for (const [x, y] of bends ?? []) context.lineTo(x, y);
        context.lineTo(target.x, target.y);
      }
      context.globalAlpha = stands === "faded" ? FADED : 1;
      context.strokeStyle = colours[RUNS[state] ?? "line"];
      const lively = state !== "idle" && state !== "done" && state !== "none";
      context.lineWidth = Math.max(lively || stands === "lit" ? 2 : 0.8, (1.5 + (lively ? 0.75 : 0)) / thin) * thin;
      context.setLineDash((DASHES[state] ?? []).map((length) => Math.max(length, (length / 2) * thin)));
      context.stroke();
    }
    context.setLineDash([]);
  }

  boxes(nodes, colours, look) {
    const { context, thin } = this;
    for (const entry of nodes) {
      const { key, node, x, y } = entry;
      if (node.kind === "frame") continue;
      const { w, h, kind } = node;
      const state = node.state ?? "idle";
      const lit = look.lit.has(key);
      context.globalAlpha = look.lit.size && !lit ? FADED : 1;
      context.fillStyle = node.tone === undefined ? colours[kind] ?? colours.op : toneColour(node.tone, look.palette, look.mode);
      context.strokeStyle = look.found.has(key) ? colours.accent : colours[OUTLINES[state] ?? "line"];
      const strong = state === "active" || state === "trouble" || lit || look.found.has(key);
      context.lineWidth = Math.max(strong ? 2 : 0.8, (strong ? 2.75 : 1.25) / thin) * thin;
      if (kind === "rank") {
        context.beginPath();
        context.ellipse(x, y, w / 2, h / 2, 0, 0, 2 * Math.PI);
        context.fill();
        context.stroke();
      } else {
        context.fillRect(x - w / 2, y - h / 2, w, h);
        context.strokeRect(x - w / 2, y - h / 2, w, h);
      }
      if (state === "active" || state === "trouble" || state === "new") this.badge(state, x + w / 2, y - h / 2, colours);
    }
  }

  // At least five pixels, however far away.
  badge(state, x, y, colours) {
    const { context, thin } = this;
    const radius = Math.max(5 * thin, 7.5);
    const colour = colours[OUTLINES[state]];
    context.beginPath();
    context.arc(x, y, radius, 0, 2 * Math.PI);
    context.fillStyle = state === "new" ? colours.surface : colour;
    context.fill();
    context.lineWidth = radius / 5;
    context.strokeStyle = colour;
    context.stroke();
    context.save();
    context.translate(x, y);
    context.scale(radius / 7.5, radius / 7.5);
    context.lineWidth = 1.75;
    context.strokeStyle = context.fillStyle = state === "new" ? colour : colours.surface;
    const path = new Path2D(table().marks[state]);
    if (state === "active") context.fill(path);
    context.stroke(path);
    context.restore();
  }

  frame({ node, x, y }, colours, look) {
    const { context, thin } = this;
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
