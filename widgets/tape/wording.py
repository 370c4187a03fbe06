"""How nodes of a tape are called and how formulas are written with numbers: text in, text out.

Results are called v₁, v₂, ... in order, as in the literature; a formula is that of the op's own record.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any

import numpy as np

from widgets.pictures import theme
from widgets.tape.tape import Entry, Seen, Tape

PLAIN = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
_SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")
LONGEST_PART = 12
"""Letters of an operand, or of the parameters, where a formula has to be shortened, at first."""
_MORE_INFIX = {"matmul": "@"}
"""Operators of ops whose record has no formula."""


def subscript(n: int) -> str:
    """The number in subscript digits.

    Example:
        >>> subscript(12)
        '₁₂'
    """
    return str(n).translate(_SUBSCRIPTS)


def record(op: str) -> Any:
    """The record of an op in the table, or None for one that this version does not know."""
    from lab.ops import PRIMITIVES

    return PRIMITIVES.get(op)


def names(entries: Mapping[int, Entry]) -> dict[int, str]:
    """What each node is called: leaves by their name (t₁ where there is none), results v₁, v₂, ...; all distinct."""
    made = Names()
    for node, entry in entries.items():
        made.add(node, entry)
    return made.full


class Names:
    """The names of nodes, given one after the other.

    Attributes:
        full: what each node is called; `short`: the same without the module's path before a parameter's name.
    """

    def __init__(self) -> None:
        self.full: dict[int, str] = {}
        self.short: dict[int, str] = {}
        self._used: dict[str, int] = {}

    def add(self, node: int, entry: Entry) -> None:
        """Name a node, once."""
        if node in self.full:
            return
        stem = "v" if entry.op else (entry.name or "t")
        self._used[stem] = k = self._used.get(stem, 0) + 1
        self.full[node] = stem + subscript(k) if entry.op or not entry.name or k > 1 else stem
        self.short[node] = self.full[node].rpartition(".")[2]


def operands(entry: Entry, called: Mapping[int, str]) -> list[str]:
    """The operands of an operation by name; those that are not tracked by their number, or by their shape."""
    texts = entry.constants or ("",) * len(entry.parents)
    return [
        called.get(p, _constant(text) or ("·" if p >= 0 else "const"))
        for p, text in zip(entry.parents, texts, strict=False)
    ]


def _constant(text: str) -> str:
    """The event's "(8, 4) float32" as "data 8×4", "(2,) float32" as "array(2)"; a number has the sign of pictures."""
    found = re.match(r"\(([\d, ]*)\) ", text)
    if not found:
        return theme.signed(text)
    axes = [axis for axis in found.group(1).replace(" ", "").split(",") if axis]
    return f"data {'×'.join(axes)}" if len(axes) > 1 else f"array({axes[0]})" if axes else "scalar"


def formula(entry: Entry, called: Mapping[int, str]) -> str:
    """What a node is: "v₃ = x * y" for an operation, its name for a leaf."""
    return f"{called[entry.node]} = {expression(entry, called)}" if entry.op else called[entry.node]


def fitted(entry: Entry, called: Mapping[int, str], fits: Callable[[str], bool]) -> str:
    """The formula, what is longest in it shortened in the middle as far as it takes to fit; the operation's name stays.

    Example:
        >>> entry = Entry(2, "matmul", "", (0, 1), (8, 16), "float64")
        >>> fitted(entry, {0: "data 8×64", 1: "weight", 2: "v₁"}, lambda text: len(text) < 20)
        'v₁ = da…64 @ weight'
    """
    text, parts = formula(entry, called), [*operands(entry, called), entry.params] if entry.op else []
    rooms = [min(len(part), LONGEST_PART) for part in parts]
    while not fits(text) and max(rooms, default=0) > 1:
        rooms[rooms.index(max(rooms))] -= 1
        *args, params = (clipped(part, room, middle=True) for part, room in zip(parts, rooms, strict=True))
        text = f"{called[entry.node]} = {_written(entry.op, args, params)}"
    return text


def expression(entry: Entry, called: Mapping[int, str]) -> str:
    """What was computed, as one would write it: "x * y", "relu(v₃)", "sum(w, axis=0)", "w[1:]"."""
    return _written(entry.op, operands(entry, called), entry.params)


def _written(op: str, args: list[str], params: str) -> str:
    if op == "getitem" and params and args:
        return f"{args[0]}[{params.removeprefix('index=').removeprefix('[').removesuffix(']')}]"
    known = record(op)
    pattern = _short_formula(known) or (f"a {_MORE_INFIX[op]} b" if op in _MORE_INFIX else "")
    if not pattern:
        return f"{op}({', '.join([*args, *filter(None, [params])])})"
    formal = tuple(known.arguments) if known is not None and _short_formula(known) else ("a", "b")
    return filled(pattern, dict(zip(formal, args, strict=False)))


def _short_formula(known: Any) -> str:
    """The formula of the record if it is one operator between names; longer ones are called by the op's name."""
    return _one_operator(getattr(known, "formula", "") or "")


