// The page's side of widgets/controls/breakpoints.py: a kind, its bound or place, Add, and a button for each that is set.
// A click goes to the kernel together with the text that it is about: as two messages they may change places.

import { ownKeys } from "./keys.js";

function part(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  element.append(...children);
  return element;
}

function press(icon, words, title, action) {
  const classes = "jupyter-widgets jupyter-button widget-button lab-button";
  const element = part("button", { type: "button", class: classes, title }, part("i", { class: `fa fa-${icon}` }), words);
  element.addEventListener("click", (event) => {
    if (event.detail < 2) action(); // the second click of a double one would be on what has come in its place
  });
  return element;
}

let rows = 0;

function labelled(kind, words, field) {
  field.id = `lab-break-${(rows += 1)}`;
  const label = part("label", { class: "widget-label", for: field.id }, words);
  return part("div", { class: `jupyter-widgets widget-inline-hbox ${kind}` }, label, field);
}

export default {
  render({ model, el }) {
    const kind = part("select", { title: "Where the run shall pause by itself" });
    const field = part("input", { type: "text", title: "The bound, or the place" });
    const hint = part("span", { class: "lab-break-hint" });
    const list = part("span", { class: "lab-break-list", role: "group", "aria-label": "breakpoints that are set" });
    const add = press("plus", "Add", "Pause by itself there, from the next step on", () => model.send({ add: [kind.value, field.value] }));
    const root = part("div", { class: "lab-breakpoints" },
      labelled("widget-dropdown", "Break on", kind), labelled("widget-text", model.get("field"), field), hint, add, list);
    el.append(root);

    const hints = new Map(model.get("kinds"));
    kind.replaceChildren(...[...hints.keys()].map((words) => part("option", { value: words }, words)));
    const hinted = () => (hint.textContent = hints.get(kind.value) || "needs none");
    kind.addEventListener("change", hinted);
    hinted();

    function remover([name, words]) {
      const made = press("times", words, `Take this breakpoint away: ${name}`, () => model.send({ remove: name }));
      made.dataset.name = name;
      return made;
    }

    // What stays keeps its button; the focus of one that goes is at the next one, or at Add.
    function drawList() {
      const wanted = model.get("listed");
      const old = [...list.children];
      const lost = old.indexOf(document.activeElement);
      const kept = new Map(old.map((button) => [button.dataset.name, button]));
      list.replaceChildren(...wanted.map(([name, words]) => {
        const known = kept.get(name);
        if (!known) return remover([name, words]);
        known.lastChild.textContent = words;
        return known;
      }));
      if (lost < 0) return;
      const after = old.slice(lost).find((button) => button.isConnected);
      (after ?? list.lastElementChild ?? add).focus();
    }
    function drawEnd() {
      for (const control of [kind, field, add]) control.disabled = model.get("ended");
    }
    const said = (message) => {
      if (message?.added === field.value) field.value = ""; // unless something else was written meanwhile
    };
    model.on("change:listed", drawList);
    model.on("change:ended", drawEnd);
    model.on("msg:custom", said);
    drawList();
    drawEnd();

    const forget = ownKeys(root, (event, target) => {
      if (target === field && event.key === "Enter") add.click();
    });
    return () => {
      forget();
      model.off("change:listed", drawList);
      model.off("change:ended", drawEnd);
      model.off("msg:custom", said);
      root.remove();
    };
  },
};
