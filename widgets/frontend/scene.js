// Draws a Scene, and conducts those who draw its parts. Given a new tree it changes only what differs from the last one,
// and lets nodes glide to new places. Of a large scene only what can be seen and read is in the document; from far away
// all of it is on a canvas.
import { calm, html, setText, surroundings, svg, table } from "./common.js";
import { Boxes } from "./boxes.js";
import { Camera, readable } from "./camera.js";
import { Edges } from "./edges.js";
import { Far } from "./far.js";
import { followTheme, magnified } from "./look.js";
import { Marks } from "./marks.js";
import { Minimap } from "./minimap.js";
import { News } from "./news.js";
import { Reach } from "./reach.js";
import { readablePart } from "./rest.js";
import { Search } from "./search.js";
import { both, columnOf, extentOf, livelyPart } from "./sight.js";
import { Stage } from "./stage.js";
import { Tip } from "./tip.js";
import { Tokens } from "./tokens.js";

const NONE = new Set();
const SCROLLBAR = 32; // px: a width that is so little another may come of the stage's own height, by a bar that came or went

export function createScene(root, options = {}) {
  const can = (what) => Boolean(options.hears?.(what));
  const camera = new Camera(viewChanged, () => tip.hide(), (left, right) => columnOf(nodes, left, right));
  const look = { mode: "light", palette: "", family: "", selected: "", lit: NONE, pinned: NONE, found: NONE, folds: false, role: "option" };
  const far = new Far();
  const boxes = new Boxes(look, far, () => root.querySelector("button").focus());
  const nodes = boxes.entries;
  const edges = (boxes.edges = new Edges(boxes.at));
  const marks = new Marks(() => look.family);
  const stage = new Stage(camera, look, { boxes, edges, marks, far });
  const minimap = new Minimap(camera);
  const search = new Search((key) => nodes.get(key)?.node.fold === "closed", {
    look: (words) => reach.found(words, tree.found),
    mark: (keys, key) => reach.mark(keys, key),
    bring: (keys) => reach.bring(keys),
    ask: (words) => can("find") && options.onFind(words),
  });
  let fitting; // the button that shows all of it
  root.className = "lab-root lab-scene";
  root.setAttribute("role", "group");
  root.append(stage.element);
  const surround = surroundings(root, minimap.element, tools());
  const tip = new Tip(root, stage.element, camera);
  root.append(tip.element);
  const reach = new Reach(stage, tip, options, can, overview);
  const stopKeys = reach.listen(root, search);
  const tokens = new Tokens(stage.canvas, (key) => edges.entries.has(key) && edges.lineOf(edges.entries.get(key)), () => camera.view);
  const news = { nodes: new News(), edges: new News() };

  let tree = null;
  let frame = 0;
  let first = true;
  let heightFor = 0; // the width for which the stage has its height

  const stopTheme = followTheme(root, (now) => {
    look.mode = now;
    look.family = "";
    tokens.colours = table().colours[now];
    if (!tree) return;
    repaint();
    stage.stale = true;
    far.soil(null);
    settle(false);
    minimap.update(nodes, now);
  });

  const resizing = new ResizeObserver(() => {
    if (sized() && tree) settle(false);
  });
  resizing.observe(stage.element);

  function sized() {
    const fresh = stage.sized();
    if (fresh && Math.abs(camera.size.w - heightFor) > SCROLLBAR) {
      heightFor = camera.size.w;
      stage.element.style.height = ""; // it was for another width, and the page jumps already
      stage.sized();
    }
    if (fresh) tokens.resize(camera.size.w, camera.size.h);
    return fresh;
  }

  // --- from tree to tree ---

  function draw(next) {
    if (next === tree) return;
    const last = tree;
    tree = next;
    const now = performance.now();
    const still = first || calm();
    if (first) sized();
    stage.stale = true;
    surround(tree);
    setText(stage.title, tree.title || tree.caption || "scene");
    stage.element.dataset.instead = tree.instead ?? "";
    const begins = !nodes.size; // a picture that begins is not glided to: nobody was anywhere yet
    look.family ||= edges.family = getComputedStyle(root).fontFamily;
    const again = heed(last);
    const changed = { nodes: news.nodes.of(tree.nodes), edges: news.edges.of(tree.edges) };
    const others = { nodes: changed.nodes?.length !== 0, edges: changed.edges?.length !== 0 };
    boxes.fades = edges.fades = !still && !(stage.heavy && camera.glide); // nobody sees it on the run, and all beneath is painted anew
    if (tree.marks !== last?.marks) marks.draw(tree.marks ?? {});
    if (others.nodes) updateNodes(changed.nodes, now, still);
    if (others.edges) updateEdges(changed.edges);
    if (again) repaint();
    if (tree.selected !== last?.selected) reach.choose(tree.selected, false);
    if (others.nodes || others.edges || tree.extent !== last?.extent) measure();
    settle(!still && !begins);
    if (search.words && (others.nodes || tree.lit !== last?.lit || tree.found !== last?.found)) search.again();
    if (others.nodes) {
      search.offer(nodes, edges, can("find"));
      minimap.update(nodes, look.mode);
    }
    if (tree.tokens !== last?.tokens && !calm()) tokens.start(tree.tokens, now);
    first = false;
    wake();
  }

  function measure() {
    camera.drawn = extentOf(nodes, edges);
    const [right, bottom] = tree.extent ?? [];
    const { left, top, w, h } = camera.drawn;
    const all = tree.extent ? both({ left, top, right: left + w, bottom: top + h }, { left: 0, top: 0, right, bottom }) : null;
    camera.box = all ? { left: all.left, top: all.top, w: all.right - all.left, h: all.bottom - all.top } : camera.drawn;
  }

  // What the tree says of all nodes at once; true when every one has to be painted again.
  function heed(last) {
    if (tree.lit !== last?.lit) look.lit = edges.lit = new Set(tree.lit ?? []);
    if (tree.lit !== last?.lit || tree.palette !== last?.palette) far.soil(null);
    if (tree.pinned !== last?.pinned) look.pinned = new Set(tree.pinned ?? []);
    stage.element.toggleAttribute("data-dim", look.lit.size > 0);
    const palette = tree.palette !== look.palette;
    look.palette = tree.palette;
    return Boolean(last) && (palette || tree.lit !== last.lit || tree.pinned !== last.pinned);
  }

  function updateNodes(some, now, still) {
    boxes.update(tree.nodes, some, now, still);
    const opens = boxes.folds > 0;
    const named = { role: opens ? "tree" : "listbox", "aria-label": `${tree.title || "scene"}: ${nodes.size} node${nodes.size === 1 ? "" : "s"}` };
    for (const [name, value] of Object.entries(named)) {
      if (nodes.size) stage.list.setAttribute(name, value);
      else stage.list.removeAttribute(name); // a list without entries is none, and what has no role has no name
    }
    root.toggleAttribute("data-empty", !nodes.size);
    if (!nodes.size) camera.taken = camera.whole = false; // what comes is another picture than the one that the reader moved
    look.folds = can("fold");
    const role = opens ? "treeitem" : "option"; // only the items of a tree may say that they are open or closed
    if (role !== look.role) {
      look.role = role;
      repaint();
    }
    stage.weigh(nodes.size);
    if (!boxes.active && nodes.size) reach.rove(nodes.keys().next().value, false);
  }

  function updateEdges(some) {
    const { fresh, others } = edges.update(tree.edges, some);
    if (others) far.soilLine(null);
    for (const key of fresh) far.soilLine(key);
  }

  function repaint() {
    look.family ||= edges.family = getComputedStyle(root).fontFamily;
    boxes.repaint();
    edges.repaint();
  }

  // --- the view ---

  function viewChanged(moving) {
    if (camera.glide) wake();
    stage.follow(moving);
    const more = camera.beyond();
    if (stage.element.dataset.more !== more) stage.element.dataset.more = more;
    const pressed = String(camera.whole && !camera.taken);
    if (fitting.getAttribute("aria-pressed") !== pressed) fitting.setAttribute("aria-pressed", pressed);
    if (more && minimap.element.hidden) minimap.update(nodes, look.mode);
    else minimap.follow();
  }

  // Height of the stage (it only grows, so that the page does not jump) and, unless the reader took over, the view.
  function settle(glides) {
    if (!camera.size.w) return stage.cull();
    if (!nodes.size) return camera.fit(false, lively); // words need no more room than there is
    const share = magnified() > 1 ? 0.85 : 0.68; // of the window: controls and words need room, too
    const most = Math.max(320, Math.min(720 * magnified(), Math.round(window.innerHeight * share)));
    const least = camera.whole || !lively() ? 0 : readable(); // at rest all of it is shown, and needs no more room than that
    const wanted = options.height || camera.height(most, least);
    if (wanted > camera.size.h || (options.height && wanted !== camera.size.h)) {
      stage.element.style.height = `${wanted}px`;
      sized();
    }
    return camera.taken ? camera.stay(lively) : camera.fit(glides, lively);
  }

  // A reader who opens a group by its corner or by the keyboard has the focus on it.
  const lively = () => {
    const near = stage.element.contains(document.activeElement) ? nodes.get(boxes.active)?.node : null;
    return readablePart(livelyPart(boxes, edges, camera), camera, { folds: boxes.folds > 0, near });
  };

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

  // Somebody listens now, or no more, to what a reader can ask for.
  function hears() {
    look.folds = can("fold");
    search.offer(nodes, edges, can("find"));
    repaint();
  }

  function dispose() {
    cancelAnimationFrame(frame);
    stopTheme();
    stopKeys();
    resizing.disconnect();
    search.dispose();
    minimap.dispose();
    tokens.clear();
    stage.dispose();
    nodes.clear();
    root.replaceChildren();
  }

  return { draw, dispose, hears };
}
