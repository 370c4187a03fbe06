"""Everything about one training at a glance: its controls above its loss and its gradients.

Not called `dashboard.py`: the module would hide the function of that name in `widgets`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from widgets.controls import RunControls
from widgets.live.showing import close, display_twice
from widgets.views.training.gradient import GradientView
from widgets.views.training.loss import LossView


class Dashboard:
    """The controls of a run above its loss and its gradients."""

    def __init__(self, run: Any) -> None:
        self.controls, self.loss, self.gradients = RunControls(run), LossView(run), GradientView(run)
        self._widget: Any = None

    @property
    def widget(self) -> Any:
        """All of it as an ipywidgets DOMWidget."""
        if self._widget is None:
            import ipywidgets as ipw

            charts = [self.loss.widget, self.gradients.widget]
            for chart in charts:  # side by side where there is room: what a slider does to either is seen at once
                chart.layout.flex, chart.layout.min_width = "1 1 460px", "0"
            row = ipw.Layout(display="flex", flex_flow="row wrap", align_items="flex-start", width="100%")
            self._widget = ipw.VBox([self.controls.widget, ipw.Box(charts, layout=row)])
        return self._widget

    @property
    def views(self) -> tuple[LossView, GradientView]:
        """The views in it."""
        return self.loss, self.gradients

    def export(self, path: str | Path, *, theme: str | None = None, scale: float | None = None) -> Path:
        """Write loss and gradients to a file that needs neither kernel nor network; the ending says what it is.

        Args:
            path: .html for a page that plays both; .png for both as they are at the end; .svg for the
                loss, which moves by itself.
            theme, scale: as in `View.export`.

        Raises:
            ViewError: as `View.export`.
        """
        from widgets.export.film import stops_of, written

        return written(path, self.views, stops_of(self.views), theme=theme, scale=scale)

    def dispose(self) -> None:
        """Take it out of the page and the kernel; the run goes on."""
        for part in (self.controls, self.loss, self.gradients):
            part.dispose()
        widget, self._widget = self._widget, None
        if widget is not None:
            close(widget)

    def __repr__(self) -> str:
        return f"Dashboard({self.controls.text})"

    def _ipython_display_(self) -> None:
        svg = self.loss.svg() + self.gradients.svg()
        display_twice(self.widget, self.loss.host, svg, self.controls.text)


def dashboard(run: Any) -> Dashboard:
    """Controls, loss and gradients of a run, to be displayed as the last line of a cell.

    It may run already or have ended: everything shown is read from the run and its recording.
    """
    return Dashboard(run)
