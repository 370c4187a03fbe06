// How large and in which colours: what the reader chose, what the notebook or the system prefers, and the switch for both.
import { html, table } from "./common.js";

const SYSTEM = ["(prefers-color-scheme: dark)", "(prefers-contrast: more)"];

function isDark() {
  const jupyter = document.body.dataset.jpThemeLight;
  if (jupyter !== undefined) return jupyter === "false";
  return matchMedia(SYSTEM[0]).matches;
}

// A key of the colour tables. The reader's choice stands in `data-lab-theme` of the root element: "light", "dark",
// "contrast" (black on white, or white on black where all else is dark) or "contrast-dark".
export function themeMode() {
  const own = document.documentElement.dataset.labTheme;
  if (own !== "contrast" && Object.hasOwn(table().colours, own ?? "")) return own;
  const strong = own === "contrast" || matchMedia(SYSTEM[1]).matches || /high contrast/i.test(document.body.dataset.jpThemeName ?? "");
  if (strong) return isDark() ? "contrast-dark" : "contrast";
  return isDark() ? "dark" : "light";
}

// "normal" or "projector".
export function sizeMode() {
  const own = document.documentElement.dataset.labSize;
  return Object.hasOwn(table().sizes, own ?? "") ? own : "normal";
}

// By how much type and lines are larger than on a desk.
export function magnified() {
  return table().sizes[sizeMode()];
}

// Keeps `data-lab-theme` and `data-lab-size` of the element right and calls back at each change; returns the way to stop.
export function followTheme(element, changed) {
  const apply = () => {
    const [mode, size] = [themeMode(), sizeMode()];
    if (element.dataset.labTheme === mode && element.dataset.labSize === size) return;
    element.dataset.labTheme = mode;
    element.dataset.labSize = size;
    changed(mode);
  };
  const observer = new MutationObserver(apply);
  observer.observe(document.body, { attributes: true, attributeFilter: ["data-jp-theme-light", "data-jp-theme-name"] });
  observer.observe(document.documentElement, { attributes: true, attributeFilter: ["data-lab-theme", "data-lab-size"] });
  const system = SYSTEM.map((query) => matchMedia(query));
  for (const query of system) query.addEventListener("change", apply);
  apply();
  return () => {
    observer.disconnect();
    for (const query of system) query.removeEventListener("change", apply);
  };
}

const CHOICES = {
  theme: [["", "as the system"], ["light", "light"], ["dark", "dark"], ["contrast", "high contrast"]],
  size: [["", "normal"], ["projector", "projector"]],
};

// Two lists with a label each: they set what `themeMode` and `sizeMode` read.
export function lookSwitch() {
  const lists = Object.entries(CHOICES).map(([name, choices]) => {
    const key = name === "theme" ? "labTheme" : "labSize";
    const select = html("select", { "aria-label": name, title: `${name} of all pictures on this page` }, ...choices.map(([value, words]) => html("option", { value }, words)));
    select.value = document.documentElement.dataset[key] ?? "";
    select.addEventListener("change", () => {
      if (select.value) document.documentElement.dataset[key] = select.value;
      else delete document.documentElement.dataset[key];
    });
    return html("label", {}, name, select);
  });
  return html("div", { class: "lab-look", role: "group", "aria-label": "how it looks" }, ...lists);
}
