// The tooltip: the whole text of what was clipped or is too small to read, beside it, over as little else as can be.
import { html, table } from "./common.js";

export class Tip {
  constructor(root, stage, camera) {
    Object.assign(this, { root, stage, camera });
    this.element = html("div", { class: "lab-tip", role: "tooltip", hidden: "" });
  }

  node({ node, x, y, clipped }, others) {
    const { view } = this.camera;
    const texts = [node.label, node.sublabel, node.gradient].filter(Boolean);
    const more = node.aria && !texts.includes(node.aria) && !node.aria.includes(node.label) ? [node.aria] : [];
    if (!clipped && !more.length && view.k >= 0.75) return this.hide(); // all of it can be read in place
    const [w, h] = [(node.w / 2) * view.k, (node.h / 2) * view.k];
    const [cx, cy] = this.camera.toStage(x, y);
    const whole = node.label?.includes("…") && more.length ? more : [...texts, ...more]; // what was cut is there whole
    return this.beside(whole, { left: cx - w, right: cx + w, top: cy - h, bottom: cy + h }, others);
  }

  edge(edge, nameOf, event, others) {
    const box = this.stage.getBoundingClientRect();
    const [s, t] = [nameOf(edge.s), nameOf(edge.t)];
    const words = edge.state === "backward" ? `${t} → ${s} (gradient)` : `${s} → ${t}`;
    const none = edge.state === "none" ? [table().words.none] : [];
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    this.beside([words, ...(edge.label ? [edge.label] : []), ...none], { left: x - 8, right: x + 8, top: y - 4, bottom: y + 8 }, others);
  }

  // Below, above, right or left of a place in the stage: where it stays inside and covers the least of the nodes.
  beside(texts, { left, right, top, bottom }, nodes) {
    const { element, root, stage } = this;
    const { size, view } = this.camera;
    element.replaceChildren(...texts.map((text, i) => html(i ? "div" : "strong", {}, text.length > 600 ? `${text.slice(0, 600)}…` : text)));
    element.hidden = false;
    const [w, h, gap] = [element.offsetWidth, element.offsetHeight, 10];
    const [mx, my] = [(left + right) / 2, (top + bottom) / 2];
    const inside = ([x, y]) => [Math.max(4, Math.min(size.w - w - 4, x)), Math.max(4, Math.min(root.clientHeight - h - 4, y))];
    const places = [[mx - w / 2, bottom + gap], [mx - w / 2, top - gap - h], [right + gap, my - h / 2], [left - gap - w, my - h / 2]].map(inside);
    const over = (x, y, box) =>
      Math.max(0, Math.min(x + w, box.right) - Math.max(x, box.left)) * Math.max(0, Math.min(y + h, box.bottom) - Math.max(y, box.top));
    const others = nodes.map(({ node, x, y }) => ({ // with their badges
      left: (x - node.w / 2) * view.k + view.x, right: (x + node.w / 2 + 8) * view.k + view.x,
      top: (y - node.h / 2 - 8) * view.k + view.y, bottom: (y + node.h / 2) * view.k + view.y,
    }));
    const covers = ([x, y]) => 1000 * over(x, y, { left, right, top, bottom }) + others.reduce((sum, box) => sum + over(x, y, box), 0);
    const [x, y] = places.reduce((best, place) => (covers(place) < covers(best) ? place : best));
    element.style.left = `${stage.offsetLeft + x}px`;
    element.style.top = `${stage.offsetTop + y}px`;
  }

  hide() {
    this.element.hidden = true;
  }
}
