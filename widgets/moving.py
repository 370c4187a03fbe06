"""A recording as one SVG that moves by itself: for a README, a slide, or any page that runs no script.

Every stop is a still picture (`twin.py`); CSS shows one after the other. Who asked for less motion sees the last one.
"""

from __future__ import annotations

from collections.abc import Sequence

from widgets.page import Frame
from widgets.tree import Picture
from widgets.twin import svg_of, tag

_STYLE = """
.stop {{ visibility: hidden; animation: show {total}s steps(1, end) infinite; }}
@keyframes show {{ 0% {{ visibility: visible; }} {share}% {{ visibility: hidden; }} 100% {{ visibility: hidden; }} }}
@media (prefers-reduced-motion: reduce) {{ .stop {{ animation: none; }} .last {{ visibility: visible; }} }}
"""


def moving_svg(frames: Sequence[Frame], *, seconds: float = 1.6) -> str:
    """One `<svg>` that shows the first picture of each frame in turn, for ever.

    Args:
        frames: what `Player.frames()` gives.
        seconds: how long each stays; the last stays three times as long, as three stops.

    Example:
        >>> from widgets.scene import Node, Scene
        >>> stops = [Frame(str(i), (Scene((Node("a", 0, 0, 64, 36, "x"),)),), "x") for i in range(3)]
        >>> moving_svg(stops).count('class="stop')
        5
    """
    pictures: list[Picture] = [frame.pictures[0] for frame in frames]
    pictures += [pictures[-1]] * 2
    stills = [svg_of(picture) for picture in pictures]
    width, height = (max(_size(still)[i] for still in stills) for i in (0, 1))
    total = seconds * len(stills)
    style = _STYLE.format(total=f"{total:g}", share=f"{100 / len(stills):.4f}")
    body = [tag("style", style)]
    for i, still in enumerate(stills):
        last = " last" if i == len(stills) - 1 else ""
        body.append(f'<g class="stop{last}" style="animation-delay: {i * seconds:g}s">{still}</g>')
    box = f"0 0 {width:g} {height:g}"
    return f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{box}" width="{width:g}">{"".join(body)}</svg>\n'


def _size(svg: str) -> tuple[float, float]:
    _, _, width, height = map(float, svg.split('viewBox="', 1)[1].split('"', 1)[0].split())
    return width, height
