"""A chart as SVG text, drawn plainly: lines, markers, bars, histograms and heat maps, with axes and ticks.

Own small writer, because plotly's needs a browser. What it cannot draw it names, so that nothing is missing silently.
"""

from __future__ import annotations

import math
from base64 import b64decode
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from widgets.pictures.chart import Chart
from widgets.pictures.geometry import number
from widgets.pictures.measure import clip, text_width
from widgets.pictures.patch import Json
from widgets.pictures.theme import INK, YET, colorway, ink_on, tone_colour
from widgets.pictures.ticks import linear, logarithmic, plain_number
from widgets.pictures.tree import tree_of
from widgets.pictures.twin import card, label, tag

WIDTH, HEIGHT = 640.0, 320.0
TALL = 0.75
"""A chart whose figure is high has panels below one another: so much of that is its height here."""
LEFT, RIGHT, TOP, BOTTOM = 62.0, 18.0, 34.0, 48.0
DASHES = {"dash": "8 5", "dot": "2 4", "dashdot": "8 4 2 4", "longdash": "14 6", "longdashdot": "14 5 2 5"}
NAME = 40.0
"""Room for a name below an axis."""
ROW = 18.0
"""Height of a row of the legend."""
ROOM = 4.0
"""What is drawn of a mark that stands on the end of an axis."""
MOST_POINTS = 4000
"""A line with more points is thinned: a screen has fewer columns."""


def values(array: Json) -> list[Any]:
    """A column of a trace as a list: packed arrays are unpacked, anything missing is empty.

    Example:
        >>> values({"dtype": "f8", "bdata": "AAAAAAAA8D8="})
        [1.0]
    """
    if isinstance(array, dict) and "bdata" in array:
        flat = np.frombuffer(b64decode(array["bdata"]), dtype=array["dtype"])
        shape = [int(n) for n in str(array.get("shape", flat.size)).split(",")]
        unpacked: list[Any] = flat.reshape(shape).tolist()
        return unpacked
    return list(array) if isinstance(array, list) else []


@dataclass
class Axis:
    """One axis of one panel: what it spans, in numbers; categories are numbered from 0."""

    kind: str
    start: float
    stop: float
    title: str = ""
    categories: dict[str, int] = field(default_factory=dict)
    low: float = 0.0
    high: float = 1.0
    pitch: float = 16.0
    """Pixels from one name to the next at least."""
    labelled: bool = True
    every: float | None = None
    """From one tick to the next, where the figure says so."""
    begin: float = 0.0
    """A place at which there would be one of these."""
    named: list[tuple[Any, str]] = field(default_factory=list)
    """Values that have ticks with texts of their own, where the figure says so."""

    def at(self, value: Any) -> float:
        """Pixel of a value, nan if it has no place (a gap)."""
        place = self.number(value)
        return self.start + (place - self.low) / ((self.high - self.low) or 1.0) * (self.stop - self.start)

    def number(self, value: Any) -> float:
        """The value as a number of this axis."""
        if self.kind == "category":
            return float(self.categories.setdefault(str(value), len(self.categories)))
        try:
            real = float(value)
        except (TypeError, ValueError):
            return math.nan
        if self.kind == "log":
            return math.log10(real) if real > 0 else math.nan
        return real if math.isfinite(real) else math.nan

    def span(self, found: Sequence[float], wanted: Json, pad: float) -> None:
        """Set the range: what the figure asks for, else what is there and a little room."""
        finite = [v for v in found if math.isfinite(v)]
        low, high = (min(finite), max(finite)) if finite else (0.0, 1.0)
        room = (high - low) * pad if high > low else max(abs(high), 1.0) * 0.5
        self.low, self.high = low - room, high + room
        if isinstance(wanted, list) and len(wanted) == 2 and all(isinstance(v, (int, float)) for v in wanted):
            self.low, self.high = float(wanted[0]), float(wanted[1])

    def ticks(self) -> list[tuple[float, str]]:
        """About five places with their texts."""
        if self.kind == "category":
            names = list(self.categories)
            every = math.ceil(len(names) * self.pitch / max(1.0, abs(self.stop - self.start)))
            return [(self.at(name), name) for name in names[:: max(1, every)]]
        if self.named:
            low, high = sorted((self.low, self.high))
            return [(self.at(v), text) for v, text in self.named if low <= self.number(v) <= high]
        scale = (self.stop - self.start) / ((self.high - self.low) or 1.0)
        if self.kind == "log":
            told = [(v, plain_number(10.0**v)) for v in logarithmic(self.low, self.high)]
        else:
            told = [(v, plain_number(v)) for v in linear(self.low, self.high, self.every, self.begin)]
        return [(self.start + (v - self.low) * scale, text) for v, text in told]


