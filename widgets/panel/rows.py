"""The buttons of the panel in the page, and what a click on one of them says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import anywidget
import traitlets

from widgets.live.library import bundle

ACTS: Final = ("kill", "stop", "slow", "go_on")
"""What can be done to a worker: methods of `Hands`."""
WHOLE: Final = ("start", "close")
"""What can be done to all of them."""


class Rows(anywidget.AnyWidget):
    """Buttons of the cluster and of each worker. What is shown are traits; a click comes to `wish(act, worker, pid)`.

    A message says which process the page showed, so that a click which comes late is not taken for another's.

    Example:
        >>> rows = Rows(lambda *said: print(*said))
        >>> rows._received(rows, {"act": "kill", "worker": "tcp://a", "pid": 7}, [])
        kill tcp://a 7
        >>> rows._received(rows, {"act": "format the disk", "worker": "tcp://a", "pid": 7}, [])
        >>> rows.close()
    """

    _esm = bundle("keys.js", "workers.js")
    _css = (files("widgets") / "frontend" / "workers.css").read_text(encoding="utf-8")

    whole: Any = traitlets.List().tag(sync=True)
    """[act, icon, words, title, disabled] of each button for all workers."""
    rows: Any = traitlets.List().tag(sync=True)
    """For each worker: its address, process, name and state in words, and [act, icon, words, title] of its buttons."""

    def __init__(self, wish: Callable[[str, str, int], object], **traits: object) -> None:
        super().__init__(**traits)
        self._wish = wish
        self.on_msg(self._received)

    def _received(self, _widget: object, content: object, _buffers: object) -> None:
        """A message of the page; what is not understood is left alone."""
        match content:
            case {"act": str(act), "worker": str(worker), "pid": int(pid)} if act in ACTS and pid > 0:
                self._wish(act, worker, pid)
            case {"act": str(act)} if act in WHOLE:
                self._wish(act, "", 0)


def whole_of(state: str, n_workers: int, *, is_own: bool) -> list[list[Any]]:
    """The buttons for all workers.

    Args:
        state: "none", "starting", "up" or "closing".
        is_own: whether the cluster was started here.
    """
    start = f"Start {n_workers} worker processes on this machine"
    close = "End all workers of this cluster" if is_own else "This cluster was started elsewhere, and ends there"
    return [
        ["start", "play", f"Start {n_workers} workers", start, state != "none"],
        ["close", "stop", "Stop the cluster", close, state != "up" or not is_own],
    ]


def row_of(number: int, worker: str, pid: int, rank: int | None, words: str, held: str) -> Mapping[str, Any]:
    """The row of one worker.

    Args:
        held: "" for one that is left alone, else "stopped" or "slowed".

    Example:
        >>> row = row_of(0, "tcp://a", 4711, 2, "runs", "stopped")
        >>> [label for _, _, label, _ in row["acts"]], row["acts"][0][3]
        (['Kill', 'Go on', 'Slow'], 'Kill worker 0, rank 2, process 4711')
    """
    who = f"worker {number}{f', rank {rank}' if rank is not None else ''}, process {pid}"
    acts = [["kill", "times", "Kill", f"Kill {who}"]]
    if held == "stopped":
        acts.append(["go_on", "play", "Go on", f"Let {who} go on"])
    else:
        acts.append(["stop", "pause", "Stop", f"Stop {who} where it is"])
    if held == "slowed":
        acts.append(["go_on", "forward", "Full speed", f"Let {who} run at full speed"])
    else:
        acts.append(["slow", "step-forward", "Slow", f"Let {who} run for a quarter of its time"])
    return {"worker": worker, "pid": pid, "name": f"worker {number}", "words": words, "acts": acts}
