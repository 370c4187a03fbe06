// The page's side of widgets/panel/rows.py: the buttons of a cluster, and a row of them for each worker.
// A click says which process it means: the page may be behind, and the worker that it shows another one by then.

import { ownKeys } from "./keys.js";

function part(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function press(icon, words, title, action) {
  const classes = "jupyter-widgets jupyter-button widget-button lab-button";
  const button = part("button", { type: "button", class: classes, title, "aria-label": title },
    part("i", { class: `fa fa-${icon}` }), words);
  button.addEventListener("click", (event) => {
    if (event.detail < 2) action(); // the second click of a double one would be on what has come in its place
  });
  return button;
}

export default {
  render({ model, el }) {
    const whole = part("div", { class: "lab-workers-all" });
    const list = part("div", { role: "group", "aria-label": "workers of this cluster" });
    const root = part("div", { class: "lab-workers" }, whole, list);
    el.append(root);

    // The focus stays at the same button of the same row, though it may have another word.
    function refilled(box, made) {
      const place = [...box.querySelectorAll("button")].indexOf(document.activeElement);
      box.replaceChildren(...made);
      if (place >= 0) [...box.querySelectorAll("button")].at(place)?.focus();
    }
    function drawWhole() {
      const buttons = model.get("whole").map(([act, icon, words, title, disabled]) => {
        const button = press(icon, words, title, () => model.send({ act }));
        button.disabled = disabled;
        return button;
      });
      refilled(whole, buttons);
    }
    function row({ worker, pid, name, words, acts }) {
      const buttons = acts.map(([act, icon, label, title]) => press(icon, label, title, () => model.send({ act, worker, pid })));
      return part("div", { class: "lab-worker" }, part("span", { class: "lab-worker-name" }, name),
        part("span", { class: "lab-worker-words" }, words), ...buttons);
    }
    function drawList() {
      refilled(list, model.get("rows").map(row));
    }
    model.on("change:whole", drawWhole);
    model.on("change:rows", drawList);
    drawWhole();
    drawList();
    const forget = ownKeys(root);
    return () => {
      forget();
      model.off("change:whole", drawWhole);
      model.off("change:rows", drawList);
      root.remove();
    };
  },
};
