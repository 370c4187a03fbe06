// What scenes and charts share: the colour table, keys that must not reach the notebook, small DOM helpers.

import { hatch } from "./geometry.js";

const SVG = "http://www.w3.org/2000/svg";
const keyHandlers = new WeakMap();
let look = null;

// Called once per page, before anything is drawn, with the tables of widgets/pictures/theme.py.
export function setup(table, css) {
  look = table;
  const style = document.createElement("style");
  style.dataset.lab = "style";
  style.textContent = css;
  document.head.append(style);
  window.addEventListener("keydown", guardKeys, true);
}

export function table() {
  return look;
}

// JupyterLab takes single letters before any listener of ours would see them: "x" on a focused node would cut the cell.
// So keys inside a picture stop here, on the way down; Tab, function keys and chords such as Ctrl-S pass.
function guardKeys(event) {
  const target = event.composedPath()[0];
  const root = target instanceof Element ? target.closest(".lab-scene, .lab-chart") : null;
  if (!root || event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey || /^F\d+$/.test(event.key)) return;
  event.stopImmediatePropagation();
  keyHandlers.get(root)?.(event, target);
}

export function onKeys(root, handler) {
  keyHandlers.set(root, handler);
  return () => keyHandlers.delete(root); // the notebook keeps the empty root of a closed widget: it must hold nothing
}

export function svg(name, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, name), attributes, children);
}

export function html(name, attributes = {}, ...children) {
  return fill(document.createElement(name), attributes, children);
}

function fill(element, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) if (value !== null && value !== undefined) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function calm() {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}

const SETTLED = 300; // ms without another text: then things have settled
const SAY_EVERY = 5000; // ms after which a text is said though others keep coming, as in a training that runs

// Says a new text to a screen reader, once things have settled, or every few seconds while they do not.
export function announcer(element) {
  let timer;
  let latest = "";
  let since = null;
  let never = true;
  return (text) => {
    latest = text;
    since ??= performance.now();
    clearTimeout(timer);
    const wait = never ? 0 : Math.max(0, Math.min(SETTLED, since + SAY_EVERY - performance.now()));
    timer = setTimeout(() => {
      [since, never] = [null, false];
      setText(element, latest);
    }, wait);
  };
}

const rgb = (colour) => [1, 3, 5].map((i) => parseInt(colour.slice(i, i + 2), 16));

export function toneColour(tone, palette, mode) {
  const stops = (palette === "diverging" ? look.diverging : look.sequential)[mode];
  const position = Math.min(Math.max(palette === "diverging" ? (tone + 1) / 2 : tone, 0), 1) * (stops.length - 1);
  const i = Math.min(Math.floor(position), stops.length - 2);
  const [a, b] = [rgb(stops[i]), rgb(stops[i + 1])];
  const parts = a.map((p, k) => Math.floor(p + (b[k] - p) * (position - i) + 0.5));
  return `#${parts.map((p) => p.toString(16).padStart(2, "0")).join("").toUpperCase()}`;
}

