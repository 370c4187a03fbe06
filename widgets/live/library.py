"""The JavaScript that all pictures share: read from `frontend/`, sent to the browser once per kernel, not per picture.

plotly.js (4.8 MB) comes from the installed package and travels gzipped, only when the first chart is made.
"""

from __future__ import annotations

import gzip
import threading
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from widgets.live.buttons import field_css
from widgets.pictures import theme

PICTURES = (
    "common.js", "look.js", "geometry.js", "camera.js", "rest.js", "nodes.js", "sight.js", "boxes.js", "edges.js",
    "far.js", "marks.js", "tokens.js", "minimap.js", "search.js", "tip.js", "walk.js", "news.js", "stage.js",
    "reach.js", "scene.js", "chart.js", "turns.js",
)  # fmt: skip
"""The files that draw scenes and charts, in the notebook and on a page."""


@cache
def bundle(*names: str) -> str:
    """Files of `frontend/` as one ES module: their imports of each other are dropped, because all stand in one scope.

    Lines of comments stay here, too: each widget brings its module along.

    Example:
        >>> "import" in bundle("patch.js", "host.js").split()
        False
    """
    folder = files("widgets") / "frontend"
    sources = [(folder / name).read_text(encoding="utf-8") for name in names]
    lines = [line for source in sources for line in source.splitlines()]
    lines = [line for line in lines if not line.startswith("import ") and not line.lstrip().startswith("//")]
    return "\n".join(lines) + "\n"


def pictures_code() -> str:
    """The module that draws scenes and charts."""
    return bundle(*PICTURES)


@cache
def style() -> str:
    """The style sheet, with the colours of `theme`."""
    folder = files("widgets") / "frontend"
    sheets = ((folder / name).read_text(encoding="utf-8") for name in ("lab.css", "scene.css"))
    return theme.css_variables() + "".join(sheets) + field_css()  # a list may stand above a picture without any button


@cache
def plotly_gz() -> bytes:
    """plotly.js of the installed plotly, gzipped."""
    source = (files("plotly") / "package_data" / "plotly.min.js").read_bytes()
    return gzip.compress(source, 6, mtime=0)


def plotly_version() -> str:
    """Version of the installed plotly (each brings its own plotly.js)."""
    import plotly

    return str(plotly.__version__)


class Library(anywidget.AnyWidget):
    """Holds code and style for the page; it draws nothing itself."""

    _esm = "export default {}"
    code = traitlets.Unicode().tag(sync=True)
    style = traitlets.Unicode().tag(sync=True)
    table = traitlets.Unicode().tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)


class PlotlyLibrary(anywidget.AnyWidget):
    """Holds plotly.js for the page."""

    _esm = "export default {}"
    code = traitlets.Bytes().tag(sync=True)
    version = traitlets.Unicode().tag(sync=True)

    def __init__(self, **traits: object) -> None:
        super().__init__(**traits)
        self.on_msg(self._received)

    def restored_state(self) -> dict[str, Any]:
        """What a reloaded page is told at once: all but the code, for which its first chart asks."""
        return dict(super().get_state([name for name in self.keys if name != "code"]))

    def _received(self, _widget: object, content: object, _buffers: object) -> None:
        if isinstance(content, dict) and "wants" in content:
            self.send_state("code")


_lock = threading.Lock()
_alive: dict[type, Any] = {}


def _single(kind: type, **traits: object) -> str:
    with _lock:
        widget = _alive.get(kind)
        if widget is None or widget.comm is None:  # None: somebody closed all widgets
            widget = _alive[kind] = kind(**traits)
        return f"anywidget:{widget.model_id}"


def library() -> str:
    """Reference to the library widget of this kernel, made at the first call."""
    code, css, table = pictures_code(), style(), theme.table()
    version = sha256(f"{code}\0{css}\0{table}".encode()).hexdigest()[:16]
    return _single(Library, code=code, style=css, table=table, version=version)


def plotly_library() -> str:
    """Reference to the widget that holds plotly.js, made at the first call."""
    return _single(PlotlyLibrary, code=plotly_gz(), version=plotly_version())
