"""What happens within the step that a run is held in, below its controls: its graph, or the collective of its ranks."""

from __future__ import annotations

from typing import Any


class StepPicture:
    """A GraphView of `run.graph`, new with each step, or a RingView where ranks are held; nothing before that."""

    def __init__(self, run: Any) -> None:
        import ipywidgets as ipw

        self.run = run
        self.view: Any = None
        self.widget = ipw.VBox(layout=ipw.Layout(width="100%"))

    def refresh(self, unit: str) -> None:
        """Show the step that the run is in, if it is another one than before; `unit` is what it is stepped by."""
        if self.run.graph is not None:
            self._show(self.run.graph, "graph")
        elif unit == "hop" and self.run.state == "paused" and self.run.reason:
            self._show(self.run.recording, "ring")

    def _show(self, recording: Any, kind: str) -> None:
        if self.view is not None and self.view.recording is recording:
            return
        from widgets.views.graph.view import GraphView
        from widgets.views.ring.view import RingView

        old, self.view = self.view, (GraphView if kind == "graph" else RingView)(recording)
        self.widget.children = (self.view.widget,)
        if old is not None:
            old.dispose()

    def dispose(self) -> None:
        """Take it out of the page."""
        if self.view is not None:
            self.view.dispose()
            self.view = None
