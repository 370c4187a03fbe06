"""`@kernel`: a loop in plain Python that is compiled when it is first called, with a twin for where no compiler is.

Decorating imports and compiles nothing. The first call compiles (or loads from the cache) for the dtype at hand,
without numba where `native.py` knows all that the loop says; later calls go straight to the compiled code through a
function of the same arity, which costs some 30 ns.
"""

from __future__ import annotations

import importlib.util
import inspect
import logging
import textwrap
import threading
from collections.abc import Callable
from functools import cache, update_wrapper
from typing import Any, TypeVar

import numpy as np

from lab.errors import KernelError
from lab.kernels.arguments import FLOATS, Argument, arguments_of, dtype_of, prepared

F = TypeVar("F", bound=Callable[..., Any])
FASTMATH = frozenset({"contract"})
"""What LLVM may do in a kernel: fuse a product with a sum. `nnan` and `ninf` never: nan and inf must be seen.
`reassoc` only in a `helper` that sums, because it makes (log(s) - x) + top of log(s) - (x - top), and with large
logits all digits are gone (test_softmax_cross_entropy_keeps_its_digits_for_large_logits)."""
SUMMING = frozenset({"contract", "reassoc", "nsz"})
"""For helpers that sum a block: the order of a sum is free, so that it runs in many lanes."""

KERNELS: dict[str, Kernel] = {}
"""Every kernel by name: what `warm` compiles and what the tests run against its twin."""

HELPERS: dict[Callable[..., Any], frozenset[str]] = {}
"""Functions that kernels call, with what LLVM may do inside them."""

_lock = threading.RLock()


@cache
def have_numba() -> bool:
    """Whether kernels are compiled in this process; without numba their NumPy twins run."""
    try:
        import lab.kernels.backend  # noqa: F401
    except ImportError as why:
        logging.getLogger("lab.kernels").info("kernels run as NumPy: %s", why)
        return False
    return True


@cache
def have_compiler() -> bool:
    """Whether loops can be compiled in this process: numba is there, imported only where llvmlite alone will not do."""
    try:
        if importlib.util.find_spec("numba") is None:
            return False
        from lab.kernels import native
    except (ImportError, ValueError) as why:  # ValueError: something else bears its name
        logging.getLogger("lab.kernels").info("loops run as NumPy: %s", why)
        return False
    return native.machine() is not None or have_numba()


class Kernel:
    """The record of one kernel.

    Attributes:
        name: name of the function.
        body: the loop as written; Python can run it, slowly.
        twin: the same in NumPy.
        sample: `(rng, dtype, size) -> arguments`, for tests and warm-up.
        compiled: dtype -> "compiled" or "loaded" (from the cache), for what is ready in this process.
        runs: dtype -> the compiled function, which raises a TypeError for whatever it was not made for.
        ulps: how far the result may be from the twin's, in units in the last place of the largest number in the result.
    """

    def __init__(
        self,
        body: Callable[..., Any],
        twin: Callable[..., Any],
        sample: Callable[[np.random.Generator, str, int], tuple[Any, ...]],
        fastmath: frozenset[str],
        ulps: float,
    ) -> None:
        self.name, self.body, self.twin, self.sample = body.__name__, body, twin, sample
        self.fastmath, self.ulps = fastmath, ulps
        self.compiled: dict[str, str] = {}
        self.runs: dict[str, Callable[..., Any]] = {}
        self._rebind: Callable[..., None] = lambda *runs: None

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return arguments_of(self.body)

    def compile(self, dtype: str) -> None:
        """Make the kernel ready for float32 or float64 arrays; nothing to do where no compiler is."""
        if dtype not in FLOATS:
            raise KernelError("kernels are compiled for float32 and float64", given=dtype)
        with _lock:
            if dtype in self.compiled:
                return
            made = (have_compiler() and self._natively(dtype)) or self._by_numba(dtype)
            if made is None:
                self._rebind(self.twin, self.twin)
                return
            self.runs[dtype], self.compiled[dtype] = made
            (*_, some) = self.runs.values()
            self._rebind(*(self.runs.get(known, some) for known in FLOATS))

    def _natively(self, dtype: str) -> tuple[Callable[..., Any], str] | None:
        """The loop compiled without numba, if all that it says is known there."""
        from lab.kernels import native

        try:
            source = textwrap.dedent(inspect.getsource(self.body))
        except OSError:  # it stands in no file
            return None
        if self.body.__closure__:
            return None
        arguments = tuple(a._replace(dtype=dtype) if a.dtype == "T" else a for a in self.arguments)
        scope, name = self.body.__globals__, f"{self.name}-{dtype}"
        return native.compiled(name, source, scope, arguments, apart=True, flags=self.fastmath)

    def _by_numba(self, dtype: str) -> tuple[Callable[..., Any], str] | None:
        """The same by numba, with a dispatcher for each dtype: one that threads call already must not compile again."""
        if not have_numba():
            return None
        from lab.kernels import backend

        backend.teach(HELPERS)
        made = backend.dispatcher(self.body, self.name, self.name, self.fastmath)
        return made, backend.compile_for(made, self.arguments, dtype)

    def first(self, *values: Any) -> Any:
        """The way of a call whose types are not compiled: bring the arguments into form, compile if need be, run."""
        dtype = dtype_of(self.name, self.arguments, values)
        ready = [prepared(self.name, a, v, dtype) for a, v in zip(self.arguments, values, strict=True)]
        self.compile(dtype)
        return self.runs.get(dtype, self.twin)(*ready)


