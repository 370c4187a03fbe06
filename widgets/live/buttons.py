"""Buttons of players and controls: word, icon and tooltip, and a name that a screen reader can say.

An icon of ipywidgets is a letter of a font's private area that a style sheet puts into the button, so it becomes part
of the accessible name. Style sheets can say what their text is called; here it is called nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

ICONS: Final[Mapping[str, str]] = {
    "fast-backward": "f049", "step-backward": "f048", "play": "f04b", "pause": "f04c", "stop": "f04d",
    "fast-forward": "f050", "step-forward": "f051", "undo": "f0e2", "backward": "f04a", "forward": "f04e",
    "retweet": "f079", "bookmark": "f02e", "plus": "f067", "times": "f00d",
}  # fmt: skip
"""The icons that are used, with their letter in Font Awesome 4 and 5."""
WARNING: Final = "#FFA657"
INK: Final = "#000000"
"""Fill and text of a way out of trouble, in light and dark."""


def pixels(n: int) -> str:
    """A length of a control as CSS: so many pixels on a desk, more on a projector, as the text in it.

    Example:
        >>> pixels(32)
        'calc(32px * var(--lab-scale, 1))'
    """
    return f"calc({n}px * var(--lab-scale, 1))"


def button(name: str, icon: str, tooltip: str, action: Callable[[], object], *, style: str = "") -> Any:
    """An `ipw.Button` that says `name` and calls `action`.

    Args:
        icon: a key of ICONS.
        style: "primary" for the button that one presses first, "warning" for a way out of trouble.

    Example:
        >>> made = button("Step", "step-forward", "One stop forward", lambda: None)
        >>> made.description, made.icon
        ('Step', 'step-forward')
    """
    import ipywidgets as ipw

    layout = ipw.Layout(width="auto", min_height=pixels(32))
    made = ipw.Button(description=name, icon=icon, tooltip=tooltip, button_style=style, layout=layout)
    made.add_class("lab-button")
    made.on_click(lambda _: action())
    return made


def css() -> str:
    """What makes icons silent, and the focus of a button or a field visible on any background."""
    silent = "".join(
        f'.lab-button .fa-{icon}::before {{ content: "\\{letter}" / ""; }}\n' for icon, letter in ICONS.items()
    )
    # JupyterLab's own ring is a pale line that is lost on a projector, and its white on orange has a contrast of 2.
    ring = "outline: 2px solid var(--jp-ui-font-color0, #000) !important; outline-offset: -3px !important;"
    warning = f"background: {WARNING} !important; color: {INK} !important;"
    return f"{silent}.lab-button:focus-visible {{ {ring} }}\n.lab-button.mod-warning {{ {warning} }}\n{field_css()}"


def ringed(made: Any) -> Any:
    """A list, a text field or a choice of ipywidgets whose focus is as visible as that of a button.

    Example:
        >>> import ipywidgets as ipw
        >>> ringed(ipw.Text())._dom_classes
        ('lab-field',)
    """
    made.add_class("lab-field")
    return made


def field_css() -> str:
    """The ring around a list or a text field that has the focus: JupyterLab's own is a pale line of one pixel."""
    focused = ":is(.lab-field,.lab-breakpoints) :is(select,input):focus-visible"
    ring = "outline:2px solid var(--jp-ui-font-color0,#000)!important;outline-offset:1px!important"
    return f"{focused}{{{ring}}}\n:root[data-lab-theme=contrast] {focused}{{outline-width:3px!important}}\n"


def free_of_blocked_cell(button: Any) -> bool:
    """Let a button's clicks arrive although a cell blocks in `run.wait()`; False where this kernel has no such thing.

    ipykernel 7.4 sends a widget's messages to the shell that last wrote to its comm; without that memory the front
    end's own subshell is used, which no cell blocks. The attribute is private: where it is missing, clicks wait until
    the cell ends, and `await run` is the documented way anyhow. Call it after each update of the button by the kernel.

    Example:
        >>> free_of_blocked_cell(object())
        False
    """
    state = getattr(getattr(button, "comm", None), "__dict__", None)
    if not isinstance(state, dict) or "_reply_subshell_id" not in state:
        return False
    del state["_reply_subshell_id"]
    return True
