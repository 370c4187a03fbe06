// All of a large picture in a thumb's size, with a frame around what the stage shows; dragging moves the view. It is for
// the eye and the mouse: by keyboard, Shift and the arrow keys move the view, so screen readers need not meet it.
import { html, table } from "./common.js";

const MOST = { w: 200, h: 60 };
const LEAST = 28; // px: what is much longer than wide is stretched, so that there is something to see and to take hold of
const PAUSE = 400; // ms between two pictures of a graph that grows

export class Minimap {
  constructor(camera) {
    this.camera = camera;
    this.canvas = html("canvas");
    this.window = html("div", { class: "lab-window" });
    this.element = html("div", { class: "lab-minimap", "aria-hidden": "true", hidden: "", title: "all of it: drag to move (Shift and arrow keys)" }, this.canvas, this.window);
    [this.kx, this.ky] = [1, 1];
    this.size = [0, 0];
    this.last = 0;
    const go = (event) => {
      const box = this.canvas.getBoundingClientRect();
      const { left, top } = camera.box;
      camera.centre(left + (event.clientX - box.left) / this.kx, top + (event.clientY - box.top) / this.ky, true);
    };
    this.element.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      this.element.setPointerCapture(event.pointerId);
      event.preventDefault();
      go(event);
    });
    this.element.addEventListener("pointermove", (event) => this.element.hasPointerCapture(event.pointerId) && go(event));
    this.element.addEventListener("pointerup", () => camera.changed(false));
  }

  // Once there it stays, so that the page does not jump; what it shows can wait a little.
  update(nodes, mode) {
    const { camera, element } = this;
    if (!camera.size.w || (element.hidden && !camera.beyond())) return;
    element.hidden = false;
    const wait = this.last + PAUSE - performance.now();
    clearTimeout(this.timer);
    if (wait > 0) this.timer = setTimeout(() => this.paint(nodes, mode), wait);
    else this.paint(nodes, mode);
  }

  paint(nodes, mode) {
    this.last = performance.now();
    const { camera, canvas } = this;
    const { box } = camera;
    const both = Math.min(MOST.w / box.w, MOST.h / box.h);
    [this.kx, this.ky] = [Math.max(both, LEAST / box.w), Math.max(both, LEAST / box.h)];
    const [w, h] = (this.size = [Math.ceil(box.w * this.kx), Math.ceil(box.h * this.ky)]);
    const scale = Math.min(window.devicePixelRatio || 1, 2);
    [canvas.width, canvas.height] = [w * scale, h * scale];
    [canvas.style.width, canvas.style.height] = [`${w}px`, `${h}px`];
    const context = canvas.getContext("2d");
    const colours = table().colours[mode];
    const [kx, ky] = [this.kx * scale, this.ky * scale];
    const alike = { idle: [], lively: [], trouble: [] };
    for (const { node } of nodes.values()) {
      if (node.kind === "frame") {
        context.strokeStyle = colours.line;
        context.strokeRect((node.x - node.w / 2 - box.left) * kx, (node.y - node.h / 2 - box.top) * ky, node.w * kx, node.h * ky);
      } else (alike[node.state === "active" || node.state === "new" ? "lively" : node.state === "trouble" ? "trouble" : "idle"]).push(node);
    }
    for (const [name, colour, least] of [["idle", colours.line, 1], ["lively", colours.forward, 3], ["trouble", colours.trouble, 3]]) {
      context.fillStyle = colour;
      for (const node of alike[name]) {
        const [across, high] = [Math.max(least, node.w * kx), Math.max(least, node.h * ky)];
        context.fillRect((node.x - box.left) * kx - across / 2, (node.y - box.top) * ky - high / 2, across, high);
      }
    }
    this.follow();
  }

  // The frame around what the stage shows.
  follow() {
    if (this.element.hidden) return;
    const { camera, kx, ky, size } = this;
    const { left, top, right, bottom } = camera.sight();
    const [x, y] = [Math.max(0, (left - camera.box.left) * kx), Math.max(0, (top - camera.box.top) * ky)];
    const w = Math.min(size[0], (right - camera.box.left) * kx) - x;
    const h = Math.min(size[1], (bottom - camera.box.top) * ky) - y;
    const style = { transform: `translate(${x}px, ${y}px)`, width: `${Math.max(4, w)}px`, height: `${Math.max(4, h)}px` };
    Object.assign(this.window.style, style);
  }

  dispose() {
    clearTimeout(this.timer);
  }
}