def svg_of_chart(chart: Chart) -> str:
    """The chart as one `<svg>` element."""
    tree = tree_of(chart)
    data, layout = tree["data"], tree["layout"]
    panels: dict[tuple[str, str], list[tuple[dict[str, Any], str]]] = {}
    for i, trace in enumerate(data):
        if trace.get("visible") in (False, "legendonly"):
            continue
        like = (trace.get("meta") or {}).get("like", i)  # as in chart.js: the trace that shows the same thing
        colour = _own_colour(trace) or colorway()[like % len(colorway())]
        panels.setdefault((trace.get("xaxis", "x"), trace.get("yaxis", "y")), []).append((trace, colour))
    tall = max(HEIGHT, TALL * (layout.get("height") or 0.0))
    body = "".join(_panel(traces, layout, *axes, tall) for axes, traces in panels.items())
    if not panels:
        words = next((note["text"] for note in layout.get("annotations") or []), YET)
        body = label(words, WIDTH / 2, tall / 2, 13, fill=INK["muted"], text_anchor="middle")
    rows = _legend([pair for traces in panels.values() for pair in traces])
    more = ROW * max(0, len(rows) - 1)
    if more:  # above the drawing: what it shows stands where it stood
        body = tag("g", body, transform=f"translate(0 {number(more)})")
    return card(body + "".join(rows), WIDTH, tall + more, chart)


def _own_colour(trace: dict[str, Any]) -> str | None:
    for name in ("line", "marker"):
        colour = (trace.get(name) or {}).get("color")
        if isinstance(colour, str):
            return colour
    return None


def _legend(traces: Sequence[tuple[dict[str, Any], str]]) -> list[str]:
    """What each line is called, in rows."""
    named = [(t, c) for t, c in traces if t.get("name") and t.get("showlegend") is not False]
    if len(named) < 2:
        return []
    x, y, rows = WIDTH, 16.0 - ROW, list[str]()
    for trace, colour in named:
        dash = DASHES.get((trace.get("line") or {}).get("dash", ""))
        name = clip(trace["name"], 150, 12)
        wide = 46 + text_width(name, 12)
        if x + wide > WIDTH:
            x, y = LEFT, y + ROW
            rows.append("")
        line = f"M{number(x)} {number(y)}H{number(x + 22)}"
        rows[-1] += tag("path", d=line, stroke=colour, stroke_width=2, stroke_dasharray=dash)
        rows[-1] += label(name, x + 28, y, 12, dy="0.35em")
        x += wide
    return rows


def _axis(layout: dict[str, Any], name: str, columns: Sequence[list[Any]], room: tuple[float, float]) -> Axis:
    look = layout.get(f"{name[0]}axis{name[1:]}") or {}
    low, high = look.get("domain") or (0.0, 1.0)
    start, stop = room[0] + low * (room[1] - room[0]), room[0] + high * (room[1] - room[0])
    kind = look.get("type", "-")
    if kind not in ("log", "category"):
        texts = any(isinstance(v, str) for column in columns for v in column)
        kind = "category" if texts else "linear"
    title = look.get("title") or {}
    axis = Axis(kind, start, stop, title.get("text", "") if isinstance(title, dict) else str(title))
    axis.labelled = look.get("showticklabels") is not False
    every = look.get("dtick")
    if kind == "linear" and isinstance(every, (int, float)) and every > 0:
        axis.every, axis.begin = float(every), float(look.get("tick0") or 0.0)
    if kind != "category":
        axis.named = list(zip(values(look.get("tickvals")), look.get("ticktext") or (), strict=False))
    if look.get("autorange") == "reversed":
        axis.start, axis.stop = stop, start
    return axis


