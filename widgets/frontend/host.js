// The page's side of widgets/live/host.py: keeps the picture, applies numbered patches, draws when it is its turn,
// acknowledges what was drawn, and asks for the whole picture when a number is missing.
import { whenGone } from "./gone.js";
import { hearLate } from "./late.js";
import { applyPatch } from "./patch.js";

const GONE = "The kernel was restarted: this is the last picture. Run the cell again.";
const DEAF = "The page was too busy when this picture opened: it stays as it is. Run the cell again.";
const shared = (globalThis.__autodiffLab ??= new Map());

// The picture of a kernel that has ended: its run is not live.
function past(tree) {
  const words = tree.provenance && `Before the restart: ${tree.provenance}`;
  return { ...tree, provenance: words, made: "" };
}

// One promise per page and key; a failed one is forgotten, so that the next picture tries again.
function once(key, make) {
  if (!shared.has(key)) {
    const promise = make();
    shared.set(key, promise);
    promise.catch(() => shared.delete(key));
  }
  return shared.get(key);
}

// A task of the page for each first picture: between two, other widgets get on that have 2 seconds to begin.
function turn() {
  const { port1, port2 } = new MessageChannel();
  const mine = (shared.get("turn") ?? Promise.resolve()).then(
    () => new Promise((come) => {
      port1.onmessage = come;
      port2.postMessage(null);
    }),
  );
  shared.set("turn", mine);
  return mine.then(() => port1.close());
}

async function importText(...parts) {
  const url = URL.createObjectURL(new Blob(parts, { type: "text/javascript" }));
  try {
    return await import(/* webpackIgnore: true */ url);
  } finally {
    URL.revokeObjectURL(url);
  }
}

async function picturesModule(model, host) {
  const library = await host.getModel(model.get("library"));
  return once(`pictures ${library.get("version")}`, async () => {
    const module = await importText(library.get("code"));
    module.setup(JSON.parse(library.get("table")), library.get("style"));
    return module;
  });
}

async function plotlyModule(model, host, module) {
  const library = await host.getModel(model.get("plotly"));
  return once(`plotly ${library.get("version")}`, async () => {
    if (!library.get("code")?.byteLength) {
      await new Promise((arrive) => {
        library.on("change:code", arrive);
        library.send({ wants: "code" });
      });
    }
    return module.importPlotly(library.get("code"));
  });
}

export default () => {
  let tree;
  let seq;
  let dirty = false;
  let asked = false;
  let saving;
  let gone = false;
  let deaf = false;
  let inTurn = requestAnimationFrame; // until the module with the pictures is there: then nothing is drawn yet
  const arrivals = [];
  const views = new Set();
  const notes = new Set();
  const text = new TextDecoder();

  return {
    initialize({ model }) {
      // Empty in a reloaded page, which waits 4 seconds for all of its widgets together: the picture comes when asked.
      tree = model.get("picture") ? JSON.parse(model.get("picture")) : undefined;
      seq = model.get("seq");

      const drawn = async () => {
        dirty = false;
        const number = seq;
        await Promise.all([...views].map((view) => view.draw(tree)));
        try {
          model.send({ ack: number });
        } catch { // the notebook is being closed: its kernel takes nothing any more
          gone = true;
        }
        // What "save widget state" writes should be what is seen. Kept in the page only: nothing goes to the kernel.
        clearTimeout(saving);
        saving = setTimeout(() => {
          model.set("picture", JSON.stringify(tree));
          model.set("seq", seq);
        }, 1000);
      };
      const received = (message, buffers) => {
        if (!message || typeof message.seq !== "number" || !buffers?.length) return;
        if (!tree && !message.whole) return; // there is nothing yet that it could change
        if (message.seq <= seq && !message.whole) return;
        if (message.seq !== seq + 1 && !message.whole) {
          if (!asked) model.send({ resync: seq });
          asked = true;
          return;
        }
        const body = JSON.parse(text.decode(buffers[0]));
        tree = message.whole ? body : applyPatch(tree, body, true);
        seq = message.seq;
        if (message.whole) asked = false;
        for (const arrive of arrivals.splice(0)) arrive();
        if (!dirty) {
          dirty = true;
          inTurn(drawn);
        }
      };
      const forget = whenGone(model, (ended) => {
        gone = ended;
        for (const note of notes) note();
      });
      const missed = () => {
        asked = true;
        model.send({ resync: seq });
      };
      hearLate(model, missed).catch((error) => {
        console.error(error);
        deaf = true;
        for (const note of notes) note();
      });
      const listened = () => views.forEach((view) => view.hears?.());
      model.on("msg:custom", received);
      if (!tree) {
        asked = true;
        model.send({ resync: seq });
      }
      model.on("change:listens", listened);
      return () => {
        clearTimeout(saving);
        model.off("msg:custom", received);
        forget();
        model.off("change:listens", listened);
      };
    },

    async render({ model, el, host, signal }) {
      const root = document.createElement("div");
      const hidesTwin = document.createElement("style"); // goes with this view, and the still picture is back
      hidesTwin.textContent = `[data-lab-twin="${model.get("twin")}"] { display: none; }`;
      el.append(root);
      if (tree) el.append(hidesTwin);
      let view;
      try {
        const module = await picturesModule(model, host);
        inTurn = module.inTurn;
        if (!tree) {
          const again = setInterval(() => model.send({ resync: seq }), 5000); // a message may be lost in a busy page
          signal.addEventListener("abort", () => clearInterval(again));
          await new Promise((arrive) => arrivals.push(arrive));
          clearInterval(again);
        }
        el.append(hidesTwin);
        const options = {
          height: model.get("height"),
          hears: (what) => !gone && model.get("listens").includes(what),
          onSelect: (id) => model.send({ select: id }),
          onFold: (id) => model.send({ fold: id }),
          onPin: (id) => model.send({ pin: id }),
          onFind: (words) => model.send({ find: words }),
          onPoint: (trace, point) => model.send({ point: [trace, point] }),
        };
        if (tree.type === "chart") {
          const plotly = await plotlyModule(model, host, module);
          if (!signal.aborted) view = module.createChart(root, plotly, options);
        } else await turn();
        if (tree.type === "scene" && !signal.aborted) view = module.createScene(root, options);
      } catch (error) {
        root.textContent = "This picture could not be drawn. Run its cell again. ";
        console.error(error);
        return undefined;
      }
      if (!view) return undefined;
      view.draw(tree);
      views.add(view);
      const line = document.createElement("p");
      line.className = "lab-gone";
      line.setAttribute("role", "status");
      root.append(line);
      const note = () => {
        line.textContent = gone ? GONE : deaf ? DEAF : "";
        view.draw(gone ? past(tree) : tree);
        if (gone) view.hears?.(); // nobody opens or pins anything any more
      };
      notes.add(note);
      if (gone || deaf) note();
      return () => {
        views.delete(view);
        notes.delete(note);
        view.dispose();
      };
    },
  };
};
