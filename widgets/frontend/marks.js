// Lines, bars and words around the nodes of a scene: only looked at, so they are no part of what a screen reader hears.
import { clip, setText, svg } from "./common.js";
import { hatch } from "./geometry.js";

const UNDER_NODES = new Set(["grid", "ideal_forward", "ideal_backward", "level", "peak"]);
const MARK_HATCHED = new Set(["ideal_backward", "full"]);
const MARK_FONTS = { heading: "600 13px", text: "400 12px", code: "400 12px", warning: "600 12px" };

export class Marks {
  // `family()` gives the font of the page: words are cut to their room by how wide they are in it.
  constructor(family) {
    this.family = family;
    this.below = svg("g", { class: "lab-marks", "aria-hidden": "true" });
    this.above = svg("g", { class: "lab-marks", "aria-hidden": "true" });
    this.drawn = new Map();
  }

  draw(marks) {
    for (const [key, entry] of this.drawn) {
      if (Object.hasOwn(marks, key)) continue;
      entry.element.remove();
      this.drawn.delete(key);
    }
    for (const [key, mark] of Object.entries(marks)) {
      const old = this.drawn.get(key);
      if (old?.mark === mark) continue;
      const element = MARK_FONTS[mark.kind] ? this.words(mark) : this.shape(mark);
      element.dataset.key = key;
      if (old) old.element.replaceWith(element);
      else (UNDER_NODES.has(mark.kind) ? this.below : this.above).append(element);
      this.drawn.set(key, { mark, element });
    }
  }

  shape({ kind, x, y, w, h }) {
    const g = svg("g", { class: "lab-mark-shape", "data-kind": kind, transform: `translate(${x} ${y})` });
    if (!w || !h) g.append(svg("path", { d: w ? `M0 0H${w}` : `M0 0V${h}` }));
    else g.append(svg("rect", { width: w, height: h }));
    if (MARK_HATCHED.has(kind) && w && h) g.append(svg("path", { class: "lab-hatch", d: hatch(w, h, 5) }));
    return g;
  }

  words({ kind, x, y, w, text, anchor }) {
    const element = svg("text", { class: "lab-mark-words", "data-kind": kind, x, y, dy: "0.35em", "text-anchor": anchor ?? "start" });
    setText(element, w ? clip(text ?? "", `${MARK_FONTS[kind]} ${this.family()}`, w) : (text ?? ""));
    return element;
  }
}
