// The page's side of widgets/live/spoken.py: a line that stays while its text changes, and says when it is of the past.
import { whenGone } from "./gone.js";
import { askAgain, hearLate } from "./late.js";
import { heedOnce } from "./once.js";

export default {
  render({ model, el }) {
    heedOnce(); // the buttons that this line speaks for
    const line = document.createElement("div");
    line.setAttribute("role", "status");
    line.setAttribute("aria-live", "polite");
    line.style.cssText = "min-height:1.4em;padding:2px 4px;white-space:pre-line";
    line.style.fontSize = "calc(var(--lab-type-ui, var(--jp-ui-font-size1, 13px)) * var(--lab-scale, 1))";
    line.style.color = "var(--jp-ui-font-color1, inherit)";
    let gone = false;
    const draw = () => {
      const text = model.get("text");
      line.textContent = gone && text ? `Before the kernel was restarted: ${text}` : text;
    };
    draw();
    model.on("change:text", draw);
    hearLate(model, askAgain).catch(console.error);
    const forget = whenGone(model, (ended) => {
      gone = ended;
      draw();
    });
    const hidesTwin = document.createElement("style"); // goes with this view, and the still words are back
    hidesTwin.textContent = `[data-lab-twin="${model.get("twin")}"] { display: none; }`;
    el.append(line, hidesTwin);
    model.send({ shown: true }); // to whom a reloaded page may have missed something
    return () => {
      model.off("change:text", draw);
      forget();
    };
  },
};
