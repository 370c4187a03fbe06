"""The stops of a player as a file: which ones, how much of each, and where it may be written.

Bounds are numbers of drawn parts and points, not seconds, so that one recording always gives the same file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from lab.errors import ViewError
from widgets.export.endings import file_at, writable
from widgets.export.moving import MOST_STOPS, moving_svg
from widgets.export.page import Frame, write_page
from widgets.export.png import SCALE, write_png
from widgets.export.slim import slim
from widgets.fold import Positions, Prefix, merged
from widgets.pictures.chart import Chart
from widgets.pictures.palettes import THEMES
from widgets.pictures.scene import Scene
from widgets.view import View

MAX_FRAMES = 300
"""An exported page holds at most so many stops, evenly chosen; more would be a film that nobody steps through."""
MAX_PARTS = 150_000
"""Boxes and arrows on all stops of a page together: written in seconds, and well under 2 MB."""
MAX_POINTS = 200_000
"""Points of lines on all stops of a page together: about 2 MB."""
CHART_FRAMES = 100
FEWEST_FRAMES = 30
FRAME_LINES = 12
"""Lines of words for each stop: more is not listened to."""


def stops_of(views: Sequence[View[Any]]) -> Positions:
    """Where a player of these views stops; where nothing was recorded there is one stop, at the beginning."""
    stops = merged(*(v.stop_positions(Prefix.now(v.recording)) for v in views))
    return stops if len(stops) else np.zeros(1, np.int64)


def frames_of(
    views: Sequence[View[Any]],
    stops: Positions,
    most: int = MAX_FRAMES,
    marks: Mapping[int, str] | None = None,
    notes: Mapping[int, str] | None = None,
    names: Sequence[str] = (),
) -> list[Frame]:
    """At most `most` stops as frames: the first, the last, and evenly between; fewer where each of them is large.

    Args:
        stops: for each how many events have been folded then; of two dimensions: by view.
        marks: names of stops that have landmarks; those of the views if not given.
        notes: of stops that have a bookmark, which are always among the frames.
        names: what to call each view, in front of its caption.
    """
    notes = notes or {}
    if marks is None:
        marks = {k: name for v in views for k, name in v.landmarks(Prefix.now(v.recording)).named_at(stops).items()}
    moments = np.broadcast_to(stops.reshape(len(stops), -1), (len(stops), len(views)))
    last = [v.picture_at(int(p)) for v, p in zip(views, moments[-1], strict=True)]
    n_parts = sum(len(p.nodes) + len(p.edges) for p in last if isinstance(p, Scene))
    n_lines = sum(len(p.figure.data) for p in last if isinstance(p, Chart))
    most = min(most, max(FEWEST_FRAMES, MAX_PARTS // max(1, n_parts)), CHART_FRAMES if n_lines else most)
    evenly = np.linspace(0, len(stops) - 1, min(len(stops), most)).astype(int)
    chosen = np.unique([*evenly, *sorted(notes)[:most]]).tolist()
    points = max(150, min(2000, MAX_POINTS // (len(chosen) * max(1, n_lines))))
    marked = _gathered(marks, chosen)

    def frame(k: int) -> Frame:
        pairs = [(v, int(p)) for v, p in zip(views, moments[k], strict=True)]
        pictures = last if k == chosen[-1] else [slim(v.picture_at(p), points) for v, p in pairs]
        if names:
            called = zip(names, pictures, strict=True)
            pictures = [replace(p, caption=f"{name}: {p.caption}".strip()) for name, p in called]
        said = [v.text_at(p) for v, p in pairs]
        words = brief("\n".join(f"{n}: {t}" for n, t in zip(names, said, strict=True)) if names else "\n".join(said))
        return Frame(f"{k + 1} of {len(stops)}", tuple(pictures), words, marked.get(k, ""), notes.get(k, ""))

    return [frame(k) for k in chosen]


def _gathered(marks: Mapping[int, str], chosen: Sequence[int]) -> dict[int, str]:
    """The marks by the stop that is shown for each: the first chosen one that is not before it.

    Example:
        >>> _gathered({1: "step 1", 2: "step 2", 5: "step 3"}, [0, 4, 5])
        {4: 'step 1, step 2', 5: 'step 3'}
    """
    found: dict[int, list[str]] = {}
    for stop, name in marks.items():
        found.setdefault(chosen[int(np.searchsorted(chosen, stop))], []).append(name)
    return {k: names[0] if len(names) > 3 else ", ".join(names) for k, names in found.items()}


def written(
    path: str | Path,
    views: Sequence[View[Any]],
    stops: Positions,
    marks: Mapping[int, str] | None = None,
    notes: Mapping[int, str] | None = None,
    names: Sequence[str] = (),
    about: str = "",
    *,
    at: int = -1,
    theme: str | None = None,
    scale: float | None = None,
) -> Path:
    """Write what the ending says: a page that plays all views, a moving picture of the first, or all at one stop.

    Args:
        marks, notes, names: those of `frames_of`.
        about: what stands below the title of a page.
        at: the stop that a .png shows.
        theme: of .svg and .png, light if not given; a page has the theme of who reads it.
        scale: of .png, 2 if not given.

    Raises:
        ViewError: another ending, a folder that is not there, a theme or scale for what has none, or as `png_of`.
    """
    path = writable(path)
    ending = path.suffix.lower()
    require_drawn(ending, theme, scale)
    if ending == ".png":
        moments = np.broadcast_to(stops.reshape(len(stops), -1), (len(stops), len(views)))[at]
        pictures = [v.picture_at(int(p)) for v, p in zip(views, moments, strict=True)]
        return write_png(path, pictures, theme=theme or "light", scale=SCALE if scale is None else scale)
    moving = ending == ".svg"
    frames = frames_of(views, stops, MOST_STOPS if moving else MAX_FRAMES, marks, notes, names)
    n = len(stops)
    note = "" if len(frames) == n else f"{len(frames)} of {n:,} stops, evenly chosen; the notebook has all of them."
    if not moving:
        title = ", ".join(dict.fromkeys(v.title for v in views))
        title = f"{title}: {' and '.join(names)}" if names else title
        opens_at_end = all(v.opens_at_end for v in views)
        return write_page(path, frames, title, f"{about} {note}".strip(), wide=bool(names), opens_at_end=opens_at_end)
    with file_at(path) as file:
        file.write(moving_svg(frames, note=note, theme=theme or "light").encode())
    return path


def require_drawn(ending: str, theme: str | None, scale: float | None) -> None:
    """Refuse a theme or a scale for a file that has none of its own, and a theme that there is not.

    Raises:
        ViewError: it has none, there is none.
    """
    if theme is not None and theme not in THEMES:
        raise ViewError("there is no such theme", given=repr(theme), hint=f"one of {', '.join(THEMES)}")
    if ending == ".html" and theme is not None:
        raise ViewError("a page has no theme of its own", given=f"theme={theme!r}",
                        hint="it takes that of who reads it, and has a switch; .svg and .png have one")  # fmt: skip
    if ending != ".png" and scale is not None:
        raise ViewError("only a PNG has a scale", given=f"scale={scale!r} for {ending}",
                        hint="leave it out: this kind of picture is sharp in any size")  # fmt: skip


def brief(text: str) -> str:
    r"""The first lines of a text, and how many more there are.

    Example:
        >>> brief("\n".join("abcdefghijklmnop")).splitlines()[-2:]
        ['l', '4 more lines']
    """
    lines = text.splitlines()
    left_out = len(lines) - FRAME_LINES
    return text if left_out <= 0 else "\n".join([*lines[:FRAME_LINES], f"{left_out} more line{'s' * (left_out > 1)}"])

