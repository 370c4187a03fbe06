"""What functions of NumPy and of libm are in LLVM: its own operations where it has them, calls of libm elsewhere."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from llvmlite import ir  # type: ignore[import-untyped]

from lab.kernels.native_values import BITS, KINDS, Array, Number, arithmetic, compared, converted, place, refused

INTRINSIC: dict[Any, str] = {
    np.sqrt: "sqrt", np.absolute: "fabs", np.floor: "floor", np.ceil: "ceil", np.rint: "rint", np.trunc: "trunc",
}  # fmt: skip
"""Of one float, exact, and in LLVM itself."""
LIBM: dict[Any, str] = {
    np.exp: "exp", np.expm1: "expm1", np.log: "log", np.log1p: "log1p", np.exp2: "exp2", np.log2: "log2",
    np.log10: "log10", np.cbrt: "cbrt", np.sin: "sin", np.cos: "cos", np.tan: "tan", np.arcsin: "asin",
    np.arccos: "acos", np.arctan: "atan", np.sinh: "sinh", np.cosh: "cosh", np.tanh: "tanh", np.arcsinh: "asinh",
    np.arccosh: "acosh", np.arctanh: "atanh", np.hypot: "hypot", np.arctan2: "atan2", math.erf: "erf",
    math.erfc: "erfc",
}  # fmt: skip
"""By its name for float64; that for float32 has an f behind it."""
SYMBOLS = tuple(f"{name}{f}" for name in (*LIBM.values(), "pow") for f in ("", "f"))
"""All that a loop may call of libm."""
TYPES: dict[Any, str] = {getattr(np, "bool_" if name == "bool" else name): kind for name, kind in KINDS.items()}
TYPES |= {bool: "b1", int: "i8", float: "f8"}


def called(b: Any, function: Any, values: Sequence[Number], flags: tuple[str, ...]) -> Number:
    """The value of a function of numbers.

    Raises:
        KernelError: it is not known here.
    """
    kinds = {x.kind for x in values}
    if function in TYPES and len(values) == 1:
        return converted(b, values[0], TYPES[function])
    if function in _TRUTHS:
        return _TRUTHS[function](b, *values)
    if function in (min, max) and kinds in ({"i4"}, {"i8"}) and len(values) == 2:
        first, second = values
        test = compared(b, "<=" if function is min else ">=", first, second)
        return Number(first.kind, b.select(test.ir, first.ir, second.ir))
    if (function not in INTRINSIC and function not in LIBM) or len(kinds) != 1 or not kinds <= {"f4", "f8"}:
        raise refused(f"{function!r} of {', '.join(x.kind for x in values)}")
    kind = values[0].kind
    if function in INTRINSIC:
        target = b.module.declare_intrinsic(f"llvm.{INTRINSIC[function]}", [BITS[kind]])
    else:
        target = _libm(b.module, LIBM[function] + ("f" if kind == "f4" else ""), kind, len(values))
    return Number(kind, b.call(target, [x.ir for x in values], fastmath=flags))


def _libm(module: Any, name: str, kind: str, n: int) -> Any:
    if name in module.globals:
        return module.globals[name]
    function = ir.Function(module, ir.FunctionType(BITS[kind], [BITS[kind]] * n), name)
    for word in ("nounwind", "readonly"):  # nothing of the lab looks at errno: what nobody reads may be left out
        function.attributes.add(word)
    return function


def _size(b: Any, x: Number) -> Any:
    return b.call(b.module.declare_intrinsic("llvm.fabs", [x.ir.type]), [x.ir])


def _infinity(x: Number) -> Any:
    return ir.Constant(x.ir.type, math.inf)


def _of_truths(sign: str) -> Callable[..., Number]:
    def computed(b: Any, *values: Number) -> Number:
        x, y = (converted(b, v, "b1") for v in values)
        return arithmetic(b, sign, x, y, ())

    return computed


_TRUTHS: dict[Any, Callable[..., Number]] = {
    np.isnan: lambda b, x: Number("b1", b.fcmp_unordered("!=", x.ir, x.ir)),
    np.isinf: lambda b, x: Number("b1", b.fcmp_ordered("==", _size(b, x), _infinity(x))),
    np.isfinite: lambda b, x: Number("b1", b.fcmp_ordered("<", _size(b, x), _infinity(x))),
    np.logical_not: lambda b, x: Number("b1", b.not_(converted(b, x, "b1").ir)),
    np.logical_and: _of_truths("&"),
    np.logical_or: _of_truths("|"),
    np.logical_xor: _of_truths("^"),
}


def same_bits(b: Any, x: Number) -> Number:
    """The integer with the bits of a float, or the other way round."""
    kind = {"f4": "i4", "f8": "i8", "i4": "f4", "i8": "f8"}[x.kind]
    return Number(kind, b.bitcast(x.ir, BITS[kind]))


def asked_for(b: Any, array: Array, at: Number) -> None:
    """Have the memory of an entry brought to the caches but the first, which the present row fills."""
    line, word = ir.IntType(8).as_pointer(), ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [line, word, word, word])
    function = b.module.declare_intrinsic("llvm.prefetch", [line], kind)
    b.call(function, [b.bitcast(place(b, array, at), line), word(0), word(2), word(1)])