@lru_cache(256)
def _one_operator(text: str) -> str:
    if not text:
        return ""
    body = ast.parse(text, mode="eval").body
    parts = [body.left, body.right] if isinstance(body, ast.BinOp) else [getattr(body, "operand", None)]
    return text if isinstance(body, ast.BinOp | ast.UnaryOp) and all(isinstance(p, ast.Name) for p in parts) else ""


def filled(formula: str, values: Mapping[str, str]) -> str:
    """The formula with names replaced; what starts with a minus or is itself a formula gets parentheses.

    Example:
        >>> filled("ct * y", {"ct": "1", "y": "-3"})
        '1 * (-3)'
    """

    def replace(match: re.Match[str]) -> str:
        text = values.get(match.group())
        if text is None:
            return match.group()
        return f"({text})" if text.startswith(("-", theme.MINUS)) and match.start() else text

    return re.sub(r"[A-Za-z_]\w*", replace, formula)


def scalar(seen: Seen | None) -> str:
    """The number, if the array has one entry; else ""."""
    if seen is None or seen.size != 1:
        return ""
    if seen.value is not None:
        return theme.short(np.asarray(seen.value).reshape(()).item())
    return "not finite" if seen.n_nonfinite else theme.short(seen.mean)


def sum_of_walks(entry: Entry) -> tuple[str, str, str]:
    """For a leaf whose gradient was added to an earlier one: before, new and now, as single numbers; "" unknown."""
    stored = entry.stored
    if not entry.accumulated or stored is None or stored.size != 1 or entry.before is None:
        return "", "", ""
    before, total = (theme.short(np.asarray(a).reshape(()).item()) for a in (entry.before, stored))
    return before, scalar(entry.gradient), total


def summed(entry: Entry) -> str:
    """How many walks what a leaf has stored is the sum of, where that is more than one: "sum over 3 backward walks"."""
    return f"sum over {entry.n_summed} backward walks" if entry.n_summed > 1 else ""


def short(seen: Seen | None) -> str:
    """An array in at most about 24 characters: the number, the entries, or the shape and the norm."""
    if seen is None:
        return ""
    if seen.size == 1:
        return scalar(seen)
    if seen.value is not None and len(seen.shape) == 1 and seen.size <= 4:
        text = "[" + ", ".join(theme.short(float(v)) for v in seen.value) + "]"
        if len(text) <= 24:
            return text
    bad = f", {seen.n_nonfinite} not finite" if seen.n_nonfinite else ""
    return f"{shape(seen.shape)} norm {theme.short(seen.norm)}{bad}"


def shape(axes: tuple[int, ...]) -> str:
    """A shape as one says it.

    Example:
        >>> shape((64, 128)), shape(()), shape((3,))
        ('64×128', 'scalar', '3')
    """
    return "×".join(map(str, axes)) or "scalar"


def clipped(text: str, most: int = 30, *, middle: bool = False) -> str:
    r"""The text, cut with an ellipsis where it is longer; on one line, without what is invisible.

    Args:
        middle: the end stays, too: the ellipsis stands where the middle was.

    Example:
        >>> clipped("a\nvery long name indeed", 12), clipped("v₁ = data 8×64 @ weight", 15, middle=True)
        ('a very long…', 'v₁ = da… weight')
    """
    flat = text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)
    if len(flat) <= most:
        return flat
    end = (most - 1) // 2 if middle else 0
    return f"{flat[: most - 1 - end]}…{flat[len(flat) - end :]}"


def rule_with_numbers(tape: Tape, entry: Entry, i: int) -> tuple[str, str]:
    """The rule of the edge to operand i: as the record has it, and with the numbers of this run ("" if no scalars)."""
    known = record(entry.op)
    rule = known.rule_text(i) if known is not None else ""
    if not rule:
        return "", ""
    values = {"ct": scalar(entry.gradient), "out": scalar(entry.value)}
    values |= dict(zip(known.arguments, _operand_numbers(entry), strict=False))
    sent = scalar(tape.contributions.get((entry.node, i)))
    used = set(re.findall(r"[A-Za-z_]\w*(?!\w*\()", rule)) & set(values)
    if not sent or not all(values[name] for name in used):
        return rule, ""
    return rule, f"{filled(rule, {name: values[name] for name in used})} = {sent}"


def formula_with_numbers(entry: Entry) -> str:
    """The forward formula with the numbers of this run and its result; "" where they are not single numbers."""
    known, out = record(entry.op), scalar(entry.value)
    text = getattr(known, "formula", "") or ""
    numbers = _operand_numbers(entry)
    if not text or not out or not all(numbers):
        return ""
    return f"{filled(text, dict(zip(known.arguments, numbers, strict=False)))} = {out}"


def _operand_numbers(entry: Entry) -> list[str]:
    texts = entry.constants or ("",) * len(entry.parents)
    seen = entry.operands or (None,) * len(entry.parents)
    return [scalar(s) or (text if p < 0 else "") for p, s, text in zip(entry.parents, seen, texts, strict=False)]
