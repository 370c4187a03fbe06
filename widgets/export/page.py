"""One stand-alone HTML page that plays a sequence of pictures: no kernel, no network, no file beside it.

The scripts are the ones that draw in the notebook; the frames are the first picture and then patches, gzipped. Without
JavaScript the page still shows the first frame as SVG with its text.
"""

from __future__ import annotations

import gzip
import json
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from html import escape
from pathlib import Path

from lab.errors import ViewError
from lab.files import replacing
from widgets.live.library import PICTURES, bundle, plotly_gz, style
from widgets.pictures import theme
from widgets.pictures.patch import Json, diff
from widgets.pictures.tree import Picture, text_of, tree_of
from widgets.pictures.twin import svg_of


@dataclass(frozen=True, slots=True)
class Frame:
    """One moment of the page: its pictures side by side, what a label says it is, and the same in words.

    Attributes:
        label: short, for the line beside the slider, e.g. "step 3 of 12".
        pictures: as many in each frame, each of one kind from frame to frame.
        text: what a screen reader says.
    """

    label: str
    pictures: tuple[Picture, ...]
    text: str = ""


def write_page(path: str | Path, frames: Sequence[Frame], title: str, description: str = "") -> Path:
    """Write the page, whole or not at all; returns its path.

    Raises:
        ViewError: no frames, or frames with different numbers or kinds of pictures.

    Example:
        >>> import tempfile
        >>> from widgets.pictures.scene import Node, Scene
        >>> frame = Frame("start", (Scene((Node("a", 0, 0, 64, 36, "x"),)),), "one node")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_page(Path(folder) / "page.html", [frame], "One node").name
        'page.html'
    """
    with replacing(path) as file:
        file.write(page(frames, title, description).encode("utf-8"))
    return Path(path)


def page(frames: Sequence[Frame], title: str, description: str = "") -> str:
    """The page as text."""
    trees = [_tree(frame) for frame in frames]
    _check(trees)
    charts = any(picture["type"] == "chart" for picture in trees[0]["pictures"])
    script = bundle("patch.js", *PICTURES, "player.js")
    start = f"play({theme.table()}, {json.dumps(style())});\n"
    code = _no_end_tag(script + start.replace("</", "<\\/"))
    digest = b64encode(sha256(code.encode()).digest()).decode("ascii")
    # plotly runs from a blob; 'unsafe-inline' for styles only, because plotly and SVG set them on elements.
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'{' blob:' if charts else ''}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    first = frames[0]
    static = "\n".join(f"<figure>{svg_of(picture)}</figure>" for picture in first.pictures)
    name = escape(text_of(title or "autodiff-lab"))
    about = f"<p>{escape(text_of(description))}</p>" if description else ""
    plotly = f'<script type="text/plain" id="lab-plotly">{_base64(plotly_gz())}</script>' if charts else ""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="autodiff-lab">
<title>{name}</title>
<style>{_no_end_tag(style() + _page_style())}</style>
</head>
<body class="lab-root lab-page-body">
<main class="lab-page">
<h1>{name}</h1>
{about}
<div id="lab-player"></div>
<div id="lab-static">
{static}
<p>{escape(text_of(first.text))}</p>
</div>
</main>
<script type="text/plain" id="lab-frames">{_base64(gzip.compress(_frames(frames, trees), 9, mtime=0))}</script>
{plotly}
<script type="module">{code}</script>
</body>
</html>
"""


def _tree(frame: Frame) -> dict[str, Json]:
    return {"pictures": [{**tree_of(picture), "text": ""} for picture in frame.pictures]}


def _check(trees: Sequence[dict[str, Json]]) -> None:
    if not trees:
        raise ViewError(
            "a page needs at least one frame", given="no frames", hint="record something first, then export"
        )
    kinds = [[picture["type"] for picture in tree["pictures"]] for tree in trees]
    for i, found in enumerate(kinds):
        if found != kinds[0] or not found:
            raise ViewError(
                "every frame of a page holds the same kinds of pictures",
                given=f"frame 0 has {kinds[0]}, frame {i} has {found}",
            )


def _frames(frames: Sequence[Frame], trees: Sequence[dict[str, Json]]) -> bytes:
    """The first tree whole, then only what changes."""
    rows: list[dict[str, Json]] = []
    before: Json = None
    for frame, tree in zip(frames, trees, strict=True):
        change = {"tree": tree} if before is None else {"patch": diff(before, tree)}
        rows.append({"label": text_of(frame.label), "text": text_of(frame.text), **change})
        before = tree
    return json.dumps(rows, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _page_style() -> str:
    from importlib.resources import files

    return (files("widgets") / "frontend" / "page.css").read_text(encoding="utf-8")


def _no_end_tag(code: str) -> str:
    """Code that cannot end the element it stands in."""
    lower = code.lower()
    assert not any(end in lower for end in ("</script", "</style", "<!--")), "the page's own code would end early"
    return code
