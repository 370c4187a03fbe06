// The timeline in a notebook (widgets/player/timeline.py): the state comes as traits, wishes go as messages. Keys that
// are pressed anywhere in the player are its own, and never reach the notebook's commands.
import { askAgain, hearLate } from "./late.js";
import { createTimeline } from "./timeline.js";

const KEYS = [" ", "ArrowLeft", "ArrowRight", "Home", "End", "[", "]", "l"];
const TRAITS = ["n", "at", "words", "marks", "bookmarks", "removed", "loop"];

export default {
  render({ model, el }) {
    const wants = (wish) => model.send(wish);
    const root = document.createElement("div");
    el.append(root);
    const timeline = createTimeline(root, model.get("label"), {
      seek: (at) => wants({ seek: at }),
      go: (k) => wants({ go: k }),
      add: (note) => wants({ add: note }),
      rename: (stop, note, written) => wants({ rename: [stop, note, written] }),
      remove: (stop, note) => wants({ remove: [stop, note] }),
      undo: () => wants({ undo: true }),
    });
    const draw = () => timeline.draw(Object.fromEntries(TRAITS.map((name) => [name, model.get(name)])));
    for (const name of TRAITS) model.on(`change:${name}`, draw);
    const said = (message) => {
      if (message?.write) timeline.write();
    };
    model.on("msg:custom", said);
    hearLate(model, askAgain).catch(console.error);
    draw();

    // On the way down and on the window: JupyterLab listens on the document, and would cut the cell at "x".
    const pressed = (event) => {
      const target = event.composedPath()[0];
      const box = root.closest(".lab-player-box");
      if (!box || !(target instanceof Element) || !box.contains(target)) return;
      if (target.closest(".lab-scene, .lab-chart")) return; // pictures keep their own keys, also from the notebook
      if (target.matches("input:not([type=range]), textarea")) {
        if (!root.contains(target) || !/^(Enter|Escape)$/.test(event.key)) return; // in a field one writes
        event.stopImmediatePropagation(); // JupyterLab would take both
        event.preventDefault();
        if (event.key === "Enter") target.form.requestSubmit();
        else target.dispatchEvent(new Event("lab-cancel"));
        return;
      }
      if (event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey || /^F\d+$/.test(event.key)) return;
      event.stopImmediatePropagation();
      if (target.matches("select")) return;
      if ((event.key === " " || event.key === "Enter") && target.closest("button, summary")) return;
      if (target === timeline.slider && /^(Arrow|Home|End|Page)/.test(event.key)) return;
      if (event.key === "b") timeline.write();
      else if (KEYS.includes(event.key)) wants({ key: event.key });
      else return;
      event.preventDefault();
    };
    window.addEventListener("keydown", pressed, true);
    return () => {
      window.removeEventListener("keydown", pressed, true);
      for (const name of TRAITS) model.off(`change:${name}`, draw);
      model.off("msg:custom", said);
      root.remove(); // the notebook keeps the element of a closed widget
    };
  },
};
