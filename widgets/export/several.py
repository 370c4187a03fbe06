"""One stand-alone page of several views with words between them: a lesson or a finding that is handed on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lab.errors import ViewError
from widgets.export.endings import file_at, writable
from widgets.export.film import frames_of, stops_of
from widgets.export.page import Frame, Part, page_of
from widgets.pictures.chart import Chart
from widgets.pictures.scene import Scene
from widgets.view import View, wording_of

MOST_FRAMES = 120
"""Of one of the views: a page of ten stays well under 6 MB."""


def export_page(path: str | Path, *parts: Any, title: str = "", about: str = "") -> Path:
    """Write one page that plays views below one another, without kernel or network; returns its path.

    Args:
        path: a name that ends in .html.
        parts: views, players, dashboards, Lines, a Scene or a Chart; before each, strings: the first is its heading,
            the others are what stands below it. A view without words has its own title.
        title: of the page.
        about: a sentence below it.

    Raises:
        ViewError: nothing to show, something that is no picture, words without a view, another ending, no folder.
        OSError: the disk is full, or the folder cannot be written.

    Example:
        >>> import lab, tempfile
        >>> from widgets import GraphView
        >>> x = lab.tensor(2.0, requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     (x * x).backward()
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_page(f"{folder}/squares.html", "A square", GraphView(rec), title="Squares").name
        'squares.html'
    """
    path = writable(path)
    if path.suffix.lower() != ".html":
        raise ViewError("several views are written as a page", given=path.name, hint="a name that ends in .html")
    page = page_of(_parts(parts), title or "Pictures of a run", about).encode("utf-8")
    with file_at(path) as file:
        file.write(page)
    return path


def _parts(parts: Sequence[Any]) -> list[Part]:
    made: list[Part] = []
    words: list[str] = []
    for part in parts:
        if isinstance(part, str):
            words.append(part)
            continue
        frames, title, opens_at_end = _played(part)
        heading, about = (words[0], " ".join(words[1:])) if words else (title, "")
        made.append(Part(frames, heading, about, opens_at_end))
        words = []
    if words or not made:
        raise ViewError("a page needs pictures", given=f"words without a view: {words[0][:60]!r}" if words else "none",
                        hint='export_page("page.html", "Its heading", "What to look for.", view)')  # fmt: skip
    return made


def _played(part: Any) -> tuple[list[Frame], str, bool]:
    """Frames, a title, and whether the last frame is seen first."""
    if isinstance(part, View):
        part = _Several([part])
    elif not hasattr(part, "frames") and hasattr(part, "views"):
        part = _Several(part.views)
    if hasattr(part, "frames"):
        views = part.views
        title, frames = ", ".join(dict.fromkeys(view.title for view in views)), part.frames(MOST_FRAMES)
        curves = all(isinstance(picture, Chart) for picture in frames[-1].pictures)  # at first they are empty
        return frames, title, curves or all(view.opens_at_end for view in views)
    picture = getattr(part, "picture", part)
    if not isinstance(picture, (Scene, Chart)):
        raise ViewError("this is no picture that a page can show", given=wording_of(part),
                        hint="a view, a Player, a dashboard, Lines, or words before one of them")  # fmt: skip
    return [Frame("", (picture,), picture.caption)], picture.title, True


class _Several:
    """Views that play together."""

    def __init__(self, views: Sequence[View[Any]]) -> None:
        self.views = views

    def frames(self, most: int) -> list[Frame]:
        return frames_of(self.views, stops_of(self.views), most)
