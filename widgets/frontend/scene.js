// Draws a Scene, and conducts those who draw its parts. Given a new tree it changes only what differs from the last one,
// and lets nodes glide to new places. Of a large scene only what can be seen and read is in the document; from far away
// all of it is on a canvas. Panning and zooming move what is drawn, and draw anew when they rest.
import { calm, html, onKeys, setText, surroundings, svg, table } from "./common.js";
import { Boxes } from "./boxes.js";
import { Camera, gestures, readable } from "./camera.js";
import { Edges } from "./edges.js";
import { Far } from "./far.js";
import { followTheme, magnified } from "./look.js";
import { Marks } from "./marks.js";
import { Minimap } from "./minimap.js";
import { paintNode } from "./nodes.js";
import { readablePart } from "./rest.js";
import { Search, matches } from "./search.js";
import { edgesIn, extentOf, livelyPart, nodesIn, within } from "./sight.js";
import { Tip } from "./tip.js";
import { Tokens } from "./tokens.js";
import { meaning, neighbour } from "./walk.js";

const FEW = 300; // so many nodes are all in the document: a browser without a graphics card draws them 60 times a second
const MANY = 1500; // more in sight go to the canvas, be they readable or not
const FAR = 0.35; // zoomed out further, text cannot be read
const AROUND = 0.5; // of the stage's size: how far beyond its borders a large scene is drawn, for panning
const REST = 140; // ms without a movement after which all is drawn anew
const NONE = new Set();

