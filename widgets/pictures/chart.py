"""A Chart wraps a plotly figure: the value that `chart.js` draws, with a title for screen readers and a caption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import plotly.graph_objects as go


@dataclass(frozen=True, slots=True)
class Chart:
    """A figure of plotly with the words around it. The figure is a value: never changed after it was handed over.

    Attributes:
        figure: any `go.Figure`, without a template of its own (the theme of the page colours it).
        caption: one sentence that says the point, and run or simulation.
        title: short name, for the page title and for screen readers.
        provenance, made: as of a Scene.
    """

    figure: go.Figure
    caption: str = ""
    title: str = ""
    provenance: str = ""
    made: str = ""
