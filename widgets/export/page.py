"""One stand-alone HTML page that plays sequences of pictures: no kernel, no network, no file beside it.

The scripts are the ones that draw in the notebook; the frames are the first picture and then patches, gzipped. Without
JavaScript the page still shows one frame of each as SVG with its text.
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
from widgets.export.endings import file_at
from widgets.live.library import PICTURES, bundle, plotly_gz, style
from widgets.pictures import theme
from widgets.pictures.patch import Json, diff
from widgets.pictures.tree import Picture, text_of, tree_of
from widgets.pictures.twin import svg_of

WIDE = 45
"""A fact of more letters gets the room of two."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One moment of the page: its pictures side by side, what a label says it is, and the same in words.

    Attributes:
        label: short, for the line beside the slider, e.g. "step 3 of 12".
        pictures: as many in each frame, each of one kind from frame to frame.
        text: what a screen reader says.
        mark: name of a landmark, shown on the slider, e.g. "step 3".
        note: of a bookmark, shown on the slider and above the pictures.
    """

    label: str
    pictures: tuple[Picture, ...]
    text: str = ""
    mark: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class Part:
    """One player of a page.

    Attributes:
        frames: what it plays.
        title: a heading above it; "" for none.
        description: a sentence below the heading.
        opens_at_end: whether the page opens it at its last frame, instead of its first.
        wide: whether its pictures stand beside each other, where there is room.
    """

    frames: Sequence[Frame]
    title: str = ""
    description: str = ""
    opens_at_end: bool = False
    wide: bool = False


def write_page(
    path: str | Path,
    frames: Sequence[Frame],
    title: str,
    description: str = "",
    *,
    wide: bool = False,
    opens_at_end: bool = False,
) -> Path:
    """Write a page with one player, whole or not at all; returns its path. The last two arguments are those of `Part`.

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
    with file_at(path) as file:
        file.write(page_of([Part(frames, opens_at_end=opens_at_end, wide=wide)], title, description).encode("utf-8"))
    return Path(path)


def page(frames: Sequence[Frame], title: str, description: str = "") -> str:
    """A page with one player, as text."""
    return page_of([Part(frames)], title, description)


def page_of(parts: Sequence[Part], title: str, description: str = "", facts: Sequence[tuple[str, str]] = ()) -> str:
    """A page with a player for each part below one another, as text.

    Args:
        facts: names and values, a list above the first part.
    """
    trees = [[_tree(frame) for frame in part.frames] for part in parts]
    for rows in trees:
        _check(rows)
    charts = any(picture["type"] == "chart" for rows in trees for picture in rows[0]["pictures"])
    script = bundle("patch.js", *PICTURES, "timeline.js", "player.js")
    start = f'play({theme.table()}, "");\n'  # the style sheet is in the head
    code = _no_end_tag(script + start.replace("</", "<\\/"))
    digest = b64encode(sha256(code.encode()).digest()).decode("ascii")
    # plotly runs from a blob; 'unsafe-inline' for styles only, because plotly and SVG set them on elements.
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'{' blob:' if charts else ''}; style-src 'unsafe-inline'; "
        "img-src data: blob:; base-uri 'none'; form-action 'none'"
    )
    name = _safe(title or "autodiff-lab")
    about = f"<p>{_safe(description)}</p>\n" if description else ""
    plotly = f'<script type="text/plain" id="lab-plotly">{_base64(plotly_gz())}</script>' if charts else ""
    body = "\n".join(_section(part, k) for k, part in enumerate(parts))
    stored = "\n".join(
        f'<script type="text/plain" id="lab-frames{_nth(k)}">'
        f"{_base64(gzip.compress(_frames(part.frames, rows), 9, mtime=0))}</script>"
        for k, (part, rows) in enumerate(zip(parts, trees, strict=True))
    )
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
{about}{_facts(facts)}{body}
</main>
{stored}
{plotly}
<script type="module">{code}</script>
</body>
</html>
"""


def _section(part: Part, k: int) -> str:
    """The place of a player, and what stands there without JavaScript."""
    shown, nth = part.frames[-1 if part.opens_at_end else 0], _nth(k)
    static = "\n".join(f"<figure>{svg_of(picture)}</figure>" for picture in shown.pictures)
    opens, name = (len(part.frames) - 1) * part.opens_at_end, _safe(part.title)
    head = f'<h2 id="part{nth}">{name}</h2>\n' if part.title else ""
    head += f"<p>{_safe(part.description)}</p>\n" if part.description else ""
    body = f"""{head}<div class="lab-player" id="lab-player{nth}" data-frames="lab-frames{nth}" data-opens="{opens}"\
{f' data-name="{name}"' * bool(name)}{" data-wide" * part.wide}></div>
<div class="lab-static" id="lab-static{nth}">
{static}
<p>{_safe(shown.text)}</p>
</div>"""
    return f'<section aria-labelledby="part{nth}">\n{body}\n</section>' if part.title else body


def _facts(facts: Sequence[tuple[str, str]]) -> str:
    wide = ' class="lab-wide"'
    rows = "\n".join(
        f"<div{wide * (len(value) > WIDE)}><dt>{_safe(name)}</dt><dd>{_safe(value)}</dd></div>" for name, value in facts
    )
    return f'<dl class="lab-facts">\n{rows}\n</dl>\n' if facts else ""


def _nth(k: int) -> str:
    """What the ids of the k-th part end with.

    Example:
        >>> _nth(0), _nth(1)
        ('', '-2')
    """
    return f"-{k + 1}" if k else ""


def _safe(text: str) -> str:
    return escape(text_of(text))


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
        said = {"mark": text_of(frame.mark), "note": text_of(frame.note)}
        told = {name: words for name, words in said.items() if words}
        rows.append({"label": text_of(frame.label), "text": text_of(frame.text), **told, **change})
        before = tree
    return json.dumps(rows, ensure_ascii=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")


def _page_style() -> str:
    from importlib.resources import files

    folder = files("widgets") / "frontend"
    return "".join((folder / name).read_text(encoding="utf-8") for name in ("page.css", "timeline.css"))


def _no_end_tag(code: str) -> str:
    """Code that cannot end the element it stands in."""
    lower = code.lower()
    assert not any(end in lower for end in ("</script", "</style", "<!--")), "the page's own code would end early"
    return code
