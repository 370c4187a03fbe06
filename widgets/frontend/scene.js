// Draws a Scene, and conducts those who draw its parts. Given a new tree it changes only what differs from the last one,
// and lets nodes glide to new places. Of a large scene only what can be seen and read is in the document; from far away
// all of it is on a canvas. Panning and zooming move what is drawn, and draw anew when they rest.
import { calm, html, onKeys, setText, surroundings, svg, table } from "./common.js";
import { Camera, GLIDE, ease, gestures, readable } from "./camera.js";
import { nodeElement, paintNode, placeNode, tint } from "./nodes.js";
import { Edges } from "./edges.js";
import { Far } from "./far.js";
import { followTheme, magnified } from "./look.js";
import { Marks } from "./marks.js";
import { Minimap } from "./minimap.js";
import { Search, matches } from "./search.js";
import { Tip } from "./tip.js";
import { Tokens } from "./tokens.js";
import { meaning, neighbour } from "./walk.js";

const FEW = 300; // so many nodes are all in the document: a browser without a graphics card draws them 60 times a second
const MANY = 1500; // more in sight go to the canvas, be they readable or not
const FAR = 0.35; // zoomed out further, text cannot be read
const AROUND = 0.5; // of the stage's size: how far beyond its borders a large scene is drawn, for panning
const REST = 140; // ms without a movement after which all is drawn anew
const LIVELY = new Set(["new", "active", "forward", "backward", "store"]);
const NONE = new Set();
const SAME = ["x", "y", "w", "h", "label", "sublabel", "gradient", "aria", "kind", "state", "fold"];

