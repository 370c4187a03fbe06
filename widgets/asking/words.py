"""An explanation of a gradient in words: the sum, the paths, what is left. Pure text; HTML is escaped."""

from __future__ import annotations

import math
from collections.abc import Callable
from html import escape
from pathlib import PurePath

from lab.autograd.explanation import Explanation, Path, Place
from lab.autograd.spread import Layer
from lab.events.cells import cell_of
from widgets.pictures.theme import MINUS, short

WRAPS = "overflow-wrap:anywhere"
"""A line of code without a space is not cut where the panel ends."""
Source = Callable[[str, int], str]
"""The text of a source line by file and number, "" where it is not known."""
MANY = 10**15
"""More paths are told by their power of ten."""
_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
FACTORS = 6
"""A path of more steps is written with an ellipsis."""


def figures(explanation: Explanation) -> Callable[[float], str]:
    """How to write the numbers of one sum: all with as many decimals, so that one can add them up.

    Example:
        >>> figures(Explanation(1, "w", (0,), 0.4131, (), 0.4131, 3, (), True))(0.02)
        '0.02'
    """
    sizes = [explanation.gradient, explanation.rest]
    sizes += [path.share for path in explanation.paths] + [other.share for other in explanation.others]
    largest = max(map(abs, sizes), default=0.0)
    if not 1e-3 <= largest < 1e6:
        return short
    decimals = max(0, 3 - math.floor(math.log10(largest)))

    def write(value: float) -> str:
        if 0 < abs(value) < 0.5 * 10.0**-decimals:
            return short(value)
        text = f"{value:.{decimals}f}"
        text = text.rstrip("0").rstrip(".") if "." in text else text
        return ("0" if text in ("-0", "") else text).replace("-", MINUS)

    return write


def sum_words(explanation: Explanation) -> str:
    """The sum in one line, as "0.31 + 0.12 − 0.02 + rest 0.003 = 0.413".

    Example:
        >>> sum_words(Explanation(1, "w", (0,), -0.5, (), -0.5, 3, (), True))
        'rest −0.5 = −0.5'
    """
    write = figures(explanation)
    parts = [("", path.share) for path in explanation.paths]
    parts += [(f"{other.place} ", other.share) for other in explanation.others]
    parts += [("rest ", explanation.rest)] if explanation.n_open else []
    text = ""
    for k, (word, share) in enumerate(parts):
        number = write(share)
        minus = number.startswith(MINUS)
        text += f" {MINUS if minus else '+'} {word}{number.removeprefix(MINUS)}" if k else f"{word}{number}"
    return f"{text or '0'} = {write(explanation.total)}"


def signed(value: float, write: Callable[[float], str] = short) -> str:
    """With its sign, also where that is a plus.

    Example:
        >>> signed(0.5), signed(-2.0)
        ('+0.5', '−2.0')
    """
    return ("+" if value > 0 else "") + write(value)


def product_words(path: Path, write: Callable[[float], str] = short, most: int = 0) -> str:
    """The factors of a path and its share, as "−0.0334 = 1.004 · 0.9044 · −0.0368"; factors of 1 are left out.

    Args:
        most: letters for which there is room: as many factors as it takes are left out of the middle; 0: any number.
    """
    factors = [f for f in path.factors if f != 1] or [1.0]
    whole = [short(f) for f in factors]
    head = f"{signed(path.share, write)} = "
    texts = whole
    if len(whole) > FACTORS:
        texts = [*whole[: FACTORS - 2], f"… {len(whole) - FACTORS + 1} more …", whole[-1]]
    kept = min(len(whole), FACTORS)
    while most and kept > 2 and len(head + " · ".join(texts)) > most:
        kept -= 1
        texts = [*whole[: kept - 1], "…", whole[-1]]
    return f"{head}{' · '.join(texts)}"


def place_words(place: Place) -> str:
    """A place on a path, as "tanh[4, 0]", or "v₃ tanh[4, 0]" where a picture calls it v₃."""
    entry = f"[{', '.join(map(str, place.entry))}]" if place.entry else ""
    return f"{f'{place.name} {place.op}'.strip() or f't{place.node}'}{entry}"


def path_words(path: Path) -> str:
    """The places of a path, as "w[3, 0] → matmul[4, 0] → tanh[4, 0] → mean"."""
    texts = [place_words(place) for place in path.places]
    if len(texts) > 2 * FACTORS:
        texts = [*texts[:FACTORS], f"… {len(texts) - 2 * FACTORS} more …", *texts[-FACTORS:]]
    return " → ".join(texts)


def spread_words(explanation: Explanation) -> str:
    """How many paths there are and how little the given ones carry, where that was counted."""
    n, k = explanation.n_all, len(explanation.paths)
    if not n or not k or not explanation.gradient:
        return ""
    part = sum(path.share for path in explanation.paths) / explanation.gradient
    counted = f"{n:,}" if n < MANY else f"about 10{str(len(str(n)) - 1).translate(_SUPERSCRIPTS)}"
    top = f"the top {k} carry" if k > 1 else "the largest carries"
    percent = short(float(f"{100 * part:.2g}"))
    spread = ": it is spread over many small paths" * bool(explanation.layers)
    return f"{counted} paths; {top} {percent} % of the gradient{spread}."