function luminance(colour) {
  const [r, g, b] = rgb(colour).map((c) => (c <= 10 ? c / 3294.6 : ((c / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

export function inkOn(colour) {
  const l = luminance(colour);
  return (l + 0.05) / 0.05 >= 1.05 / (l + 0.05) ? "#000000" : "#FFFFFF";
}

const ruler = document.createElement("canvas").getContext("2d");
const clipped = new Map();

export function textWidth(text, font) {
  ruler.font = font;
  return Math.ceil(ruler.measureText(text).width);
}

// The text as far as it fits into `width` pixels; the tooltip has the rest.
export function clip(text, font, width) {
  const key = `${font}|${Math.round(width)}|${text}`;
  const known = clipped.get(key);
  if (known !== undefined) return known;
  if (clipped.size > 5000) clipped.clear();
  ruler.font = font;
  const line = text.replace(/\s+/g, " ");
  const glyphs = Array.from(line.slice(0, 400));
  let result = line;
  if (line.length > 400 || ruler.measureText(line).width > width) {
    let [low, high] = [0, glyphs.length];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (ruler.measureText(`${glyphs.slice(0, middle).join("")}…`).width <= width) low = middle;
      else high = middle - 1;
    }
    result = `${glyphs.slice(0, low).join("")}…`;
  }
  clipped.set(key, result);
  return result;
}

// Legend, caption, where the numbers are from, and live text below a picture; `update(tree)` fills them. Tools stand beside the legend, where they
// cover nothing.
export function surroundings(root, ...tools) {
  const legend = html("ul", { class: "lab-legend" });
  const caption = html("figcaption", { class: "lab-caption" });
  const source = html("p", { class: "lab-provenance" });
  const live = html("p", { class: "lab-live", "aria-live": "polite" });
  root.append(html("div", { class: "lab-foot" }, legend, ...tools), caption, source, live);
  const say = announcer(live);
  let shown = null;
  return (tree) => {
    setText(caption, tree.caption);
    caption.hidden = !tree.caption;
    drawSource(source, tree.provenance ?? "", tree.made ?? "");
    say(tree.text ?? tree.caption);
    root.setAttribute("aria-label", tree.title || tree.caption || "picture");
    const marks = tree.legend ?? [];
    const wanted = JSON.stringify(marks);
    if (wanted === shown) return;
    shown = wanted;
    legend.hidden = !marks.length;
    legend.replaceChildren(...marks.map(([mark, words]) => html("li", {}, legendMark(mark), words || look.words[mark] || mark)));
  };
}

// The mark says run, live, paced, throttled or simulated by its shape; the words beside it say the same.
function drawSource(source, words, made) {
  const now = `${made} ${words}`;
  if (source.dataset.now === now) return;
  source.dataset.now = now;
  source.dataset.made = made;
  source.hidden = !words;
  const mark = svg("svg", { class: "lab-made", viewBox: "-7 -7 14 14", "aria-hidden": "true" }, svg("path", { d: look.made[made] ?? "" }));
  source.replaceChildren(...(look.made[made] ? [mark] : []), html("span", {}, words));
}

function legendMark(mark) {
  const half = look.marks[mark] ? 9 : 15;
  const box = svg("svg", { class: "lab-mark", viewBox: `${-half} -9 ${2 * half} 18`, width: 2 * half, height: 18, "aria-hidden": "true" });
  if (["forward", "backward", "store", "none"].includes(mark)) {
    const head = mark === "backward" ? "M-13 0L-5 -4V4Z" : "M13 0L5 -4V4Z";
    const line = svg("path", { class: "lab-line", d: mark === "backward" ? "M13 0H-6" : "M-13 0H6" });
    box.append(svg("g", { class: "lab-edge", "data-state": mark }, line, svg("path", { class: "lab-head", d: head })));
  } else if (look.marks[mark]) {
    box.append(svg("g", { class: mark === "pin" ? "lab-pin" : "lab-badge", "data-state": mark }, svg("circle", { r: 7 }), svg("path", { d: look.marks[mark] })));
  } else {
    const toned = mark.startsWith("toned "); // the fill says a gradient, and nothing of the kind: it is left out
    const [kind, state = "idle"] = mark.replace("toned ", "").split(":"); // a box, or one in a state
    const radius = { op: 6, rank: 7, constant: 1, forward_span: 2, backward_span: 2 }[kind] ?? 3;
    const across = kind === "rank" ? 14 : 24;
    const shape = { x: -across / 2, y: -7, width: across, height: 14, rx: radius };
    const node = svg("g", { class: "lab-node", "data-kind": kind, "data-state": state }, svg("rect", { class: "lab-box", ...shape }));
    if (toned) node.firstChild.style.fill = "none";
    if (kind === "output") node.append(svg("rect", { class: "lab-inner", x: -9.5, y: -4.5, width: 19, height: 9, rx: 1.5 }));
    if (kind === "backward_span") node.append(svg("path", { class: "lab-hatch", d: hatch(24, 14), transform: "translate(-12 -7)" }));
    box.append(node);
  }
  return box;
}
