// The second click of a double one is not heard by a button that says something else by then, as Pause does: one who
// clicks twice on it wants a pause, and no more.
const ONCE = Symbol.for("autodiff-lab once"); // each widget brings a module of its own along

export function heedOnce() {
  if (globalThis[ONCE]) return;
  globalThis[ONCE] = true;
  const heard = (event) => {
    if (event.detail < 2 || !event.target.closest?.(".lab-once")) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  window.addEventListener("click", heard, true);
}
