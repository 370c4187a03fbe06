"""The list from which a reader chooses the pass that is drawn, where a recording holds several.

A small graph is drawn with all its passes; a large one shows one at a time, and only there is something to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from widgets.views.graph.large import Large

NEWEST = -1
"""In the list; not None, which a list takes for nothing chosen."""
LISTED = 200
"""So many passes are offered to choose from: the latest."""
TIP = "Which of the recorded passes is drawn: the newest at each moment, or always this one"


class Passes:
    """A labelled list, hidden where there is nothing to choose.

    Args:
        choose: called with the number of a pass, None for the newest.

    Attributes:
        widget: what to show.
    """

    def __init__(self, choose: Callable[[int | None], object]) -> None:
        import ipywidgets as ipw

        from widgets.live.buttons import pixels, ringed

        self._choose, self._filling = choose, False
        room = ipw.Layout(width=pixels(150), display="none")
        self.widget = ringed(ipw.Dropdown(
            description="Pass", options=[("newest", NEWEST)], tooltip=TIP, layout=room,
            style={"description_width": pixels(40)},
        ))  # fmt: skip
        self.widget.observe(self._chosen, "value")

    def show(self, large: Large, *, one_at_a_time: bool) -> None:
        """List the passes that are known by now.

        Args:
            one_at_a_time: whether the picture shows one pass; else it shows all.
        """
        n = len(large.groups.roots)
        numbers = list(range(max(0, n - LISTED), n))
        if large.chosen is not None and large.chosen not in numbers:
            numbers.insert(0, large.chosen)
        options = (("newest", NEWEST), *((f"{k + 1}", k) for k in numbers))
        chosen = NEWEST if large.chosen is None else large.chosen
        self._filling = True
        try:
            if tuple(self.widget.options) != options:
                self.widget.options = options
            if self.widget.value != chosen:
                self.widget.value = chosen
        finally:
            self._filling = False
        display = None if one_at_a_time and n > 1 else "none"
        if self.widget.layout.display != display:
            self.widget.layout.display = display

    def _chosen(self, change: Mapping[str, Any]) -> None:
        if not self._filling:
            self._choose(None if change["new"] == NEWEST else change["new"])