export function createScene(root, options = {}) {
  const can = (what) => Boolean(options.hears?.(what));
  const camera = new Camera(viewChanged, () => tip.hide());
  const look = { mode: "light", palette: "", family: "", selected: "", lit: NONE, pinned: NONE, found: NONE, folds: false, role: "option" };
  const far = new Far();
  const boxes = new Boxes(look, far, () => root.querySelector("button").focus());
  const nodes = boxes.entries;
  const edges = (boxes.edges = new Edges(boxes.at));
  const marks = new Marks(() => look.family);
  const minimap = new Minimap(camera);
  const search = new Search(found, mark, (words) => can("find") && options.onFind(words));
  let fitting; // the button that shows all of it
  const list = svg("g", { class: "lab-nodes" }, boxes.frames, edges.lines, boxes.others);
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

  let tree = null;
  let frame = 0;
  let first = true;
  let heavy = false; // too many nodes to have all of them in the document
  let isFar = false;
  let stale = false; // something changed that has not been drawn
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
    far.soil(null);
    settle(false);
    minimap.update(nodes, now);
  });

  // The size of the stage, when it has one: in a box that is not in the page yet it comes later. Returns whether it is new.
  function sized() {
    const [w, h] = [stage.clientWidth, stage.clientHeight];
    if (!w || (w === camera.size.w && h === camera.size.h)) return false;
    camera.size = { w, h };
    tokens.resize(w, h);
    return true;
  }

  const resizing = new ResizeObserver(() => {
    if (sized() && tree) settle(false);
  });
  resizing.observe(stage);

  // --- from tree to tree ---

  function draw(next) {
    if (next === tree) return;
    const last = tree;
    tree = next;
    const now = performance.now();
    const still = first || calm();
    if (first) sized();
    stale = true;
    surround(tree);
    setText(title, tree.title || tree.caption || "scene");
    look.family ||= edges.family = getComputedStyle(root).fontFamily;
    const again = heed(last);
    if (tree.marks !== last?.marks) marks.draw(tree.marks ?? {});
    if (tree.nodes !== last?.nodes) updateNodes(now, still);
    if (tree.edges !== last?.edges) {
      const { fresh, others } = edges.update(tree.edges, !still);
      if (others) far.soilLine(null);
      for (const key of fresh) far.soilLine(key);
    }
    if (again) repaint();
    if (tree.selected !== last?.selected) choose(tree.selected, false);
    if (tree.nodes !== last?.nodes || tree.edges !== last?.edges || tree.extent !== last?.extent) camera.box = extentOf(tree.extent, nodes, edges);
    settle(!still);
    if (tree.nodes !== last?.nodes) {
      search.offer(nodes, edges, can("find"));
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
    if (tree.lit !== last?.lit || tree.palette !== last?.palette) far.soil(null);
    if (tree.pinned !== last?.pinned) look.pinned = new Set(tree.pinned ?? []);
    stage.toggleAttribute("data-dim", look.lit.size > 0);
    const palette = tree.palette !== look.palette;
    look.palette = tree.palette;
    return Boolean(last) && (palette || tree.lit !== last.lit || tree.pinned !== last.pinned);
  }

  function updateNodes(now, still) {
    const opens = boxes.update(tree.nodes, now, still);
    const named = { role: opens ? "tree" : "listbox", "aria-label": `${tree.title || "scene"}: ${nodes.size} nodes` };
    for (const [name, value] of Object.entries(named)) {
      if (nodes.size) list.setAttribute(name, value);
      else list.removeAttribute(name); // a list without entries is none, and what has no role has no name
    }
    root.toggleAttribute("data-empty", !nodes.size);
    look.folds = can("fold");
    const role = opens ? "treeitem" : "option"; // only the items of a tree may say that they are open or closed
    if (role !== look.role) {
      look.role = role;
      repaint();
    }
    heavy = nodes.size > FEW;
    stage.toggleAttribute("data-heavy", heavy);
    if (!boxes.active && nodes.size) rove(nodes.keys().next().value, false);
  }

  function repaint() {
    look.family ||= edges.family = getComputedStyle(root).fontFamily;
    boxes.repaint();
    for (const entry of edges.entries.values()) if (entry.g) edges.paint(entry);
  }

  // --- what is in the document ---

  // Bring into the document what can be seen and read, and take out what cannot; the node that has the focus stays.
  function cull({ view, sight }) {
    isFar = heavy && (view.k < FAR || nodesIn(camera.sight(), nodes).length > MANY);
    stage.toggleAttribute("data-far", isFar);
    const kept = boxes.keep(isFar ? [] : heavy ? nodesIn(sight, nodes) : nodes.values());
    if (heavy) for (const entry of kept) boxes.count(entry);
    edges.keep(isFar ? [] : heavy ? edgesIn(sight, edges) : edges.entries.values());
    far.element.hidden = !isFar;
    if (isFar) far.paint(view, sight, nodes, edges, look);
    stale = false;
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
      far.soil(null);
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

  const lively = () => readablePart(livelyPart(nodes, edges, camera), camera);

  function wake() {
    if (!frame) frame = requestAnimationFrame(tick);
  }

  function tick(now) {
    frame = 0;
    const busy = [boxes.tick(now), camera.tick(now), tokens.draw(now)];
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
    for (const key_ of [...before, ...keys]) far.soil(key_);
    stale = true;
    for (const entry of nodes.values()) if (entry.g && before.has(entry.key) !== look.found.has(entry.key)) paintNode(entry, look);
    nodes.get(boxes.here)?.g?.removeAttribute("data-here");
    boxes.here = key;
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
    const hits = nodesIn({ left: x, right: x, top: y, bottom: y }, nodes).filter(({ node }) => node.kind !== "frame");
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
    if (boxes.active !== key) nodes.get(boxes.active)?.g?.setAttribute("tabindex", "-1");
    boxes.active = key;
    const entry = nodes.get(key);
    if (!entry.g) boxes.show(entry);
    entry.g.setAttribute("tabindex", "0");
    if (!focus) return;
    if (heavy) boxes.count(entry);
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

  const stopKeys = onKeys(root, (event, target) => {
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
    search.offer(nodes, edges, can("find"));
    repaint();
  }

  function dispose() {
    cancelAnimationFrame(frame);
    clearTimeout(resting);
    stopTheme();
    stopKeys();
    resizing.disconnect();
    search.dispose();
    minimap.dispose();
    tokens.clear();
    nodes.clear();
    root.replaceChildren();
  }

  return { draw, dispose, hears };
}
