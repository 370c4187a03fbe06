// Inside the module that draws scenes: what bench_frames.py asks of it.
const wait = (ms) => new Promise((done) => setTimeout(done, ms));
const raf = window.requestAnimationFrame.bind(window);
setup(TABLE, STYLE);
let tree, view, root;
const settled = () => new Promise((done) => raf(() => raf(() => setTimeout(done))));

window.open_ = async (text) => {
  document.body.replaceChildren((root = document.createElement("div")));
  view?.dispose();
  await settled();
  const begin = performance.now();
  tree = JSON.parse(text);
  view = createScene(root);
  view.draw(tree);
  await settled();
  return performance.now() - begin;
};

// Frames while `work` goes on.
const watch = async (work) => {
  await wait(400);
  const times = [];
  let on = true;
  await window.begin();
  const look = (now) => { times.push(now); if (on) raf(look); };
  raf(look);
  await work();
  on = false;
  const cpu = await window.end();
  const gaps = times.slice(1).map((t, i) => t - times[i]);
  const whole = times[times.length - 1] - times[0];
  const each = Object.fromEntries(Object.entries(cpu).map(([name, ms]) => [name, ms / gaps.length]));
  return { fps: (gaps.length * 1000) / whole, worst: Math.max(...gaps), ...each };
};
const frames = (n, step) => new Promise((done) => {
  let i = 0;
  const one = () => { if (i >= n) return done(); step(i++); raf(one); };
  raf(one);
});
// As host.js: whatever has come is drawn once in the next frame.
const receive = (patch) => {
  tree = applyPatch(tree, patch, true);
  if (!receive.dirty) { receive.dirty = true; requestAnimationFrame(() => { receive.dirty = false; view.draw(tree); }); }
};
const press = (key) => {
  root.querySelector("button").focus();
  root.querySelector("button").dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true, composed: true }));
};
const point = (name, x, y, more = {}) => {
  const svg = root.querySelector(".lab-svg");
  const box = svg.parentElement.getBoundingClientRect();
  const shared = { bubbles: true, clientX: box.left + x, clientY: box.top + y, pointerId: 1, button: 0, isPrimary: true, ...more };
  svg.dispatchEvent(new (name === "wheel" ? WheelEvent : PointerEvent)(name, shared));
};
SVGElement.prototype.setPointerCapture = () => {}; // there is no pointer that could be captured

window.grow = (patches) => watch(async () => { for (const patch of patches) { receive(patch); await wait(1000 / 15); } });
window.overview = async () => { press("0"); await wait(600); };
// To where the middle of the graph is readable: the arrow keys bring a node into the middle of the stage.
window.nearer = async (times) => {
  for (let i = 0; i < times; i++) press("+");
  const key = (name) => {
    const node = root.querySelector(".lab-node[tabindex='0']");
    node.dispatchEvent(new KeyboardEvent("keydown", { key: name, bubbles: true, composed: true }));
  };
  key("End");
  for (let i = 0; i < 3; i++) key("ArrowUp");
  await wait(400);
};
window.pan = () => watch(async () => {
  point("pointerdown", 500, 200);
  await frames(150, (i) => point("pointermove", 500 + 300 * Math.sin(i / 20), 200 + 100 * Math.cos(i / 15), { buttons: 1 }));
  point("pointerup", 500, 200);
});
window.zoom = () => watch(() => frames(150, (i) => point("wheel", 500, 200, { ctrlKey: true, deltaY: 3 * Math.sin(i / 12), cancelable: true })));
window.recolour = (rounds) => watch(() => frames(90, (i) => receive(rounds[i % rounds.length])));
window.tokens = (some) => watch(async () => { receive([[["tokens"], some]]); await wait(3000); });
window.shown = () => [root.querySelectorAll(".lab-node").length, root.querySelector(".lab-stage").hasAttribute("data-far")];
window.ready = true;
