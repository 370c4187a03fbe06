"""A recording as one SVG that moves by itself: for a README, a slide, or any page that runs no script.

What stays the same from stop to stop is drawn once: CSS shows each element while it holds. Who asked for less motion
sees the last stop only.
"""

from __future__ import annotations

from collections.abc import Sequence

from widgets.page import Frame
from widgets.scene import Scene
from widgets.slim import slim
from widgets.tree import Picture
from widgets.twin import caption_below, drawing, framed, svg_of, tag

MOST_STOPS = 60
"""At 1.6 seconds a stop a film of one and a half minutes: nobody watches a longer one."""
POINTS = 300
"""Of a line of a chart; it is drawn about 600 pixels wide, each bucket keeps its smallest and largest point."""

_STYLE = """
/* {total} s in all */
.stop {{ visibility: hidden; animation: {total}s steps(1, end) infinite; }}
@media (prefers-reduced-motion: reduce) {{ .stop {{ animation: none !important; }} .last {{ visibility: visible; }} }}
"""
_SHOW = (
    "@keyframes {name} {{ 0% {{ visibility: visible; }} {share}% {{ visibility: hidden; }} "
    "100% {{ visibility: hidden; }} }}\n"
)


def moving_svg(frames: Sequence[Frame], *, seconds: float = 1.6, note: str = "") -> str:
    """One `<svg>` that shows the first picture of each frame in turn, for ever.

    Args:
        frames: what `Player.frames()` gives.
        seconds: how long each stays; the last stays three times as long, as three stops.
        note: a line below, e.g. what was left out.

    Example:
        >>> from widgets.scene import Node, Scene
        >>> stops = [Frame(str(i), (Scene((Node("a", 0, 0, 64, 36, f"x{i}"),)),), "x") for i in range(3)]
        >>> moving_svg(stops).count('class="stop')
        3
    """
    pictures = [frame.pictures[0] for frame in frames]
    layers, width, height = _layers(pictures)
    n = len(pictures) + 2
    lengths: set[int] = set()
    body = "".join(tag("g", _film(layer, n, seconds, lengths), transform=shift) for shift, layer in layers)
    style = _STYLE.format(total=f"{seconds * n:g}")
    style += "".join(_SHOW.format(name=f"r{k}", share=f"{100 * k / n:.4f}") for k in sorted(lengths))
    if note:
        words, height = caption_below(Scene((), caption=note), width, height)
        body += words
    return framed(tag("style", style) + body, width, height, pictures[-1]) + "\n"


def _layers(pictures: Sequence[Picture]) -> tuple[list[tuple[str | None, list[Sequence[str]]]], float, float]:
    """What is drawn one above the other: for each layer its shift, and its elements at each stop."""
    scenes = [picture for picture in pictures if isinstance(picture, Scene)]
    drawn = [drawing(scene) for scene in scenes]
    alike = {(d.shift, d.width, d.height, len(d.layers)) for d in drawn}
    if len(scenes) < len(pictures) or len(alike) > 1:  # nothing to share: whole pictures, one after the other
        stills = [svg_of(slim(picture, POINTS)) for picture in pictures]
        sizes = [_size(still) for still in stills]
        return [(None, [(still,) for still in stills])], max(w for w, _ in sizes), max(h for _, h in sizes)
    shift, width, height, n_layers = alike.pop()
    captions = [caption_below(scene, width, height) for scene in scenes]
    layers: list[tuple[str | None, list[Sequence[str]]]] = [
        (shift, [d.layers[k] for d in drawn]) for k in range(n_layers)
    ]
    return [*layers, (None, [(words,) for words, _ in captions])], width, max(full for _, full in captions)


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