def _panel(
    traces: Sequence[tuple[dict[str, Any], str]], layout: dict[str, Any], xname: str, yname: str, tall: float
) -> str:  # fmt: skip
    drawn = [(_columns(trace), trace, colour) for trace, colour in traces]
    x = _axis(layout, xname, [columns[0] for columns, _, _ in drawn], (LEFT, WIDTH - RIGHT))
    y = _axis(layout, yname, [columns[1] for columns, _, _ in drawn], (tall - BOTTOM, TOP))
    x.pitch = NAME
    boxed = any(trace.get("type") in ("bar", "histogram", "heatmap") for trace, _ in traces)
    xs = [x.number(v) for columns, _, _ in drawn for v in columns[0]]
    ys = [y.number(v) for columns, _, _ in drawn for v in columns[1]]
    upright = [t.get("orientation") != "h" for _, t, _ in drawn if t.get("type") in ("bar", "histogram")]
    if upright:  # bars stand on zero
        (ys if upright[0] else xs).append(0.0)
    x.span(_edges(xs) if boxed else xs, (layout.get(f"xaxis{xname[1:]}") or {}).get("range"), 0.02)
    y.span(_edges(ys) if any(t.get("type") == "heatmap" for t, _ in traces) else ys,
           (layout.get(f"yaxis{yname[1:]}") or {}).get("range"), 0.0 if upright and upright[0] else 0.05)  # fmt: skip
    if upright and upright[0] and y.high > 0:
        y.high *= 1.05
    marks = "".join(_trace(columns, trace, colour, x, y) for columns, trace, colour in drawn)
    return _frame(x, y) + (_within(marks, x, y) if _exceeds(x, xs) or _exceeds(y, ys) else marks)


def _exceeds(axis: Axis, places: Sequence[float]) -> bool:
    low, high = sorted((axis.low, axis.high))
    return any(place < low or place > high for place in places)


def _within(marks: str, x: Axis, y: Axis) -> str:
    """Marks without what lies beyond the axes, a little room for those that stand on one."""
    left, right, top, bottom = *sorted((x.start, x.stop)), *sorted((y.start, y.stop))
    box = left - ROOM, top - ROOM, right - left + 2 * ROOM, bottom - top + 2 * ROOM
    window = " ".join(map(number, box))
    return tag("svg", marks, x=box[0], y=box[1], width=box[2], height=box[3], viewBox=window, overflow="hidden")


def _edges(places: list[float]) -> list[float]:
    """Boxes reach half a step beyond their centres."""
    known = sorted({p for p in places if math.isfinite(p)})
    half = min((b - a for a, b in pairwise(known)), default=1.0) / 2
    return [known[0] - half, known[-1] + half] if known else []


def _frame(x: Axis, y: Axis) -> str:
    parts = []
    bottom, left = max(y.start, y.stop), min(x.start, x.stop)
    for place, text in x.ticks():
        parts.append(tag("path", d=f"M{number(place)} {number(bottom)}v4", stroke=INK["line"]))
        room = abs(x.stop - x.start) / max(1, len(x.ticks())) + 8
        parts.append(label(clip(text, room, 11), place, bottom + 17, 11, fill=INK["muted"], text_anchor="middle"))
    for place, text in y.ticks():
        parts.append(
            tag("path", d=f"M{number(left)} {number(place)}H{number(max(x.start, x.stop))}", stroke=INK["grid"])
        )
        text = clip(text, 44, 11) if y.labelled else ""
        parts.append(label(text, left - 7, place, 11, fill=INK["muted"], text_anchor="end", dy="0.35em"))
    frame = f"M{number(left)} {number(min(y.start, y.stop))}V{number(bottom)}H{number(max(x.start, x.stop))}"
    parts.append(tag("path", d=frame, fill="none", stroke=INK["line"]))
    middle_x, middle_y = (x.start + x.stop) / 2, (y.start + y.stop) / 2
    if x.title:
        parts.append(label(clip(x.title, 240, 12), middle_x, bottom + 38, 12, text_anchor="middle"))
    if y.title:
        turn = f"rotate(-90 {number(left - 48)} {number(middle_y)})"
        parts.append(label(clip(y.title, 220, 12), left - 48, middle_y, 12, text_anchor="middle", transform=turn))
    return "".join(parts)


