"""Numbers and arrays while a loop is written as LLVM: their kinds, conversions between them, arithmetic as in numba."""

from __future__ import annotations

from typing import Any, NamedTuple, TypeAlias

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from lab.errors import KernelError

BITS: dict[str, Any] = {
    "f4": ir.FloatType(), "f8": ir.DoubleType(), "i4": ir.IntType(32), "i8": ir.IntType(64), "u8": ir.IntType(64),
    "b1": ir.IntType(1),
}  # fmt: skip
"""The type in LLVM of each kind of number: floats, integers with and without sign, truths."""
KINDS: dict[str, str] = {
    "float32": "f4", "float64": "f8", "int32": "i4", "int64": "i8", "uint64": "u8", "bool": "b1",
}  # fmt: skip
INT = BITS["i8"]


class Number(NamedTuple):
    """A number that is known when the loop runs."""

    kind: str
    ir: Any


class Array(NamedTuple):
    """An array whose entries stand one behind the other."""

    kind: str
    data: Any
    shape: tuple[Any, ...]


Known: TypeAlias = Any
"""A Number, an Array, a tuple of such, or what Python knows while it writes: a number, a function, a module."""


def refused(what: str) -> KernelError:
    """What is raised where numba has to compile a loop."""
    return KernelError("a loop is not written as LLVM", given=what, hint="numba compiles it")


def stored(kind: str) -> Any:
    """The type of an entry of an array: a truth takes a byte."""
    return ir.IntType(8) if kind == "b1" else BITS[kind]


def number(x: Known) -> Number:
    """A number of Python or NumPy as a constant; a Number as it is."""
    if isinstance(x, Number):
        return x
    if isinstance(x, np.generic):
        kind = KINDS.get(x.dtype.name, "")
        if kind:
            return Number(kind, ir.Constant(BITS[kind], x.item()))
    for python, kind in ((bool, "b1"), (int, "i8"), (float, "f8")):
        if isinstance(x, python):
            return Number(kind, ir.Constant(BITS[kind], x))
    raise refused(f"{x!r} as a number")


def converted(b: Any, x: Number, kind: str) -> Number:
    """A number as another kind of number."""
    if x.kind == kind or {x.kind, kind} == {"i8", "u8"}:
        return Number(kind, x.ir)
    is_float, was_float = kind[0] == "f", x.kind[0] == "f"
    if kind == "b1":
        zero = ir.Constant(BITS[x.kind], 0)
        test = b.fcmp_unordered("!=", x.ir, zero) if was_float else b.icmp_signed("!=", x.ir, zero)
        return Number(kind, test)
    if is_float and was_float:
        how = b.fpext if kind == "f8" else b.fptrunc
    elif is_float:
        how = b.uitofp if x.kind in ("b1", "u8") else b.sitofp
    elif was_float:
        if kind == "u8":
            raise refused("a float as an integer without sign")
        how = b.fptosi
    elif x.kind == "b1":
        how = b.zext
    else:
        how = b.trunc if kind == "i4" else b.sext
    return Number(kind, how(x.ir, BITS[kind]))


def alike(b: Any, x: Number, y: Number) -> tuple[Number, Number]:
    """Two numbers in the kind that numba computes in: of 32-bit integers in 64 bits."""
    kinds = {x.kind, y.kind}
    if kinds in ({"b1"}, {"u8"}):
        return x, y
    if kinds & {"b1", "u8"}:
        raise refused(f"{x.kind} with {y.kind}")
    kind = "f4" if kinds == {"f4"} else "f8" if kinds & {"f4", "f8"} else "i8"
    return converted(b, x, kind), converted(b, y, kind)


def arithmetic(b: Any, sign: str, x: Number, y: Number, flags: tuple[str, ...]) -> Number:
    """The result of an operator of Python; a division by zero gives what NumPy gives."""
    x, y = alike(b, x, y)
    if sign == "/" and x.kind[0] != "f":
        x, y = converted(b, x, "f8"), converted(b, y, "f8")
    if x.kind[0] == "f":
        if sign == "**":
            power = b.module.declare_intrinsic("llvm.pow", [x.ir.type])
            return Number(x.kind, b.call(power, [x.ir, y.ir], fastmath=flags))
        how = {"+": b.fadd, "-": b.fsub, "*": b.fmul, "/": b.fdiv}.get(sign)
        if how is not None:
            return Number(x.kind, how(x.ir, y.ir, flags=flags))
    elif x.kind == "b1":
        how = {"|": b.or_, "&": b.and_, "^": b.xor}.get(sign)
    elif sign in ("%", "//"):
        return _whole(b, sign, x, y)
    else:
        how = {"+": b.add, "-": b.sub, "*": b.mul, "|": b.or_, "&": b.and_, "^": b.xor, "<<": b.shl,
               ">>": b.ashr}.get(sign)  # fmt: skip
    if how is None:
        raise refused(f"{x.kind} {sign} {y.kind}")
    return Number(x.kind, how(x.ir, y.ir))


def _whole(b: Any, sign: str, x: Number, y: Number) -> Number:
    """A quotient rounded down, or what is left by it; the processor would stop at a zero, which becomes a one."""
    some = b.select(b.icmp_signed("==", y.ir, INT(0)), INT(1), y.ir)
    if x.kind == "u8":
        return Number(x.kind, (b.urem if sign == "%" else b.udiv)(x.ir, some))
    rest = b.srem(x.ir, some)
    other = b.icmp_signed("<", b.xor(rest, some), INT(0))
    down = b.and_(b.icmp_signed("!=", rest, INT(0)), other)
    if sign == "%":
        return Number(x.kind, b.add(rest, b.select(down, some, INT(0))))
    return Number(x.kind, b.sub(b.sdiv(x.ir, some), b.zext(down, INT)))


def compared(b: Any, sign: str, x: Number, y: Number) -> Number:
    """Whether a comparison holds; with nan none does but !=."""
    x, y = alike(b, x, y)
    if x.kind[0] == "f":
        how = b.fcmp_unordered if sign == "!=" else b.fcmp_ordered
    else:
        how = b.icmp_signed if x.kind == "i8" else b.icmp_unsigned
    return Number("b1", how(sign, x.ir, y.ir))


def chosen(b: Any, condition: Number, x: Number, y: Number) -> Number:
    """One of two numbers, both of them computed: a choice without a jump keeps a loop in lanes."""
    if x.kind != y.kind:
        x, y = alike(b, x, y)
    return Number(x.kind, b.select(converted(b, condition, "b1").ir, x.ir, y.ir))


def place(b: Any, array: Array, at: Number) -> Any:
    """Where an entry stands."""
    if at.kind not in ("i8", "u8"):
        raise refused(f"{at.kind} as an index")
    return b.gep(array.data, [at.ir], inbounds=True)


def read(b: Any, array: Array, at: Number) -> Number | Array:
    """An entry of a row, or a row of a matrix."""
    if len(array.shape) == 2:
        n = array.shape[1]
        return Array(array.kind, place(b, array, Number("i8", b.mul(at.ir, n, flags=("nsw",)))), (n,))
    entry = b.load(place(b, array, at))
    truth = array.kind == "b1"
    return Number(array.kind, b.icmp_unsigned("!=", entry, ir.Constant(entry.type, 0)) if truth else entry)


def write(b: Any, array: Array, at: Number, x: Number) -> None:
    """Set an entry of a row."""
    if len(array.shape) != 1:
        raise refused("a whole row that is set")
    x = converted(b, x, array.kind)
    b.store(b.zext(x.ir, ir.IntType(8)) if x.kind == "b1" else x.ir, place(b, array, at))
