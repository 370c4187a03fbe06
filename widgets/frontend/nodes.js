// The inside of a node: shape by kind, outline and badge by state, fill by tone, up to three lines of text; a frame has
// them in its top left corner. Marks at its corners: what happens (right), whether it opens (left), a pin (below).
import { clip, inkOn, svg, table, textWidth, toneColour } from "./common.js";
import { cornerRadius, hatch } from "./geometry.js";

const FONTS = { label: "600 14px", sublabel: "400 12px", gradient: "600 12px" };
const SMALL = { label: "600 11px" }; // on the bars of a Gantt
const LINE = { label: 18, sublabel: 16, gradient: 16 };
const FOLD = { closed: "M-3.5 0H3.5M0 -3.5V3.5", open: "M-3.5 0H3.5" };
const isSpan = (kind) => kind === "forward_span" || kind === "backward_span";
const textsOf = (node) => ["label", "sublabel", "gradient"].filter((name) => node[name]);

export function nodeElement(key) {
  return svg("g", { class: "lab-node", tabindex: "-1", "data-key": key, "aria-selected": "false" });
}

export function placeNode({ g, x, y }) {
  g?.setAttribute("transform", `translate(${x.toFixed(1)} ${y.toFixed(1)})`);
}

// What a screen reader says.
export function spoken(node, { lit = false, pinned = false, found = false } = {}) {
  const words = node.aria || [node.label, node.sublabel, node.gradient].filter(Boolean).join(", ");
  const kind = node.aria ? "" : `, ${table().words[node.kind] ?? node.kind}`;
  const state = node.state && node.state !== "idle" ? `, ${table().words[node.state] ?? node.state}` : "";
  const more = `${pinned ? ", pinned" : ""}${lit ? ", stands out" : ""}${found ? ", found" : ""}`;
  return `${words || "node"}${kind}${state}${more}`;
}

// `look` says how: {mode, palette, family, selected, lit, pinned, found, folds, role}.
export function paintNode(entry, look) {
  const { key, node, g } = entry;
  const { w, h, kind } = node;
  const state = node.state ?? "idle";
  const is = { lit: look.lit.has(key), pinned: look.pinned.has(key), found: look.found.has(key) };
  g.dataset.kind = kind;
  g.dataset.state = state;
  g.setAttribute("role", look.role);
  g.setAttribute("aria-label", spoken(node, is));
  g.setAttribute("aria-selected", String(key === look.selected));
  if (node.fold) g.setAttribute("aria-expanded", String(node.fold === "open"));
  else g.removeAttribute("aria-expanded");
  g.toggleAttribute("data-lit", is.lit);
  g.toggleAttribute("data-found", is.found);
  const r = kind === "rank" ? { rx: w / 2, ry: h / 2 } : { rx: Math.min(cornerRadius(kind, w, h), w / 2, h / 2) };
  const box = (name, grow, dx = 0) =>
    svg("rect", {
      class: name, x: -w / 2 - grow + dx, y: -h / 2 - grow - dx, width: w + 2 * grow, height: h + 2 * grow,
      rx: r.rx + grow, ry: r.ry === undefined ? null : r.ry + grow,
    });
  const parts = [box("lab-ring", 5)];
  if (kind === "group") parts.push(box("lab-box lab-behind", 0, 8), box("lab-box lab-behind", 0, 4));
  entry.body = box("lab-box", 0);
  parts.push(entry.body);
  entry.inner = kind === "output" ? box("lab-inner", -3.5) : null;
  if (entry.inner) parts.push(entry.inner);
  if (kind === "backward_span") parts.push(svg("path", { class: "lab-hatch", d: hatch(w, h), transform: `translate(${-w / 2} ${-h / 2})` }));
  entry.clipped = false;
  entry.texts = kind === "frame" ? headOf(entry, look) : linesOf(entry, look, r.rx);
  if (kind === "frame") parts.push(svg("rect", { class: "lab-grip", x: -w / 2, y: -h / 2, width: w, height: 28, rx: r.rx }));
  parts.push(...entry.texts);
  if (table().marks[state] && !isSpan(kind)) {
    const at = kind === "rank" ? [w * 0.36, -h * 0.36] : [w / 2 - 3, -h / 2 + 2];
    parts.push(disc("lab-badge", at, table().marks[state], state));
  }
  if (node.fold) parts.push(foldMark(node, look.folds));
  if (is.pinned) parts.push(disc("lab-pin", kind === "rank" ? [w * 0.36, h * 0.36] : [w / 2 - 3, h / 2 - 2], table().marks.pin));
  g.replaceChildren(...parts);
  tint(entry, look);
}

