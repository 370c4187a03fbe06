"""Controls of a run: what it does, one step more, breakpoints, and the graph of the step that one looks into."""

from widgets.controls.run_controls import RunControls

__all__ = ["RunControls"]
