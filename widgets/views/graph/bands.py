"""The graph of a gradient as a part of its own: what a backward walk computed stands in a band of its own, framed.

Bands run to and fro, as the walk does. No edge leads from band to band: what comes from another is there by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from widgets.tape.boxes import Places, placed

Edges = Sequence[tuple[str, str, str]]
Box = tuple[float, float, float, float]
HEAD, PAD, BETWEEN = 34.0, 14.0, 40.0
"""Room for the label of a frame, around what is in it, and between two bands."""


class Bands(NamedTuple):
    """Where everything stands, and the frame of each band but the first, by its key."""

    places: Places
    frames: Mapping[int, Box]


def banded(
    boxes: Mapping[str, tuple[float, float]], edges: Edges, band_of: Mapping[str, int], direction: str
) -> Bands:
    """Place boxes band by band.

    Args:
        boxes: sizes by id.
        edges: as (id, source, target), each within one band.
        band_of: the band of each box; bands stand in the order of their first box.
        direction: of the first band; each further one runs against the one before.
    """
    bands = list(dict.fromkeys(band_of[name] for name in boxes))
    if len(bands) <= 1:
        return Bands(placed(boxes, list(edges), direction), {})
    parts = [_part(band, boxes, edges, band_of, direction) for band in bands]
    down = direction == "down"
    before, above = (HEAD, PAD) if down else (PAD, HEAD)  # the label stands at the top, whichever way a band runs
    along = max(p.extent[down] for p in parts) + before + PAD
    nodes: dict[str, Box] = {}
    bends: dict[str, tuple[tuple[float, float], ...]] = {}
    frames: dict[int, Box] = {}
    across = 0.0
    for k, (band, part) in enumerate(zip(bands, parts, strict=True)):
        long, thick = part.extent[down], part.extent[not down]
        start = across + above if k else across

        def moved(x: float, y: float, back: bool = k % 2 == 1, start: float = start) -> tuple[float, float]:
            a, b = (y, x) if down else (x, y)
            a, b = (along - PAD - a if back else a + before), b + start
            return (b, a) if down else (a, b)

        nodes |= {name: (*moved(x, y), width, height) for name, (x, y, width, height) in part.nodes.items()}
        bends |= {edge: tuple(moved(*bend) for bend in ways) for edge, ways in part.bends.items()}
        across = start + thick
        if k:
            across += PAD
            first = along - PAD - long if k % 2 else before
            middle = first + (long + PAD - before) / 2, start + (thick + PAD - above) / 2
            size = long + PAD + before, thick + PAD + above
            frames[band] = (*middle[::-1], *size[::-1]) if down else (*middle, *size)
        across += BETWEEN
    extent = (across - BETWEEN, along) if down else (along, across - BETWEEN)
    return Bands(Places(nodes, bends, extent), frames)


def _part(
    band: int, boxes: Mapping[str, tuple[float, float]], edges: Edges, band_of: Mapping[str, int], direction: str
) -> Places:
    own = {name: size for name, size in boxes.items() if band_of[name] == band}
    return placed(own, [e for e in edges if e[1] in own and e[2] in own], direction)
