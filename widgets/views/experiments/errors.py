"""ErrorView: the error of a difference against its step, with the floor of the automatic derivative.

Right of its best step a method sees the curve, left of it the digits cancel; theory's step stands beside the measured.
"""

from __future__ import annotations

from math import isnan, log10
from typing import Any

import numpy as np

from lab.events import BestStepFound, ErrorMeasured, ErrorsBegun, Event, MethodRefused
from lab.words import counted
from widgets.fold import Events, Positions, merged
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of

NAMES = {"forward": "forward", "central": "central", "richardson": "Richardson", "complex": "complex step",
         "automatic": "automatic"}  # fmt: skip
BOTTOM = 1e-18
"""Where an error of 0 is drawn: below what a float can tell from it."""


class ErrorView(ExperimentView):
    """The error of each method against its step, as `lab.measure_errors` measured it.

    Args:
        source: what that returned, or a Recording of it.

    Example:
        >>> import lab
        >>> found = lab.measure_errors(lab.sin, 1.0, steps=[1e-12, 1e-8, 1e-4])
        >>> print(ErrorView(found).sentence_at(len(found.recording)))
        Automatic: error 8.812e−17.
    """

    listens = (ErrorsBegun, ErrorMeasured, BestStepFound, MethodRefused)
    title = "Error against step"
    shows = "the errors of differences by their step"
    write = "ErrorView(lab.measure_errors(lab.sin, 1.0))"

    def stop_positions(self, events: Events) -> Positions:
        """After each method."""
        automatic = np.asarray(events.columns(ErrorMeasured)["method"]) == "automatic"
        ends = events.positions(ErrorMeasured)[: len(automatic)][automatic]
        return merged(events.positions(BestStepFound), events.positions(MethodRefused), ends) + 1

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        begun, measured = _begun(rows), of(rows, ErrorMeasured)
        lines = [m for m in NAMES if m != "automatic" and any(e.method == m for e in measured)]
        steps = [e.h for e in measured if not isnan(e.h)] or [1e-18, 1.0]
        figure = go.Figure(layout=_layout(begun.at))
        for k, method in enumerate(lines):
            mine = [e for e in measured if e.method == method]
            figure.add_scatter(
                x=[e.h for e in mine], y=[_shown(e.error) for e in mine], name=NAMES[method], mode="lines",
                line={"dash": theme.DASHES[k % len(theme.DASHES)], "width": 2}, meta={"like": k},
            )  # fmt: skip
        for e in measured:
            if e.method == "automatic":
                figure.add_scatter(
                    x=[min(steps), max(steps)], y=[_shown(e.error)] * 2, name=NAMES[e.method], mode="lines",
                    line={"dash": "longdash", "width": 3},
                )  # fmt: skip
        for best in of(rows, BestStepFound):
            if best.rule:
                _mark(figure, best, lines.index(best.method))
        return figure, _caption(rows)

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        if not isinstance(event, ErrorMeasured | BestStepFound) or isnan(event.h):
            return None
        return Place(event.h, _shown(event.error))

    def told(self, rows: Rows) -> str:
        begun = _begun(rows)
        automatic = [e for e in of(rows, ErrorMeasured) if e.method == "automatic"]
        found = [f"{NAMES[e.method]}: error {short(e.error)}." for e in automatic]
        found += [f"{NAMES[e.method]}: {_best(e, rows)}." for e in of(rows, BestStepFound)]
        found += [f"{NAMES[e.method]}: not possible, {e.reason}." for e in of(rows, MethodRefused)]
        found = found or ["Nothing is known yet."]
        latest = f"{found[0][0].upper()}{found[0][1:]}"
        return "\n".join([latest, *found[1:], f"{_of(begun)} is {short(begun.truth)} ({begun.source})."])


def _begun(rows: Rows) -> ErrorsBegun:
    (begun,) = of(rows, ErrorsBegun)
    return begun


def _of(begun: ErrorsBegun) -> str:
    name = "the function" if begun.function == "<lambda>" else begun.function
    return f"The derivative of {name} at {short(begun.at)} in {begun.dtype}"


def _best(best: BestStepFound, rows: Rows) -> str:
    """The best step in words; a function with few digits has many steps without any error."""
    theory = f"; theory says about {best.rule} = {short(best.theory)}" if best.rule else ""
    errors = {e.h: e.error for e in of(rows, ErrorMeasured) if e.method == best.method}
    exact = [h for h, error in errors.items() if error == 0]
    if best.error or not exact:
        found = f"best at h = {short(best.h)}, error {short(best.error)}"
    elif len(exact) == len(errors):
        found = "no error at any step"
    else:
        found = f"no error at {len(exact)} of {counted(len(errors), 'step')}, the longest h = {short(max(exact))}"
        found += f", the safest {short(best.h)}" if best.h != max(exact) else ""
    return f"{found}{theory}"


def _shown(error: float) -> float:
    """An error as a place on the axis: exact 0 at its foot, nan a gap, and what is off by more than 10⁶ at its top."""
    return min(max(error, BOTTOM), 1e6) if not isnan(error) else error


def _mark(figure: Any, best: BestStepFound, k: int) -> None:
    """The best step that was measured, and an upright line at that of theory, in the colour of the method."""
    figure.add_scatter(
        x=[best.h], y=[_shown(best.error)], mode="markers", name=f"best {NAMES[best.method]}", showlegend=False,
        marker={"symbol": "diamond", "size": 12}, meta={"like": k},
    )  # fmt: skip
    figure.add_scatter(
        x=[best.theory] * 2, y=[_shown(best.error) / 30, _shown(best.error) * 300], mode="lines", showlegend=False,
        name=f"{best.rule}, theory for {NAMES[best.method]}", line={"dash": "dot", "width": 1.5}, meta={"like": k},
    )  # fmt: skip


def _layout(at: float) -> dict[str, Any]:
    power = {"type": "log", "exponentformat": "power", "dtick": 3}
    return theme.axes(
        "step h", "error of the derivative", height=400, xaxis=power,
        yaxis={**power, "range": [log10(BOTTOM) - 0.5, 2]},
    )  # fmt: skip


def _caption(rows: Rows) -> str:
    begun = _begun(rows)
    words = f"{_of(begun)}, held against {short(begun.truth)} ({begun.source}); errors relative to it, 0 at the foot."
    if begun.truth == 0:
        words = f"{_of(begun)} is 0 ({begun.source}); errors are absolute, 0 at the foot."
    best = [e for e in of(rows, BestStepFound) if e.rule]
    words += " A point marks the best step, a dotted line theory's." if best else ""
    words += "".join(f" {NAMES[e.method].capitalize()}: {_best(e, rows)}." for e in best)
    return words + "".join(f" No {NAMES[e.method]}: {e.reason}." for e in of(rows, MethodRefused))
