// The page's side of the bar of widgets/live/slider.py: how much is done, drawn and said.
export default {
  render({ model, el }) {
    const bar = document.createElement("div");
    const done = document.createElement("div");
    bar.className = "lab-progress";
    bar.setAttribute("role", "progressbar");
    bar.setAttribute("aria-label", model.get("description"));
    bar.append(done);
    el.append(bar);
    const follow = () => {
      const percent = Math.round(100 * model.get("value"));
      done.style.width = `${100 * model.get("value")}%`;
      bar.dataset.state = model.get("bar_style");
      bar.setAttribute("aria-valuenow", percent);
      bar.setAttribute("aria-valuetext", `${percent} %`);
    };
    for (const name of ["value", "bar_style"]) model.on(`change:${name}`, follow);
    follow();
    return () => {
      for (const name of ["value", "bar_style"]) model.off(`change:${name}`, follow);
      bar.remove();
    };
  },
};
