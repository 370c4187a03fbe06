"""Timeline: the slider of a player with marks, bookmarks and a loop, and the keys of the whole player."""

from __future__ import annotations

from collections.abc import Callable
from importlib.resources import files
from typing import Any

import traitlets

from widgets.live.heard import Heard
from widgets.live.library import bundle

Wish = Callable[[str, Any], object]


def _style() -> str:
    return (files("widgets") / "frontend" / "timeline.css").read_text(encoding="utf-8")


class Timeline(Heard):
    """What is shown are traits; what the reader wants comes to `wish(name, value)`.

    Example:
        >>> line = Timeline(lambda name, value: print(name, value), n=7)
        >>> line._received(line, {"seek": 3}, [])
        seek 3
        >>> line.close()
    """

    _esm = bundle("timeline.js", "late.js", "timeline_host.js")
    _css = _style()

    label = traitlets.Unicode("Moment").tag(sync=True)
    n = traitlets.Int(1).tag(sync=True)
    at = traitlets.Int(0).tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    marks: Any = traitlets.List().tag(sync=True)
    """[stop, name] of each landmark."""
    bookmarks: Any = traitlets.List().tag(sync=True)
    """[stop, note] of each."""
    removed: Any = traitlets.List().tag(sync=True)
    """[stop, note] of the one that was removed last, as long as it can be put back."""
    loop: Any = traitlets.List().tag(sync=True)
    """First and last stop; the first alone while the reader marks a loop; empty for none."""

    def __init__(self, wish: Wish, **traits: object) -> None:
        super().__init__(**traits)
        self._wish = wish
        self.on_msg(self._received)

    def write(self) -> None:
        """Let the reader write the note of a new bookmark."""
        self.send({"write": True})

    def _received(self, _widget: object, content: object, _buffers: object) -> None:
        """A message of the page; what is not understood is left alone."""
        if not isinstance(content, dict) or len(content) != 1:
            return
        [(name, value)] = content.items()
        match name, value:
            case ("seek" | "go", int(_)) | ("add" | "key", str(_)) | ("undo", True):
                self._wish(name, value)
            case ("remove", [int(_), str(_)]) | ("rename", [int(_), str(_), str(_)]):
                self._wish(name, value)

    def close(self) -> None:
        """End the widget and its layout (ipywidgets would leave that behind)."""
        layout = self.layout
        super().close()
        if layout is not None:
            layout.close()
