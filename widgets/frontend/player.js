// The stand-alone page: plays frames that are stored in it as gzipped JSON, the first one whole, the others as patches.
import { applyPatch } from "./patch.js";
import { announcer, calm, html, setText, setup, svg } from "./common.js";
import { followTheme, lookSwitch } from "./look.js";
import { createScene } from "./scene.js";
import { createChart, importPlotly } from "./chart.js";

const SECONDS_PER_FRAME = 0.9;
const SPEEDS = [0.25, 0.5, 1, 2, 4];

const bytesOf = (id) => Uint8Array.from(atob(document.getElementById(id).textContent.trim()), (c) => c.charCodeAt(0));

export async function play(colours, css) {
  setup(colours, css);
  document.querySelector("style[data-lab]").remove(); // the page has it in its head
  const plotly = document.getElementById("lab-plotly") ? await importPlotly(bytesOf("lab-plotly")) : null;
  const elements = [...document.querySelectorAll(".lab-player")];
  const players = [];
  for (const element of elements) players.push(await player(element, plotly));

  document.querySelector("h1").before(lookSwitch());
  followTheme(document.body, () => {});

  // Keys are for the player that was used last.
  let current = players[0];
  const chosen = (event) => {
    current = players[elements.findIndex((element) => element.contains(event.target))] ?? current;
  };
  document.addEventListener("focusin", chosen);
  document.addEventListener("pointerdown", chosen);
  document.addEventListener("keydown", (event) => {
    // Controls and pictures have keys of their own.
    if (event.target.closest("input, select, button, a, .lab-scene, .lab-chart") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (!current.keys[event.key]) return;
    event.preventDefault();
    current.keys[event.key]();
  });

  document.querySelectorAll(".lab-static").forEach((element) => element.remove());
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
  const seek = html("input", { type: "range", min: 0, max: frames.length - 1, step: 1, value: 0, "aria-label": "frame" });
  const speed = html("select", { "aria-label": "speed" }, ...SPEEDS.map((x) => html("option", { value: x }, `${x}×`)));
  speed.value = "1";
  let at = -1;
  let timer = 0;

  const PLAY = "M-4 -7L7 0L-4 7Z";
  const PAUSE = "M-6 -7H-2V7H-6ZM2 -7H6V7H2Z";
  const start = button("first frame", "M-8 -5V5M0 -5L-6 0L0 5ZM8 -5L2 0L8 5Z", () => go(0));
  const back = button("step back", "M-5 -6V6M6 -6L-2 0L6 6Z", () => go(at - 1));
  const toggle = button("play", PLAY, () => (timer ? pause() : run()));
  const step = button("step", "M5 -6V6M-6 -6L2 0L-6 6Z", () => go(at + 1));
  const bar = html("div", { class: "lab-bar", role: "group", "aria-label": element.dataset.name || "player" }, start, back, toggle, step, seek, label, speed);
  if (frames.length > 1) element.append(bar);
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
    seek.value = at;
    seek.setAttribute("aria-valuetext", frame.label);
    setText(label, frame.label || `${at + 1} of ${frames.length}`);
    say(frame.text);
    start.disabled = back.disabled = at === 0;
    step.disabled = at === frames.length - 1;
  }

  function go(i) {
    pause();
    show(i);
  }

  function run() {
    if (at === frames.length - 1) show(0);
    // Said once and then kept quiet: a reader that speaks every frame of a film would never be done.
    live.setAttribute("aria-live", "off");
    mark("pause", PAUSE);
    const next = () => {
      if (at >= frames.length - 1) return pause();
      show(at + 1);
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

  seek.addEventListener("input", () => go(Number(seek.value)));
  show(Number(element.dataset.opens));
  const keys = { " ": () => (timer ? pause() : run()), ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), Home: () => go(0), End: () => go(frames.length - 1) };
  return { keys };
}
