"""The only file that imports numba: it teaches numba the lab's scalar functions and compiles kernels through the cache.

Nothing imports this file until a kernel is called (`kernel.py` and `fuse.py` do it then), so `import lab` stays light
and works where numba is missing.
"""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable, Mapping
from typing import Any

# ruff: noqa: TID253 - this file is imported when the first kernel is called, and by nobody else
import numba
from llvmlite import ir  # type: ignore[import-untyped]
from numba import types
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload, register_jitable

from lab.kernels import ahead, cache, running, scalars, special
from lab.kernels.arguments import Argument

CONTRACT = {"contract"}
"""The polynomials may use fused multiply-add; nothing else, since their order of operations is their accuracy."""


def _instruction(name: str, source: Any, target: Any, target_ir: Any) -> Any:
    """A function of one number that is one LLVM conversion."""

    def typed(context: Any, value: Any) -> Any:
        def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            return getattr(builder, name)(values[0], target_ir)

        return target(source), emit

    return intrinsic(typed)


_as_float = _instruction("bitcast", types.int32, types.float32, ir.FloatType())
_as_bits = _instruction("bitcast", types.float32, types.int32, ir.IntType(32))
_as_float_64 = _instruction("bitcast", types.int64, types.float64, ir.DoubleType())
_as_bits_64 = _instruction("bitcast", types.float64, types.int64, ir.IntType(64))


def _asked_for(_context: Any, array: Any, place: Any) -> Any:
    """LLVM's prefetch of an entry to be read, into all caches but the first, which the present row fills."""

    def emit(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        line, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        data = context.make_array(signature.args[0])(context, builder, values[0]).data
        kind = ir.FunctionType(ir.VoidType(), [line, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [line], kind)
        builder.call(function, [builder.bitcast(builder.gep(data, [values[1]]), line), number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.none(array, types.intp), emit


_prefetch: Any = intrinsic(_asked_for)
_taught: set[Callable[..., Any]] = set()


def teach(helpers: Mapping[Callable[..., Any], frozenset[str]], *, inline: bool = False) -> None:
    """Let numba compile these functions where a kernel calls them, each with its own flags.

    Args:
        inline: put them into the loop however long they are; one that stays a call keeps its loop from vectorising.
    """
    for function in set(helpers) - _taught:
        register_jitable(fastmath=set(helpers[function]), forceinline=inline)(function)
        _taught.add(function)


def _teach_scalars() -> None:
    """Tell numba what the functions of `scalars` and `special` mean inside a kernel."""

    def by_type(function: Callable[..., Any], single: Callable[..., Any], double: Callable[..., Any]) -> None:
        def narrow(x: Any) -> Any:
            return single(x)

        def wide(x: Any) -> Any:
            return double(x)

        def choose(x: Any) -> Any:  # numba wants the same names and annotations as its choices have
            return narrow if x in (types.float32, types.int32) else wide

        overload(function, jit_options={"fastmath": CONTRACT, "forceinline": True})(choose)

    # numba calls the outer function with types and compiles the inner one
    overload(ahead.ask_for)(lambda row, j: lambda row, j: _prefetch(row, j))  # noqa: PLW0108
    by_type(scalars.bits_to_float, _as_float, _as_float_64)
    by_type(scalars.float_to_bits, _as_bits, _as_bits_64)
    teach({function: frozenset(CONTRACT) for function in (*scalars.INLINED, *special.INLINED)}, inline=True)
    teach({function: frozenset(CONTRACT) for function in (*special.CALLED, *running.CALLED)})
    teach({function: frozenset({"reassoc", "nsz"}) for function in running.INLINED}, inline=True)
    for function, (single, double) in (scalars.BY_TYPE | special.BY_TYPE).items():
        by_type(function, single, double)


_teach_scalars()


class DiskCache(_Cache):
    """What a numba dispatcher asks before it compiles: one checksummed file per kernel and signature."""

    def __init__(self, name: str, source: str) -> None:
        self.name, self.source, self.enabled, self.hits = name, source, True, 0

    @property
    def cache_path(self) -> str:
        return str(cache.cache_folder())

    def file_name(self, signature: Any, codegen: Any) -> str:
        # magic_tuple names the CPU and its features: a folder on a network disk may serve several machines
        text = repr((self.name, self.source, signature, codegen.magic_tuple()))
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:24]}.nbc"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        name = self.file_name(sig, target_context.codegen())
        payload = cache.load(name) if self.enabled else None
        if payload is None:
            return None
        try:
            parts = pickle.loads(payload)  # noqa: S301 - from a private folder
            result = CompileResult._rebuild(target_context, *parts)  # type: ignore[no-untyped-call]
        except Exception as why:  # noqa: BLE001 - whatever an old or foreign file does, compiling again is the cure
            cache.drop(name, f"{type(why).__name__}: {why}")
            return None
        self.hits += 1
        return result

    def save_overload(self, sig: Any, data: Any) -> None:
        if self.enabled and not data.library.has_dynamic_globals:
            cache.save(self.file_name(sig, data.codegen), dumps(data._reduce()))  # type: ignore[no-untyped-call]

    def enable(self) -> None:
        self.enabled = True

    def disable(self) -> None:
        self.enabled = False

    def flush(self) -> None:
        pass


def dispatcher(
    function: Callable[..., Any], name: str, source: str, fastmath: frozenset[str], *, apart: bool = False
) -> Any:
    """A numba dispatcher for `function` that compiles nothing yet and keeps what it compiles on disk.

    Args:
        function: the loop.
        name: begins the name of its file.
        source: text that changes whenever the compiled code would (lab.kernels itself is in the folder's name).
        fastmath: LLVM's flags; never all of them, since nan and inf must survive to be shown.
        apart: the caller promises that no array overlaps one that is written. LLVM asks that at run time otherwise, and
            gives up on loops with more than a few arrays.
    """
    made: Any = numba.njit(nogil=True, error_model="numpy", fastmath=set(fastmath))(function)
    if apart:
        usual = made._compiler._customize_flags

        def customized(flags: Any) -> Any:  # numba knows the flag, and its decorator has no word for it
            flags = usual(flags)
            flags.noalias = True
            return flags

        made._compiler._customize_flags = customized
    made._cache = DiskCache(name, source)
    return made


def compile_for(made: Any, arguments: tuple[Argument, ...], dtype: str) -> str:
    """Compile `made` for arguments whose "T" is `dtype`, and for nothing else.

    Returns:
        "compiled", or "loaded" when it came from the cache.
    """
    hits = made._cache.hits
    made.disable_compile(False)
    try:
        made.compile(tuple(_type(argument, dtype) for argument in arguments))
    finally:
        made.disable_compile(bool(made.signatures))
    return "loaded" if made._cache.hits > hits else "compiled"


def _type(argument: Argument, dtype: str) -> Any:
    item = getattr(types, {"T": dtype, "bool": "boolean"}.get(argument.dtype, argument.dtype))
    # What is only read may be read-only: numba takes a writable array for such a one, but never the other way round.
    return types.Array(item, argument.ndim, "C", readonly=not argument.written) if argument.ndim else item
