"""Exercise of lesson 07: by what a jitted function looks its graphs up, so that it traces seldom and is never wrong."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from lab.errors import ExerciseError
from lab.teach.exercise import Check, Exercise, Mutant
from lab.teach.plain import Plain

X, Y = np.linspace(0.0, 1.0, 6).reshape(2, 3), np.linspace(1.0, 2.0, 6).reshape(2, 3)
CALLS: dict[str, list[tuple[Any, ...]]] = {
    "arrays with other numbers": [(X,), (Y,), (X + 1.0,)],
    "arrays of other shapes": [(X,), (X[:1],), (X.T,), (Y,), (X.T + 1.0,)],
    "float64, then float32": [(X,), (X.astype(np.float32),), (Y,)],
    "a step size that falls": [(X, 0.1), (X, 0.05), (Y, 0.025)],
    "a whole number in place of a float": [(X, 1.0), (X, 2), (X, 3)],
    "a text that chooses": [(X, "relu"), (X, "tanh"), (Y, "relu")],
    "a flag": [(X, True), (X, False), (Y, True)],
    "True, and then 1": [(X, True), (X, 1), (X, 2)],
}
"""Calls of a jitted function one after the other."""


def right_key(args: tuple[Any, ...]) -> Hashable:
    """What a graph fixes of its arguments: of arrays shape and dtype, of numbers their type, all of texts and flags.

    Example:
        >>> right_key((X, 0.1, "relu"))[1:]
        (<class 'float'>, (<class 'str'>, 'relu'))
    """
    return tuple(map(_kind, args))


def _kind(a: Any) -> Any:
    if isinstance(a, np.ndarray):
        return a.shape, a.dtype.str
    return type(a) if type(a) in (int, float) else (type(a), a)


def in_a_cache(key: Callable[[tuple[Any, ...]], Any], text: str) -> Plain:
    """How often a jit with this key traces in a row of calls, and how many calls get a graph that was made for others.

    Raises:
        ExerciseError: a key that no dictionary takes.
    """
    cache: dict[Any, Hashable] = {}
    n_wrong = 0
    for args in CALLS[text]:
        found = key(args)
        try:
            made_for = cache.setdefault(found, right_key(args))
        except TypeError:
            raise ExerciseError(
                "a dictionary cannot look that key up", given=f"{type(found).__name__}: {found!r}"[:100],
                hint="a key is made of tuples, texts, types and numbers, not of lists or arrays",
            ) from None  # fmt: skip
        n_wrong += made_for != right_key(args)
    return len(cache), n_wrong


def _each(kind: Callable[[Any], Any]) -> Callable[[tuple[Any, ...]], Any]:
    return lambda args: tuple(map(kind, args))


def _or(a: Any, of_array: Callable[[Any], Any], rest: Callable[[Any], Any] = _kind) -> Any:
    return of_array(a) if isinstance(a, np.ndarray) else rest(a)


def _of_number(a: Any) -> Any:
    return type(a) if isinstance(a, int | float) else a


CACHE_KEY = Exercise(
    name="cache_key",
    task="Return what a graph fixes of the arguments: shape and dtype of arrays, type of a number, texts and flags.",
    stub='''\
def cache_key(args):
    return tuple(np.shape(a) for a in args)
''',
    arguments=("calls",),
    results=("number of traces", "number of calls with a graph of others"),
    answer=right_key,
    call=in_a_cache,
    checks=(
        Check("arrays: shape and dtype count, their numbers do not", [(text,) for text in [*CALLS][:3]]),
        Check("numbers of Python: only their type counts", [(text,) for text in [*CALLS][3:5]]),
        Check("texts and flags: their value counts", [(text,) for text in [*CALLS][5:7]]),
        Check("True is no whole number", [([*CALLS][7],)]),
    ),
    mutants=(
        Mutant("only shapes count", _each(np.shape),
               "float32 and float64 need loops of their own: put the dtype in, too"),
        Mutant("only types count", _each(type), "arrays have a shape and a dtype, and a text has a value"),
        Mutant("the number of axes counts in place of the shape", _each(
               lambda a: _or(a, lambda a: (a.ndim, a.dtype.str))),
               "a graph has the length of every axis in it: the whole shape"),
        Mutant("the number of entries counts in place of the shape", _each(
               lambda a: _or(a, lambda a: (a.size, a.dtype.str))), "(2, 3) and (3, 2) have as many: the whole shape"),
        Mutant("the numbers of arrays count, too", _each(
               lambda a: _or(a, lambda a: (a.shape, a.dtype.str, a.tobytes()))),
               "then every batch is traced anew: numbers of arrays go in when the graph runs"),
        Mutant("each array counts as an object", _each(lambda a: _or(a, id)),
               "then every batch is traced anew: take what two batches have in common"),
        Mutant("the value of a number counts", _each(
               lambda a: _or(a, lambda a: (a.shape, a.dtype.str), lambda a: (type(a), a))),
               "a step size that falls would be traced in every step: its type is enough"),
        Mutant("texts and flags count by their type only", _each(
               lambda a: _or(a, lambda a: (a.shape, a.dtype.str), type)),
               'the trace took the branch of "relu": a call with "tanh" needs another graph'),
        Mutant("dtypes are forgotten", _each(lambda a: _or(a, np.shape)),
               "a graph for float64 gives float64: put the dtype in, too"),
        Mutant("True counts as a number", _each(
               lambda a: _or(a, lambda a: (a.shape, a.dtype.str), _of_number)),
               "isinstance(True, int) is True. A flag decides a branch: look at type(a), not at isinstance"),
        Mutant("only the number of arguments counts", len, "what of an argument is written into the graph?"),
        Mutant("every call has a key of its own", lambda args: object(), "equal kinds must give equal keys"),
    ),
    hints=(
        "go through the arguments; for each one, what would be wrong in the graph if that were different?",
        "arrays: (a.shape, a.dtype.str); a float or an int: type(a); all else: (type(a), a)",
        "type(a) in (int, float), since isinstance(True, int) is True",
    ),
    show=lambda case: f"For {case[0]}",
)  # fmt: skip
