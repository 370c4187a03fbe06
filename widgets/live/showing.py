"""How pictures come into a notebook and leave it: two outputs, an error in place of a picture, nothing left behind."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

from widgets.pictures.chart import Chart
from widgets.pictures.scene import Node, Scene
from widgets.pictures.theme import NEVER, YET


def failure(why: BaseException, *, chart: bool) -> Scene | Chart:
    """The error as a picture of the kind that the host can draw."""
    lines = str(why).splitlines()
    if chart:
        import plotly.graph_objects as go

        middle: dict[str, Any] = {"showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
        notes = [{"text": "<br>".join(map(escape, lines)), **middle}]
        return Chart(go.Figure(layout={"annotations": notes}), caption=" ".join(lines), title="failed view")
    width = 8.0 * max(len(line) for line in lines) + 30
    texts = [*lines, "", ""]
    node = Node("failed", width / 2, 40, width, 70, texts[0], texts[1], kind="group", state="trouble")
    return Scene((node,), caption=" ".join(lines), title="failed view")


def ended(picture: Scene | Chart) -> Scene | Chart:
    """The last picture of a recording to which nothing will come: where it is empty, it does not say "yet"."""
    if isinstance(picture, Scene):
        return replace(picture, instead=NEVER) if not picture.nodes and picture.instead == YET else picture
    if not any(note.text == YET for note in picture.figure.layout.annotations):
        return picture
    import plotly.graph_objects as go

    figure = go.Figure(picture.figure)
    figure.update_annotations(text=NEVER)
    return replace(picture, figure=figure)


def of_its_time(picture: Scene | Chart) -> Scene | Chart:
    """A still picture of a recording that goes on: a page that is opened later shows it until the live one is there."""
    return replace(picture, caption=f"When its cell ran: {picture.caption}")


def close(widget: Any) -> None:
    """End a widget with all that is in it and of it; ipywidgets' own `close` leaves children, layout and style."""
    for part in (*getattr(widget, "children", ()), getattr(widget, "style", None), widget.layout):
        if part is not None and part.comm is not None:
            close(part) if hasattr(part, "layout") else part.close()
    widget.close()


def display_twice(widget: Any, host: Any, svg: str, text: str) -> None:
    """Display a still picture and the live widget in two outputs.

    In one output the front end would show the widget only, and an error in its place where there is no kernel.
    """
    from IPython.display import display

    show: Any = display  # untyped
    still = f'<div data-lab-twin="{host.twin}" style="overflow-x:auto">{svg}</div>'
    show({"text/html": still, "text/plain": text}, raw=True)
    bundle = widget._repr_mimebundle_()
    data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
    data["text/plain"] = text
    show(data, raw=True)
