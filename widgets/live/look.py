"""How all pictures of a notebook look: a theme and a size, chosen in a cell, by the presenter or by who needs it."""

from __future__ import annotations

import anywidget
import traitlets

from lab import checks
from lab.errors import ViewError
from widgets.live.library import bundle

LOOKS = {"theme": ("", "light", "dark", "contrast"), "size": ("", "projector")}
"""What can be chosen; "" follows the notebook and the system."""


class Look(anywidget.AnyWidget):
    """Two lists that choose how the pictures of this notebook look. The last line of a cell displays it.

    Args:
        theme: "light", "dark", "contrast" (black on white, or white on black in a dark notebook); "" for the
            notebook's own.
        size: "projector" for larger type and lines; "" for the usual size.

    Raises:
        ViewError: there is no such theme or size.

    Example:
        >>> Look(size="projector").size
        'projector'
        >>> Look("neon")
        Traceback (most recent call last):
        lab.errors.ViewError: pictures have no such theme
        given: 'neon'
        hint:  one of '', 'light', 'dark', 'contrast'
    """

    _esm = bundle("common.js", "look.js", "look_cell.js")
    _css = """
.lab-look {
  display: flex; flex-wrap: wrap; gap: 6px 16px; color: var(--jp-ui-font-color1, #333);
  font-size: calc(13px * var(--lab-scale, 1));
}
.lab-look label { display: flex; align-items: center; gap: 6px; }
.lab-look select {
  min-height: calc(30px * var(--lab-scale, 1)); font: inherit; color: inherit;
  background: var(--jp-layout-color1, #fff);
}
.lab-look select:focus-visible { outline: 2px solid var(--jp-ui-font-color0, #000); outline-offset: 1px; }
"""
    theme = traitlets.Unicode().tag(sync=True)
    size = traitlets.Unicode().tag(sync=True)

    def __init__(self, theme: str = "", *, size: str = "") -> None:
        for name, chosen in (("theme", theme), ("size", size)):
            checks.choice(f"pictures have no such {name}", chosen, LOOKS[name], error=ViewError)
        super().__init__(theme=theme, size=size)
