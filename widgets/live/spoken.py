"""A line of text that screen readers speak when it changes: an aria-live region that stays while its text changes.

An `ipw.HTML` replaces its whole content, region included, and then most readers say nothing.
"""

from __future__ import annotations

import anywidget
import traitlets

from widgets.live.buttons import css


class Spoken(anywidget.AnyWidget):
    """One line of text.

    Example:
        >>> line = Spoken(text="3 of 7")
        >>> line.text = "4 of 7"
        >>> line.close()
    """

    _esm = """
    export default {
      render({ model, el }) {
        const line = document.createElement("div");
        line.setAttribute("role", "status");
        line.setAttribute("aria-live", "polite");
        line.style.cssText = "min-height:1.4em;padding:2px 4px;white-space:pre-line";
        line.style.fontSize = "calc(var(--lab-type-ui, var(--jp-ui-font-size1, 13px)) * var(--lab-scale, 1))";
        line.style.color = "var(--jp-ui-font-color1, inherit)";
        const draw = () => { line.textContent = model.get("text"); };
        draw();
        model.on("change:text", draw);
        const hidesTwin = document.createElement("style"); // goes with this view, and the still words are back
        hidesTwin.textContent = `[data-lab-twin="${model.get("twin")}"] { display: none; }`;
        el.append(line, hidesTwin);
        return () => model.off("change:text", draw);
      },
    };
    """
    _css = css()  # the controls that this line speaks for stand beside it
    text = traitlets.Unicode().tag(sync=True)
    twin = traitlets.Unicode("none").tag(sync=True)
    """Mark of still words in an output before, hidden in the page as long as this line is there."""
