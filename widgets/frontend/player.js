// The stand-alone page: plays frames that are stored in it as gzipped JSON, the first one whole, the others as patches.
import { applyPatch } from "./patch.js";
import { announcer, calm, html, setText, setup, svg } from "./common.js";
import { followTheme, lookSwitch } from "./look.js";
import { createScene } from "./scene.js";
import { createChart, importPlotly } from "./chart.js";
import { createTimeline } from "./timeline.js";

const SECONDS_PER_FRAME = 0.9;
const SPEEDS = [0.25, 0.5, 1, 2, 4];

const bytesOf = (id) => Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (c) => c.charCodeAt(0));

export async function play(colours, css) {
  setup(colours, css);
  document.querySelector("style[data-lab]").remove(); // the page has it in its head
  const plotly = document.getElementById("lab-plotly") ? await importPlotly(bytesOf("lab-plotly")) : null;
  const elements = [...document.querySelectorAll(".lab-player")];
  const players = [];
  document.querySelector("h1").before(lookSwitch());
  followTheme(document.body, () => {});
  for (const element of elements) {
    players.push(await player(element, plotly));
    document.getElementById(element.id.replace("player", "static")).remove(); // what stood there without a script
  }

  // Keys are for the player that was used last.
  let current = players[0];
  const chosen = (event) => {
    current = players[elements.findIndex((element) => element.contains(event.target))] ?? current;
  };
  document.addEventListener("focusin", chosen);
  document.addEventListener("pointerdown", chosen);
  document.addEventListener("keydown", (event) => {
    // Controls and pictures have keys of their own.
    if (event.target.closest(".lab-scene, .lab-chart, input:not([type=range]), select") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!current.keys[event.key]) return;
    const own = event.target.closest("button, a, summary") ? /^( |Enter)$/ : event.target.matches("input") ? /^(Arrow|Home|End|Page)/ : null;
    if (own?.test(event.key)) return;
    event.preventDefault();
    current.keys[event.key]();
  });

  document.body.classList.toggle("lab-calm", calm());
  document.body.dataset.labReady = "true";
}

const icon = (path) => svg("svg", { viewBox: "-10 -10 20 20", width: 20, height: 20, "aria-hidden": "true" }, svg("path", { d: path }));

function button(words, path, action) {
  const element = html("button", { type: "button", "aria-label": words, title: words }, icon(path));
  element.addEventListener("click", action);
  return element;
}

