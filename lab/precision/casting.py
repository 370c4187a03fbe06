"""autocast: a function whose products are computed in a narrow format and whose sums stay in float32.

What an op does stands in its record: products and convolutions are "narrow", exponentials, sums and losses are "wide",
all others follow their operands. It is one more level of the interpreter, as `vmap` is: nothing else is slower.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from lab import tree
from lab.autograd.interpreter import Interpreter, Tracer
from lab.autograd.tape import next_id
from lab.autograd.tensor import Tensor, wrap
from lab.config import STATE, using
from lab.ops import cast, round_to
from lab.ops.primitive import Op
from lab.precision.formats import FLOAT16, Format, format_of
from lab.transforms.arguments import function


class Autocast(Interpreter):
    """One `autocast`. `Tracer.extra` says whether a value's numbers are of the narrow format.

    Attributes:
        born: parameters are older nodes than this: what is made of them alone is done here, too.
    """

    word: ClassVar[str] = "autocast"

    def __init__(self, narrow: Format) -> None:
        super().__init__()
        self.narrow, self.born, self._outer = narrow, next_id(), STATE.get().staging

    def is_weak(self, tracer: Tracer) -> bool:
        return isinstance(tracer.value, Tracer) and tracer.value.weak

    def apply(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        mine = [isinstance(a, Tracer) and a.interp is self for a in args]
        values = [a.value if m else a for a, m in zip(args, mine, strict=True)]
        narrow = [m and bool(a.extra) for a, m in zip(args, mine, strict=True)]
        with using(staging=self._outer):  # below, parameters alone are as they are there
            if op.precision == "wide":
                return self._made(op(*map(_widened, values), **params), is_narrow=False)
            is_product = op.precision == "narrow" and not any(map(_is_double, values))
            if is_product or self._gives_way(values, mine, narrow):
                out = op(*(self._narrowed(v, done=n) for v, n in zip(values, narrow, strict=True)), **params)
                return self._made(self._rounded(out) if is_product or op.elementwise else out, is_narrow=True)
            return self._made(op(*values, **params), is_narrow=False)

    def _gives_way(self, values: Sequence[Any], mine: Sequence[bool], narrow: Sequence[bool]) -> bool:
        """Whether all floats that were computed here are narrow: then a parameter among the operands is made so, too.

        A bias would otherwise make float32 of each product.
        """
        floats = [n for v, m, n in zip(values, mine, narrow, strict=True) if m and _is_float(v)]
        return bool(floats) and all(floats) and not any(map(_is_double, values))

    def _narrowed(self, value: Any, *, done: bool) -> Any:
        if done or not _is_single(value):
            return value
        if self.narrow is FLOAT16:
            return cast(value, dtype="float16")
        return round_to(value, dtype=self.narrow.name)

    def _rounded(self, out: Any) -> Any:
        """What has a dtype of its own is rounded by it."""
        is_held_wide = self.narrow is not FLOAT16 and _is_single(out)
        return round_to(out, dtype=self.narrow.name) if is_held_wide else out

    def _made(self, out: Any, *, is_narrow: bool) -> Any:
        if isinstance(out, tuple):
            return tuple(Tracer(self, part) for part in out)
        return Tracer(self, out, _dtype(out) == np.float16 or (is_narrow and _is_single(out)))


def _dtype(value: Any) -> Any:
    return getattr(value, "dtype", None)


def _is_double(value: Any) -> bool:
    return bool(_dtype(value) == np.float64 and not getattr(value, "weak", False))


def _is_single(value: Any) -> bool:
    return bool(_dtype(value) == np.float32)


def _is_float(value: Any) -> bool:
    return bool(np.dtype(_dtype(value)).kind == "f") if _dtype(value) is not None else False


def _widened(value: Any) -> Any:
    return cast(value, dtype="float32") if _dtype(value) == np.float16 else value


def autocast(f: Callable[..., Any], dtype: str = "float16") -> Callable[..., Any]:
    """The same function in mixed precision: products of matrices and convolutions in 16 bits, the rest in float32.

    Operands of float32 are cast where a product wants them, by an op of the graph that also takes their gradients back
    to float32: parameters stay as they are (master weights), and so do their gradients. Other ops follow what they are
    given; a parameter that meets a narrow value, as a bias does, is made narrow. Sums of products are taken in
    float32 and rounded once, as a GPU's matrix units do. float64 is left alone. What f is given may be containers of
    arrays; what it closes over, such as the parameters of a module, is cast as well.

    No faster here: this processor has no products of 16 bits. It shows what they do to numbers, and to memory.

    Args:
        f: a function or a module.
        dtype: "float16", whose small gradients need a scaled loss (`lab.precision.Mixed`), or "bfloat16", which has
            float32's range and two to three digits; its arrays are float32 here, rounded (`Format.dtype`).

    Raises:
        ArgumentError: f is no function, or there is no such format.

    Example:
        >>> import lab, numpy as np
        >>> w = lab.tensor(np.full((2, 2), 0.1, np.float32), requires_grad=True)
        >>> y = lab.autocast(lambda x: x @ w)(np.full((1, 2), 3, np.float32))
        >>> y.dtype, y.numpy().tolist()
        (dtype('float16'), [[0.599609375, 0.599609375]])
        >>> y.sum().backward(); w.grad.dtype
        dtype('float32')
    """
    function(f, "autocast")
    narrow = format_of(dtype)

    @functools.wraps(f)
    def narrowed(*args: Any, **kwargs: Any) -> Any:
        interp = Autocast(narrow)
        leaves, structure = tree.flatten((args, kwargs))
        inside, words = tree.unflatten(structure, [_entered(interp, leaf) for leaf in leaves])
        try:
            with using(staging=interp, transforms=STATE.get().transforms + 1):
                outs, shape = tree.flatten(f(*inside, **words))
        finally:
            interp.alive = False
        return tree.unflatten(shape, [_left(interp, out) for out in outs])

    return narrowed


def _entered(interp: Autocast, leaf: Any) -> Any:
    if isinstance(leaf, np.ndarray) and leaf.dtype.kind in "fiub":
        leaf = wrap(leaf)
    return Tracer(interp, leaf) if isinstance(leaf, Tensor) else leaf


def _left(interp: Autocast, out: Any) -> Any:
    return out.value if isinstance(out, Tracer) and out.interp is interp else out
