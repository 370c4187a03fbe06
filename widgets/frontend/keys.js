// Keys that are pressed within `root` are its own: JupyterLab listens on the document, takes letters, arrows and Enter for
// commands of the notebook, and would cut the cell at "x". Returns what ends that.
export function ownKeys(root, pressed = () => {}) {
  const heard = (event) => {
    const target = event.composedPath()[0];
    if (!(target instanceof Element) || !root.contains(target)) return;
    if (event.key === "Tab" || event.ctrlKey || event.metaKey || event.altKey || /^F\d+$/.test(event.key)) return;
    event.stopImmediatePropagation();
    pressed(event, target);
  };
  window.addEventListener("keydown", heard, true); // on the way down and on the window: before all others
  return () => window.removeEventListener("keydown", heard, true);
}
