// How a reader reaches nodes: the pointer and the keyboard walk to them, choose, open and pin them, a search goes through
// what it finds. One node at a time is in reach of the tab key; one that is only on the canvas comes into the document.
import { onKeys } from "./common.js";
import { gestures, readable } from "./camera.js";
import { paintNode } from "./nodes.js";
import { matches } from "./search.js";
import { nodesIn } from "./sight.js";
import { meaning, neighbour } from "./walk.js";

const keyOf = (target) => target.closest?.(".lab-node[data-key]")?.dataset.key;

export class Reach {
  // `can(what)` says whether somebody listens to it; `overview()` shows all.
  constructor(stage, tip, options, can, overview) {
    const { camera, look, boxes, edges } = stage;
    Object.assign(this, { stage, camera, look, boxes, edges, tip, options, can, overview, nodes: boxes.entries });
  }

  // The pointer over the stage; returns the way to stop listening to the keys of `root`.
  listen(root, search) {
    const { stage: { picture, element }, edges, nodes, tip, camera } = this;
    const gestured = gestures(picture, element, camera);
    const nameOf = (end) => nodes.get(end)?.node.label || "node";
    picture.addEventListener("click", (event) => {
      const key = this.under(event);
      if (gestured() || !key) return;
      this.rove(key, true);
      if (this.can("fold") && event.target.closest(".lab-fold")) this.options.onFold(key);
      else this.choose(key, true);
      tip.hide(); // whoever listens to the choice shows more, and the node should be seen
    });
    picture.addEventListener("dblclick", (event) => this.under(event) || this.overview());
    // Around the picture: Chromium makes an svg that listens to the focus itself a stop of the tab key, before its nodes.
    element.addEventListener("focusin", (event) => {
      const key = keyOf(event.target);
      if (key && event.target.matches(":focus-visible") && nodes.get(key).clipped) this.showTip(key);
    });
    element.addEventListener("focusout", () => tip.hide());
    picture.addEventListener("pointerover", (event) => {
      const key = keyOf(event.target);
      const edge = edges.entries.get(event.target.closest?.(".lab-edge")?.dataset.key)?.edge;
      if (key) this.showTip(key);
      else if (edge) tip.edge(edge, nameOf, event, this.shown());
      else tip.hide();
    });
    picture.addEventListener("pointermove", (event) => {
      if (!this.stage.isFar || event.buttons) return;
      const key = this.under(event);
      if (key) this.showTip(key);
      else tip.hide();
    });
    picture.addEventListener("pointerleave", () => tip.hide());
    return onKeys(root, (event, target) => this.keyed(event, target, search));
  }

  keyed(event, target, search) {
    if (target === search.field) {
      if (search.key(event)) event.preventDefault();
      return;
    }
    const { camera, nodes, options } = this;
    const key = keyOf(target);
    const [does, how] = meaning(event, key ? nodes.get(key).node : null, this.can) ?? [];
    const acts = {
      hide: () => this.tip.hide(), zoom: () => camera.zoom(how), overview: () => this.overview(), search: () => search.focus(),
      pan: () => camera.pan(-how[0] * 0.2 * camera.size.w, -how[1] * 0.2 * camera.size.h),
      fold: () => options.onFold(key), pin: () => options.onPin(key), choose: () => this.choose(key, true),
      end: () => this.rove(how === "Home" ? nodes.keys().next().value : [...nodes.keys()].pop(), true),
      walk: () => {
        const next = neighbour(key, how, nodes, this.edges);
        if (next) this.rove(next, true);
      },
    };
    if (!does) return;
    acts[does]();
    event.preventDefault();
  }

  // The node under the pointer, also where it is only on the canvas.
  under(event) {
    const key = keyOf(event.target);
    if (key || !this.stage.isFar) return key;
    const box = this.stage.element.getBoundingClientRect();
    const [x, y] = this.camera.toScene(event.clientX - box.left, event.clientY - box.top);
    const hits = nodesIn({ left: x, right: x, top: y, bottom: y }, this.nodes).filter(({ node }) => node.kind !== "frame");
    return hits.pop()?.key;
  }

  choose(key, tell) {
    const { look, nodes } = this;
    if (look.selected !== key) {
      nodes.get(look.selected)?.g?.setAttribute("aria-selected", "false");
      look.selected = key;
      nodes.get(key)?.g?.setAttribute("aria-selected", "true");
    }
    if (tell) this.options.onSelect?.(key);
  }

  rove(key, focus) {
    const { boxes, nodes, stage } = this;
    if (boxes.active !== key) nodes.get(boxes.active)?.g?.setAttribute("tabindex", "-1");
    boxes.active = key;
    const entry = nodes.get(key);
    if (!entry.g) boxes.show(entry);
    entry.g.setAttribute("tabindex", "0");
    if (!focus) return;
    if (stage.heavy) boxes.count(entry);
    entry.g.focus({ preventScroll: true });
    this.camera.reveal(entry.node.x, entry.node.y);
    if (stage.isFar) this.showTip(key);
  }

  shown() {
    return this.stage.isFar ? [] : [...this.boxes.shown].filter(({ node }) => node.kind !== "frame");
  }

  showTip(key) {
    this.tip.node(this.nodes.get(key), this.shown());
  }

  // Which nodes match: those that the kernel lit, once it has answered with the words that it `heard`; else those that read so.
  found(words, heard) {
    const says = !this.can("find") ? "page" : heard === words ? "kernel" : "awaited";
    const { lit } = this.look;
    const hit = says === "kernel" ? ({ key, node }) => lit.has(key) && node.kind !== "frame" : ({ node }) => matches(node, words);
    return { keys: [...this.nodes.values()].filter(hit).map(({ key }) => key), says };
  }

  // So that one of these nodes can be seen, if none can.
  bring(keys) {
    const { camera, nodes } = this;
    const to = camera.glide?.to ?? camera.view;
    const seen = nodesIn(camera.sight(0, to), new Map(keys.map((key) => [key, nodes.get(key)])));
    if (seen.length || !keys.length) return;
    const { x, y } = nodes.get(keys[0]).node;
    camera.takeOver({ k: to.k, x: camera.size.w / 2 - x * to.k, y: camera.size.h / 2 - y * to.k });
  }

  // Show what was found, and bring the one that is looked at into sight, large enough to be read.
  mark(keys, key) {
    const { look, stage, boxes, nodes, camera } = this;
    const before = look.found;
    look.found = new Set(keys);
    for (const key_ of [...before, ...keys]) stage.far.soil(key_);
    stage.stale = true;
    for (const entry of boxes.shown) if (before.has(entry.key) !== look.found.has(entry.key)) paintNode(entry, look);
    nodes.get(boxes.here)?.g?.removeAttribute("data-here");
    boxes.here = key;
    if (!key) {
      if (stage.isFar) stage.redraw();
      return;
    }
    this.rove(key, false);
    const { node, g } = nodes.get(key);
    g.setAttribute("data-here", "");
    const k = Math.max(camera.view.k, readable());
    if (k !== camera.view.k) camera.takeOver({ k, x: camera.size.w / 2 - node.x * k, y: camera.size.h / 2 - node.y * k });
    else camera.reveal(node.x, node.y);
  }
}
