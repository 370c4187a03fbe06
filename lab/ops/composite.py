"""Functions made of ops: they have a name in NumPy or in the field and no rule of their own, because their ops do.

A swap of two axes is a transpose, a standard deviation is the root of a variance. Each has a record all the same, so
that its tests, its help and NumPy's spelling of it follow from one place, as for an op.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.errors import ArgumentError
from lab.ops.primitive import PRIMITIVES
from lab.ops.sample import Sample

COMPOSITES: dict[str, Composite] = {}
"""Every function made of ops, by name. A new one enters by being defined."""


class Composite:
    """A function made of ops, with what the tests and the help of it are made from.

    Attributes:
        name: key in COMPOSITES; NumPy's word where NumPy has one.
        function: operands first, then parameters; or, with `sequence`, a list of operands and parameters.
        apply: the same with a call that does not fit said in three lines: what `lab.<name>` is.
        arguments, defaults, doc: as of an Op, read from the function.
        samples, error_samples, reference, numpy, method: as of an Op.
        sequence: the operands come as one list, as in `lab.stack([a, b])`.
        leading: a parameter that stands before the operands, as in `lab.einsum("ij->ji", x)`, or "".

    Example:
        >>> from lab.ops.composite import COMPOSITES, composite
        >>> @composite(reference=lambda x: x * x * x)
        ... def cubed(x):
        ...     "The third power."
        ...     return x * x * x
        >>> cubed(2.0), COMPOSITES["cubed"].doc
        (8.0, 'The third power.')
        >>> del COMPOSITES["cubed"]
    """

    __slots__ = (
        "apply", "arguments", "defaults", "doc", "error_samples", "fixed", "function", "leading", "method", "name",
        "numpy", "reference", "samples", "sequence",
    )  # fmt: skip

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        reference: Callable[..., Any],
        samples: Sequence[Sample] = (),
        error_samples: Sequence[tuple[tuple[Any, ...], dict[str, Any], str]] = (),
        numpy: Mapping[Any, Callable[..., Any] | None] | None = None,
        method: bool = False,
        sequence: bool = False,
        leading: str = "",
    ) -> None:
        name = function.__name__.rstrip("_")
        if name in PRIMITIVES or name in COMPOSITES:
            raise ArgumentError("an op of that name exists", given=name, hint="another name")
        parameters = inspect.signature(function).parameters
        self.name, self.function, self.sequence, self.leading = name, function, sequence, leading
        operands = [n for n, p in parameters.items() if _is_operand(p) and n != leading]
        several = sequence or any(p.kind is p.VAR_POSITIONAL for p in parameters.values())
        self.arguments = tuple(f"*{n}" if several else n for n in operands)
        self.defaults: dict[str, Any] = {
            n: None if p.default is p.empty else p.default for n, p in parameters.items() if n not in operands
        }
        self.fixed: dict[str, Callable[[], Any]] = {}
        self.doc = inspect.cleandoc(function.__doc__ or "")
        self.reference, self.samples, self.error_samples = reference, tuple(samples), tuple(error_samples)
        self.numpy, self.method = dict(numpy or {}), method
        self.apply = _fitting(function, name)
        COMPOSITES[name] = self

    def __repr__(self) -> str:
        return f"<composite {self.name}({', '.join((*self.arguments, *self.defaults))})>"

    def __call__(self, *operands: Any, **params: Any) -> Any:
        """The function with its operands one by one and first, however it takes them."""
        if self.leading:
            return self.apply(params.pop(self.leading), *operands, **params)
        return self.apply(list(operands), **params) if self.sequence else self.apply(*operands, **params)


def _is_operand(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind is not parameter.KEYWORD_ONLY


def _fitting(function: Callable[..., Any], name: str) -> Callable[..., Any]:
    """The function, with a call that does not fit its signature said in three lines."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def apply(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError:
            try:
                signature.bind(*args, **kwargs)
            except TypeError as why:
                raise ArgumentError(
                    f"{name} cannot be called like this", given=str(why), hint=f"lab.{name}{signature}"
                ) from None
            raise

    apply.__name__ = apply.__qualname__ = name
    return apply


def composite(*, reference: Callable[..., Any], **record: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Enter a function of ops in the table; what is left is the function itself, to be called by other ops' files.

    The operands are its parameters without a default; parameters have one. A parameter that must be given (the axes of
    a swap) stands behind a `*`.
    """

    def enter(function: Callable[..., Any]) -> Callable[..., Any]:
        return Composite(function, reference=reference, **record).apply

    return enter
