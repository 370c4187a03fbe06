"""How everything looks: colours, marks and numbers, in one table that Python's SVG, `scene.js` and plotly share.

Meaning never rests on colour alone: every state has a mark or a line style too, and a test computes the contrast of
every pair of text and fill in light and dark.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, Final

OKABE_ITO: Final = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442", "#000000")
"""Categories that people with any colour vision can tell apart (Okabe and Ito 2008), strongest on white first."""

CIVIDIS: Final = (
    "#00224E",
    "#123570",
    "#3B496C",
    "#575D6D",
    "#707173",
    "#8A8678",
    "#A59C74",
    "#C3B369",
    "#E1CC55",
    "#FEE838",
)
"""Magnitude: lightness grows evenly, so it survives a grey print (Nunez, Anderton and Renslow 2018)."""

DIVERGING: Final[Mapping[str, tuple[str, ...]]] = {
    "light": ("#0B4F8A", "#3F86C0", "#A6CBE8", "#F5F5F5", "#F8CB9A", "#D9822B", "#9A4D00"),
    "dark": ("#8CCBF7", "#4593CC", "#1F4F75", "#2A2F36", "#6B4212", "#C77F30", "#FFBE7A"),
}
"""Signed values, negative blue and positive orange; the middle fades into the page."""

COLOURS: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {
        "surface": "#FFFFFF", "text": "#1B2430", "muted": "#55606E", "line": "#7B8794", "grid": "#E3E7EB",
        "accent": "#0072B2", "forward": "#0072B2", "backward": "#B34700", "done": "#4A5561", "trouble": "#B3261E",
        "leaf": "#E1F0FA", "op": "#F3F5F7", "constant": "#FFFFFF", "output": "#FFF1CC", "group": "#EEEAF6",
        "rank": "#DFF3EB", "device": "#DFF3EB", "forward_span": "#BFE0F5", "backward_span": "#FCE3CD",
    },
    "dark": {
        "surface": "#111418", "text": "#E9EDF1", "muted": "#A7B1BC", "line": "#8490A0", "grid": "#2B323A",
        "accent": "#6CC0F2", "forward": "#6CC0F2", "backward": "#FFA657", "done": "#BAC4CF", "trouble": "#FF8A80",
        "leaf": "#15364C", "op": "#262C33", "constant": "#171B20", "output": "#463708", "group": "#352E4B",
        "rank": "#123B30", "device": "#123B30", "forward_span": "#17496B", "backward_span": "#4A2C10",
    },
}  # fmt: skip
"""Fills are named as the kinds of nodes, other names say what they are for; `var(--lab-NAME)` in the style sheet."""

COLORWAY: Final[Mapping[str, tuple[str, ...]]] = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#B5508A", "#A87300", "#2E86B8", "#5B6570"),
    "dark": ("#6CC0F2", "#FFA657", "#3CCB9F", "#E59CC6", "#F0E442", "#9DB7FF", "#C9D1D9"),
}
"""Lines of charts: Okabe-Ito, darker or lighter where the page would swallow them (at least 3:1 on the surface)."""

DASHES: Final = ("solid", "dash", "dot", "dashdot", "longdash")
"""The n-th line of a chart takes the n-th dash, so that lines differ without colour."""

MARKS: Final[Mapping[str, str]] = {
    "new": "M-3.5 0H3.5M0 -3.5V3.5",
    "active": "M-2 -3.5L3.5 0L-2 3.5Z",
    "done": "M-3.5 0.2L-1 2.8L3.6 -2.6",
    "waiting": "M-3.4 0H-3.2M-0.1 0H0.1M3.2 0H3.4",
    "stopped": "M-2.8 -2.8H2.8V2.8H-2.8Z",
    "trouble": "M0 -3.8V0.8M0 3.3V3.5",
}
"""Badge of each node state as a path around (0, 0); idle has none."""

KIND_WORDS: Final[Mapping[str, str]] = {
    "leaf": "leaf", "op": "operation", "constant": "constant", "output": "output", "group": "group", "rank": "rank",
    "device": "device", "forward_span": "forward", "backward_span": "backward",
    "idle": "idle", "new": "new", "active": "active now", "done": "done", "waiting": "waiting", "trouble": "trouble",
    "stopped": "ended early",
    "forward": "value, forward", "backward": "gradient, backward", "none": "no gradient wanted",
    "store": "stored",
}  # fmt: skip
"""What a mark means when a legend gives no words of its own."""

MINUS: Final = "\N{MINUS SIGN}"


def short(value: float) -> str:
    """A number as a person would write it: four digits, a true minus sign, powers of ten only where they help.

    Example:
        >>> short(6.0), short(-0.12345), short(1234567.0), short(3), short(float("nan"))
        ('6.0', '−0.1235', '1.235e6', '3', 'nan')
    """
    if isinstance(value, bool):
        return str(value)
    if isinstance(value, int):
        return (
            f"{value:,}".replace(",", "\N{THIN SPACE}").replace("-", MINUS)
            if abs(value) < 10**15
            else short(float(value))
        )
    number = float(value)
    if math.isnan(number):
        return "nan"
    if math.isinf(number):
        return "∞" if number > 0 else f"{MINUS}∞"
    if number == 0.0:
        return "0.0"
    if 1e-3 <= abs(number) < 1e6:
        text = f"{number:.{max(1, 3 - math.floor(math.log10(abs(number))))}f}".rstrip("0")
        text = text + "0" if text.endswith(".") else text
    else:
        mantissa, exponent = f"{number:.3e}".split("e")
        text = f"{mantissa.rstrip('0').rstrip('.')}e{int(exponent)}"
    return text.replace("-", MINUS)


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


def tone_colour(tone: float, palette: str = "sequential", mode: str = "light") -> str:
    """The fill for a magnitude in 0..1 (sequential) or a signed one in -1..1 (diverging).

    Example:
        >>> tone_colour(1.0), tone_colour(0.0, "diverging")
        ('#FEE838', '#F5F5F5')
    """
    if palette == "diverging":
        return _between(DIVERGING[mode], (tone + 1) / 2)
    return _between(CIVIDIS, tone)


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


def css_variables() -> str:
    """The colour table as CSS: light by default, dark under `[data-lab-theme=dark]`, both for the class `lab-root`."""
    block = "".join
    light = block(f"--lab-{name}:{value};" for name, value in COLOURS["light"].items())
    dark = block(f"--lab-{name}:{value};" for name, value in COLOURS["dark"].items())
    return f".lab-root{{{light}}}\n.lab-root[data-lab-theme=dark]{{{dark}}}\n"


def table() -> str:
    """The same tables as JSON, for `scene.js` and `chart.js`."""
    return json.dumps({
        "colours": COLOURS, "cividis": CIVIDIS, "diverging": DIVERGING, "colorway": COLORWAY, "marks": MARKS,
        "words": KIND_WORDS,
    })  # fmt: skip
