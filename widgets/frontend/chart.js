// Draws a Chart with plotly: one draw per animation frame, colours from the page's theme, points reachable by keyboard.
import { html, onKeys, surroundings, table } from "./common.js";
import { followTheme, magnified } from "./look.js";

// plotly.js comes gzipped. It is a UMD bundle: given `module` and no `define` it exports itself, whatever else the page has.
export async function importPlotly(code) {
  const source = await new Response(new Blob([code]).stream().pipeThrough(new DecompressionStream("gzip"))).blob();
  const head = "const module={exports:{}},define=undefined,exports=undefined;";
  const url = URL.createObjectURL(new Blob([head, source, "\nexport default module.exports"], { type: "text/javascript" }));
  const before = Object.getOwnPropertyDescriptor(globalThis, "Plotly");
  try {
    return (await import(/* webpackIgnore: true */ url)).default;
  } finally {
    URL.revokeObjectURL(url);
    if (before) Object.defineProperty(globalThis, "Plotly", before);
    else delete globalThis.Plotly;
  }
}

const CONFIG = {
  displaylogo: false,
  responsive: false, // the observer below does it, also for the first draw
  modeBarButtonsToRemove: ["sendChartToCloud", "sendDataToCloud", "lasso2d", "select2d", "autoScale2d"],
};

