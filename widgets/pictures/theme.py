"""How everything looks: marks, numbers and colours, in one table that Python's SVG, `scene.js` and plotly share.

Meaning never rests on colour alone: every state has a mark or a line style too, and a test computes the contrast of
every pair of text and fill in every theme (the colours themselves stand in `palettes.py`).
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

from widgets.pictures.palettes import CIVIDIS, COLORWAY, COLOURS, DIVERGING, OKABE_ITO, SEQUENTIAL, SIZES, THEMES

__all__ = [
    "CIVIDIS", "COLORWAY", "COLOURS", "DASHES", "DIVERGING", "INK", "KIND_WORDS", "MADE", "MARKS", "MINUS", "NEVER",
    "OKABE_ITO", "SEQUENTIAL", "SIZES", "THEMES", "YET", "axes", "blank", "colorway", "contrast", "css_variables",
    "drawn_in", "ink_on", "is_strong", "luminance", "short", "signed", "table", "tone_colour",
]  # fmt: skip

DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")
"""The n-th line of a chart takes the n-th dash, so that lines differ without colour."""

MARKS: Final[Mapping[str, str]] = {
    "new": "M-3.5 0H3.5M0 -3.5V3.5",
    "active": "M-2 -3.5L3.5 0L-2 3.5Z",
    "done": "M-3.5 0.2L-1 2.8L3.6 -2.6",
    "waiting": "M-3.4 0H-3.2M-0.1 0H0.1M3.2 0H3.4",
    "stopped": "M-2.8 -2.8H2.8V2.8H-2.8Z",
    "trouble": "M0 -3.8V0.8M0 3.3V3.5",
    "pin": "M0 4.5C-2 1.5 -3.5 0.5 -3.5 -1.5A3.5 3.5 0 0 1 3.5 -1.5C3.5 0.5 2 1.5 0 4.5Z",
}
"""Badge of each node state as a path around (0, 0), idle has none; and that of a node to which the reader holds on."""

MADE: Final[Mapping[str, str]] = {
    "run": "M-3 -4.2L4.4 0L-3 4.2Z",
    "live": "M-5 0H-3L-1 -4L1 4L3 0H5",
    "paced": "M-4.5 0A4.5 4.5 0 1 0 4.5 0A4.5 4.5 0 1 0 -4.5 0ZM0 -2.6V0.2L2 1.6",
    "throttled": "M-4 -4.5H4L1 0L4 4.5H-4L-1 0Z",
    "simulated": "M-5 -1.2C-3 -4.5 -1 -1 0 -1.2S3 -3.5 5 -1.2M-5 2.4C-3 -0.9 -1 2.6 0 2.4S3 0.1 5 2.4",
}
"""How the numbers of a picture came about: the mark before its provenance, as a path around (0, 0), drawn as lines."""

KIND_WORDS: Final[Mapping[str, str]] = {
    "leaf": "leaf", "op": "operation", "constant": "constant", "output": "output", "group": "group", "rank": "rank",
    "device": "device", "forward_span": "forward", "backward_span": "backward",
    "idle": "idle", "new": "new", "active": "active now", "done": "done", "waiting": "waiting", "trouble": "trouble",
    "stopped": "ended early", "pin": "pinned",
    "forward": "value, forward", "backward": "gradient, backward", "none": "no gradient wanted",
    "store": "stored",
    "frame": "open group",
}  # fmt: skip
"""What a mark means when a legend gives no words of its own."""

YET, NEVER = "nothing yet", "nothing to show"
"""What an empty picture says while something may come, and when its recording has ended."""
MINUS: Final = "\N{MINUS SIGN}"


def short(value: float) -> str:
    """A number as a person would write it: four digits, a true minus sign, powers of ten only where they help.

    Example:
        >>> short(6.0), short(-0.12345), short(1234567.0), short(4321), short(float("nan"))
        ('6.0', '−0.1235', '1.235e6', '4,321', 'nan')
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}".replace("-", MINUS) if abs(value) < 10**15 else short(float(value))
    number = float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "∞" if number > 0 else f"{MINUS}∞"
    if number == 0.0:
        return "0.0"
    if 1e-3 <= abs(number) < 1e6:
        text = f"{number:,.{max(1, 3 - math.floor(math.log10(abs(number))))}f}".rstrip("0")
        text = text + "0" if text.endswith(".") else text
    else:
        mantissa, exponent = f"{number:.3e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return text.replace("-", MINUS)


def signed(text: str) -> str:
    """Words with numbers of the engine in them, their minus as `short` has it; a hyphen between letters stays.

    Example:
        >>> signed("x from -1.0 to 2e-05, a micro-batch of [-inf, -.5]")
        'x from −1.0 to 2e−05, a micro-batch of [−inf, −.5]'
    """
    return re.sub(r"(?<![\w.)\]])-(?=[\d.]|inf)|(?<=\de)-(?=\d)", MINUS, text)


def _rgb(colour: str) -> tuple[int, int, int]:
    return int(colour[1:3], 16), int(colour[3:5], 16), int(colour[5:7], 16)


