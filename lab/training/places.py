"""Where a run can be held: at operations by name, in modules by path, at nodes by number; other words are refused.

A misspelt breakpoint would hold nowhere and say nothing, and its run would be over before anybody noticed.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection, Iterable, Iterator
from typing import Any

from lab.errors import ArgumentError
from lab.nn import Module
from lab.ops import COMPOSITES, PRIMITIVES
from lab.words import nearest

MOST_TOLD = 6
"""So many modules are named in an error."""


def modules_of(*parts: object) -> frozenset[str]:
    """Paths of the modules in these, and in what functions among them name, hold or are methods of.

    Example:
        >>> from functools import partial
        >>> from lab.nn import mlp
        >>> sorted(modules_of(partial(mlp(2, 3, 1, rng=0))))
        ['0', '1', '2']
    """
    found = (path for part in _reached(parts, set()) for path, _ in part.named_modules())
    return frozenset(filter(None, found))


def _reached(parts: Iterable[Any], seen: set[int]) -> Iterator[Module]:
    for part in parts:
        if id(part) in seen:
            continue
        seen.add(id(part))
        if isinstance(part, Module):
            yield part
        elif isinstance(part, functools.partial):
            yield from _reached((part.func, *part.args, *part.keywords.values()), seen)
        elif inspect.ismethod(part):
            yield from _reached((part.__func__, part.__self__, *vars(part.__self__).values()), seen)
        elif inspect.isfunction(part) and not str(part.__module__).startswith("lab."):
            used = inspect.getclosurevars(part)
            yield from _reached((*used.nonlocals.values(), *used.globals.values()), seen)


def check_place(at: str, modules: Collection[str], *, all_known: bool, seen: Collection[str] = ()) -> None:
    """Refuse what is no operation, no module of these and no number.

    Args:
        all_known: there are no other modules; else a word that is near to none may be the path of one.
        seen: operations of a step, if one is known: no other is thought of where a word is misspelt.

    Raises:
        ArgumentError: a run is never there.

    Example:
        >>> check_place("matmul", (), all_known=True), check_place("12", (), all_known=True)
        (None, None)
    """
    if at in PRIMITIVES or at in modules or at.isdecimal():
        return
    owner = at.rpartition(".")[0]  # of a parameter, where its path was given
    meant = owner if owner in modules else nearest(at, (*modules, *(seen or PRIMITIVES)))
    if not (meant or all_known or at in COMPOSITES):
        return
    told = [*sorted(modules)[:MOST_TOLD], *["..."] * (len(modules) > MOST_TOLD)]
    paths = f" ({', '.join(told)})" if told else ""
    known = f"an operation as matmul, a module{paths}, or the number of a node"
    if at in COMPOSITES:
        known = "it is made of other operations, which run.graph records: name one of those"
    elif meant:
        known = f"did you mean {meant!r}? Else {known}"
    raise ArgumentError("a run is never held at this: it is no operation and no module", given=f"at={at!r}", hint=known)