export function createScene(root, options = {}) {
  const can = (what) => Boolean(options.hears?.(what));
  const camera = new Camera(viewChanged, () => tip.hide());
  const nodes = new Map(); // key -> {key, node, index, g, x, y, from, since, born}; g null: nobody can see it
  const edges = new Edges(at);
  const far = new Far();
  const marks = new Marks(() => look.family);
  const minimap = new Minimap(camera);
  const search = new Search(found, mark, (words) => can("find") && options.onFind(words));
  let fitting; // the button that shows all of it
  const frames = svg("g", { class: "lab-frames" });
  const boxes = svg("g");
  const list = svg("g", { class: "lab-nodes" }, frames, edges.lines, boxes);
  const world = svg("g", {}, marks.below, list, edges.labels, marks.above);
  const picture = svg("svg", { class: "lab-svg", role: "group" }, world);
  const title = svg("title");
  picture.prepend(title);
  const canvas = html("canvas", { class: "lab-canvas", "aria-hidden": "true" });
  const stage = html("div", { class: "lab-stage" }, far.element, picture, canvas);
  root.className = "lab-root lab-scene";
  root.setAttribute("role", "group");
  root.append(stage);
  const surround = surroundings(root, minimap.element, tools());
  const tip = new Tip(root, stage, camera);
  root.append(tip.element);

  const look = { mode: "light", palette: "", family: "", selected: "", lit: NONE, pinned: NONE, found: NONE, folds: false, role: "option", at };
  const gliding = new Set(); // entries on their way
  let tree = null;
  let active = null; // key of the one node in the tab order
  let here = null; // key of the hit that is looked at
  let frame = 0;
  let first = true;
  let heavy = false; // too many nodes to have all of them in the document
  let isFar = false;
  let stale = false; // something changed that has not been drawn
  let dirty = { boxes: null, lines: null }; // keys of what has to be painted again on the canvas; null: all
  let drawn = null; // {view, sight}: from where, and how far around, it was drawn
  let resting = 0;
  const tokens = new Tokens(canvas, (key) => edges.entries.has(key) && edges.lineOf(edges.entries.get(key)), () => camera.view);

  const stopTheme = followTheme(root, (now) => {
    look.mode = now;
    look.family = "";
    tokens.colours = table().colours[now];
    if (!tree) return;
    repaint();
    stale = true;
    dirty = { boxes: null, lines: null };
    settle(false);
    minimap.update(nodes, now);
  });

  const resizing = new ResizeObserver(() => {
    const [w, h] = [stage.clientWidth, stage.clientHeight];
    if (!w || (w === camera.size.w && h === camera.size.h)) return;
    camera.size = { w, h };
    tokens.resize(w, h);
    if (tree) settle(false);
  });
  resizing.observe(stage);

  // --- from tree to tree ---

  function draw(next) {
    if (next === tree) return;
    const last = tree;
    tree = next;
    const now = performance.now();
    const still = first || calm();
    stale = true;
    surround(tree);
    setText(title, tree.title || tree.caption || "scene");
    look.family ||= edges.family = getComputedStyle(root).fontFamily;
    const again = heed(last);
    if (tree.marks !== last?.marks) marks.draw(tree.marks ?? {});
    if (tree.nodes !== last?.nodes) updateNodes(now, still);
    if (tree.edges !== last?.edges) {
      const { fresh, others } = edges.update(tree.edges, !still);
      if (others) dirty.lines = null;
      for (const key of fresh) dirty.lines?.add(key);
    }
    if (again) repaint();
    if (tree.selected !== last?.selected) choose(tree.selected, false);
    if (tree.nodes !== last?.nodes || tree.edges !== last?.edges || tree.extent !== last?.extent) measure();
    settle(!still);
    if (tree.nodes !== last?.nodes) {
      search.offer(nodes.size, can("find"));
      if (search.words) search.again();
      minimap.update(nodes, look.mode);
    }
    if (tree.tokens !== last?.tokens && !calm()) tokens.start(tree.tokens, now);
    first = false;
    wake();
  }

  // What the tree says of all nodes at once; true when every one has to be painted again.
  function heed(last) {
    if (tree.lit !== last?.lit) look.lit = edges.lit = new Set(tree.lit ?? []);
    if (tree.lit !== last?.lit || tree.palette !== last?.palette) dirty = { boxes: null, lines: null };
    if (tree.pinned !== last?.pinned) look.pinned = new Set(tree.pinned ?? []);
    stage.toggleAttribute("data-dim", look.lit.size > 0);
    const palette = tree.palette !== look.palette;
    look.palette = tree.palette;
    return Boolean(last) && (palette || tree.lit !== last.lit || tree.pinned !== last.pinned);
  }

  function updateNodes(now, still) {
    let index = 0;
    let opens = false;
    for (const key in tree.nodes) {
      const node = tree.nodes[key];
      opens ||= Boolean(node.fold);
      const entry = nodes.get(key);
      if (!entry) {
        nodes.set(key, { key, node, index, g: null, x: node.x, y: node.y, from: null, since: 0, born: !still, clipped: false });
        if (node.kind === "frame") dirty.lines = null;
        dirty.boxes?.add(key);
      } else if (entry.node !== node) change(entry, node, now, still);
      if (entry) entry.index = index;
      index += 1;
    }
    for (const [key, entry] of nodes.size > index ? nodes : []) {
      if (Object.hasOwn(tree.nodes, key)) continue;
      hide(entry);
      nodes.delete(key);
      gliding.delete(entry);
      dirty = { boxes: null, lines: null };
      if (active === key) active = null;
    }
    if (nodes.size) list.setAttribute("role", opens ? "tree" : "listbox");
    else list.removeAttribute("role");
    list.setAttribute("aria-label", `${tree.title || "scene"}: ${nodes.size} nodes`);
    const role = opens ? "treeitem" : "option"; // only the items of a tree may say that they are open or closed
    look.folds = can("fold");
    if (role !== look.role) {
      look.role = role;
      repaint();
    }
    heavy = nodes.size > FEW;
    stage.toggleAttribute("data-heavy", heavy);
    if (!active && nodes.size) rove(nodes.keys().next().value, false);
  }

  function change(entry, node, now, still) {
    const before = entry.node;
    entry.node = node;
    if (before.x !== node.x || before.y !== node.y) {
      if (still || !entry.g) {
        [entry.x, entry.y, entry.from] = [node.x, node.y, null];
        gliding.delete(entry);
        placeNode(entry);
      } else {
        [entry.from, entry.since] = [[entry.x, entry.y], now];
        gliding.add(entry);
      }
      touch(entry.key);
    } else if (before.w !== node.w || before.h !== node.h || before.kind !== node.kind) touch(entry.key);
    else dirty.boxes?.add(entry.key);
    if (!entry.g) return;
    if ((before.kind === "frame") !== (node.kind === "frame")) hide(entry);
    else if (SAME.every((name) => before[name] === node[name])) tint(entry, look);
    else paintNode(entry, look);
  }

  function touch(key) {
    dirty = { boxes: null, lines: null };
    for (const edge of edges.of.get(key) ?? []) edges.moved(edges.entries.get(edge));
  }

  function repaint() {
    look.family ||= edges.family = getComputedStyle(root).fontFamily;
    for (const entry of nodes.values()) if (entry.g) paintNode(entry, look);
    for (const entry of edges.entries.values()) if (entry.g) edges.paint(entry);
  }

  function at(key) {
    const entry = nodes.get(key);
    return entry && (entry.from ? { ...entry.node, x: entry.x, y: entry.y } : entry.node);
  }

  // --- what is in the document ---

  function show(entry) {
    const { key, node } = entry;
    entry.g = nodeElement(key);
    if (entry.born) entry.g.classList.add("lab-born");
    entry.born = false;
    if (key === active) entry.g.setAttribute("tabindex", "0");
    entry.g.toggleAttribute("data-here", key === here);
    if (node.kind === "frame") {
      const inside = [...frames.children].find((other) => nodes.get(other.dataset.key).node.w * nodes.get(other.dataset.key).node.h < node.w * node.h);
      frames.insertBefore(entry.g, inside ?? null);
    } else boxes.append(entry.g);
    paintNode(entry, look);
    placeNode(entry);
  }

  function hide(entry) {
    if (!entry.g) return;
    if (entry.g.contains(document.activeElement)) root.querySelector("button").focus();
    entry.g.remove();
    entry.g = entry.from = entry.body = entry.texts = null;
    [entry.x, entry.y] = [entry.node.x, entry.node.y];
    gliding.delete(entry);
  }

  const meets = (a, b) => a.left < b.right && a.right > b.left && a.top < b.bottom && a.bottom > b.top;
  const within = (a, b) => a.left >= b.left && a.right <= b.right && a.top >= b.top && a.bottom <= b.bottom;

  function inSight({ left, top, right, bottom }) {
    const some = [];
    for (const entry of nodes.values()) {
      const { x, y, node } = entry;
      const [w, h] = [node.w / 2 + 10, node.h / 2 + 10];
      if (x - w < right && x + w > left && y - h < bottom && y + h > top) some.push(entry);
    }
    return some;
  }

  function edgesInSight(sight) {
    const some = [];
    for (const entry of edges.entries.values()) {
      const box = edges.boxOf(entry);
      if (box && meets(box, sight)) some.push(entry);
    }
    return some;
  }

  // Bring into the document what can be seen and read, and take out what cannot; the node that has the focus stays.
  function cull({ view, sight }) {
    const before = isFar;
    isFar = heavy && (view.k < FAR || inSight(camera.sight()).length > MANY);
    if (isFar !== before) stage.toggleAttribute("data-far", isFar);
    const near = new Set(isFar ? [] : heavy ? inSight(sight) : nodes.values());
    if (nodes.has(active)) near.add(nodes.get(active));
    for (const entry of nodes.values()) {
      if (!near.has(entry)) hide(entry);
      else if (!entry.g) show(entry);
    }
    if (heavy) for (const { g, index } of near) count(g, index);
    const lines = new Set(isFar ? [] : heavy ? edgesInSight(sight) : edges.entries.values());
    for (const entry of edges.entries.values()) {
      if (!lines.has(entry)) edges.hide(entry);
      else if (!entry.g) edges.show(entry);
    }
    far.element.hidden = !isFar;
    if (isFar) far.paint(view, sight, dirty, { nodes, edges: edges.entries, inSight, edgesInSight }, look);
    if (isFar) dirty = { boxes: new Set(), lines: new Set() };
    stale = false;
  }

  // The others are not in the document: a screen reader is told which of how many this one is.
  function count(g, index) {
    for (const [name, value] of [["aria-setsize", nodes.size], ["aria-posinset", index + 1]]) {
      if (g.getAttribute(name) !== String(value)) g.setAttribute(name, value);
    }
  }

  // --- the view ---

  function viewChanged(moving) {
    if (camera.glide) wake();
    clearTimeout(resting);
    if (!moving || !heavy || !drawn || !shift()) return redraw();
    if (stale) cull(drawn);
    resting = setTimeout(redraw, REST);
    return surroundView();
  }

  // Move what is drawn already; false when that would show a gap or a blur.
  function shift() {
    const { k, x, y } = camera.view;
    const ratio = k / drawn.view.k;
    if (ratio < 0.5 || ratio > 2 || !within(camera.sight(), drawn.sight)) return false;
    picture.style.transform = far.element.style.transform =
      `translate(${x - drawn.view.x * ratio}px, ${y - drawn.view.y * ratio}px) scale(${ratio})`;
    return true;
  }

  function redraw() {
    clearTimeout(resting);
    const { view, size } = camera;
    const same = drawn && view.k === drawn.view.k && view.x === drawn.view.x && view.y === drawn.view.y && size === drawn.size;
    if (!same) {
      picture.style.transform = far.element.style.transform = "";
      world.setAttribute("transform", `translate(${view.x.toFixed(2)} ${view.y.toFixed(2)}) scale(${view.k.toFixed(4)})`);
      picture.classList.toggle("lab-far", view.k < FAR);
      dirty = { boxes: null, lines: null };
      drawn = { view, size, sight: camera.sight(AROUND) };
    } else if (picture.style.transform) picture.style.transform = far.element.style.transform = "";
    if (!same || stale) cull(drawn);
    surroundView();
  }

  function surroundView() {
    const more = camera.beyond();
    if (stage.dataset.more !== more) stage.dataset.more = more;
    fitting.setAttribute("aria-pressed", String(camera.whole && !camera.taken));
    if (more && minimap.element.hidden) minimap.update(nodes, look.mode);
    else minimap.follow();
  }

  // Height of the stage (it only grows, so that the page does not jump) and, unless the reader took over, the view.
  function settle(glides) {
    if (!camera.size.w) return cull({ view: camera.view, sight: camera.sight() });
    const share = magnified() > 1 ? 0.85 : 0.68; // of the window: controls and words need room, too
    const most = Math.max(320, Math.min(720 * magnified(), Math.round(window.innerHeight * share)));
    const least = camera.whole || !lively() ? 0 : readable(); // at rest all of it is shown, and needs no more room than that
    const wanted = options.height || camera.height(most, least);
    if (wanted > camera.size.h || (options.height && wanted !== camera.size.h)) {
      stage.style.height = `${wanted}px`;
      camera.size = { w: stage.clientWidth, h: stage.clientHeight };
      tokens.resize(camera.size.w, camera.size.h);
    }
    return camera.taken ? viewChanged(false) : camera.fit(glides, lively);
  }

  function measure() {
    let [left, top, right, bottom] = tree.extent ? [0, 0, ...tree.extent] : [Infinity, Infinity, -Infinity, -Infinity];
    const reach = (l, t, r, b) => {
      [left, top, right, bottom] = [Math.min(left, l), Math.min(top, t), Math.max(right, r), Math.max(bottom, b)];
    };
    for (const { node: { x, y, w, h } } of nodes.values()) reach(x - w / 2, y - h / 2, x + w / 2, y + h / 2);
    for (const { edge, lane } of edges.entries.values()) {
      for (const [x, y] of edge.bends ?? []) reach(x, y, x, y);
      if (!lane && edge.s !== edge.t) continue;
      const source = nodes.get(edge.s)?.node;
      if (source && edge.s === edge.t) reach(source.x, source.y, source.x + source.w / 2 + 32, source.y);
      if (source && lane) reach(source.x - Math.abs(lane) - 40, source.y, source.x, source.y);
    }
    camera.box = Number.isFinite(left) ? { left, top, w: right - left, h: bottom - top } : { left: 0, top: 0, w: 1, h: 1 };
  }

  // Where something happens: the nodes that are new or active, with the ends of their moving edges if these fit beside them.
  function lively() {
    const centres = [];
    for (const { key, node } of nodes.values()) if (LIVELY.has(node.state)) centres.push(key);
    const all = centres.slice();
    for (const { edge } of edges.entries.values()) if (LIVELY.has(edge.state)) all.push(edge.s, edge.t);
    const near = around(all);
    return !near || !centres.length || camera.readable(near) ? near : around(centres);
  }

  function around(keys) {
    let [left, top, right, bottom] = [Infinity, Infinity, -Infinity, -Infinity];
    for (const key of keys) {
      if (!nodes.has(key)) continue;
      const { x, y, w, h } = nodes.get(key).node;
      [left, top] = [Math.min(left, x - w / 2), Math.min(top, y - h / 2)];
      [right, bottom] = [Math.max(right, x + w / 2), Math.max(bottom, y + h / 2)];
    }
    return left < right ? { left, top, w: right - left, h: bottom - top } : null;
  }

  function wake() {
    if (!frame) frame = requestAnimationFrame(tick);
  }

  function tick(now) {
    frame = 0;
    const touched = new Set();
    for (const entry of gliding) {
      const part = ease(Math.min(1, (now - entry.since) / GLIDE));
      entry.x = entry.from[0] + (entry.node.x - entry.from[0]) * part;
      entry.y = entry.from[1] + (entry.node.y - entry.from[1]) * part;
      if (part === 1) {
        entry.from = null;
        gliding.delete(entry);
      }
      placeNode(entry);
      for (const edge of edges.of.get(entry.key) ?? []) touched.add(edge);
    }
    for (const key of touched) edges.moved(edges.entries.get(key));
    const busy = [gliding.size > 0, camera.tick(now), tokens.draw(now)];
    if (busy.includes(true)) wake();
  }

  // All of it; once more, and the view follows what happens again.
  function overview() {
    camera.whole = camera.taken || !camera.whole;
    camera.taken = false;
    camera.fit(true, lively);
  }

  function tools() {
    const button = (words, path, action) => {
      const icon = svg("svg", { viewBox: "-8 -8 16 16", width: 16, height: 16, "aria-hidden": "true" }, svg("path", { d: path }));
      const element = html("button", { type: "button", "aria-label": words, title: words }, icon);
      element.addEventListener("click", action);
      return element;
    };
    const nearer = button("zoom in", "M-5 0H5M0 -5V5", () => camera.zoom(1.3));
    const further = button("zoom out", "M-5 0H5", () => camera.zoom(1 / 1.3));
    fitting = button("fit to view", "M-5.5 -2V-5.5H-2M2 -5.5H5.5V-2M5.5 2V5.5H2M-2 5.5H-5.5V2", overview);
    return html("div", { class: "lab-tools" }, nearer, further, fitting, search.element);
  }

  // --- finding ---

  function found(words) {
    const keys = [];
    for (const { key, node } of nodes.values()) if (matches(node, words)) keys.push(key);
    return keys;
  }

  // Show what was found, and bring the one that is looked at into sight, large enough to be read.
  function mark(keys, key) {
    const before = look.found;
    look.found = new Set(keys);
    dirty.boxes = null;
    stale = true;
    for (const entry of nodes.values()) if (entry.g && before.has(entry.key) !== look.found.has(entry.key)) paintNode(entry, look);
    nodes.get(here)?.g?.removeAttribute("data-here");
    here = key;
    if (!key) return isFar && redraw();
    rove(key, false);
    const { node, g } = nodes.get(key);
    g.setAttribute("data-here", "");
    const k = Math.max(camera.view.k, readable());
    if (k !== camera.view.k) camera.takeOver({ k, x: camera.size.w / 2 - node.x * k, y: camera.size.h / 2 - node.y * k });
    else camera.reveal(node.x, node.y);
    return undefined;
  }

  // --- choosing ---

  const keyOf = (target) => target.closest?.(".lab-node[data-key]")?.dataset.key;

  // The node under the pointer, also where it is only on the canvas.
  function under(event) {
    const key = keyOf(event.target);
    if (key || !isFar) return key;
    const box = stage.getBoundingClientRect();
    const [x, y] = camera.toScene(event.clientX - box.left, event.clientY - box.top);
    const hits = inSight({ left: x, right: x, top: y, bottom: y }).filter(({ node }) => node.kind !== "frame");
    return hits.pop()?.key;
  }

  function choose(key, tell) {
    if (look.selected !== key) {
      nodes.get(look.selected)?.g?.setAttribute("aria-selected", "false");
      look.selected = key;
      nodes.get(key)?.g?.setAttribute("aria-selected", "true");
    }
    if (tell) options.onSelect?.(key);
  }

  function rove(key, focus) {
    if (active && active !== key) nodes.get(active)?.g?.setAttribute("tabindex", "-1");
    active = key;
    const entry = nodes.get(key);
    if (!entry.g) show(entry);
    entry.g.setAttribute("tabindex", "0");
    if (!focus) return;
    if (heavy) count(entry.g, entry.index);
    entry.g.focus({ preventScroll: true });
    camera.reveal(entry.node.x, entry.node.y);
    if (isFar) showTip(key);
  }

  const gestured = gestures(picture, stage, camera);
  picture.addEventListener("click", (event) => {
    const key = under(event);
    if (gestured() || !key) return;
    rove(key, true);
    if (can("fold") && event.target.closest(".lab-fold")) options.onFold(key);
    else choose(key, true);
    tip.hide(); // whoever listens to the choice shows more, and the node should be seen
  });
  picture.addEventListener("dblclick", (event) => under(event) || overview());
  picture.addEventListener("focusin", (event) => {
    const key = keyOf(event.target);
    if (key && event.target.matches(":focus-visible") && nodes.get(key).clipped) showTip(key);
  });
  picture.addEventListener("focusout", () => tip.hide());
  picture.addEventListener("pointerover", (event) => {
    const key = keyOf(event.target);
    const edge = edges.entries.get(event.target.closest?.(".lab-edge")?.dataset.key)?.edge;
    if (key) showTip(key);
    else if (edge) tip.edge(edge, (end) => tree.nodes[end]?.label || "node", event, shown());
    else tip.hide();
  });
  picture.addEventListener("pointermove", (event) => {
    if (!isFar || event.buttons) return;
    const key = under(event);
    if (key) showTip(key);
    else tip.hide();
  });
  picture.addEventListener("pointerleave", () => tip.hide());

  const shown = () => (isFar ? [] : [...nodes.values()].filter(({ g, node }) => g && node.kind !== "frame"));
  const showTip = (key) => tip.node(nodes.get(key), shown());

  onKeys(root, (event, target) => {
    if (target === search.field) {
      if (search.key(event)) event.preventDefault();
      return;
    }
    const key = keyOf(target);
    const [does, how] = meaning(event, key ? nodes.get(key).node : null, can) ?? [];
    const acts = {
      hide: () => tip.hide(), zoom: () => camera.zoom(how), overview, search: () => search.focus(),
      pan: () => camera.pan(-how[0] * 0.2 * camera.size.w, -how[1] * 0.2 * camera.size.h),
      fold: () => options.onFold(key), pin: () => options.onPin(key), choose: () => choose(key, true),
      end: () => rove(how === "Home" ? nodes.keys().next().value : [...nodes.keys()].pop(), true),
      walk: () => {
        const next = neighbour(key, how, nodes, edges);
        if (next) rove(next, true);
      },
    };
    if (!does) return;
    acts[does]();
    event.preventDefault();
  });

  // Somebody listens now, or no more, to what a reader can ask for.
  function hears() {
    look.folds = can("fold");
    search.offer(nodes.size, can("find"));
    repaint();
  }

  function dispose() {
    cancelAnimationFrame(frame);
    clearTimeout(resting);
    stopTheme();
    resizing.disconnect();
    search.dispose();
    minimap.dispose();
    tokens.clear();
    nodes.clear();
    root.replaceChildren();
  }

  return { draw, dispose, hears };
}
