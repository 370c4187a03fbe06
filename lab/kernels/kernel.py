"""`@kernel`: a loop in plain Python that numba compiles when it is first called, with a twin for where numba is not.

Decorating imports and compiles nothing. The first call compiles (or loads from the cache) for the dtype at hand;
later calls go straight to the compiled code through a function of the same arity, which costs some 30 ns.
"""

from __future__ import annotations

import inspect
import logging
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


class Kernel:
    """The record of one kernel.

    Attributes:
        name: name of the function.
        body: the loop as written; Python can run it, slowly.
        twin: the same in NumPy.
        sample: `(rng, dtype, size) -> arguments`, for tests and warm-up.
        compiled: dtype -> "compiled" or "loaded" (from the cache), for what is ready in this process.
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
        self._dispatcher: Any = None
        self._rebind: Callable[[Callable[..., Any]], None] = lambda run: None

    @property
    def arguments(self) -> tuple[Argument, ...]:
        return arguments_of(self.body)

    def compile(self, dtype: str) -> None:
        """Make the kernel ready for float32 or float64 arrays; nothing to do where numba is missing."""
        if dtype not in FLOATS:
            raise KernelError("kernels are compiled for float32 and float64", given=dtype)
        if not have_numba():
            self._rebind(self.twin)
            return
        from lab.kernels import backend

        with _lock:
            if dtype not in self.compiled:
                backend.teach(HELPERS)
                # A fresh dispatcher for each set of dtypes: one that other threads call already must not compile again,
                # since a call that meets it meanwhile would compile for whatever it brings. The cache makes it cheap.
                made = backend.dispatcher(self.body, self.name, self.name, self.fastmath)
                for known in self.compiled:
                    backend.compile_for(made, self.arguments, known)
                self.compiled[dtype] = backend.compile_for(made, self.arguments, dtype)
                self._dispatcher = made
                self._rebind(made)

    def first(self, *values: Any) -> Any:
        """The way of a call whose types are not compiled: bring the arguments into form, compile if need be, run."""
        dtype = dtype_of(self.name, self.arguments, values)
        ready = [prepared(self.name, a, v, dtype) for a, v in zip(self.arguments, values, strict=True)]
        self.compile(dtype)
        return (self._dispatcher or self.twin)(*ready)


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
def make(run, first):
    def call({names}):
        try:
            return run({names})
        except TypeError:  # no compiled version for these types, or none at all yet
            pass
        return first({names})

    def rebind(compiled):
        nonlocal run
        run = compiled

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
        # A function of fixed arity, since *args would cost another 100 ns a call.
        exec(_TEMPLATE.format(names=names), scope)  # noqa: S102 - the names of a function's parameters
        call, record._rebind = scope["make"](None, record.first)
        KERNELS[record.name] = record
        return update_wrapper(call, body)  # type: ignore[return-value]

    return decorate
