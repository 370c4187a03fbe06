// The switch in a cell of a notebook: what is chosen there holds for all pictures of the page.
import { lookSwitch } from "./look.js";

const KEYS = { theme: "labTheme", size: "labSize" };

export default {
  render({ model, el }) {
    const root = document.documentElement.dataset;
    for (const [name, key] of Object.entries(KEYS)) {
      if (model.get(name)) root[key] = model.get(name);
      else delete root[key];
    }
    const lists = lookSwitch();
    el.append(lists);
    lists.addEventListener("change", () => {
      for (const [name, key] of Object.entries(KEYS)) model.set(name, root[key] ?? "");
      model.save_changes();
    });
  },
};
