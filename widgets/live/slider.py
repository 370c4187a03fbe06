"""Slider and progress bar that say to a screen reader what the eye reads.

Those of ipywidgets do not: a logarithmic slider has no name and gives its exponent for the value, and a bar of progress
is no more than a coloured box.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import anywidget
import traitlets

from widgets.live.library import bundle


def _style(name: str) -> str:
    return (files("widgets") / "frontend" / name).read_text(encoding="utf-8")


class Slider(anywidget.AnyWidget):
    """A number between two others; of a logarithmic one `min`, `max` and `step` are exponents of 10.

    Example:
        >>> rate = Slider(description="Learning rate", value=0.01, min=-4, max=0, step=0.05, log=True)
        >>> rate.within(7.0), rate.within(0.5)
        (1.0, 0.5)
        >>> rate.close()
    """

    _esm = bundle("keys.js", "slider.js")
    _css = _style("slider.css")

    description = traitlets.Unicode().tag(sync=True)
    tooltip = traitlets.Unicode().tag(sync=True)
    value = traitlets.Float().tag(sync=True)
    min = traitlets.Float(0.0).tag(sync=True)
    max = traitlets.Float(1.0).tag(sync=True)
    step = traitlets.Float(0.01).tag(sync=True)
    log = traitlets.Bool(False).tag(sync=True)
    disabled = traitlets.Bool(False).tag(sync=True)

    def within(self, value: float) -> float:
        """The value, or the nearest one that can be shown."""
        low, high = (10.0**self.min, 10.0**self.max) if self.log else (self.min, self.max)
        return float(min(max(value, low), high))


class Progress(anywidget.AnyWidget):
    """How much is done, from 0 to 1; `bar_style` is "success", "danger" or ""."""

    _esm = bundle("progress.js")
    _css = _style("progress.css")

    description: Any = traitlets.Unicode("Progress").tag(sync=True)
    value = traitlets.Float(0.0).tag(sync=True)
    bar_style = traitlets.Unicode().tag(sync=True)
