"""The graph of the step that a run was held in, below its controls: grows as one steps, is new with each step."""

from __future__ import annotations

from typing import Any


class StepGraph:
    """A GraphView of `run.graph`, from the first look into a step on."""

    def __init__(self, run: Any) -> None:
        import ipywidgets as ipw

        self.run = run
        self.view: Any = None
        self.widget = ipw.VBox(layout=ipw.Layout(width="100%"))

    def refresh(self) -> None:
        """Show the step that the run is in, if it is another one than before."""
        from widgets.views.graph.view import GraphView

        graph = self.run.graph
        if graph is None or (self.view is not None and self.view.recording is graph):
            return
        old, self.view = self.view, GraphView(graph)
        self.widget.children = (self.view.widget,)
        if old is not None:
            old.dispose()

    def dispose(self) -> None:
        """Take it out of the page."""
        if self.view is not None:
            self.view.dispose()
            self.view = None
