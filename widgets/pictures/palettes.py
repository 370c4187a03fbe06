"""Every colour, once: four themes with the same names, their palettes for magnitudes and lines, and two sizes of type.

Text reads on every fill (4.5:1) and lines stand out from the page (3:1); in the two themes of high contrast both reach
7:1. `tests/widgets/test_theme.py` computes all of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

THEMES: Final = ("light", "dark", "contrast", "contrast-dark")
"""What `data-lab-theme` of an element can be; "contrast" is black on white, "contrast-dark" white on black."""

SIZES: Final[Mapping[str, float]] = {"normal": 1.0, "projector": 1.5}
"""How large type and lines are, in times the size on a desk: chosen by `data-lab-size` of the page's root element."""

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

SEQUENTIAL: Final[Mapping[str, tuple[str, ...]]] = {
    "light": CIVIDIS, "dark": CIVIDIS, "contrast": CIVIDIS[6:], "contrast-dark": CIVIDIS[6:],
}  # fmt: skip
"""Magnitudes; in high contrast only the part on which black reads at 7:1: in the middle neither ink does."""

DIVERGING: Final[Mapping[str, tuple[str, ...]]] = {
    "light": ("#0B4F8A", "#3F86C0", "#A6CBE8", "#F5F5F5", "#F8CB9A", "#D9822B", "#9A4D00"),
    "dark": ("#8CCBF7", "#4593CC", "#1F4F75", "#2A2F36", "#6B4212", "#C77F30", "#FFBE7A"),
    "contrast": ("#6BA9DD", "#B5D5EE", "#FFFFFF", "#FAD3A8", "#E39B4D"),
    "contrast-dark": ("#1D5A94", "#0F3358", "#000000", "#4A2A00", "#854A00"),
}
"""Signed values, negative blue and positive orange; the middle fades into the page."""

COLOURS: Final[Mapping[str, Mapping[str, str]]] = {
    "light": {
        "surface": "#FFFFFF", "text": "#1B2430", "muted": "#55606E", "line": "#7B8794", "grid": "#E3E7EB",
        "accent": "#0072B2", "forward": "#0072B2", "backward": "#B34700", "done": "#4A5561", "trouble": "#B3261E",
        "leaf": "#E1F0FA", "op": "#F3F5F7", "constant": "#FFFFFF", "output": "#FFF1CC", "group": "#EEEAF6",
        "frame": "#F8F9FA", "rank": "#DFF3EB", "device": "#DFF3EB", "forward_span": "#BFE0F5",
        "backward_span": "#FCE3CD",
    },
    "dark": {
        "surface": "#111418", "text": "#E9EDF1", "muted": "#A7B1BC", "line": "#8490A0", "grid": "#2B323A",
        "accent": "#6CC0F2", "forward": "#6CC0F2", "backward": "#FFA657", "done": "#BAC4CF", "trouble": "#FF8A80",
        "leaf": "#15364C", "op": "#262C33", "constant": "#171B20", "output": "#463708", "group": "#352E4B",
        "frame": "#161A1F", "rank": "#123B30", "device": "#123B30", "forward_span": "#164365",
        "backward_span": "#4A2C10",
    },
    "contrast": {
        "surface": "#FFFFFF", "text": "#000000", "muted": "#1F1F1F", "line": "#000000", "grid": "#8C8C8C",
        "accent": "#003E8A", "forward": "#003E8A", "backward": "#7A2700", "done": "#2B2B2B", "trouble": "#8B0000",
        "leaf": "#E4F1FC", "op": "#FFFFFF", "constant": "#FFFFFF", "output": "#FFF3D1", "group": "#F1EEFA",
        "frame": "#FFFFFF", "rank": "#E3F5EE", "device": "#E3F5EE", "forward_span": "#D3E9F9",
        "backward_span": "#FDEBDB",
    },
    "contrast-dark": {
        "surface": "#000000", "text": "#FFFFFF", "muted": "#E8E8E8", "line": "#FFFFFF", "grid": "#7A7A7A",
        "accent": "#8FD0FF", "forward": "#8FD0FF", "backward": "#FFC48A", "done": "#DDDDDD", "trouble": "#FFB3AB",
        "leaf": "#00263D", "op": "#000000", "constant": "#000000", "output": "#332800", "group": "#241C3B",
        "frame": "#000000", "rank": "#002A20", "device": "#002A20", "forward_span": "#00304D",
        "backward_span": "#3A2000",
    },
}  # fmt: skip
"""Fills are named as the kinds of nodes, other names say what they are for; `var(--lab-NAME)` in the style sheet."""

COLORWAY: Final[Mapping[str, tuple[str, ...]]] = {
    "light": ("#0072B2", "#D55E00", "#009E73", "#B5508A", "#A87300", "#2E86B8", "#5B6570"),
    "dark": ("#6CC0F2", "#FFA657", "#3CCB9F", "#E59CC6", "#F0E442", "#9DB7FF", "#C9D1D9"),
    "contrast": ("#003E8A", "#7A2700", "#00503A", "#6E1D50", "#5A3E00", "#1A4F6E", "#2B2B2B"),
    "contrast-dark": ("#8FD0FF", "#FFC48A", "#7DE8C1", "#F7BFE0", "#F7EC6B", "#C3D2FF", "#FFFFFF"),
}
"""Lines of charts: Okabe-Ito, darker or lighter where the page would swallow them (at least 3:1 on the surface)."""
