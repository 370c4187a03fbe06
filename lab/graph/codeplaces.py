"""Where the values of a compiled graph lie: in buffers that are kept, in views of them, or in arrays of each run."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from lab.errors import ShapeError
from lab.graph.ir import Atom, Equation, Graph, Var
from lab.graph.rooms import LARGE, Room
from lab.graph.views import is_contiguous_look, text_of_look
from lab.shapes import Shape

Memory = dict[int, Any]
"""The bytes of each buffer by its number."""
Place = Callable[[Memory], Any]


class Places:
    """The lines of one function, and what they have names for.

    Every value has a name: its variable's. A value is fixed if it lies in a buffer or is a view of one that does: then
    its array is in the scope. All others are made anew in each run.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.out = {a for a in graph.outputs if isinstance(a, Var)}
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "np_dot": np.dot, "np_matmul": np.matmul, "np_empty": np.empty, "np_copyto": np.copyto,
            "np_broadcast_to": np.broadcast_to,
            "np_asarray": np.asarray, "contiguous": _contiguous, "fitting": _fitting, "owned": _owned,
        }  # fmt: skip
        self.places: dict[str, Place] = {}
        self.buffers: dict[int, int] = {}
        self.fixed: dict[Var, Place] = {}
        self.solid: set[Var] = set()  # contiguous for sure
        self.own: set[Var] = set()  # made in every run, for the caller
        self.rows: dict[Var, int] = {}  # buffers with the entries of views
        self.flat: dict[tuple[Var, Shape], str] = {}
        self._next = 1 + max((p for e in graph.equations for p in e.buffer), default=-1)

    def constant(self, value: Any) -> str:
        word = f"k{sum(key.startswith('k') and key[1:].isdigit() for key in self.scope)}"
        self.scope[word] = np.asarray(value)
        return word

    def read(self, a: Atom) -> str:
        if isinstance(a, Var):
            return name(a)
        return repr(a.value) if a.weak and math.isfinite(a.value) else self.constant(a.value)

    def make(self, e: Equation) -> list[str]:
        """A place for each result: fresh if it is given out, else its buffer."""
        for i, v in enumerate(e.outs):
            self.solid.add(v)
            if v in self.out:
                self.own.add(v)
                self.lines.append(self._given(v))
                continue
            number = e.buffer[i] if e.buffer and e.buffer[i] >= 0 else self._next
            self._next = max(self._next, number + 1)
            self.buffers[number] = max(self.buffers.get(number, 0), v.spec.size * v.spec.dtype.itemsize)
            self.fix(v, name(v), _in_buffer(number, v))
        return [name(v) for v in e.outs]

    def _given(self, v: Var) -> str:
        """The line that makes a place for an output."""
        if v.spec.size * v.spec.dtype.itemsize < LARGE:
            return f'{name(v)} = np_empty({tuple(v.spec.shape)}, "{v.spec.dtype}")'
        word = f"room_for_{name(v)}"
        self.places[word] = lambda _memory: Room(v.spec)
        return f"{name(v)} = {word}()"

    def fix(self, v: Var, word: str, place: Place) -> None:
        self.fixed[v] = place
        self.places[word] = place

    def reshaped(self, v: Var, shape: Shape) -> str:
        """A value as a contiguous array of this shape."""
        if tuple(v.spec.shape) == shape and v in self.solid:
            return name(v)
        known = self.flat.get((v, shape))
        if known:
            return known
        word = f"{name(v)}_{len([1 for w, _ in self.flat if w == v]) + 1}"
        if v in self.fixed and v in self.solid:
            place = self.fixed[v]
            self.places[word] = lambda memory: place(memory).reshape(shape)
        else:
            whole = name(v) if v in self.solid else f"contiguous({name(v)})"
            self.lines.append(f"{word} = {whole}.reshape({shape})")
        self.flat[v, shape] = word
        return word

    def look(self, e: Equation, x: Var, look: Callable[[Any], Any]) -> None:
        v = e.out
        if is_contiguous_look(e) and x not in self.solid and x in self.fixed:
            self._copied(v, x)
        elif x in self.fixed:
            place = self.fixed[x]
            self.fix(v, name(v), lambda memory: look(place(memory)))
        else:
            self.lines.append(f"{name(v)} = {text_of_look(e, name(x))}")
        if is_contiguous_look(e) and (x in self.solid or x in self.fixed):
            self.solid.add(v)

    def _copied(self, v: Var, x: Var) -> None:
        """The entries of a view in a row: no shape but a copy will give them that, the same for each that asks."""
        if x in self.rows:
            self.fix(v, name(v), _in_buffer(self.rows[x], v))
            return
        self.rows[x] = self._next
        number, word, shape = self._next, f"{name(v)}_0", x.spec.shape
        self._next += 1
        self.buffers[number] = v.spec.size * v.spec.dtype.itemsize
        place = _in_buffer(number, v)
        self.fix(v, name(v), place)
        self.places[word] = lambda memory: place(memory).reshape(shape)
        self.lines.append(f"np_copyto({word}, {name(x)})  # {name(v)} = the entries of {name(x)} in a row")


def name(v: Var) -> str:
    """The name of a value in the source: letters alone, which no function there is called by."""
    return str(v)


def _in_buffer(number: int, v: Var) -> Place:
    n_bytes, dtype, shape = v.spec.size * v.spec.dtype.itemsize, v.spec.dtype, v.spec.shape
    return lambda memory: memory[number][:n_bytes].view(dtype).reshape(shape)


def _owned(x: Any) -> Any:
    """An array that shares no memory with a buffer or an input."""
    array = np.asarray(x)
    return array if array.base is None and array.flags.owndata else array.copy()


def _fitting(x: Any, shape: Shape) -> Any:
    """The same for an input of a loop, which asks no array for its size: a smaller one would be read beyond its end."""
    if x.shape != shape:
        raise ShapeError(
            "a compiled graph is for other shapes", given=f"{x.shape} for {shape}", hint="trace it anew for these"
        )
    return _contiguous(x)


def _contiguous(x: Any) -> Any:
    """An array as compiled loops read it, contiguous and in this machine's bytes; that it is read-only does no harm."""
    flags = x.flags
    ready = flags.c_contiguous and flags.aligned and x.dtype.isnative
    return x if ready else np.array(x, x.dtype.newbyteorder("="), order="C")
