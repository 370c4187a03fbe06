"""ExperimentView: what charts of experiments share: the rows of the latest one, in the order in which they came."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from math import isfinite
from typing import Any, ClassVar, NamedTuple, TypeVar

from lab.events import Event
from widgets.fold import Stretch
from widgets.pictures import theme
from widgets.pictures.chart import Chart
from widgets.view import Picture, Spot, View
from widgets.views.nothing import nothing_for

Rows = tuple[Event, ...]
E = TypeVar("E", bound=Event)


class Place(NamedTuple):
    """Where a chart shows an event: coordinates, and the numbers of its axes ("" for the first)."""

    x: Any
    y: float
    axes: str = ""


class RowsView(View[Rows]):
    """A picture of the events of one experiment; the first kind of `listens` is its beginning, and begins it anew."""

    opens_at_end = True
    shows: ClassVar[str]
    """What it shows, for whoever gave a recording without it."""
    write: ClassVar[str]
    """Code that makes the experiment and shows it."""

    def start(self) -> Rows:
        return ()

    def fold(self, state: Rows, event: Event) -> Rows:
        return (event,) if isinstance(event, self.listens[0]) else (*state, event)

    def fold_many(self, state: Rows, stretch: Stretch) -> Rows:
        begun = stretch.positions(self.listens[0])
        if len(begun):
            state, stretch = (), stretch._replace(start=int(begun[-1]))
        return (*state, *stretch.of(self.listens))

    def text(self, state: Rows) -> str:
        return self.told(state) if state else self._why_empty()

    @abstractmethod
    def told(self, rows: Rows) -> str:
        """The same in words."""

    def _why_empty(self) -> str:
        if self.recording.live or len(self.recording.positions(self.listens[0])):
            return f"{self.title}: nothing was measured yet."
        return nothing_for(type(self).__name__, self.shows, self.write, self.recording)


class ExperimentView(RowsView):
    """A chart of them."""

    def picture(self, state: Rows) -> Chart:
        import plotly.graph_objects as go

        if not state:
            return Chart(go.Figure(layout=theme.blank(theme.axes())), self._why_empty(), self.title)
        figure, caption = self.drawn(state)
        return Chart(figure, caption, self.title)

    def spotlit(self, picture: Picture, state: Rows, spot: Spot) -> Picture:
        """A ring around the event."""
        import plotly.graph_objects as go

        place = self.place_of(self.recording[spot.place], state) if state else None
        if place is None or not isfinite(place.y) or not isinstance(picture, Chart):
            return picture
        ring = {"symbol": "circle-open", "size": 18}
        where = {"xaxis": f"x{place.axes}", "yaxis": f"y{place.axes}", "showlegend": False}
        figure = go.Figure(picture.figure)
        figure.add_scatter(x=[place.x], y=[place.y], mode="markers", name=spot.name, marker=ring, **where)
        return replace(picture, figure=figure)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        """Where an event is drawn, if it is a point of the chart."""
        return None

    @abstractmethod
    def drawn(self, rows: Rows) -> tuple[Any, str]:
        """The figure of some rows, the first of which is the beginning, and its caption."""


def of(rows: Rows, kind: type[E]) -> list[E]:
    """The rows of one kind."""
    return [row for row in rows if isinstance(row, kind)]