def _columns(trace: dict[str, Any]) -> tuple[list[Any], list[Any]]:
    """X and y of a trace; those of a histogram are its bins' centres and counts."""
    kind = trace.get("type", "scatter")
    x, y = values(trace.get("x")), values(trace.get("y"))
    if kind == "histogram":
        return _bins(trace, x or y)
    if kind == "heatmap":
        z = values(trace.get("z"))
        return x or list(range(max(map(len, z), default=0))), y or list(range(len(z)))
    if kind == "bar" and trace.get("orientation") == "h":
        return x, y or list(range(len(x)))
    return x or list(range(len(y))), y


def _bins(trace: dict[str, Any], sample: list[Any]) -> tuple[list[Any], list[Any]]:
    numbers = np.array([v for v in sample if isinstance(v, (int, float)) and math.isfinite(v)], dtype=float)
    if not numbers.size:
        return [], []
    bins = trace.get("xbins") or {}
    if all(isinstance(bins.get(k), (int, float)) for k in ("start", "end", "size")) and bins["size"] > 0:
        n = min(1000, max(1, round((bins["end"] - bins["start"]) / bins["size"])))
        counts, limits = np.histogram(numbers, n, (bins["start"], bins["end"]))
    else:
        counts, limits = np.histogram(numbers, int(trace.get("nbinsx") or 24))
    return ((limits[1:] + limits[:-1]) / 2).tolist(), counts.tolist()


def _trace(columns: tuple[list[Any], list[Any]], trace: dict[str, Any], colour: str, x: Axis, y: Axis) -> str:
    kind = trace.get("type", "scatter")
    draw: Callable[..., str] | None = {
        "scatter": _scatter, "scattergl": _scatter, "bar": _bars, "histogram": _bars, "heatmap": _heat,
    }.get(kind)  # fmt: skip
    if draw is None:
        return label(f"(a trace of kind {kind} is only drawn live)", LEFT + 8, TOP + 14, 12, fill=INK["muted"])
    return draw(columns, trace, colour, x, y)