def luminance(colour: str) -> float:
    """Relative luminance of "#RRGGBB" in 0..1 (WCAG 2.2).

    Example:
        >>> luminance("#FFFFFF")
        1.0
    """
    linear = [c / 3294.6 if c <= 10 else ((c / 255 + 0.055) / 1.055) ** 2.4 for c in _rgb(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours, 1..21; small text needs 4.5, lines and large text 3 (WCAG AA).

    Example:
        >>> round(contrast("#000000", "#FFFFFF"))
        21
    """
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def ink_on(fill: str) -> str:
    """Black or white, whichever reads better on `fill`; at least 4.5:1 for every fill there is.

    Example:
        >>> ink_on("#FEE838"), ink_on("#00224E")
        ('#000000', '#FFFFFF')
    """
    return max(("#000000", "#FFFFFF"), key=lambda ink: contrast(ink, fill))


def _between(stops: tuple[str, ...], position: float) -> str:
    place = min(max(position, 0.0), 1.0) * (len(stops) - 1)
    i = min(int(place), len(stops) - 2)
    a, b = _rgb(stops[i]), _rgb(stops[i + 1])
    # floor(x + 0.5), not round(): Math.round in scene.js rounds halves up, and both must give the same colour.
    return "#" + "".join(f"{math.floor(p + (q - p) * (place - i) + 0.5):02X}" for p, q in zip(a, b, strict=True))


_THEME: ContextVar[str] = ContextVar("lab_still_theme", default="light")


class _Ink(Mapping[str, str]):
    """The colours of the theme in which still pictures are drawn at the moment."""

    def __getitem__(self, name: str) -> str:
        return COLOURS[_THEME.get()][name]

    def __iter__(self) -> Iterator[str]:
        return iter(COLOURS["light"])

    def __len__(self) -> int:
        return len(COLOURS["light"])


INK: Final[Mapping[str, str]] = _Ink()
"""Colour by name for what Python draws; light, unless within `drawn_in`."""


@contextmanager
def drawn_in(theme: str) -> Iterator[None]:
    """Still pictures made within the block have the colours of this theme.

    Example:
        >>> with drawn_in("dark"):
        ...     INK["surface"]
        '#111418'
    """
    token = _THEME.set(theme)
    try:
        yield
    finally:
        _THEME.reset(token)


def is_strong() -> bool:
    """Whether still pictures are drawn in high contrast at the moment: nothing is half seen through then.

    Example:
        >>> with drawn_in("contrast"):
        ...     is_strong()
        True
    """
    return _THEME.get().startswith("contrast")


def colorway() -> tuple[str, ...]:
    """Colours of lines in the theme in which still pictures are drawn at the moment."""
    return COLORWAY[_THEME.get()]


def tone_colour(tone: float, palette: str = "sequential", mode: str = "") -> str:
    """The fill for a magnitude in 0..1 (sequential) or a signed one in -1..1 (diverging); `mode` is a theme.

    Example:
        >>> tone_colour(1.0), tone_colour(0.0, "diverging")
        ('#FEE838', '#F5F5F5')
    """
    mode = mode or _THEME.get()
    if palette == "diverging":
        return _between(DIVERGING[mode], (tone + 1) / 2)
    return _between(SEQUENTIAL[mode], tone)


def axes(xtitle: str = "", ytitle: str = "", **more: object) -> dict[str, Any]:
    """Layout of a calm chart: titles on the axes, no template, room for the labels; colours come with the page's theme.

    Args:
        more: further keys of a plotly layout, merged over these.

    Example:
        >>> axes("step", "loss")["xaxis"]["title"]["text"]
        'step'
    """
    layout: dict[str, Any] = {
        "template": "none",
        "margin": {"l": 64, "r": 24, "t": 40, "b": 48},
        "height": 320,
        "hovermode": "closest",
        "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0},
        "xaxis": {"title": {"text": xtitle}, "zeroline": False, "automargin": True},
        "yaxis": {"title": {"text": ytitle}, "zeroline": False, "automargin": True},
    }
    for key, value in more.items():
        inner = layout.get(key)
        layout[key] = {**inner, **value} if isinstance(inner, dict) and isinstance(value, Mapping) else value
    return layout


def blank(layout: Mapping[str, Any]) -> dict[str, Any]:
    """The layout of a chart without numbers: low, no axes whose ticks mean nothing, and words.

    Example:
        >>> blank(axes("step", "loss"))["annotations"][0]["text"]
        'nothing yet'
    """
    words = {"text": YET, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    hidden = {name: {**axis, "visible": False} for name, axis in layout.items() if name[1:].startswith("axis")}
    return {**layout, **hidden, "height": 140, "annotations": [words]}


def css_variables() -> str:
    """The colour tables as CSS for the class `lab-root`: light by default, the others under `[data-lab-theme=NAME]`."""

    def block(name: str) -> str:
        return "".join(f"--lab-{colour}:{value};" for colour, value in COLOURS[name].items())

    chosen = "".join(f".lab-root[data-lab-theme={name}]{{{block(name)}}}\n" for name in THEMES[1:])
    # `:root`, too: controls of a notebook stand beside pictures, not in them.
    sizes = "".join(
        f":root[data-lab-size={name}],.lab-root[data-lab-size={name}]{{--lab-scale:{scale:g};}}\n"
        for name, scale in SIZES.items()
    )
    return f".lab-root{{{block(THEMES[0])}--lab-scale:1;}}\n{chosen}{sizes}"


def table() -> str:
    """The same tables as JSON, for `scene.js` and `chart.js`."""
    return json.dumps({
        "colours": COLOURS, "sequential": SEQUENTIAL, "diverging": DIVERGING, "colorway": COLORWAY, "sizes": SIZES,
        "marks": MARKS, "made": MADE, "words": KIND_WORDS,
    })  # fmt: skip
