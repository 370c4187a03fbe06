// Whether the kernel of a widget was restarted: then nothing that it shows is news any more.

// Call `note(gone)` whenever it may have changed; returns what stops that. Not said by any public name: the manager marks
// the models of a kernel that ended, and tells them so. The layout is a model that can be asked; both have been told
// when this runs.
export function whenGone(model, note) {
  const told = () => setTimeout(() => note(model.get("layout")?.comm_live === false));
  model.on("comm_live_update", told);
  return () => model.off("comm_live_update", told);
}
