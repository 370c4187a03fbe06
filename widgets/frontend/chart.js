// Draws a Chart with plotly: one draw per animation frame, colours from the page's theme, points reachable by keyboard.
import { followTheme, html, onKeys, surroundings, table } from "./common.js";

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
  let width = 0;
  let frame = 0;
  let revision = 0;
  let drawing = false;
  let listening = false;
  let gone = false;
  let cursor = null; // [trace, point] under the keyboard

  const stopTheme = followTheme(root, (now) => {
    mode = now;
    wake();
  });
  const resizing = new ResizeObserver(() => {
    if (plot.clientWidth === width) return;
    width = plot.clientWidth;
    wake();
  });
  resizing.observe(plot);

  function draw(next) {
    if (next === tree) return;
    tree = next;
    surround(tree);
    plot.setAttribute("aria-label", `${tree.title || tree.caption || "chart"}. Arrow keys walk along the points, Enter selects.`);
    wake();
  }

  function wake() {
    if (!frame && tree && width && !drawing) frame = requestAnimationFrame(paint);
  }

  // Latest wins: whatever came while plotly was busy is drawn in one go afterwards.
  async function paint() {
    frame = 0;
    drawing = true;
    const drawn = [tree, mode, width];
    try {
      const layout = themed(tree.layout, mode, width, options.height);
      layout.datarevision = ++revision;
      await Plotly.react(plot, tree.data.map((trace) => themedTrace(trace, mode)), layout, CONFIG);
    } finally {
      drawing = false;
    }
    if (gone) return Plotly.purge(plot);
    if (!listening) {
      listening = true;
      plot.on("plotly_click", (event) => {
        const [{ curveNumber, pointNumber, pointIndex }] = event.points;
        pointed(curveNumber, pointNumber ?? pointIndex);
      });
    }
    if (drawn[0] !== tree || drawn[1] !== mode || drawn[2] !== width) wake();
    return undefined;
  }

  // A cell of a heat map has two numbers: they count as one, row by row.
  function pointed(trace, point) {
    const columns = plot._fullData?.[trace]?._length ?? 0;
    const number = Array.isArray(point) ? point[0] * (plot.calcdata?.[trace]?.[0]?.z?.[0]?.length ?? columns) + point[1] : point;
    if (Number.isInteger(number)) options.onPoint?.(trace, number);
  }

  onKeys(root, (event) => {
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
    resizing.disconnect();
    if (!drawing) Plotly.purge(plot);
    root.replaceChildren();
  }

  return { draw, dispose };
}

// The figure's own layout over the colours of the theme. A copy each time, since plotly writes into what it is given;
// `uirevision` keeps the reader's zoom.
function themed(layout, mode, width, height) {
  const colours = table().colours[mode];
  const own = structuredClone(layout);
  const axis = { gridcolor: colours.grid, linecolor: colours.line, zerolinecolor: colours.line, tickcolor: colours.line, automargin: true };
  const result = {
    paper_bgcolor: "rgba(0,0,0,0)",
    plot_bgcolor: "rgba(0,0,0,0)",
    colorway: table().colorway[mode],
    uirevision: "lab",
    modebar: { color: colours.muted, activecolor: colours.text, bgcolor: "rgba(0,0,0,0)" },
    hoverlabel: { bgcolor: colours.op, bordercolor: colours.line, font: { color: colours.text } },
    ...own,
    font: { color: colours.text, size: 13, family: "system-ui, -apple-system, Segoe UI, Roboto, Helvetica Neue, Arial, sans-serif", ...own.font },
    width,
    height: height || own.height || 320,
    autosize: false,
  };
  for (const name of new Set(["xaxis", "yaxis", ...Object.keys(own).filter((key) => /^[xy]axis\d*$/.test(key))])) {
    result[name] = { ...axis, ...own[name] };
  }
  return result;
}

// Heat maps without a palette of their own get ours; everything else takes the colorway. `meta.like` names the trace whose
// colour this one shares, because it shows the same thing.
function themedTrace(trace, mode) {
  const ways = table().colorway[mode];
  if (trace.meta?.like !== undefined) return { ...trace, marker: { ...trace.marker, color: ways[trace.meta.like % ways.length] } };
  if (trace.type !== "heatmap" || trace.colorscale) return { ...trace };
  const signed = trace.zmid !== undefined;
  const stops = signed ? table().diverging[mode] : table().cividis;
  return { ...trace, colorscale: stops.map((colour, i) => [i / (stops.length - 1), colour]) };
}
