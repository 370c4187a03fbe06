"""The row of controls in which breakpoints of a run are set, seen and taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any, Final

import anywidget
import traitlets

from lab.errors import ArgumentError
from widgets.live.buttons import free_of_blocked_cell
from widgets.live.library import bundle
from widgets.pictures.theme import MINUS

KINDS: Final[Mapping[str, str]] = {
    "loss above": "loss_above", "gradient norm above": "gradient_above", "first nan or inf": "nonfinite",
    "operation or module": "at", "backward through": "backward",
}  # fmt: skip
"""What a learner chooses, and what it is called in `Run.break_on`."""
EVERYWHERE: Final = ("loss above", "gradient norm above")
"""What runs whose operations run on workers can break on, too."""
HINTS: Final[Mapping[str, str]] = {
    "loss above": "a number, as 2.5", "gradient norm above": "a number, as 10", "first nan or inf": "",
    "operation or module": "as matmul, or 0, or a node's number", "backward through": "as matmul, or 0",
}  # fmt: skip
"""What to fill in for each, said beside the field; nothing for what needs none."""


class Row(anywidget.AnyWidget):
    """The row in the page. What is set are traits; what the reader wants comes to `wish(name, value)`.

    A message says both that Add was pressed and what was written then: a field and a button of their own would send
    two, which a kernel takes in threads of their own, and the click may come first.

    Example:
        >>> row = Row(lambda name, value: print(name, value), field="Bound")
        >>> row._received(row, {"add": ["loss above", "2.5"]}, [])
        add ['loss above', '2.5']
        >>> row.close()
    """

    _esm = bundle("keys.js", "breakpoints.js")
    _css = (files("widgets") / "frontend" / "breakpoints.css").read_text(encoding="utf-8")

    field = traitlets.Unicode().tag(sync=True)
    kinds: Any = traitlets.List().tag(sync=True)
    """[kind, hint] of each that can be chosen."""
    listed: Any = traitlets.List().tag(sync=True)
    """[name, words] of each breakpoint that is set."""
    ended = traitlets.Bool(False).tag(sync=True)

    def __init__(self, wish: Callable[[str, Any], object], **traits: object) -> None:
        super().__init__(**traits)
        self._wish = wish
        self.on_msg(self._received)

    def _received(self, _widget: object, content: object, _buffers: object) -> None:
        """A message of the page; what is not understood is left alone."""
        match content:
            case {"add": [str(), str()] as value}:
                self._wish("add", value)
            case {"remove": str(name)}:
                self._wish("remove", name)


class Breakpoints:
    """Choose a kind, give its bound or place, add; each one that is set has a button that takes it away.

    Args:
        run: a training run.
        ask: carries out what a click asks, and shows what that says or the run refuses.
    """

    def __init__(self, run: Any, ask: Callable[[Callable[[], object]], None]) -> None:
        self.run, self._ask = run, ask
        kinds = [kind for kind in KINDS if kind in EVERYWHERE or "op" in run.units]
        name = "Bound" if len(kinds) == len(EVERYWHERE) else "Bound or place"
        self.widget = Row(self._wished, field=name, kinds=[[kind, HINTS[kind]] for kind in kinds])

    def _wished(self, name: str, value: Any) -> None:
        if name == "add" and value[0] in KINDS:
            self._ask(lambda: self._add(*value))
        elif name == "remove" and value in self.run.breakpoints:  # a page may know one that has just gone
            self._ask(lambda: self.run.clear_breakpoint(value))

    def _add(self, kind: str, text: str) -> str:
        """Set one; returns what is to be said of it."""
        given, name, before = text.strip(), KINDS[kind], self.run.breakpoints
        if HINTS[kind] and not given:
            raise ArgumentError("a breakpoint needs a bound or a place", given="nothing", hint=HINTS[kind])
        wanted: dict[str, Any] = {name: True if name == "nonfinite" else given}
        if name == "backward":
            wanted = {"at": given, "backward": True}
        elif kind in EVERYWHERE:
            wanted = {name: _number(given)}
        made = self.run.break_on(**wanted)
        self.widget.send({"added": text})
        gone = [known for known in before if known not in self.run.breakpoints]
        return f"{_worded(made)} takes the place of {_worded(gone[0])}" if gone else ""

    def refresh(self, *, ended: bool) -> None:
        """Show the breakpoints that the run has now, and which of them its last step did not come to."""
        unmet = self.run.unmet_breakpoints
        names = () if ended else self.run.breakpoints
        listed = [[name, _worded(name) + " (not in the last step)" * (name in unmet)] for name in names]
        if (listed, ended) != (self.widget.listed, self.widget.ended):
            with self.widget.hold_sync():
                self.widget.listed, self.widget.ended = listed, ended
            free_of_blocked_cell(self.widget)

    def say_again(self) -> None:
        """Send what follows the run to the page once more."""
        self.widget.send_state({"listed", "ended"})
        free_of_blocked_cell(self.widget)


def _worded(name: str) -> str:
    """The name of a breakpoint as a reader sees it.

    Example:
        >>> _worded("loss above -1")
        'loss above −1'
    """
    head, above, bound = name.partition(" above ")
    return f"{head}{above}{bound.replace('-', MINUS)}"


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ".").replace(MINUS, "-"))
    except ValueError:
        raise ArgumentError("a bound is a number", given=text, hint="as 2.5 or 1e3") from None
