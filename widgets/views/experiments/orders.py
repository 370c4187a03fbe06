"""OrdersView: the same float32 numbers of all ranks, summed in several orders, each beside the exact sum."""

from __future__ import annotations

from typing import Any

from lab.events import Event, OrderMeasured
from lab.words import counted
from widgets.pictures import theme
from widgets.pictures.theme import short
from widgets.views.experiments.experiment import ExperimentView, Place, Rows, of


class OrdersView(ExperimentView):
    """Sums in the order of several plans beside the exact sum, as `lab.parallel.measure_orders` told it.

    Args:
        source: a Recording around that call.

    Example:
        >>> import lab, numpy as np
        >>> with lab.record() as rec:
        ...     _ = lab.parallel.measure_orders([np.float32([x]) for x in (1e8, 1.0, -1e8, 1.0)], ["naive", "pairwise"])
        >>> OrdersView(rec).sentence_at(len(rec))
        'pairwise: 1 of 1 entry inexact, 8.389e6 ulp on average, 8.389e6 at most; 1 unlike naive.'
    """

    listens = (OrderMeasured,)
    title = "Orders of addition"
    shows = "sums in several orders"
    write = "with lab.record() as rec: lab.parallel.measure_orders(gradients), then OrdersView(rec)"

    def fold(self, state: Rows, event: Event) -> Rows:
        """An order that was measured already begins another experiment."""
        known = {e.algorithm for e in of(state, OrderMeasured)}
        return (event,) if isinstance(event, OrderMeasured) and event.algorithm in known else (*state, event)

    def fold_many(self, state: Rows, stretch: Any) -> Rows:
        for event in stretch.of(self.listens):
            state = self.fold(state, event)
        return state

    def drawn(self, rows: Rows) -> tuple[Any, str]:
        import plotly.graph_objects as go

        orders = of(rows, OrderMeasured)
        names = [e.algorithm for e in orders]
        figure = go.Figure(layout=theme.axes("order", "entries", height=380, barmode="group"))
        for k, (name, field) in enumerate((("not the exact sum", "n_inexact"), (f"unlike {names[0]}", "n_other"))):
            figure.add_bar(x=names, y=[getattr(e, field) for e in orders], name=name, meta={"like": k},
                           hovertext=[_line(e, names[0]) for e in orders])  # fmt: skip
        first = orders[0]
        caption = (
            f"The same {counted(first.n_entries, 'entry', 'entries')} of {counted(first.n_ranks, 'rank')}, summed in"
            f" {first.dtype} in the order of each plan. No order is wrong: each rounds after every addition, so another"
            f" one gives other bits. Furthest from the exact sum: {short(max(e.max_ulp for e in orders))} units in the"
            " last place."
        )
        return figure, caption

    def place_of(self, event: Event, rows: Rows) -> Place | None:
        return Place(event.algorithm, event.n_inexact) if isinstance(event, OrderMeasured) else None

    def told(self, rows: Rows) -> str:
        orders = of(rows, OrderMeasured)
        return "\n".join(_line(e, orders[0].algorithm) for e in orders[::-1])


def _line(e: OrderMeasured, first: str) -> str:
    far = f"{short(e.mean_ulp)} ulp on average, {short(e.max_ulp)} at most"
    other = f"; {e.n_other:,} unlike {first}" if e.algorithm != first else ""
    return f"{e.algorithm}: {e.n_inexact:,} of {counted(e.n_entries, 'entry', 'entries')} inexact, {far}{other}."
