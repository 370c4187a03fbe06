"""What a lesson answers, as a box of HTML that needs no kernel and keeps to the page's theme."""

from __future__ import annotations

import html
from collections.abc import Mapping


def box(kind: str, head: str, body: str) -> str:
    """A box with a coloured edge; `head` and `body` are HTML, `kind` is "pass" or "fail".

    Example:
        >>> "<b>Right</b>" in box("pass", "Right", "")
        True
    """
    colour = "var(--jp-success-color1, #2e7d32)" if kind == "pass" else "var(--jp-warn-color1, #b34700)"
    style = f"border-left:4px solid {colour};padding:2px 12px"
    return f"<div role='status' style='{style}'><p><b>{head}</b></p>{body}</div>"


def definitions(rows: Mapping[str, str]) -> str:
    """Names and texts side by side, as HTML; a row without text is left out.

    Example:
        >>> definitions({"given": "a < b", "expected": ""}).count("<dt>")
        1
    """
    grid = "display:grid;grid-template-columns:max-content 1fr;gap:0 1em"
    inner = "".join(f"<dt>{name}</dt><dd><code>{html.escape(text)}</code></dd>" for name, text in rows.items() if text)
    return f"<dl style='{grid}'>{inner}</dl>"
