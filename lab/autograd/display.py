"""How tensors and graphs look: a short text that is always there, and HTML around the same text, escaped.

Both stay small for any size: a notebook that ends a cell with a large tensor must not be slower for it.
"""

from __future__ import annotations

import html
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

FEW = 50
"""Arrays of more entries are shown by their first and last."""


def array_text(array: np.ndarray[Any, np.dtype[Any]], prefix: str = "tensor(") -> tuple[str, bool]:
    """The entries as text, and whether some were left out so that the shape should be told.

    Example:
        >>> array_text(np.arange(1000))
        ('[  0,   1,   2, ..., 997, 998, 999]', True)
        >>> array_text(np.zeros((100, 10, 10)))
        ('[0., 0., 0., ..., 0., 0., 0.]', True)
    """
    short = array.size > FEW or (array.size == 0 and array.ndim > 1)
    shown = array.reshape(-1) if short and array.ndim > 2 else array
    return np.array2string(shown, separator=", ", prefix=prefix, threshold=FEW, precision=6), short


def mimebundle(
    plain: str, caption: str = "", include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """What IPython's display protocol wants: text/plain and text/html.

    Args:
        plain: the text.
        caption: a line above it, in the HTML only.
        include: kinds that the front end asks for; None for all.
        exclude: kinds that it does not want.

    Example:
        >>> mimebundle("a < b")["text/html"]
        '<div><pre style="margin:0">a &lt; b</pre></div>'
    """
    head = f'<div style="opacity:.7">{html.escape(caption)}</div>' if caption else ""
    return _asked({"text/plain": plain, "text/html": f"<div>{head}{_pre(plain)}</div>"}, include, exclude)


def source_bundle(
    plain: str, parts: Mapping[str, str], include: Collection[str] | None = None, exclude: Collection[str] | None = None
) -> dict[str, str]:
    """The same for code: the main text open, and each of its parts folded away under its name.

    Example:
        >>> source_bundle("a()", {"a": "pass"})["text/html"].count("<summary>")
        1
    """
    folded = [
        f"<details><summary>{html.escape(name)}</summary>{_pre(text, 'padding-left:1.5em')}</details>"
        for name, text in parts.items()
    ]
    whole = "\n\n\n".join([plain, *(f"# {name}\n{text}" for name, text in parts.items())])
    return _asked({"text/plain": whole, "text/html": f"<div>{_pre(plain)}{''.join(folded)}</div>"}, include, exclude)


def _pre(text: str, style: str = "") -> str:
    return f'<pre style="{";".join(filter(None, ("margin:0", style)))}">{html.escape(text)}</pre>'


def _asked(made: dict[str, str], include: Collection[str] | None, exclude: Collection[str] | None) -> dict[str, str]:
    return {k: v for k, v in made.items() if (include is None or k in include) and k not in (exclude or ())}
