"""Teaches numba the functions of `atomics`: loads and stores with an order, the C library's clock and sleep.

They are calls of the C library by name, not addresses: so what is compiled with them can be kept on disk.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from typing import Any

# ruff: noqa: TID253 - this file is imported when the first executor is compiled, and by nobody else
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from lab.kernels import atomics

_INT, _LONG, _BYTE = ir.IntType(32), ir.IntType(64), ir.IntType(8)
_ON_X86 = platform.machine() in {"x86_64", "AMD64", "i686"}
WORD = 8


def _function(builder: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A function of the C library."""
    return cgutils.get_or_insert_function(builder.module, ir.FunctionType(result, arguments), name)  # type: ignore[no-untyped-call]


def _place(context: Any, builder: Any, array_type: Any, array: Any, i: Any) -> Any:
    return builder.gep(context.make_array(array_type)(context, builder, array).data, [i])


@intrinsic
def _load(_context: Any, words: Any, i: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place(context, builder, signature.args[0], values[0], values[1])
        return builder.load_atomic(place, "acquire", WORD)

    return types.int64(words, types.intp), emit


@intrinsic
def _store(_context: Any, words: Any, i: Any, value: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        place = _place(context, builder, signature.args[0], values[0], values[1])
        builder.store_atomic(values[2], place, "release", WORD)
        return context.get_dummy_value()

    return types.none(words, types.intp, types.int64), emit


@intrinsic
def _now(_context: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        spec = cgutils.alloca_once(builder, ir.ArrayType(_LONG, 2))  # type: ignore[no-untyped-call]
        ask = _function(builder, "clock_gettime", _INT, _INT, _BYTE.as_pointer())
        builder.call(ask, [_INT(time.CLOCK_MONOTONIC), builder.bitcast(spec, _BYTE.as_pointer())])
        seconds, rest = (builder.load(builder.gep(spec, [_INT(0), _INT(at)])) for at in (0, 1))
        return builder.add(builder.mul(seconds, _LONG(1_000_000_000)), rest)

    return types.int64(), emit


@intrinsic
def _pause(_context: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        if _ON_X86:
            builder.call(_function(builder, "llvm.x86.sse2.pause", ir.VoidType()), [])
        return context.get_dummy_value()

    return types.none(), emit


@intrinsic
def _give_way(_context: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.call(_function(builder, "sched_yield", _INT), [])
        return context.get_dummy_value()

    return types.none(), emit


@intrinsic
def _nap(_context: Any, microseconds: Any) -> Any:
    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        builder.call(_function(builder, "usleep", _INT, _INT), [values[0]])
        return context.get_dummy_value()

    return types.none(types.uint32), emit


def _means(plain: Callable[..., Any], compiled: Callable[..., Any]) -> None:
    overload(plain, jit_options={"forceinline": True})(compiled)


# numba calls the outer function with types and compiles the inner one
# ruff: noqa: PLW0108 - which must be a function of ours, not an intrinsic
_means(atomics.load, lambda words, i: lambda words, i: _load(words, i))  # type: ignore[call-arg]
_means(atomics.store, lambda words, i, value: lambda words, i, value: _store(words, i, value))  # type: ignore[call-arg]
_means(atomics.now, lambda: lambda: _now())  # type: ignore[call-arg]
_means(atomics.pause, lambda: lambda: _pause())  # type: ignore[call-arg]
_means(atomics.give_way, lambda: lambda: _give_way())  # type: ignore[call-arg]
_means(atomics.nap, lambda microseconds: lambda microseconds: _nap(microseconds))  # type: ignore[call-arg]
