"""The live side of a picture: a widget that holds what the browser shows and sends it only what changed.

The whole picture travels once, when the widget opens (so it appears even while its cell blocks); after that come
numbered patches. A gap in the numbers makes the browser ask for the whole; a reloaded page gets the current one.
"""

from __future__ import annotations

import json
import threading
import uuid
from collections.abc import Callable, Iterable
from typing import Any, ClassVar

import traitlets

from lab.errors import ViewError
from widgets.live.heard import Heard
from widgets.live.library import bundle, library, plotly_library
from widgets.live.pacer import PACER, Pacer
from widgets.live.restore import serve
from widgets.live.showing import failure
from widgets.pictures.chart import Chart
from widgets.pictures.patch import Json, diff
from widgets.pictures.scene import Scene
from widgets.pictures.tree import Picture, text_of, tree_of

SelectCallback = Callable[[str], object]
PointCallback = Callable[[int, int], object]


class Host(Heard):
    """What SceneHost and ChartHost share: the picture that was sent, the one that is wanted, and the numbers between.

    Args:
        picture: the first picture.
        text: what a screen reader says for it (the picture's caption if empty).
        height: pixels; 0 lets the picture decide.
        pacer: who decides when to send; tests bring their own.
    """

    _esm = bundle("patch.js", "gone.js", "late.js", "host.js")
    accepts: ClassVar[type] = Scene

    library = traitlets.Unicode().tag(sync=True)
    plotly = traitlets.Unicode().tag(sync=True)
    picture = traitlets.Unicode().tag(sync=True)
    """JSON of the picture as it was sent; what `get_state` says, not a trait to set."""
    seq = traitlets.Int().tag(sync=True)
    height = traitlets.Int(0).tag(sync=True)
    listens = traitlets.List(traitlets.Unicode()).tag(sync=True)
    """"fold", "pin", "find": what somebody here listens to; the page offers nothing else."""
    twin = traitlets.Unicode().tag(sync=True)
    """Mark of the still picture in the output before, hidden in the page as long as the live one is there."""

    def __init__(self, picture: Picture, text: str = "", *, height: int = 0, pacer: Pacer = PACER) -> None:
        self._guard = threading.RLock()
        self._pacer = pacer
        self._latest: tuple[Picture, dict[str, Json]] | None = None
        self._number = self._acked = 0
        self._whole = False
        self.keeps: object = None
        """Who draws this picture, kept while there is more to draw: nobody else may have it, though a page shows it."""
        self._on_select: list[SelectCallback] = []
        self._on_fold: list[SelectCallback] = []
        self._on_pin: list[SelectCallback] = []
        self._on_find: list[SelectCallback] = []
        self._on_point: list[PointCallback] = []
        self._sent = self._wanted = self._tree(picture, text)  # last: one that is refused is closed like any other
        serve()
        super().__init__(library=library(), plotly=self._needs(), height=height, twin=uuid.uuid4().hex)
        self.on_msg(self._received)

    def _needs(self) -> str:
        return ""

    def _tree(self, picture: Picture, text: str) -> dict[str, Json]:
        if not isinstance(picture, self.accepts):
            raise ViewError(f"{type(self).__name__} draws a {self.accepts.__name__}", given=type(picture).__name__)
        tree = tree_of(picture, self._latest)
        self._latest = picture, tree
        return {**tree, "text": text_of(text or picture.caption)}

    def show(self, picture: Picture, text: str = "") -> None:
        """Show `picture` from now on; from any thread, as often as you like: the latest wins.

        Raises:
            ViewError: a picture of the wrong kind, or one that contradicts itself.
        """
        tree = self._tree(picture, text)
        with self._guard:
            self._wanted = tree
        self._pacer.request(self)

    # --- what the pacer asks ---

    @property
    def ahead(self) -> int:
        """Messages sent and not yet acknowledged by a browser."""
        return self._number - self._acked

    def send_now(self) -> int:
        """Send what changed since the last time; called by the pacer. Returns the bytes sent."""
        with self._guard:
            if self.comm is None:
                return 0
            whole, self._whole = self._whole, False
            ops = diff(self._sent, self._wanted)
            if not (ops or whole):
                return 0
            body = _json(self._wanted if whole else ops)
            self._sent = self._wanted
            self._number += 1
            self.send({"seq": self._number, "whole": whole}, buffers=[body])
            return len(body)

    def send_failed(self, why: Exception) -> None:
        """The picture could not be sent: send why, once; if that fails too, nothing more can be said."""
        with self._guard:
            said = f"This picture could not be sent to the page: {type(why).__name__}: {why}"
            if self.comm is None or self._wanted.get("text") == said:
                return
            picture = failure(ViewError("a picture could not be sent", given=f"{type(why).__name__}: {why}",
                                        hint="only this picture is affected"), chart=self.accepts is Chart)  # fmt: skip
            self._wanted = self._tree(picture, said)
        self._pacer.request(self)

    # --- what the browser says ---

    def get_state(self, key: str | Iterable[str] | None = None, drop_defaults: bool = False) -> dict[str, Any]:
        """The traits, with the picture as it is now: a reloaded page asks this."""
        with self._guard:
            state: dict[str, Any] = super().get_state(key, drop_defaults)
            if "picture" in state:
                state["picture"] = _json(self._sent).decode()
            if "seq" in state:
                state["seq"] = self._number
            return state

    def restored_state(self) -> dict[str, Any]:
        """What a reloaded page is told at once: all but the picture, for which each place asks by itself."""
        with self._guard:
            kept = [name for name in self.keys if name != "picture"]
            return {**super().get_state(kept), "seq": self._number, "picture": ""}

    def _received(self, _widget: object, content: object, _buffers: object) -> None:
        """A message of the page; what is not understood is left alone, since a page may be of another version."""
        if not isinstance(content, dict):
            return
        if isinstance(content.get("ack"), int):
            self._acked = max(self._acked, min(content["ack"], self._number))
            self._pacer.acknowledged()
        if "resync" in content:
            self._whole, self._acked = True, self._number  # somebody is there, and waits
            self._pacer.request(self)
        for said, callbacks in (("select", self._on_select), ("fold", self._on_fold), ("pin", self._on_pin)):
            if isinstance(content.get(said), str):
                self._chosen(content[said], callbacks)
        if isinstance(content.get("find"), str):
            for find in tuple(self._on_find):
                find(content["find"][:200])
        point = content.get("point")
        if isinstance(point, list) and len(point) == 2 and all(isinstance(i, int) for i in point):
            for pointed in tuple(self._on_point):
                pointed(point[0], point[1])

    def _chosen(self, key: str, callbacks: list[SelectCallback]) -> None:
        """Tell the callbacks, if there is such a node."""
        with self._guard:
            known = key in self._sent.get("nodes", ()) or key in self._wanted.get("nodes", ())
        if known:
            for callback in tuple(callbacks):
                callback(key[1:])

    def close(self) -> None:
        """End the widget and its layout (ipywidgets would leave that behind)."""
        layout = self.layout
        for callbacks in (self._on_select, self._on_fold, self._on_pin, self._on_find, self._on_point):
            callbacks.clear()
        self.keeps = None
        super().close()
        if layout is not None:
            layout.close()

    def dispose(self) -> None:
        """Same as `close`: the picture goes, in the page and in the kernel."""
        self.close()