def _scatter(columns: tuple[list[Any], list[Any]], trace: dict[str, Any], colour: str, x: Axis, y: Axis) -> str:
    every = max(1, len(columns[1]) // MOST_POINTS)
    places = [(x.at(a), y.at(b)) for a, b in zip(columns[0][::every], columns[1][::every], strict=False)]
    mode, parts = trace.get("mode") or ("lines" if len(places) > 20 else "lines+markers"), []
    if "lines" in mode:
        path, gap = "", True
        for a, b in places:
            if math.isnan(a) or math.isnan(b):
                gap = True
                continue
            path += f"{'M' if gap else 'L'}{number(a)} {number(b)}"
            gap = False
        look = trace.get("line") or {}
        width, dash = float(look.get("width", 2)), DASHES.get(look.get("dash", ""))
        parts.append(tag("path", d=path, fill="none", stroke=colour, stroke_width=width, stroke_dasharray=dash,
                         stroke_linejoin="round"))  # fmt: skip
    if "markers" in mode:
        parts += [
            tag("circle", cx=a, cy=b, r=3, fill=colour, **_rim(trace))
            for a, b in places if not (math.isnan(a) or math.isnan(b))
        ]  # fmt: skip
    if "text" in mode:
        parts += _words(values(trace.get("text"))[::every], places, trace.get("textposition", "middle center"))
    return "".join(parts)


def _rim(trace: dict[str, Any]) -> dict[str, Any]:
    """The line around the markers of a trace, if it has one."""
    line = (trace.get("marker") or {}).get("line") or {}
    return {"stroke": line["color"], "stroke_width": line.get("width", 1)} if isinstance(line.get("color"), str) else {}


def _words(texts: Sequence[str], places: Sequence[tuple[float, float]], position: str) -> list[str]:
    """Words at the points of a trace, as "top left" of them or upon them."""
    row, _, side = position.partition(" ")
    anchor, over = {"left": "end", "right": "start"}.get(side, "middle"), {"top": -8.0, "bottom": 10.0}.get(row, 0.0)
    return [
        label(text, a, b + over, 11, text_anchor=anchor, dy="0.35em")
        for text, (a, b) in zip(texts, places, strict=False)
        if text and not (math.isnan(a) or math.isnan(b))
    ]


def _bars(columns: tuple[list[Any], list[Any]], trace: dict[str, Any], colour: str, x: Axis, y: Axis) -> str:
    flat = trace.get("type") == "bar" and trace.get("orientation") == "h"
    along, across = (y, x) if flat else (x, y)
    keys, sizes = (columns[1], columns[0]) if flat else columns
    bases = values(trace.get("base")) or [0.0] * len(keys)
    known = sorted({along.number(k) for k in keys if not math.isnan(along.number(k))})
    step = min((b - a for a, b in pairwise(known)), default=1.0)
    pixels = abs(along.stop - along.start) / ((along.high - along.low) or 1.0)
    thick = max(1.0, step * pixels * (0.98 if trace.get("type") == "histogram" else 0.8))
    floor = across.start if across.kind == "log" else across.at(0.0)
    parts = []
    for key, size, base in zip(keys, sizes, bases, strict=False):
        place = along.at(key)
        end = across.at(size + base if isinstance(size, (int, float)) and isinstance(base, (int, float)) else size)
        begin = across.at(base) if base else floor
        if math.isnan(place) or math.isnan(end):
            continue
        low, length = min(begin, end), abs(end - begin)
        shape = (low, place - thick / 2, length, thick) if flat else (place - thick / 2, low, thick, length)
        parts.append(tag("rect", x=shape[0], y=shape[1], width=shape[2], height=shape[3], fill=colour))
    return "".join(parts)


def _heat(columns: tuple[list[Any], list[Any]], trace: dict[str, Any], _colour: str, x: Axis, y: Axis) -> str:
    rows = values(trace.get("z"))
    numbers = [v for row in rows for v in row if isinstance(v, (int, float)) and math.isfinite(v)]
    if not numbers:
        return ""
    signed = trace.get("zmid") is not None
    low, high = trace.get("zmin", min(numbers)), trace.get("zmax", max(numbers))
    reach = max(abs(low - (trace.get("zmid") or 0)), abs(high - (trace.get("zmid") or 0))) or 1.0
    wide = abs(x.at(columns[0][-1]) - x.at(columns[0][0])) / max(1, len(columns[0]) - 1) or abs(x.stop - x.start)
    tall = abs(y.at(columns[1][-1]) - y.at(columns[1][0])) / max(1, len(columns[1]) - 1) or abs(y.stop - y.start)
    texts = values(trace.get("text")) if trace.get("texttemplate") == "%{text}" else []
    parts, words = [], []
    for j, (key, row) in enumerate(zip(columns[1], rows, strict=False)):
        for i, (name, value) in enumerate(zip(columns[0], row, strict=False)):
            if not isinstance(value, (int, float)) or not math.isfinite(value):
                continue
            tone = (value - (trace.get("zmid") or 0)) / reach if signed else (value - low) / ((high - low) or 1.0)
            fill = tone_colour(tone, "diverging" if signed else "sequential")
            parts.append(tag(
                "rect", x=x.at(name) - wide / 2, y=y.at(key) - tall / 2, width=wide + 0.3, height=tall + 0.3, fill=fill,
            ))  # fmt: skip
            if texts and text_width(texts[j][i], 11) < wide:
                words.append(label(texts[j][i], x.at(name), y.at(key), 11, fill=ink_on(fill), text_anchor="middle",
                                   dy="0.35em"))  # fmt: skip
    return "".join(parts + words)