// The fill alone: all that changes while magnitudes run through a graph.
export function tint({ node, body, inner, texts }, { palette, mode }) {
  const colour = node.tone === undefined ? "" : toneColour(node.tone, palette, mode);
  body.style.fill = colour;
  const ink = colour && inkOn(colour);
  for (const text of texts) text.style.fill = ink;
  if (inner) inner.style.stroke = ink;
}

function textElement(entry, name, look, room, at) {
  const { node } = entry;
  const text = svg("text", { class: `lab-text lab-${name}`, ...at, dy: "0.35em" });
  text.textContent = clip(node[name], fontOf(node, name, look), room);
  if (text.textContent.endsWith("…")) entry.clipped = true;
  return text;
}

const fontOf = (node, name, { family }) => `${(isSpan(node.kind) && SMALL[name]) || FONTS[name]} ${family}`;

function linesOf(entry, look, radius) {
  const { node } = entry;
  const { w, kind } = node;
  const room = isSpan(kind) ? Infinity : (kind === "rank" ? w * 0.78 : w - 2 * Math.min(radius, 12)) + 2;
  const names = textsOf(node);
  let y = -names.reduce((sum, name) => sum + LINE[name], 0) / 2;
  return names.map((name) => {
    const text = textElement(entry, name, look, room, { y: y + LINE[name] / 2 });
    y += LINE[name];
    return text;
  });
}

// The texts of a frame from its top left corner, one behind the other where there is room.
function headOf(entry, look) {
  const { node } = entry;
  const [left, end] = [-node.w / 2 + (node.fold ? 32 : 12), node.w / 2 - 8];
  let [x, y] = [left, -node.h / 2 + 15];
  return textsOf(node).map((name) => {
    const width = textWidth(node[name], fontOf(node, name, look));
    if (x > left && width > end - x) [x, y] = [left, y + 17];
    const text = textElement(entry, name, look, Math.max(end - x, 0), { x, y });
    x += Math.min(width, Math.max(end - x, 0)) + 10;
    return text;
  });
}

function disc(name, [x, y], d, state = null) {
  const mark = svg("g", { class: name, "data-state": state, transform: `translate(${x} ${y})` });
  mark.append(svg("circle", { r: 7.5 }), svg("path", { d }));
  return mark;
}

// A button where somebody listens, else only a mark. A screen reader hears "expanded" or "collapsed" of the node.
function foldMark({ kind, w, h, fold }, listens) {
  const [x, y] = kind === "frame" ? [-w / 2 + 17, -h / 2 + 15] : [-w / 2 + 3, -h / 2 + 2];
  const mark = svg("g", { class: listens ? "lab-fold" : "lab-fold lab-still", transform: `translate(${x} ${y})` });
  if (listens) mark.append(svg("title"), svg("circle", { class: "lab-reach", r: 13 }));
  if (listens) mark.firstChild.textContent = fold === "closed" ? "open (+)" : "close (−)";
  mark.append(svg("rect", { x: -7.5, y: -7.5, width: 15, height: 15, rx: 3 }), svg("path", { d: FOLD[fold] }));
  return mark;
}