export function createChart(root, Plotly, options = {}) {
  const plot = html("div", { class: "lab-plot", tabindex: "0", role: "application", "aria-roledescription": "chart" });
  root.className = "lab-root lab-chart";
  root.setAttribute("role", "group");
  root.append(plot);
  const surround = surroundings(root);
  let tree = null;
  let mode = "light";
  let scale = 1;
  let width = 0;
  let frame = 0;
  let revision = 0;
  let sized = ""; // what it was drawn for last
  let drawing = false;
  let listening = false;
  let gone = false;
  let cursor = null; // [trace, point] under the keyboard

  const stopTheme = followTheme(root, (now) => {
    mode = now;
    scale = magnified();
    wake();
  });
  const resizing = new ResizeObserver(() => {
    if (plot.clientWidth === width) return;
    width = plot.clientWidth;
    wake();
  });
  resizing.observe(plot);

  // Resolves when it is painted, or at once where it has to wait for room or for plotly.
  function draw(next) {
    if (next === tree) return undefined;
    tree = next;
    surround(tree);
    plot.setAttribute("aria-label", `${tree.title || tree.caption || "chart"}. Arrow keys walk along the points, Enter selects.`);
    if (width && !drawing && !frame) return paint();
    return wake();
  }

  function wake() {
    if (!frame && tree && width && !drawing) frame = requestAnimationFrame(paint);
  }

  // Latest wins: whatever came while plotly was busy is drawn in one go afterwards.
  async function paint() {
    frame = 0;
    drawing = true;
    const drawn = [tree, mode, width, scale];
    const again = sized !== `${width} ${scale}`; // of another size, its first draw has the margins of the last one
    sized = `${width} ${scale}`;
    try {
      for (let times = again ? 2 : 1; times && !gone; times--) {
        const layout = themed(tree.layout, mode, width, options.height, scale);
        layout.datarevision = ++revision;
        await Plotly.react(plot, tree.data.map((trace) => themedTrace(trace, mode, scale)), layout, CONFIG);
      }
    } finally {
      drawing = false;
    }
    if (gone) return Plotly.purge(plot);
    nameTools();
    if (!listening) {
      listening = true;
      plot.on("plotly_click", (event) => {
        const [{ curveNumber, pointNumber, pointIndex }] = event.points;
        pointed(curveNumber, pointNumber ?? pointIndex);
      });
    }
    if (drawn[0] !== tree || drawn[1] !== mode || drawn[2] !== width || drawn[3] !== scale) wake();
    return undefined;
  }

  // Plotly's buttons are for the mouse: each would be a stop between charts, and they are called alike in all of them.
  function nameTools() {
    const name = tree.title || tree.caption || "chart";
    plot.querySelector(".modebar")?.setAttribute("aria-label", `tools of ${name}`);
    for (const button of plot.querySelectorAll(".modebar-btn")) {
      button.tabIndex = -1;
      button.setAttribute("aria-label", `${button.dataset.title}: ${name}`);
    }
  }

  // A cell of a heat map has two numbers: they count as one, row by row.
  function pointed(trace, point) {
    const columns = plot._fullData?.[trace]?._length ?? 0;
    const number = Array.isArray(point) ? point[0] * (plot.calcdata?.[trace]?.[0]?.z?.[0]?.length ?? columns) + point[1] : point;
    if (Number.isInteger(number)) options.onPoint?.(trace, number);
  }

  const stopKeys = onKeys(root, (event) => {
    const steps = { ArrowRight: [0, 1], ArrowLeft: [0, -1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const traces = plot.calcdata ?? [];
    if (event.key === "Enter" || event.key === " ") {
      if (cursor) options.onPoint?.(...cursor);
    } else if (event.key === "Escape") {
      cursor = null;
      Plotly.Fx?.unhover(plot);
    } else if (steps[event.key] && traces.length) {
      const [down, right] = steps[event.key];
      const trace = cursor ? Math.min(Math.max(cursor[0] + down, 0), traces.length - 1) : 0;
      const last = Math.max(0, (traces[trace]?.length ?? 1) - 1);
      cursor = [trace, cursor ? Math.min(Math.max(cursor[1] + right, 0), last) : 0];
      hover();
    } else return;
    event.preventDefault();
  });

  function hover() {
    const [curveNumber, pointNumber] = cursor;
    try {
      Plotly.Fx.hover(plot, [{ curveNumber, pointNumber }]);
    } catch {
      cursor = null; // a kind of trace without single points: there is nothing to walk along
    }
  }

  function dispose() {
    gone = true;
    cancelAnimationFrame(frame);
    stopTheme();
    stopKeys();
    resizing.disconnect();
    if (!drawing) Plotly.purge(plot);
    root.replaceChildren();
  }

  return { draw, dispose };
}

// The figure's own layout over the colours of the theme, larger on a projector. A copy each time, since plotly writes into
// what it is given; `uirevision` keeps the reader's zoom.
function themed(layout, mode, width, height, scale) {
  const colours = table().colours[mode];
  const own = structuredClone(layout);
  const axis = {
    gridcolor: colours.grid, linecolor: colours.line, zerolinecolor: colours.line, tickcolor: colours.line, automargin: true,
    separatethousands: true, minexponent: 6,
    gridwidth: scale, linewidth: scale * (isStrong(mode) ? 1.5 : 1), ...(isStrong(mode) ? { griddash: "dot" } : {}),
  };
  const result = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    colorway: table().colorway[mode],
    uirevision: "lab",
    modebar: { color: colours.muted, activecolor: colours.text, bgcolor: "rgba(0,0,0,0)" },
    hoverlabel: { bgcolor: colours.op, bordercolor: colours.line, font: { color: colours.text, size: 13 * scale } },
    ...own,
    font: { color: colours.text, family: "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif", ...own.font, size: (own.font?.size ?? 13) * scale },
    width,
    height: height || Math.round((own.height || 320) * (1 + (scale - 1) / 2)),
    autosize: false,
  };
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(own).filter((key) => /^[xy]axis\d*$/.test(key))])) {
    result[name] = { ...axis, ...own[name] };
  }
  return result;
}

const isStrong = (mode) => mode.startsWith("contrast");

// Heat maps without a palette of their own get ours; everything else takes the colorway. `meta.like` names the trace whose
// colour this one shares, because it shows the same thing. Lines and markers grow with the type.
function themedTrace(trace, mode, scale) {
  const ways = table().colorway[mode];
  const wide = scale * (isStrong(mode) ? 1.25 : 1);
  const made = { ...trace };
  if (trace.type === "scatter" || trace.type === undefined) {
    made.line = { ...trace.line, width: (trace.line?.width ?? 2) * wide };
    if (typeof (trace.marker?.size ?? 6) === "number") made.marker = { ...trace.marker, size: (trace.marker?.size ?? 6) * wide };
    if (isStrong(mode)) made.opacity = 1; // a line half seen through is one of half the contrast
  }
  if (trace.meta?.like !== undefined) made.marker = { ...made.marker, color: ways[trace.meta.like % ways.length] };
  if (trace.type !== "heatmap" || trace.colorscale) return made;
  const stops = (trace.zmid !== undefined ? table().diverging : table().sequential)[mode];
  return { ...made, colorscale: stops.map((colour, k) => [k / (stops.length - 1), colour]) };
}