class SceneHost(Host):
    """A live Scene.

    Example:
        >>> from widgets.pictures.scene import Node
        >>> host = SceneHost(Scene((Node("a", 0, 0, 40, 20, "x"),), caption="one node"))
        >>> host.show(Scene((Node("a", 9, 0, 40, 20, "x"),)))
        >>> host.dispose()
    """

    accepts = Scene

    def on_select(self, callback: SelectCallback) -> None:
        """Call `callback(node_id)` when a node is clicked, or chosen with Enter."""
        self._on_select.append(callback)

    def _listen(self, what: str) -> None:
        if what not in self.listens:
            self.listens = [*self.listens, what]

    def on_fold(self, callback: SelectCallback) -> None:
        """Call `callback(node_id)` when a node shall be opened or closed; see `Node.fold`."""
        self._on_fold.append(callback)
        self._listen("fold")

    def on_pin(self, callback: SelectCallback) -> None:
        """Call `callback(node_id)` when a node shall be pinned, or not any more."""
        self._on_pin.append(callback)
        self._listen("pin")

    def on_find(self, callback: SelectCallback) -> None:
        """Call `callback(text)` when a reader looks for nodes, "" when not any more; a page then has a search field."""
        self._on_find.append(callback)
        self._listen("find")


class ChartHost(Host):
    """A live Chart; plotly.js is sent once per kernel, with the first of them."""

    accepts = Chart

    def _needs(self) -> str:
        return plotly_library()

    def on_point(self, callback: PointCallback) -> None:
        """Call `callback(trace, point)` when a point is clicked, or chosen with Enter."""
        self._on_point.append(callback)


def _json(value: Json) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
