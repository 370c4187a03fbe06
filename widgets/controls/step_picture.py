"""What happens within the step that a run is held in, below its controls: its graph, or what its ranks do.

Ranks that train copies are drawn with the collective that they are held in, the stages of a pipeline with their spans.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from widgets.live.buttons import button
from widgets.live.showing import close


class StepPicture:
    """A GraphView of `run.graph`, new with each step, or what held ranks do; nothing before that.

    Args:
        run: a training run.
        closed: called when the reader has closed the picture, whose button has gone with it.
    """

    def __init__(self, run: Any, closed: Callable[[], object] = lambda: None) -> None:
        import ipywidgets as ipw

        self.run, self._tell_closed = run, closed
        self._closed_at: tuple[int, ...] | None = None
        self._button = button("Close picture", "times", "Until the run is held at another place", self.close)
        self._button.layout.align_self = "flex-end"  # a column would make it as wide as the picture
        self.view: Any = None
        self._shown: Any = None  # the graph that is shown
        self._held_in = -1  # steps done when it was held within one last
        self.widget = ipw.VBox(layout=ipw.Layout(width="100%"))

    def refresh(self) -> None:
        """Show the step that the run is in, if it is another one than before."""
        from widgets.views.collective.ring import RingView
        from widgets.views.graph.view import GraphView
        from widgets.views.pipeline.view import PipelineView

        if self._closed_at is not None:
            if not self.run.is_inside or self._place() == self._closed_at:
                return
            self._closed_at = None
        if self.run.graph is not None:
            self._show(GraphView, self.run.graph)
            self._fold_away()
        elif self.run.is_inside:
            self._held_in = self.run.progress[0]
            self._show(PipelineView if "action" in self.run.units else RingView, self.run.recording)
        if isinstance(self.view, PipelineView):  # between two clicks it is not held, and in the same step
            self._follow(self.run.progress[0] == self._held_in)

    def close(self) -> None:
        """Take the picture away, until the run is held at another place."""
        self._closed_at, old, self.view = self._place(), self.view, None
        self.widget.children = ()
        if old is not None:
            old.dispose()
        self._tell_closed()

    def _place(self) -> tuple[int, ...]:
        """Where the run is held, if it is: what it has done says so."""
        return self.run.progress[0], len(self.run.recording if self.run.graph is None else self.run.graph)

    @property
    def box(self) -> str:
        """What the picture calls the box at which the run is held; "" where no graph is held."""
        from widgets.views.graph.view import GraphView

        if not isinstance(self.view, GraphView) or not self.run.is_inside or self.view.recording is not self.run.graph:
            return ""
        return self.view.box_at(len(self.run.graph))

    def _fold_away(self) -> None:
        """Beside a run that has gone on, the graph of a step in which it was held says "here" of where it is not."""
        if self.run.is_inside or self._shown is not self.run.graph:
            self._shown, self._held_in = self.run.graph, self.run.progress[0]
        over = self.run.state in ("finished", "stopped", "failed")  # then that step may be the last, and all of it
        gone = self.run.state != "paused" and self.run.progress[0] > self._held_in + over
        display = "none" if gone else ""
        if (self.widget.layout.display or "") != display:
            self.widget.layout.display = display

    def _show(self, kind: type[Any], recording: Any) -> None:
        if self.view is not None and self.view.recording is recording:
            return
        old, self.view = self.view, kind(recording)
        self.widget.children = (self._button, self.view.widget)
        if old is not None:
            old.dispose()

    def _follow(self, follows: bool) -> None:
        if self.view.follows != follows:
            self.view.follows = follows
            self.view.show(self.view.position)

    def say_again(self) -> None:
        """Send what follows the run to the page once more."""
        self.widget.send_state("children")
        self.widget.layout.send_state("display")

    def dispose(self) -> None:
        """Take it out of the page."""
        if self.view is not None:
            self.view.dispose()
            self.view = None
        if self._button.comm is not None:
            close(self._button)
