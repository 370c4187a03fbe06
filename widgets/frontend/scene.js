// Draws a Scene: nodes and edges as SVG, tokens on a canvas; pan, zoom, keyboard, tooltip. Given a new tree it changes only
// what differs from the last one, and lets nodes glide to new places.
import { calm, clip, html, inkOn, onKeys, setText, surroundings, svg, table, textWidth, toneColour } from "./common.js";
import { cornerRadius, edgeShape, hatch, lanes } from "./geometry.js";
import { followTheme, magnified } from "./look.js";
import { Marks } from "./marks.js";
import { Tokens } from "./tokens.js";

const GLIDE = 350;
const MARGIN = 28;
const READABLE = 0.9; // below this the smallest text has less than 11 px: then only a part is shown, the one that matters now
const LIVELY = new Set(["new", "active", "forward", "backward", "store"]);
const FONTS = { label: "600 14px", sublabel: "400 12px", gradient: "600 12px" };
const SMALL = { label: "600 11px" }; // on the bars of a Gantt
const LINE = { label: 18, sublabel: 16, gradient: 16 };
const readable = () => READABLE * magnified();
const largest = () => 1.25 * magnified();
const isSpan = (kind) => kind === "forward_span" || kind === "backward_span";

export function createScene(root, options = {}) {
  let fitting; // the button that shows all of it
  const world = svg("g");
  const lines = svg("g", { "aria-hidden": "true" });
  const boxes = svg("g", { class: "lab-nodes" });
  const labels = svg("g", { "aria-hidden": "true", class: "lab-edge-labels" });
  const marks = new Marks(() => family());
  world.append(marks.below, lines, boxes, labels, marks.above);
  const picture = svg("svg", { class: "lab-svg", role: "group" }, world);
  const canvas = html("canvas", { class: "lab-canvas", "aria-hidden": "true" });
  const tip = html("div", { class: "lab-tip", role: "tooltip", hidden: "" });
  const stage = html("div", { class: "lab-stage" }, picture, canvas);
  root.className = "lab-root lab-scene";
  root.setAttribute("role", "group");
  root.append(stage);
  const surround = surroundings(root, tools());
  root.append(tip);

  const nodes = new Map(); // key -> {node, g, x, y, from, since}
  const edges = new Map(); // key -> {edge, g, line, head, text, lane}
  const edgesOf = new Map(); // node key -> Set of edge keys
  let tree = null;
  let mode = "light";
  let view = { k: 1, x: 0, y: 0 };
  let viewGlide = null;
  let moved = false; // the reader has panned or zoomed: leave the view alone
  let whole = false; // the reader wants to see all of it, readable or not
  let active = null; // key of the one node in the tab order
  let selected = "";
  let size = { w: 0, h: 0 };
  let frame = 0;
  let first = true;
  const tokens = new Tokens(canvas, (key) => edges.get(key)?.line, () => view);

  const stopTheme = followTheme(root, (now) => {
    mode = now;
    tokens.colours = table().colours[mode];
    for (const [key, entry] of nodes) paint(key, entry);
    if (tree) settle(false);
  });

  const resizing = new ResizeObserver(() => {
    const w = stage.clientWidth;
    const h = stage.clientHeight;
    if (!w || (w === size.w && h === size.h)) return;
    size = { w, h };
    tokens.resize(w, h);
    if (tree) settle(false);
  });
  resizing.observe(stage);

  // --- drawing ---

  function draw(next) {
    if (next === tree) return;
    const last = tree;
    tree = next;
    const now = performance.now();
    const still = first || calm();
    surround(tree);
    setText(titleOf(), tree.title || tree.caption || "scene");
    if (tree.marks !== last?.marks) marks.draw(tree.marks ?? {});
    if (tree.nodes !== last?.nodes || tree.palette !== last?.palette) drawNodes(now, still, tree.palette !== last?.palette);
    if (tree.edges !== last?.edges || tree.nodes !== last?.nodes) drawEdges();
    if (tree.selected !== last?.selected) choose(tree.selected, false);
    settle(!still);
    if (tree.tokens !== last?.tokens && !calm()) tokens.start(tree.tokens, now);
    first = false;
    wake();
  }

  function titleOf() {
    let title = picture.querySelector(":scope > title");
    if (!title) picture.prepend((title = svg("title")));
    return title;
  }

  function drawNodes(now, still, repaint) {
    for (const [key, entry] of nodes) {
      if (Object.hasOwn(tree.nodes, key)) continue;
      if (entry.g.contains(document.activeElement)) root.querySelector("button").focus();
      entry.g.remove();
      nodes.delete(key);
      if (active === key) active = null;
    }
    for (const [key, node] of Object.entries(tree.nodes)) {
      let entry = nodes.get(key);
      if (entry?.node === node && !repaint) continue;
      if (!entry) {
        const g = svg("g", { class: "lab-node", role: "option", tabindex: "-1", "data-key": key, "aria-selected": "false" });
        if (!still) g.classList.add("lab-born");
        boxes.append(g);
        entry = { g, x: node.x, y: node.y, from: null, since: 0 };
        nodes.set(key, entry);
      } else if (entry.node.x !== node.x || entry.node.y !== node.y) {
        entry.from = still ? null : [entry.x, entry.y];
        entry.since = now;
        if (still) [entry.x, entry.y] = [node.x, node.y];
      }
      entry.node = node;
      place(entry);
      paint(key, entry);
    }
    const named = { role: "listbox", "aria-label": `${tree.title || "scene"}: ${nodes.size} nodes` };
    for (const [name, value] of Object.entries(named)) {
      if (nodes.size) boxes.setAttribute(name, value);
      else boxes.removeAttribute(name); // a list without entries is none, and what has no role has no name
    }
    if (!active && nodes.size) rove(nodes.keys().next().value, false);
  }

  function place(entry) {
    entry.g.setAttribute("transform", `translate(${entry.x.toFixed(1)} ${entry.y.toFixed(1)})`);
  }

  // The inside of a node: shape by kind, outline and badge by state, fill by tone, up to three lines of text.
  function paint(key, entry) {
    const { node, g } = entry;
    const { w, h, kind } = node;
    const state = node.state ?? "idle";
    g.dataset.kind = kind;
    g.dataset.state = state;
    g.setAttribute("aria-label", spoken(node));
    const r = kind === "rank" ? { rx: w / 2, ry: h / 2 } : { rx: Math.min(cornerRadius(kind, w, h), w / 2, h / 2) };
    const box = (name, grow, dx = 0) =>
      svg("rect", {
        class: name, x: -w / 2 - grow + dx, y: -h / 2 - grow - dx, width: w + 2 * grow, height: h + 2 * grow,
        rx: r.rx + grow, ry: r.ry === undefined ? null : r.ry + grow,
      });
    const parts = [box("lab-ring", 5)];
    if (kind === "group") parts.push(box("lab-box lab-behind", 0, 8), box("lab-box lab-behind", 0, 4));
    const body = box("lab-box", 0);
    parts.push(body);
    if (kind === "output") parts.push(box("lab-inner", -3.5));
    if (kind === "backward_span") parts.push(svg("path", { class: "lab-hatch", d: hatch(w, h), transform: `translate(${-w / 2} ${-h / 2})` }));
    let ink = null;
    if (node.tone !== undefined) {
      const colour = toneColour(node.tone, tree.palette, mode);
      body.style.fill = colour;
      ink = inkOn(colour);
    }
    const texts = ["label", "sublabel", "gradient"].filter((name) => node[name]);
    const room = isSpan(kind) ? Infinity : (kind === "rank" ? w * 0.78 : w - 2 * Math.min(r.rx, 12)) + 2;
    let y = -texts.reduce((sum, name) => sum + LINE[name], 0) / 2;
    entry.clipped = false;
    for (const name of texts) {
      const text = svg("text", { class: `lab-text lab-${name}`, y: y + LINE[name] / 2, dy: "0.35em" });
      text.textContent = clip(node[name], `${(isSpan(kind) && SMALL[name]) || FONTS[name]} ${family()}`, room);
      if (text.textContent.endsWith("…")) entry.clipped = true;
      if (ink) text.style.fill = ink;
      parts.push(text);
      y += LINE[name];
    }
    if (table().marks[state] && !isSpan(kind)) {
      const at = kind === "rank" ? [w * 0.36, -h * 0.36] : [w / 2 - 3, -h / 2 + 2];
      const badge = svg("g", { class: "lab-badge", "data-state": state, transform: `translate(${at[0]} ${at[1]})` });
      badge.append(svg("circle", { r: 7.5 }), svg("path", { d: table().marks[state] }));
      parts.push(badge);
    }
    g.replaceChildren(...parts);
    g.setAttribute("aria-selected", String(key === selected));
  }

  function family() {
    return getComputedStyle(root).fontFamily;
  }

  function spoken(node) {
    const words = node.aria || [node.label, node.sublabel, node.gradient].filter(Boolean).join(", ");
    const state = node.state && node.state !== "idle" ? `, ${table().words[node.state] ?? node.state}` : "";
    return `${words || "node"}${node.aria ? "" : `, ${table().words[node.kind] ?? node.kind}`}${state}`;
  }

  function drawEdges() {
    for (const [key, entry] of edges) {
      if (Object.hasOwn(tree.edges, key)) continue;
      entry.g.remove();
      entry.text.remove();
      edges.delete(key);
    }
    const all = Object.entries(tree.edges);
    const offsets = lanes(all);
    edgesOf.clear();
    for (const [key, edge] of all) {
      let entry = edges.get(key);
      if (!entry) {
        const line = svg("path", { class: "lab-line" });
        const head = svg("path", { class: "lab-head" });
        const text = svg("g", { class: "lab-edge-label" }, svg("rect", { rx: 6, height: 18, y: -9 }), svg("text", { dy: "0.35em" }));
        const g = svg("g", { class: "lab-edge", "data-key": key }, svg("path", { class: "lab-hit" }), line, head);
        if (!first && !calm()) g.classList.add("lab-born");
        entry = { g, line, head, text };
        edges.set(key, entry);
        lines.append(g);
        labels.append(text);
      }
      entry.edge = edge;
      entry.lane = offsets.get(key) ?? 0;
      entry.g.dataset.state = entry.text.dataset.state = edge.state ?? "idle";
      entry.g.style.setProperty("--lab-width", edge.width ?? 1.5);
      const font = `500 12px ${family()}`;
      const words = clip(edge.label ?? "", font, 180);
      setText(entry.text.lastChild, words);
      entry.text.toggleAttribute("hidden", !words);
      const across = words ? textWidth(words, font) + 10 : 0;
      entry.text.firstChild.setAttribute("width", across);
      entry.text.firstChild.setAttribute("x", -across / 2);
      for (const end of [edge.s, edge.t]) {
        if (!edgesOf.has(end)) edgesOf.set(end, new Set());
        edgesOf.get(end).add(key);
      }
      route(entry);
    }
  }

  function route({ edge, g, line, head, text, lane }) {
    const [source, target] = [at(edge.s), at(edge.t)];
    if (!source || !target) return;
    const shape = edgeShape(edge, source, target, lane);
    line.setAttribute("d", shape.line);
    g.firstChild.setAttribute("d", shape.line);
    head.setAttribute("d", shape.head);
    text.setAttribute("transform", `translate(${shape.middle[0]} ${shape.middle[1]})`);
  }

  function at(key) {
    const entry = nodes.get(key);
    return entry ? { ...entry.node, x: entry.x, y: entry.y } : null;
  }

  // --- motion ---

  function wake() {
    if (!frame) frame = requestAnimationFrame(tick);
  }

  function tick(now) {
    frame = 0;
    let busy = false;
    const touched = new Set();
    for (const [key, entry] of nodes) {
      if (!entry.from) continue;
      const part = ease(Math.min(1, (now - entry.since) / GLIDE));
      entry.x = entry.from[0] + (entry.node.x - entry.from[0]) * part;
      entry.y = entry.from[1] + (entry.node.y - entry.from[1]) * part;
      if (part === 1) entry.from = null;
      else busy = true;
      place(entry);
      for (const edge of edgesOf.get(key) ?? []) touched.add(edge);
    }
    for (const key of touched) route(edges.get(key));
    if (viewGlide) {
      const part = ease(Math.min(1, (now - viewGlide.since) / GLIDE));
      const { from, to } = viewGlide;
      view = { k: mix(from.k, to.k, part), x: mix(from.x, to.x, part), y: mix(from.y, to.y, part) };
      if (part === 1) viewGlide = null;
      else busy = true;
      applyView();
    }
    if (tokens.draw(now)) busy = true;
    if (busy) wake();
  }

  // --- the view: pan, zoom, fit ---

  function bounds() {
    let [left, top, right, bottom] = tree.extent ? [0, 0, ...tree.extent] : [Infinity, Infinity, -Infinity, -Infinity];
    for (const { node } of nodes.values()) {
      left = Math.min(left, node.x - node.w / 2);
      right = Math.max(right, node.x + node.w / 2);
      top = Math.min(top, node.y - node.h / 2);
      bottom = Math.max(bottom, node.y + node.h / 2);
    }
    for (const { edge, lane } of edges.values()) {
      for (const [x, y] of edge.bends ?? []) {
        [left, right, top, bottom] = [Math.min(left, x), Math.max(right, x), Math.min(top, y), Math.max(bottom, y)];
      }
      if (edge.s === edge.t && nodes.has(edge.s)) right = Math.max(right, nodes.get(edge.s).node.x + nodes.get(edge.s).node.w / 2 + 32);
      if (lane && nodes.has(edge.s)) [left, right] = [Math.min(left, nodes.get(edge.s).node.x - Math.abs(lane) - 40), right];
    }
    return Number.isFinite(left) ? { left, top, w: right - left, h: bottom - top } : { left: 0, top: 0, w: 1, h: 1 };
  }

  // Height of the stage (it only grows, so that the page does not jump) and, unless the reader took over, the view.
  function settle(glide) {
    if (!size.w) return;
    const box = bounds();
    const least = whole || !lively() ? 0 : readable(); // at rest all of it is shown, and needs no more room than that
    const k = Math.min(largest(), Math.max((size.w - 2 * MARGIN) / box.w, least));
    const most = Math.max(320, Math.min(720 * magnified(), Math.round(window.innerHeight * (magnified() > 1 ? 0.85 : 0.68)))); // controls and words need room, too
    const wanted = options.height || Math.round(Math.min(most, Math.max(160, box.h * k + 2 * MARGIN)));
    if (wanted > size.h || (options.height && wanted !== size.h)) {
      stage.style.height = `${wanted}px`;
      size = { w: stage.clientWidth, h: stage.clientHeight };
      tokens.resize(size.w, size.h);
    }
    if (!moved) fit(glide, box);
    else applyView();
  }

  const scaleFor = (box) => Math.min((size.w - 2 * MARGIN) / box.w, (size.h - 2 * MARGIN) / box.h);

  function fit(glide, box = bounds()) {
    const goal = viewGlide?.to ?? view;
    const to = wantedView(box, goal);
    if (Math.abs(goal.k - to.k) < 1e-4 && Math.abs(goal.x - to.x) < 0.5 && Math.abs(goal.y - to.y) < 0.5) return applyView();
    if (glide && !calm()) {
      viewGlide = { from: view, to, since: performance.now() };
      wake();
    } else {
      viewGlide = null;
      view = to;
      applyView();
    }
    return undefined;
  }

  // All of the picture if it can be read then; else, large enough to be read, the part where something happens. A part
  // that is in sight already stays where it is.
  function wantedView(box, now) {
    const all = scaleFor(box);
    const part = whole || all >= readable() ? null : lively();
    const k = Math.max(0.05, Math.min(largest(), part ? Math.max(all, Math.min(readable(), scaleFor(part))) : all));
    const along = (from, length, room, last, at, span) => {
      if (length * k <= room - 2 * MARGIN) return room / 2 - (from + length / 2) * k;
      const seen = Math.abs(now.k - k) < 1e-4 && at * k + last >= MARGIN && (at + span) * k + last <= room - MARGIN;
      const centred = seen ? last : room / 2 - (at + span / 2) * k;
      return Math.max(room - MARGIN - (from + length) * k, Math.min(MARGIN - from * k, centred));
    };
    const goal = part ?? box;
    return { k, x: along(box.left, box.w, size.w, now.x, goal.left, goal.w), y: along(box.top, box.h, size.h, now.y, goal.top, goal.h) };
  }

  // Where something happens: the nodes that are new or active, with the ends of their moving edges if these fit beside them.
  function lively() {
    const centres = Object.entries(tree.nodes).filter(([, node]) => LIVELY.has(node.state)).map(([key]) => key);
    const ends = Object.values(tree.edges).filter((edge) => LIVELY.has(edge.state)).flatMap((edge) => [edge.s, edge.t]);
    const near = around([...centres, ...ends]);
    if (!near || !centres.length || scaleFor(near) >= readable()) return near;
    return around(centres);
  }

  function around(keys) {
    const boxes = keys.map((key) => tree.nodes[key]).filter(Boolean);
    if (!boxes.length) return null;
    const left = Math.min(...boxes.map((n) => n.x - n.w / 2));
    const top = Math.min(...boxes.map((n) => n.y - n.h / 2));
    const right = Math.max(...boxes.map((n) => n.x + n.w / 2));
    return { left, top, w: right - left, h: Math.max(...boxes.map((n) => n.y + n.h / 2)) - top };
  }

  function applyView() {
    world.setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.k.toFixed(4)})`);
    picture.classList.toggle("lab-far", view.k < 0.35);
    const { left, top, w, h } = bounds();
    const beyond = {
      left: left * view.k + view.x < -1, right: (left + w) * view.k + view.x > size.w + 1,
      top: top * view.k + view.y < -1, bottom: (top + h) * view.k + view.y > size.h + 1,
    };
    stage.dataset.more = Object.keys(beyond).filter((side) => beyond[side]).join(" ");
    fitting.setAttribute("aria-pressed", String(whole && !moved));
  }

  function zoom(factor, cx = size.w / 2, cy = size.h / 2) {
    const k = Math.min(6, Math.max(0.05, view.k * factor));
    const ratio = k / view.k;
    takeOver({ k, x: cx - (cx - view.x) * ratio, y: cy - (cy - view.y) * ratio });
  }

  function takeOver(next) {
    moved = true;
    viewGlide = null;
    view = next;
    applyView();
    hideTip();
    wake();
  }

  function tools() {
    const button = (words, path, action) => {
      const icon = svg("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: path }));
      const element = html("button", { type: "button", "aria-label": words, title: words }, icon);
      element.addEventListener("click", action);
      return element;
    };
    return html(
      "div",
      { class: "lab-tools" },
      button("zoom in", "M-5 0H5M0 -5V5", () => zoom(1.3)),
      button("zoom out", "M-5 0H5", () => zoom(1 / 1.3)),
      (fitting = button("fit to view", "M-5.5 -2V-5.5H-2M2 -5.5H5.5V-2M5.5 2V5.5H2M-2 5.5H-5.5V2", overview)),
    );
  }

  // All of it; once more, and the view follows what happens again.
  function overview() {
    whole = moved || !whole;
    moved = false;
    fit(true);
  }

  const pointers = new Map();
  let dragged = false;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    pointers.set(event.pointerId, [event.clientX, event.clientY]);
    if (pointers.size === 1) dragged = false;
  });
  picture.addEventListener("pointermove", (event) => {
    const before = pointers.get(event.pointerId);
    if (!before) return;
    const now = [event.clientX, event.clientY];
    const [dx, dy] = [now[0] - before[0], now[1] - before[1]];
    if (!dragged && Math.hypot(dx, dy) < 4) return;
    dragged = true;
    picture.setPointerCapture(event.pointerId);
    if (pointers.size === 1) takeOver({ ...view, x: view.x + dx, y: view.y + dy });
    else if (pointers.size === 2) {
      const [other] = [...pointers].filter(([id]) => id !== event.pointerId).map(([, place]) => place);
      const box = stage.getBoundingClientRect();
      const factor = Math.hypot(now[0] - other[0], now[1] - other[1]) / (Math.hypot(before[0] - other[0], before[1] - other[1]) || 1);
      zoom(factor, (now[0] + other[0]) / 2 - box.left, (now[1] + other[1]) / 2 - box.top);
    }
    pointers.set(event.pointerId, now);
  });
  for (const name of ["pointerup", "pointercancel"]) picture.addEventListener(name, (event) => pointers.delete(event.pointerId));
  picture.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey && !event.metaKey) return; // plain wheels scroll the notebook
      event.preventDefault();
      const box = stage.getBoundingClientRect();
      zoom(Math.exp(-event.deltaY * 0.01), event.clientX - box.left, event.clientY - box.top);
    },
    { passive: false },
  );

  // --- choosing ---

  const keyOf = (target) => target.closest?.(".lab-node[data-key]")?.dataset.key;

  function choose(key, tell) {
    if (selected !== key) {
      nodes.get(selected)?.g.setAttribute("aria-selected", "false");
      selected = key;
      nodes.get(key)?.g.setAttribute("aria-selected", "true");
    }
    if (tell) options.onSelect?.(key);
  }

  function rove(key, focus) {
    if (active && nodes.has(active)) nodes.get(active).g.setAttribute("tabindex", "-1");
    active = key;
    const entry = nodes.get(key);
    entry.g.setAttribute("tabindex", "0");
    if (!focus) return;
    entry.g.focus({ preventScroll: true });
    reveal(entry.node);
  }

  function reveal(node) {
    const [x, y] = [node.x * view.k + view.x, node.y * view.k + view.y];
    const inside = x > 20 && y > 20 && x < size.w - 20 && y < size.h - 20;
    if (!inside) takeOver({ ...view, x: view.x + size.w / 2 - x, y: view.y + size.h / 2 - y });
  }

  picture.addEventListener("click", (event) => {
    const key = keyOf(event.target);
    if (dragged || !key) return;
    rove(key, true);
    choose(key, true);
    hideTip(); // whoever listens to the choice shows more, and the node should be seen
  });
  picture.addEventListener("focusin", (event) => {
    const key = keyOf(event.target);
    if (key && event.target.matches(":focus-visible") && nodes.get(key).clipped) showTip(key);
  });
  picture.addEventListener("focusout", hideTip);
  picture.addEventListener("pointerover", (event) => {
    const key = keyOf(event.target);
    const edge = event.target.closest?.(".lab-edge")?.dataset.key;
    if (key) showTip(key);
    else if (edge) showEdgeTip(edge, event);
    else hideTip();
  });
  picture.addEventListener("pointerleave", hideTip);

  const STEPS = { ArrowRight: [1, 0], ArrowLeft: [-1, 0], ArrowDown: [0, 1], ArrowUp: [0, -1] };
  onKeys(root, (event, target) => {
    const key = keyOf(target);
    if (event.key === "Escape") hideTip();
    else if (event.key === "+" || event.key === "=") zoom(1.3);
    else if (event.key === "-") zoom(1 / 1.3);
    else if (event.key === "0") overview();
    else if (!key) return;
    else if (event.key === "Enter" || event.key === " ") choose(key, true);
    else if (event.key === "Home") rove(nodes.keys().next().value, true);
    else if (event.key === "End") rove([...nodes.keys()].pop(), true);
    else if (STEPS[event.key]) {
      const next = neighbour(key, STEPS[event.key]);
      if (next) rove(next, true);
    } else return;
    event.preventDefault();
  });

  // The nearest node in the direction of the arrow: along an edge if there is one, else the nearest of all.
  function neighbour(key, [ux, uy]) {
    const here = nodes.get(key).node;
    const linked = new Set([...(edgesOf.get(key) ?? [])].flatMap((edge) => [edges.get(edge).edge.s, edges.get(edge).edge.t]));
    const nearest = (keys) => {
      let best = null;
      let least = Infinity;
      for (const other of keys) {
        if (other === key) continue;
        const { x, y } = nodes.get(other).node;
        const along = (x - here.x) * ux + (y - here.y) * uy;
        const aside = Math.abs((x - here.x) * uy) + Math.abs((y - here.y) * ux);
        if (along > 1 && along + 2 * aside < least) [best, least] = [other, along + 2 * aside];
      }
      return best;
    };
    return nearest(linked) ?? nearest(nodes.keys());
  }

  // --- tooltip: the full text of what was clipped ---

  function showTip(key) {
    const { node, x, y } = nodes.get(key);
    const texts = [node.label, node.sublabel, node.gradient].filter(Boolean);
    const more = node.aria && !texts.includes(node.aria) && !node.aria.includes(node.label) ? [node.aria] : [];
    if (!nodes.get(key).clipped && !more.length && view.k >= 0.75) return hideTip(); // all of it can be read in place
    const [w, h] = [(node.w / 2) * view.k, (node.h / 2) * view.k];
    const [cx, cy] = [x * view.k + view.x, y * view.k + view.y];
    return tipBeside([...texts, ...more], { left: cx - w, right: cx + w, top: cy - h, bottom: cy + h });
  }

  function showEdgeTip(key, event) {
    const { edge } = edges.get(key);
    const box = stage.getBoundingClientRect();
    const name = (end) => tree.nodes[end]?.label || "node";
    const words = edge.state === "backward" ? `${name(edge.t)} → ${name(edge.s)} (gradient)` : `${name(edge.s)} → ${name(edge.t)}`;
    const none = edge.state === "none" ? [table().words.none] : [];
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    tipBeside([words, ...(edge.label ? [edge.label] : []), ...none], { left: x - 8, right: x + 8, top: y - 4, bottom: y + 8 });
  }

  // Below, above, right or left of a place in the stage: where it stays inside and covers the least of the nodes.
  function tipBeside(texts, { left, right, top, bottom }) {
    tip.replaceChildren(...texts.map((text, i) => html(i ? "div" : "strong", {}, text.length > 600 ? `${text.slice(0, 600)}…` : text)));
    tip.hidden = false;
    const [w, h, gap] = [tip.offsetWidth, tip.offsetHeight, 10];
    const [mx, my] = [(left + right) / 2, (top + bottom) / 2];
    const inside = ([x, y]) => [Math.max(4, Math.min(size.w - w - 4, x)), Math.max(4, Math.min(root.clientHeight - h - 4, y))];
    const places = [[mx - w / 2, bottom + gap], [mx - w / 2, top - gap - h], [right + gap, my - h / 2], [left - gap - w, my - h / 2]].map(inside);
    const over = (x, y, box) =>
      Math.max(0, Math.min(x + w, box.right) - Math.max(x, box.left)) * Math.max(0, Math.min(y + h, box.bottom) - Math.max(y, box.top));
    const others = [...nodes.values()].map(({ node, x, y }) => ({ // with their badges
      left: (x - node.w / 2) * view.k + view.x, right: (x + node.w / 2 + 8) * view.k + view.x,
      top: (y - node.h / 2 - 8) * view.k + view.y, bottom: (y + node.h / 2) * view.k + view.y,
    }));
    const covers = ([x, y]) => 1000 * over(x, y, { left, right, top, bottom }) + others.reduce((sum, box) => sum + over(x, y, box), 0);
    const [x, y] = places.reduce((best, place) => (covers(place) < covers(best) ? place : best));
    tip.style.left = `${stage.offsetLeft + x}px`;
    tip.style.top = `${stage.offsetTop + y}px`;
  }

  function hideTip() {
    tip.hidden = true;
  }

  function dispose() {
    cancelAnimationFrame(frame);
    stopTheme();
    resizing.disconnect();
    tokens.clear();
    nodes.clear();
    edges.clear();
    root.replaceChildren();
  }

  return { draw, dispose };
}

const mix = (a, b, part) => a + (b - a) * part;
const ease = (part) => 1 - (1 - part) ** 3;
