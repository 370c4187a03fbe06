"""A recording as one SVG that moves by itself: for a README, a slide, or any page that runs no script.

What stays the same from stop to stop is drawn once: CSS shows each element while it holds. It ends on all of the drawing,
and who asked for less motion sees that only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from widgets.export.page import Frame
from widgets.export.slim import slim
from widgets.pictures.scene import Scene
from widgets.pictures.theme import drawn_in
from widgets.pictures.tree import Picture
from widgets.pictures.twin import caption_below, drawing, framed, svg_of, tag

MOST_STOPS = 60
"""At 1.6 seconds a stop a film of one and a half minutes: nobody watches a longer one."""
POINTS = 300
"""Of a line of a chart; it is drawn about 600 pixels wide, each bucket keeps its smallest and largest point."""

WIDEST = 1000.0
"""Pixels; of a much wider drawing each stop shows the part where something happens, and the end shows all of it."""
WHOLE = 1600.0
"""Pixels; a drawing no wider is seen whole at every stop: on a page its texts can still be read."""
LIVELY = frozenset({"new", "active"})

_STYLE = """
/* {total} s in all */
.stop {{ visibility: hidden; animation: {total}s steps(1, end) infinite; }}
@media (prefers-reduced-motion: reduce) {{ .stop {{ animation: none !important; }} .last {{ visibility: visible; }} }}
"""
_SHOW = (
    "@keyframes {name} {{ 0% {{ visibility: visible; }} {share}% {{ visibility: hidden; }} "
    "100% {{ visibility: hidden; }} }}\n"
)


def moving_svg(frames: Sequence[Frame], *, seconds: float = 1.6, note: str = "", theme: str = "light") -> str:
    """One `<svg>` that shows the first picture of each frame in turn, for ever.

    Args:
        frames: what `Player.frames()` gives.
        seconds: how long each stays; the last stays three times as long, as three stops.
        note: a line below, e.g. what was left out.
        theme: one of `theme.THEMES`.

    Example:
        >>> from widgets.pictures.scene import Node, Scene
        >>> stops = [Frame(str(i), (Scene((Node("a", 0, 0, 64, 36, f"x{i}"),)),), "x") for i in range(3)]
        >>> moving_svg(stops).count('class="stop')
        3
    """
    with drawn_in(theme):
        return _moving([frame.pictures[0] for frame in frames], seconds, note, theme)


def _moving(pictures: Sequence[Picture], seconds: float, note: str, theme: str) -> str:
    film = _layers(pictures, theme)
    width, height, n = film.width, film.height, len(pictures) + 2
    lengths: set[int] = set()
    body = "".join(tag("g", _film(layer, n, seconds, lengths), transform=film.shift) for layer in film.layers)
    if film.views:
        body = tag("g", body, class_="pan")
    body += tag("g", _film(film.captions, n, seconds, lengths))
    style = _pan(film, n, seconds) + _STYLE.format(total=f"{seconds * n:g}")
    style += "".join(_SHOW.format(name=f"r{k}", share=f"{100 * k / n:.4f}") for k in sorted(lengths))
    if note:
        words, height = caption_below(Scene((), caption=note), width, height)
        body += words
    return framed(tag("style", style) + body, width, height, pictures[-1]) + "\n"


class _Film(NamedTuple):
    """What is drawn one above the other.

    Attributes:
        layers: for each its elements at each stop.
        captions: the same for the words below.
        shift: where the layers are, as `transform`.
        views: the left edge of what is seen at each stop; empty where all of it is.
        size: of the layers, without the words below.
    """

    layers: list[list[Sequence[str]]]
    captions: list[Sequence[str]]
    shift: str | None
    width: float
    height: float
    views: list[float]
    size: tuple[float, float]


def _layers(pictures: Sequence[Picture], theme: str) -> _Film:
    scenes = [picture for picture in pictures if isinstance(picture, Scene)]
    drawn = [drawing(scene) for scene in scenes]
    alike = {(d.shift, d.width, d.height, len(d.layers)) for d in drawn}
    if len(scenes) < len(pictures) or len(alike) > 1:  # nothing to share: whole pictures, one after the other
        stills = [svg_of(slim(picture, POINTS), theme) for picture in pictures]
        sizes = [_size(still) for still in stills]
        width, height = max(w for w, _ in sizes), max(h for _, h in sizes)
        return _Film([[(still,) for still in stills]], [], None, width, height, [], (width, height))
    shift, width, height, n_layers = alike.pop()
    views = _views(scenes, width) if width > WHOLE else []
    seen = WIDEST if views else width
    captions = [caption_below(scene, seen, height) for scene in scenes]
    layers: list[list[Sequence[str]]] = [[d.layers[k] for d in drawn] for k in range(n_layers)]
    full = max(full for _, full in captions)
    return _Film(layers, [(words,) for words, _ in captions], shift, seen, full, views, (width, height))


def _views(scenes: Sequence[Scene], width: float) -> list[float]:
    """Where to look at each stop: at the boxes where something happens, else where one looked before."""
    left, lefts = 0.0, []
    for scene in scenes:
        lively = [node.x for node in scene.nodes if node.state in LIVELY]
        if lively:
            left = min(max(0.0, sum(lively) / len(lively) - WIDEST / 2), width - WIDEST)
        lefts.append(left)
    return lefts


def _pan(film: _Film, n: int, seconds: float) -> str:
    """CSS that moves a wide drawing so that each stop shows where something happens, and the end all of it."""
    if not film.views:
        return ""
    lefts = enumerate(film.views)
    moves = " ".join(f"{100 * k / n:.4f}% {{ transform: translateX({-left:.0f}px); }}" for k, left in lefts)
    across, high = film.size
    scale = film.width / across
    end = f"transform: translateY({high * (1 - scale) / 2:.0f}px) scale({scale:.5f});"
    moves += f" {100 * len(film.views) / n:.4f}% {{ {end} }}"
    return (
        f".pan {{ animation: pan {seconds * n:g}s step-end infinite; {end} }}\n"
        f"@keyframes pan {{ {moves} to {{ {end} }} }}\n"
        "@media (prefers-reduced-motion: reduce) { .pan { animation: none; } }\n"
    )


def _film(stops: Sequence[Sequence[str]], n: int, seconds: float, lengths: set[int]) -> str:
    """The elements of a layer, each shown from the stop at which it comes to the one at which it goes."""
    runs: dict[str, list[list[int]]] = {}
    for k, elements in enumerate(stops):
        for element in elements:
            mine = runs.setdefault(element, [])
            if mine and mine[-1][1] == k:
                mine[-1][1] = k + 1
            else:
                mine.append([k, k + 1])
    made = []
    for element, whiles in runs.items():
        for start, stop in whiles:
            last = stop == len(stops)
            length = (n if last else stop) - start
            if length == n:
                made.append(element)
                continue
            lengths.add(length)
            style = f"animation-name: r{length}; animation-delay: {start * seconds:g}s"
            made.append(f'<g class="stop{" last" * last}" style="{style}">{element}</g>')
    return "".join(made)


def _size(svg: str) -> tuple[float, float]:
    _, _, width, height = map(float, svg.split('viewBox="', 1)[1].split('"', 1)[0].split())
    return width, height
