"""ClusterPanel: start, kill, stop, slow and end worker processes by click, and see what they are and do.

The buttons work while a cell trains: a click arrives in a thread that no cell blocks, and sends a signal. What takes
longer, starting and ending a cluster, is done in a thread of its own.
"""

from __future__ import annotations

import contextvars
import threading
import uuid
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from lab.checks import whole
from lab.errors import LabError, ViewError
from lab.events.event import ORIGIN, Origin
from lab.parallel import Cluster
from lab.parallel.cluster.dask_side.client import ClientSide
from lab.parallel.news.roll_call import RollCall
from lab.words import counted
from widgets.live.buttons import free_of_blocked_cell
from widgets.live.showing import close, display_twice
from widgets.panel.heard import RUN, PanelView
from widgets.panel.rows import Rows, row_of, whole_of
from widgets.view import wording_of
from widgets.views.cluster.gang import Gang

LOOKS = 1.0
"""Seconds between two looks at the workers, which tell of those that no launch looks at."""
STATES: Mapping[str, str] = {
    "none": "No workers", "starting": "The workers start", "up": "The cluster is up", "closing": "The workers end",
}  # fmt: skip


class ClusterPanel:
    """Buttons that act on the workers of a cluster, above their picture. The last line of a cell displays it.

    Only processes that this notebook started can be killed or stopped; a click that was meant for a worker that has
    been replaced meanwhile touches nobody.

    Args:
        cluster: whose workers; None begins without, with a button that starts some.
        n_workers: how many that button starts.

    Attributes:
        cluster: the Cluster, for `lab.fit(..., on=DataParallel(panel.cluster))`; None while there is none.
        view: the picture.

    Raises:
        ViewError: that is no cluster.
    """

    def __init__(self, cluster: Cluster | None = None, *, n_workers: int = 4) -> None:
        if cluster is not None and not isinstance(cluster, Cluster):
            raise ViewError("the panel is of a cluster", given=wording_of(cluster),
                            hint="with lab.parallel.Cluster(4) as cluster: ClusterPanel(cluster)")  # fmt: skip
        self.cluster, self.n_workers = cluster, whole("n_workers", n_workers, least=1, hint="4 is usual")
        self._addresses: set[str] = set()
        self.view = PanelView(self._addresses)
        self._state, self._message = "none" if cluster is None else "up", ""
        self._widget: Any = None
        self._rows: Rows | None = None
        self._spoken: Any = None
        self._lock, self._ended = threading.RLock(), threading.Event()
        if cluster is not None:
            self._attend(cluster)

    # --- the cluster ---

    def start(self) -> None:
        """Start workers, and return when they are there; nothing if there are some."""
        with self._lock:
            if self._state != "none":
                return
            self._state = "starting"
        try:
            self.cluster = Cluster(self.n_workers)
            self._state = "up"
            self._attend(self.cluster)
        finally:
            self._state = "none" if self.cluster is None else "up"

    def close(self) -> None:
        """End the workers, if they were started here."""
        with self._lock:
            cluster = self.cluster
            if cluster is None or self._state != "up" or not cluster.n_started:
                return
            self._state = "closing"
        try:
            cluster.close()
        finally:
            self.cluster, self._state = None, "none"

    def _attend(self, cluster: Cluster) -> None:
        """Look at its workers as long as it is there; in a thread of its own, for the scheduler may be slow."""
        self._addresses |= set(cluster.processes())
        work = contextvars.copy_context().run
        threading.Thread(target=work, args=(self._look, cluster), name="cluster panel", daemon=True).start()

    def _look(self, cluster: Cluster) -> None:
        ORIGIN.set(Origin(0, RUN))
        side = ClientSide(cluster.client)

        def seen() -> list[dict[str, Any]]:
            processes, found = cluster.processes(), side.look()
            self._addresses |= {fields["worker"] for fields in found}
            return [{**fields, "pid": processes.get(fields["worker"], fields["pid"])} for fields in found]

        call = RollCall(seen)
        while self.cluster is cluster and self._state == "up" and not self._ended.is_set():
            call()
            self._ended.wait(LOOKS)

    # --- clicks ---

    def _wished(self, act: str, worker: str, pid: int) -> None:
        if act in ("start", "close"):
            action = {"start": self.start, "close": self.close}[act]
            work = contextvars.copy_context().run
            threading.Thread(target=work, args=(self._ask, action), name=f"panel {act}", daemon=True).start()
        elif (cluster := self.cluster) is not None:
            self._ask(lambda: getattr(cluster.hands, act)(worker, pid=pid))
        self.refresh()

    def _ask(self, action: Callable[[], object]) -> None:
        """Do what a click asks; what is refused is shown, never raised into the page."""
        self._message = ""
        try:
            action()
        except LabError as why:
            self._message = str(why)
        self.refresh()

    # --- what is shown ---

    @property
    def widget(self) -> Any:
        """The panel as an ipywidgets DOMWidget."""
        with self._lock:
            if self._widget is None:
                self._widget = self._build()
        return self._widget

    def _build(self) -> Any:
        import ipywidgets as ipw

        from widgets.live import pacer
        from widgets.live.spoken import Spoken

        self._rows = Rows(self._wished)
        self._spoken = Spoken(twin=uuid.uuid4().hex)
        self._spoken.on_msg(self._seen)
        self.refresh()
        picture = self.view.widget
        self.view.host.keeps = self  # what a page shows follows, though no variable has it
        pacer.every(self.refresh)
        return ipw.VBox([self._rows, self._spoken, picture])

    def refresh(self) -> None:
        """Show what is now; sends only what changed."""
        gang = self.view.now
        with self._lock:
            if self._rows is None:
                return
            rows = self._worker_rows(gang)
            own = self.cluster is None or self.cluster.n_started > 0
            buttons = whole_of(self._state, self.n_workers, is_own=own)
            for widget, values in ((self._rows, {"rows": rows, "whole": buttons}), (self._spoken, {"text": self.text})):
                changed = {name: value for name, value in values.items() if getattr(widget, name) != value}
                for name, value in changed.items():
                    setattr(widget, name, value)
                if changed:
                    free_of_blocked_cell(widget)

    def _worker_rows(self, gang: Gang) -> list[Mapping[str, Any]]:
        """A row for each process that can be struck; one that has gone has none."""
        cluster, rows = self.cluster, list[Mapping[str, Any]]()
        if cluster is None or self._state != "up":
            return rows
        for worker, pid in cluster.processes().items():
            self._addresses.add(worker)
            number = list(gang.workers).index(worker) if worker in gang.workers else len(gang.workers) + len(rows)
            held, slowed = gang.rank_on(worker), cluster.hands.state_of(worker)
            by_hand = "" if slowed is None else "slowed" if slowed.share else "stopped"
            rank = held[0] if held else None
            rows.append(row_of(number, worker, pid, rank, self._words(gang, worker, by_hand), by_hand))
        return sorted(rows, key=lambda row: int(row["name"].split()[1]))

    @staticmethod
    def _words(gang: Gang, worker: str, by_hand: str) -> str:
        """What a worker is and does, in few words."""
        held, seen = gang.rank_on(worker), gang.workers.get(worker)
        if by_hand or seen is None:
            return by_hand or "starting"
        if held is None or held[1].state != "running":
            return seen.state if held is None else f"rank {held[0]} {held[1].state}"
        call = f", in {held[1].call}" if held[1].call else ", computes"
        return f"rank {held[0]}{call}{', replaced' * held[1].replaces}"

    @property
    def text(self) -> str:
        """The state in words: what happened last, or why a click was refused."""
        gang = self.view.now
        state = STATES[self._state]
        n = len(self.cluster.processes()) if self.cluster is not None and self._state == "up" else 0
        said = f"{state}: {counted(n, 'worker')}." if n else f"{state}."
        return "\n".join(filter(None, (f"{said} {gang.last}".strip(), self._message)))

    def _seen(self, _widget: object, content: object, _buffers: object) -> None:
        """A page shows the panel: it is told again what it may have missed."""
        rows = self._rows
        if isinstance(content, dict) and content.get("shown") and rows is not None:
            rows.send_state({"rows", "whole"})
            free_of_blocked_cell(rows)

    def tick_failed(self, why: BaseException) -> None:
        """It is not called any more because it raised: say so where its words are."""
        if self._spoken is not None:
            self._spoken.text = f"This panel stopped following its cluster: {type(why).__name__}: {why}"

    def export(self, path: str | Path, *, theme: str | None = None, scale: float | None = None) -> Path:
        """Write the picture as it is to a file without buttons; arguments as of `View.export`."""
        return self.view.export(path, theme=theme, scale=scale)

    def dispose(self) -> None:
        """Take the panel out of the page and the kernel; the workers go on, and run as they like."""
        from widgets.live import pacer

        pacer.forget(self.refresh)
        self._ended.set()
        if self.cluster is not None:
            self.cluster.hands.let_all_go_on()
        with self._lock:
            widget, self._widget, self._rows = self._widget, None, None
        self.view.dispose()
        self.view.end()
        if widget is not None:
            close(widget)

    def __repr__(self) -> str:
        return f"ClusterPanel({self.text})"

    def _ipython_display_(self) -> None:
        display_twice(self.widget, self.view.host, self.view.svg(), self.text)
