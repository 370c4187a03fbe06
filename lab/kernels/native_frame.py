"""What all functions that are written into one loop share: its end, the errors it may raise, arrays of its own.

A loop lets other threads run, so it raises nothing itself: it writes down which error it was and goes to its end,
where memory is given back. The function around it raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from lab.errors import ShapeError
from lab.kernels.native_values import INT, KINDS, Array, Known, Number, number, refused, stored

RAISED: tuple[type[Exception], ...] = (ShapeError, MemoryError)
"""What a loop may raise, with a text that is known when it is written."""
MEMORY: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "malloc": (ir.IntType(8).as_pointer(), (INT,)), "calloc": (ir.IntType(8).as_pointer(), (INT, INT)),
    "free": (ir.VoidType(), (ir.IntType(8).as_pointer(),)),
}  # fmt: skip
"""What is called of C for arrays of its own."""
SPARE = 16
"""Bytes more than asked for: of an empty array there is an address, too."""


class Frame:
    """The end of a loop, and what has to happen there.

    Attributes:
        end: where it ends, with or without an error.
        errors: name of the class and text of each error; its number in the loop is its place here, counted from 1.
    """

    def __init__(self, b: Any, trouble: Any) -> None:
        self.b, self.trouble = b, trouble
        self.end = b.append_basic_block("end")
        self.errors: list[tuple[str, str]] = []
        self._owned: list[Any] = []

    def leave(self, kind: Known, text: Known) -> None:
        """Note an error and go to the end."""
        if kind not in RAISED or not isinstance(text, str):
            raise refused(f"{kind!r} that is raised")
        error = (kind.__name__, text)
        if error not in self.errors:
            self.errors.append(error)
        self.b.store(INT(1 + self.errors.index(error)), self.trouble)
        self.b.branch(self.end)

    def array(self, shape: Known, dtype: Known, *, zeros: bool) -> Array:
        """An array of its own, one only at a time of those that a line makes again and again."""
        kind = KINDS.get(np.dtype(dtype).name, "")
        sizes = [number(n) for n in (shape if type(shape) is tuple else (shape,))]
        if not kind or any(n.kind != "i8" for n in sizes):
            raise refused(f"an array of {dtype} with {shape}")
        b, slot = self.b, self._slot()
        n_bytes = INT(np.dtype(dtype).itemsize)
        for n in sizes:
            n_bytes = b.mul(n_bytes, n.ir, flags=("nsw",))
        n_bytes = b.add(n_bytes, INT(SPARE))
        b.call(self._memory("free"), [b.load(slot)])
        made = b.call(self._memory("calloc"), [INT(1), n_bytes]) if zeros else b.call(self._memory("malloc"), [n_bytes])
        b.store(made, slot)
        with b.if_then(b.icmp_unsigned("==", made, ir.Constant(made.type, None)), likely=False):
            self.leave(MemoryError, "a compiled loop was given no memory for what is between")
        return Array(kind, b.bitcast(made, stored(kind).as_pointer()), tuple(n.ir for n in sizes))

    def _slot(self) -> Any:
        """Where the address of an array of its own is kept until the end."""
        address = MEMORY["malloc"][0]
        with self.b.goto_entry_block():
            slot = self.b.alloca(address)
            self.b.store(ir.Constant(address, None), slot)
        self._owned.append(slot)
        return slot

    def _memory(self, name: str) -> Any:
        module = self.b.module
        if name in module.globals:
            return module.globals[name]
        result, takes = MEMORY[name]
        function = ir.Function(module, ir.FunctionType(result, takes), name)
        function.attributes.add("nounwind")
        if name != "free":
            function.return_value.add_attribute("noalias")
        return function

    def close(self) -> None:
        """Give back all memory, at the end."""
        for slot in self._owned:
            self.b.call(self._memory("free"), [self.b.load(slot)])


def part(b: Any, array: Array, start: Known, stop: Known) -> Array:
    """Entries of a row from one place to before another, both of which lie inside of it."""
    if start is None and stop is None:
        return array
    if len(array.shape) != 1:
        raise refused("rows of a matrix")
    first = Number("i8", INT(0)) if start is None else number(start)
    last = Number("i8", array.shape[0]) if stop is None else number(stop)
    if not {first.kind, last.kind} <= {"i8", "u8"}:
        raise refused(f"a part from {first.kind} to {last.kind}")
    size = last.ir if start is None else b.sub(last.ir, first.ir, flags=("nsw",))
    return Array(array.kind, b.gep(array.data, [first.ir], inbounds=True), (size,))


def flat(b: Any, array: Array, shape: Sequence[Known] = (-1,)) -> Array:
    """All entries of an array as one row."""
    if list(shape) != [-1]:
        raise refused(f"the shape {shape}")
    n = array.shape[0]
    for other in array.shape[1:]:
        n = b.mul(n, other, flags=("nsw",))
    return Array(array.kind, array.data, (n,))