// One player in its element, which names its frames, itself, and the frame at which it opens.
async function player(element, plotly) {
  const packed = new Blob([bytesOf(element.dataset.frames)]).stream().pipeThrough(new DecompressionStream("gzip"));
  const frames = JSON.parse(await new Response(packed).text());
  // Trees share what did not change, so that keeping all of them costs little and going back is a look-up.
  frames.forEach((frame, i) => (frame.tree ??= applyPatch(frames[i - 1].tree, frame.patch)));

  const panels = html("div", { class: "lab-panels" });
  const label = html("output", { class: "lab-step", "aria-live": "off" });
  const live = html("p", { class: "lab-text-twin", "aria-live": "polite", role: "status" });
  const say = announcer(live);
  const speed = html("select", { "aria-label": "speed" }, ...SPEEDS.map((x) => html("option", { value: x }, `${x}×`)));
  speed.value = "1";
  const marks = frames.flatMap((frame, i) => (frame.mark ? [[i, frame.mark]] : []));
  const bookmarks = frames.flatMap((frame, i) => (frame.note ? [[i, frame.note]] : []));
  const strip = html("div");
  const timeline = createTimeline(strip, "frame", { seek: (i) => go(i), go: (k) => go(bookmarks[k][0]) });
  let at = -1;
  let timer = 0;
  let loop = []; // [first] while it is being marked, [first, last] while it repeats

  const PLAY = "M-4 -7L7 0L-4 7Z";
  const PAUSE = "M-6 -7H-2V7H-6ZM2 -7H6V7H2Z";
  const start = button("first frame", "M-8 -5V5M0 -5L-6 0L0 5ZM8 -5L2 0L8 5Z", () => go(0));
  const back = button("step back", "M-5 -6V6M6 -6L-2 0L6 6Z", () => go(at - 1));
  const toggle = button("play", PLAY, () => (timer ? pause() : run()));
  const step = button("step", "M5 -6V6M-6 -6L2 0L-6 6Z", () => go(at + 1));
  const before = button("previous mark", "M-6 -6V6M-3 0H7M-3 0L2 -5M-3 0L2 5", () => toMark(-1));
  const after = button("next mark", "M6 -6V6M3 0H-7M3 0L-2 -5M3 0L-2 5", () => toMark(1));
  const repeat = button("loop from here", "M-7 -1V-4H6L3 -7M6 -4L3 -1M7 1V4H-6L-3 1M-6 4L-3 7", markLoop);
  const buttons = [start, ...(marks.length ? [before] : []), back, toggle, step, ...(marks.length ? [after] : []), repeat];
  const bar = html("div", { class: "lab-bar", role: "group", "aria-label": element.dataset.name || "player" }, ...buttons, label, speed);
  if (frames.length > 1) element.append(bar, strip);
  element.append(panels, live);

  const views = frames[0].tree.pictures.map((picture) => {
    const root = html("div");
    panels.append(root);
    return picture.type === "chart" ? createChart(root, plotly) : createScene(root);
  });

  function show(i) {
    at = Math.max(0, Math.min(frames.length - 1, i));
    const frame = frames[at];
    frame.tree.pictures.forEach((picture, k) => views[k].draw(picture));
    const words = [frame.label || `${at + 1} of ${frames.length}`, frame.mark].filter(Boolean).join(" · ");
    timeline.draw({ n: frames.length, at, words, marks, bookmarks, loop });
    setText(label, words);
    say(frame.text);
    start.disabled = back.disabled = at === 0;
    step.disabled = at === frames.length - 1;
    before.disabled = !marks.some(([i]) => i < at);
    after.disabled = !marks.some(([i]) => i > at);
  }

  function toMark(way) {
    const found = way > 0 ? marks.find(([i]) => i > at) : marks.findLast(([i]) => i < at);
    if (found) go(found[0]);
  }

  // First the beginning of a loop is here, then its end is, then there is none; twice at one frame: all of them.
  function markLoop() {
    if (loop.length === 2) loop = [];
    else if (!loop.length) loop = [at];
    else if (loop[0] === at) loop = [0, frames.length - 1];
    else loop = [Math.min(loop[0], at), Math.max(loop[0], at)];
    const words = ["loop from here", "loop to here", "end loop"][loop.length];
    repeat.setAttribute("aria-label", words);
    repeat.title = `${words} (l)`;
    repeat.setAttribute("aria-pressed", String(loop.length === 2));
    show(at);
  }

  function go(i) {
    pause();
    show(i);
  }

  function run() {
    if (loop.length === 2 ? at < loop[0] || at >= loop[1] : at === frames.length - 1) show(loop[0] ?? 0);
    // Said once and then kept quiet: a reader that speaks every frame of a film would never be done.
    live.setAttribute("aria-live", "off");
    mark("pause", PAUSE);
    const next = () => {
      if (loop.length === 2) show(at >= loop[0] && at < loop[1] ? at + 1 : loop[0]);
      else if (at >= frames.length - 1) return pause();
      else show(at + 1);
      timer = setTimeout(next, (1000 * SECONDS_PER_FRAME) / Number(speed.value));
      return undefined;
    };
    timer = setTimeout(next, 200);
  }

  function pause() {
    clearTimeout(timer);
    timer = 0;
    live.setAttribute("aria-live", "polite");
    mark("play", PLAY);
  }

  function mark(words, path) {
    toggle.setAttribute("aria-label", words);
    toggle.title = words;
    toggle.querySelector("path").setAttribute("d", path);
  }

  show(Number(element.dataset.opens));
  const keys = { " ": () => (timer ? pause() : run()), ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(frames.length - 1), "[": () => toMark(-1), "]": () => toMark(1), l: markLoop };
  return { keys, bar: frames.length > 1 ? bar : null };
}
