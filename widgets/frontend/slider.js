// The page's side of widgets/live/slider.py: a slider that says the value, and not where on its scale that is.
import { ownKeys } from "./keys.js";

let sliders = 0;

export default {
  render({ model, el }) {
    const log = model.get("log");
    const input = document.createElement("input");
    const label = document.createElement("label");
    const readout = document.createElement("span");
    const root = document.createElement("div");
    Object.assign(input, { type: "range", min: model.get("min"), max: model.get("max"), step: model.get("step") });
    Object.assign(input, { id: `lab-slider-${(sliders += 1)}`, title: model.get("tooltip") });
    label.htmlFor = input.id;
    label.textContent = model.get("description");
    readout.setAttribute("aria-hidden", "true"); // the slider says it
    root.className = "lab-slider";
    root.append(label, input, readout);
    el.append(root);

    const value = () => (log ? 10 ** Number(input.value) : Number(input.value));
    const say = (number) => {
      const words = String(Number(number.toPrecision(2))).replace("-", "\u2212");
      input.setAttribute("aria-valuetext", words);
      readout.textContent = words;
    };
    const follow = () => {
      const number = model.get("value");
      input.value = log ? Math.log10(number) : number;
      input.disabled = model.get("disabled");
      say(number);
    };
    input.addEventListener("input", () => say(value()));
    input.addEventListener("change", () => {
      model.set("value", value());
      model.save_changes();
    });
    for (const name of ["value", "disabled"]) model.on(`change:${name}`, follow);
    follow();
    const forget = ownKeys(root);
    return () => {
      forget();
      for (const name of ["value", "disabled"]) model.off(`change:${name}`, follow);
      root.remove();
    };
  },
};