def layer_words(layer: Layer, write: Callable[[float], str] = short) -> str:
    """What goes through a layer, as "3: relu: +0.2754 [:, 8], +0.0266 [:, 14], 10 others +0.048; together 0.35"."""
    parts = [f"{signed(share, write)} {layer.entry(k)}" for k, share in layer.shares]
    parts += [f"{layer.n_rest} others {signed(layer.rest, write)}"] if layer.n_rest else []
    return f"{layer.name}: {', '.join(parts)}; together {write(layer.total)}"


def account(explanation: Explanation) -> str:
    """Everything in lines: the sum first, then a line for each part."""
    write = figures(explanation)
    lines = [f"Gradient of {explanation.entry}: {sum_words(explanation)}.", spread_words(explanation)]
    lines += [f"Through {layer_words(layer, write)}" for layer in explanation.layers]
    lines = [line for line in lines if line]
    lines += [f"{product_words(path, write)}: {path_words(path)}" for path in explanation.paths]
    lines += [f"{signed(other.share, write)} {other.place}: {other.why}" for other in explanation.others]
    if explanation.n_open:
        lines.append(rest_words(explanation))
    return "\n".join([*lines, *explanation.notes])


def rest_words(explanation: Explanation) -> str:
    """What is left, honestly: how much, from how many beginnings, and whether a larger path may be among it."""
    n = explanation.n_open
    what = f"{n:,} other beginnings of paths" if n > 1 else "one other beginning of paths"
    sure = "" if explanation.certain else "; a larger path may be among them, for not all were looked at"
    return f"rest {figures(explanation)(explanation.rest)}: {what}{sure}"


def page(explanation: Explanation, chosen: int, source: Source) -> str:
    """HTML below the list of paths: the sum, then the chosen path step by step, then what is no path."""
    write = figures(explanation)
    rows = [f"<div style='font-variant-numeric:tabular-nums'><b>{escape(sum_words(explanation))}</b></div>"]
    if explanation.error > 1e-12 * abs(explanation.gradient):
        rows.append(f"<div>The run's number differs by {escape(short(explanation.error))}: rounding.</div>")
    if words := spread_words(explanation):
        rows.append(f"<div>{escape(words)}</div>")
    if 0 <= chosen < len(explanation.paths):
        rows.append(_steps(explanation.paths[chosen], source))
    elif explanation.layers:
        lines = "".join(f"<li>{escape(layer_words(layer, write))}</li>" for layer in explanation.layers)
        rows.append(f"<div>Through each layer goes all of it:</div><ul style='margin:0;padding-left:18px'>{lines}</ul>")
    rows += [
        f"<div><b>{escape(f'{other.place} {write(other.share)}')}</b> {escape(other.why)}</div>"
        for other in explanation.others
    ]
    if explanation.n_open:
        rows.append(f"<div>{escape(rest_words(explanation))}</div>")
    rows += [f"<div>{escape(note)}</div>" for note in explanation.notes]
    return f"<div style='line-height:1.5'>{''.join(rows)}</div>"


def _steps(path: Path, source: Source) -> str:
    start, *others = path.places
    lines = [_line(place, source) for place in others]
    fresh = [line if line != before else "" for line, before in zip(lines, ["", *lines], strict=False)]
    steps = [
        _row(f"× {short(factor)}", place_words(place), line)
        for place, factor, line in zip(others, path.factors, fresh, strict=False)
    ]
    if len(steps) > 4 * FACTORS:
        left_out = f"… {len(steps) - 4 * FACTORS} more …"
        steps = [*steps[: 2 * FACTORS], _row("", left_out), *steps[-2 * FACTORS :]]
    if path.factors[-1] != 1:
        steps.append(_row(f"× {short(path.factors[-1])}", "the gradient that the walk began with"))
    rows = _row("", place_words(start)) + "".join(steps)
    return f"<table style='font-variant-numeric:tabular-nums'>{rows}</table>"


def _row(factor: str, place: str, line: str = "") -> str:
    style = "padding:0 8px 0 0;vertical-align:top"
    cells = f"<td style='{style};white-space:nowrap'>{escape(factor)}</td>"
    return f"<tr>{cells}<td style='{style}'>{escape(place)}</td><td style='{style};{WRAPS}'>{line}</td></tr>"


def _line(place: Place, source: Source) -> str:
    if not place.file:
        return ""
    where = cell_of(place.file) or PurePath(place.file.replace("\\", "/")).name
    code = source(place.file, place.line).strip()
    shown = f" <code>{escape(code[:60])}</code>" if code else ""
    return f"{escape(where)}, line {place.line}{shown}"