def helper(*, fastmath: frozenset[str] = FASTMATH) -> Callable[[F], F]:
    """Let kernels call the decorated function; it stays a plain Python function.

    Example:
        >>> @helper()
        ... def squared(x):
        ...     return x * x
        >>> HELPERS.pop(squared)
        frozenset({'contract'})
    """

    def decorate(function: F) -> F:
        HELPERS[function] = fastmath
        return function

    return decorate


_TEMPLATE = """
def make(first, F32):
    single = double = None

    def call({names}):
        try:
            return (single if {array}.dtype is F32 else double)({names})
        except (TypeError, AttributeError):  # no compiled version for these types, or none at all yet; no arrays
            pass
        return first({names})

    def rebind(*runs):
        nonlocal single, double
        single, double = runs

    return call, rebind
"""


def kernel(
    *,
    twin: Callable[..., Any],
    sample: Callable[[np.random.Generator, str, int], tuple[Any, ...]],
    fastmath: frozenset[str] = FASTMATH,
    ulps: float = 4.0,
) -> Callable[[F], F]:
    """Register the decorated loop as a kernel; the annotations say what it takes (`arguments.py`).

    The result is called with positional arguments. Arrays that are only read are copied when they are not contiguous;
    arrays that are written must be contiguous. No argument may overlap one that is written.

    Args:
        twin: the same function in NumPy, with the same arguments.
        sample: draws arguments for the tests.
        fastmath: frozenset() keeps every operation as written.
        ulps: agreement with the twin.

    Raises:
        KernelError, DTypeError: on a call with arguments that cannot be brought into form.

    Example:
        >>> from lab.kernels.arguments import OutVector, Vector
        >>> def plus_twin(x, out):
        ...     out += x
        >>> @kernel(twin=plus_twin, sample=lambda rng, dtype, n: (np.ones(n, dtype), np.ones(n, dtype)))
        ... def plus(x: Vector, out: OutVector) -> None:
        ...     for i in range(x.size):
        ...         out[i] += x[i]
        >>> total = np.ones(3)
        >>> plus(np.ones(3), total)
        >>> total
        array([2., 2., 2.])
        >>> del KERNELS["plus"]
    """

    def decorate(body: F) -> F:
        record = Kernel(body, twin, sample, fastmath, ulps)
        if record.name in KERNELS:
            raise KernelError("two kernels have one name", given=record.name)
        scope: dict[str, Any] = {}
        names = ", ".join(inspect.signature(body).parameters)
        array, *_ = names.split(", ")
        # A function of fixed arity, since *args would cost another 100 ns a call.
        exec(_TEMPLATE.format(names=names, array=array), scope)  # noqa: S102 - the names of a function's parameters
        call, record._rebind = scope["make"](record.first, np.dtype("float32"))
        KERNELS[record.name] = record
        return update_wrapper(call, body)  # type: ignore[return-value]

    return decorate
