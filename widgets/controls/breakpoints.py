"""The row of controls in which breakpoints of a run are set, seen and taken away."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lab.errors import ArgumentError
from widgets.live.buttons import button, pixels

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


class Breakpoints:
    """Choose a kind, give its bound or place, add; each one that is set has a button that takes it away.

    Choosing a kind changes the hint beside the field and nothing of the field itself: a page takes any news of a text
    field as a reason to write the kernel's text into it, over what was typed before a slow kernel answered.

    Args:
        run: a training run.
        ask: carries out what a click asks, and shows what the run refuses.
    """

    def __init__(self, run: Any, ask: Callable[[Callable[[], object]], None]) -> None:
        import ipywidgets as ipw

        self.run, self._ask, self._shown = run, ask, ()
        kinds = [kind for kind in KINDS if kind in EVERYWHERE or "op" in run.units]
        self.kind = ipw.Dropdown(description="Break on", options=kinds, layout=ipw.Layout(width=pixels(270)),
                                 tooltip="Where the run shall pause by itself")  # fmt: skip
        name = "Bound" if len(kinds) == len(EVERYWHERE) else "Bound or place"
        self.value = ipw.Text(description=name, continuous_update=False, style={"description_width": "initial"},
                              layout=ipw.Layout(width=pixels(250)), tooltip="The bound, or the place")  # fmt: skip
        self.hint = ipw.Label(HINTS[kinds[0]])
        self.add = button("Add", "plus", "Pause by itself there, from the next step on", lambda: ask(self._add))
        self._list = ipw.HBox(layout=ipw.Layout(flex_flow="row wrap"))
        self.kind.observe(self._chosen, "value")
        self.value.on_msg(self._entered)
        self.value.observe(self._came, "value")
        row = ipw.Layout(display="flex", flex_flow="row wrap", align_items="center", width="100%")
        self.widget = ipw.Box([self.kind, self.value, self.hint, self.add, self._list], layout=row)

    _shown: tuple[str, ...]
    _submitted: bool = False

    def _chosen(self, change: Mapping[str, Any]) -> None:
        self._submitted = False
        self.hint.value = HINTS[change["new"]] or "needs none"

    def _entered(self, _widget: Any, content: Any, _buffers: Any) -> None:
        """Enter in the field adds; the page says so before it says what the text is now, or behind it."""
        if not isinstance(content, Mapping) or content.get("event") != "submit":
            return
        self._submitted = bool(HINTS[self.kind.value]) and not self.value.value.strip()
        if not self._submitted:
            self._ask(self._add)

    def _came(self, change: Mapping[str, Any]) -> None:
        """Text comes when the field is left, too: on the way to Add, which adds it, or to another kind."""
        if self._submitted and change["new"].strip():
            self._ask(self._add)

    def _add(self) -> None:
        kind, given = self.kind.value, self.value.value.strip()
        self._submitted = bool(HINTS[kind]) and not given  # a busy page may hold the text back, and send the click
        if self._submitted:
            raise ArgumentError("a breakpoint needs a bound or a place", given="nothing", hint=HINTS[kind])
        name = KINDS[kind]
        wanted: dict[str, Any] = {name: True if name == "nonfinite" else given}
        if name == "backward":
            wanted = {"at": given, "backward": True}
        elif kind in EVERYWHERE:
            wanted = {name: _number(given)}
        self.run.break_on(**wanted)
        self.value.value = ""

    def refresh(self, *, ended: bool) -> None:
        """Show the breakpoints that the run has now."""
        for part in (self.kind, self.add):
            if part.disabled != ended:
                part.disabled = ended
        names = () if ended else self.run.breakpoints
        if names == self._shown:
            return
        self._shown = names
        old = self._list.children
        self._list.children = tuple(self._remover(name) for name in names)
        for gone in old:
            gone.layout.close()
            gone.style.close()
            gone.close()

    def say_again(self) -> None:
        """Send what follows the run to the page once more."""
        self._list.send_state("children")
        for part in (self.kind, self.add):
            part.send_state("disabled")

    def _remover(self, name: str) -> Any:
        return button(name, "times", f"Take this breakpoint away: {name}",
                      lambda: self._ask(lambda: self.run.clear_breakpoint(name)))  # fmt: skip


def _number(text: str) -> float:
    try:
        return float(text.replace(",", "."))
    except ValueError:
        raise ArgumentError("a bound is a number", given=text, hint="as 2.5 or 1e3") from None
