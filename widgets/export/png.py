"""Pictures in pixels: the SVG twins, drawn by resvg, which needs no browser and no network.

resvg takes the fonts of this machine. At scale 1 a pixel of the notebook is one of the file; 2 is sharp on any screen.
"""

from __future__ import annotations

import importlib.util
import math
import re
import struct
import zlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from lab.checks import number
from lab.errors import ViewError
from widgets.export.endings import file_at
from widgets.pictures.palettes import COLOURS
from widgets.pictures.tree import Picture
from widgets.pictures.twin import svg_of

FONTS: Final = "'DejaVu Sans', 'Segoe UI', 'Noto Sans', Helvetica, Arial, 'Liberation Sans', Verdana, sans-serif"
"""The first that is there is taken. Those that have every sign come first: for one that is missing resvg draws all of
its line in another font. All fit into the room that `measure.py` gives to text."""
SCALE: Final = 2.0
DPI: Final = 96
"""Pixels of a notebook to an inch, as CSS has it."""
MOST_PIXELS: Final = 80_000_000
"""320 MB while it is drawn."""
GAP: Final = 12
"""Pixels between pictures that stand below one another."""
_SIZE = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')


def write_png(path: Path, pictures: Sequence[Picture], *, theme: str = "light", scale: float = SCALE) -> Path:
    """Write pictures below one another into one file, whole or not at all; returns its path.

    Raises:
        ViewError: as `png_of`.
        OSError: the disk is full, or the folder cannot be written.
    """
    data = png_of(pictures, theme=theme, scale=scale)
    with file_at(path) as file:
        file.write(data)
    return path


def png_of(pictures: Sequence[Picture], *, theme: str = "light", scale: float = SCALE) -> bytes:
    """Pictures below one another as a PNG file on the background of the theme, with its size in inches.

    Args:
        theme: one of `theme.THEMES`.
        scale: pixels of the file for one of the notebook: 96 times so many to an inch.

    Raises:
        ViewError: resvg is not installed, there is no font, no such theme or scale, or it would be too large.

    Example:
        >>> from widgets.pictures.scene import Node, Scene
        >>> data = png_of([Scene((Node("a", 0, 0, 64, 36, "x"),))], scale=1)
        >>> data[1:4], struct.unpack(">2I", data[16:24])
        (b'PNG', (240, 84))
    """
    scale = number("scale", scale, hint="scale=2 is sharp anywhere", error=ViewError)
    if not 0 < scale < math.inf:
        problem = "the scale of a picture is a positive number"
        raise ViewError(problem, given=f"scale={scale:g}", hint="2 is sharp anywhere")
    svg, width, height = below_one_another([svg_of(picture, theme) for picture in pictures])
    if width * height * scale * scale > MOST_PIXELS:
        most = math.sqrt(MOST_PIXELS / (width * height))
        raise ViewError(
            "the picture is too large for a PNG", given=f"{width * scale:,.0f} x {height * scale:,.0f} pixels",
            hint=f"scale={math.floor(most * 100) / 100:g} fits; .svg and .html have no such bound",
        )  # fmt: skip
    _require_font()
    return _with_size(_rendered(svg, scale, COLOURS[theme]["surface"]), DPI * scale)


def below_one_another(svgs: Sequence[str]) -> tuple[str, float, float]:
    """One `<svg>` that holds several, its width and its height.

    Example:
        >>> one = '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 30 20" width="30" height="20"/>'
        >>> below_one_another([one, one])[1:]
        (30.0, 52.0)
    """
    sizes = [(float(found[1]), float(found[2])) for svg in svgs if (found := _SIZE.search(svg))]
    width, height = max(w for w, _ in sizes), sum(h for _, h in sizes) + GAP * (len(sizes) - 1)
    y, body = 0.0, ""
    for svg, (_, high) in zip(svgs, sizes, strict=True):
        body += svg.replace("<svg ", f'<svg y="{y:g}" ', 1)
        y += high + GAP
    size = f'viewBox="0 0 {width:g} {height:g}" width="{width:g}" height="{height:g}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>{body}</svg>', width, height


def _rendered(svg: str, scale: float, background: str) -> bytes:
    try:
        import resvg_py
    except ImportError as why:
        raise ViewError("PNG files need resvg, which is not installed", given="import resvg_py failed",
                        hint="pip install resvg_py; .svg and .html need nothing") from why  # fmt: skip
    made: Any = resvg_py.svg_to_bytes(
        svg_string=svg, zoom=scale, background=background, style_sheet=f"svg {{ font-family: {FONTS} }}",
        sans_serif_family="DejaVu Sans", font_dirs=_font_folders(),
    )  # fmt: skip
    return bytes(made)


@cache
def _font_folders() -> list[str]:
    """Fonts that are here beside those of the system: matplotlib's, where it is installed."""
    found = importlib.util.find_spec("matplotlib")
    places = found.submodule_search_locations if found else None
    folders = [Path(place) / "mpl-data" / "fonts" / "ttf" for place in places or ()]
    return [str(folder) for folder in folders if folder.is_dir()]


@cache
def _require_font() -> None:
    """Find out once whether any text can be drawn: resvg leaves out silently what it has no font for."""
    ink = '<svg xmlns="http://www.w3.org/2000/svg" width="40" height="20">{}</svg>'
    if _rendered(ink.format('<text x="5" y="15">Mx</text>'), 1, "#fff") == _rendered(ink.format(""), 1, "#fff"):
        raise ViewError(
            "this machine has no font to draw text with", given="a PNG without words",
            hint="install one, as Debian's fonts-dejavu-core; .svg and .html use those of who looks",
        )  # fmt: skip


def _with_size(png: bytes, dpi: float) -> bytes:
    """The file with its resolution, so that a document shows it in the size that it has in the notebook."""
    per_metre = round(dpi / 0.0254)
    body = b"pHYs" + struct.pack(">2IB", per_metre, per_metre, 1)
    chunk = struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))
    after_header = 8 + 25  # signature, IHDR
    return png[:after_header] + chunk + png[after_header:]
