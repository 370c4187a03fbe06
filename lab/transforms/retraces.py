"""Why a jitted function was traced again: the key of its cache in words, and what is new in it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from lab import tree
from lab.events import CacheHit, Event, Traced, bus
from lab.words import counted


class Key(NamedTuple):
    """What a graph is cached by.

    Attributes:
        structure: of the arguments.
        kinds: of each leaf shape and dtype, or the type of a Python number.
        kinks: the convention for slopes at kinks.
        axes: named axes of enclosing vmaps, with their sizes.
        modes: of the modules whose mode the function looked at when it was traced, whether they train.
    """

    structure: tree.Structure
    kinds: tuple[Any, ...]
    kinks: str
    axes: tuple[tuple[str, int], ...]
    modes: tuple[bool, ...] = ()


class Miss(NamedTuple):
    """One trace of a jitted function.

    Attributes:
        reason: why, in words.
        n_equations: of the graph.
        elapsed_ms: what tracing took.
        kept: False where the graph holds a value of an enclosing transform, and is good for one call only.
    """

    reason: str
    n_equations: int
    elapsed_ms: float
    kept: bool


_LOST = "the graph before was good for its own call only"


def names_of(f: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[str]:
    """A name for each leaf of the arguments.

    Example:
        >>> names_of(lambda x, ps: 0, (1.0, [2.0, 3.0]), {})
        ['x', 'ps[0]', 'ps[1]']
    """
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = []
    for i, a in enumerate(args):
        p = parameters[i] if i < len(parameters) else None
        plain = p is not None and p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        name = p.name if p is not None and plain else f"argument {i}"
        names += [name + path for path in tree.paths(a)]
    for key in sorted(kwargs):
        names += [key + path for path in tree.paths(kwargs[key])]
    return names


def reason_of(key: Key, known: Collection[Key], names: Sequence[str], *, first: bool = True) -> str:
    """Why no graph of `known` will do, by comparison with the one that is nearest; of none, whether it was ever traced.

    Example:
        >>> shapes = [Key(tree.LEAF, (((n,), "float64"),), "zero", ()) for n in (3, 4)]
        >>> reason_of(shapes[0], [], ["x"]), reason_of(shapes[1], shapes[:1], ["x"])
        ('the first call', 'x: float64 (4,), before float64 (3,)')
    """
    if not known:
        return "the first call" if first else _LOST
    same = [k for k in known if k.structure == key.structure]
    if not same:
        return "the arguments stand in other containers, or others were given"
    nearest = min(same, key=lambda k: len(_differences(key, k, names)))
    return "; ".join(_differences(key, nearest, names)) or _LOST


def _differences(key: Key, other: Key, names: Sequence[str]) -> list[str]:
    found = [
        f"{name}: {_words(mine)}, before {_words(its)}"
        for name, mine, its in zip(names, key.kinds, other.kinds, strict=True)
        if mine != its
    ]
    if key.kinks != other.kinks:
        found.append(f"kinks: {key.kinks}, before {other.kinks}")
    if key.axes != other.axes:
        found.append(f"named axes: {dict(key.axes)}, before {dict(other.axes)}")
    if key.modes != other.modes:
        n = sum(mine != its for mine, its in zip(key.modes, other.modes, strict=False))
        found.append(f"{counted(max(n, 1), 'module')} went from train() to eval() or back")
    return found


def _words(kind: Any) -> str:
    if isinstance(kind, type):
        return f"a Python {kind.__name__}"
    shape, dtype = kind
    return f"{dtype} {shape}"


# --- what is told of calls ----------------------------------------------------------------------------------------


def tell_trace(f: Callable[..., Any], miss: Miss, n_kept: int) -> None:
    """Tell of a trace, if somebody listens to traces; call it behind `if bus.listeners:`."""
    if _asked_for(Traced):
        graph = n_kept if miss.kept else 0
        bus.emit(Traced(*called(f), graph, miss.reason, miss.n_equations, miss.elapsed_ms, miss.kept))


def tell_hit(f: Callable[..., Any], known: Collection[Key], key: Key) -> None:
    """Tell that a call found its graph, if somebody listens to hits; call it behind `if bus.listeners:`."""
    if _asked_for(CacheHit):
        bus.emit(CacheHit(*called(f), [*known].index(key) + 1))


def called(f: Callable[..., Any]) -> tuple[str, str, int]:
    """The name of a function, and file and line of its definition, "" and 0 where it has none.

    Example:
        >>> called(len), called(called)[0]
        (('len', '', 0), 'called')
    """
    code = getattr(inspect.unwrap(f), "__code__", None)
    name = getattr(f, "__name__", type(f).__name__)
    return (name, code.co_filename, code.co_firstlineno) if code else (name, "", 0)


def _asked_for(kind: type[Event]) -> bool:
    return any(listener.wants(kind) for listener in bus.listeners)
