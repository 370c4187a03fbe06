"""The Tensor: an array and, where a gradient is wanted, a node on the tape.

Two slots, because every operation reads them. Operators and NumPy's words are attached in `operators.py`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from lab.autograd.between import set_gradient
from lab.autograd.display import array_text, mimebundle
from lab.autograd.tape import AnyNode, Leaf
from lab.errors import ArgumentError, DTypeError, GradientError, UnsupportedError

if TYPE_CHECKING:
    from lab.autograd.declared import Attached
else:
    Attached = object

Array = np.ndarray[Any, np.dtype[Any]]
Operand: TypeAlias = "Tensor | npt.ArrayLike"
"""What stands beside a tensor in an operation."""


class Tensor(Attached):
    """An array that can be differentiated.

    Attributes:
        value: the array. Only the lab writes to it; `numpy()` gives a read-only view.
        node: None if nothing is tracked, a Leaf if the user asked for its gradient, else the Node that made it.

    Example:
        >>> import lab, numpy as np
        >>> x = lab.tensor([1.0, 2.0], requires_grad=True, name="x")
        >>> y = np.sin(x) * 2.0 + x[::-1]
        >>> y.shape, y.requires_grad, y.is_leaf
        ((2,), True, False)
    """

    __slots__ = ("__weakref__", "node", "value")
    value: Any
    node: AnyNode | None

    def __init__(self, *args: Any, **_: Any) -> None:
        given = ", ".join(type(a).__name__ for a in args) or "nothing"
        raise UnsupportedError("tensors are made by a function", given=given, hint="lab.tensor([1.0, 2.0]), small t")

    # --- what it is ---

    @property
    def shape(self) -> tuple[int, ...]:
        """Lengths of the axes."""
        return tuple(self.value.shape)

    @property
    def dtype(self) -> Any:
        """NumPy dtype."""
        return self.value.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of entries."""
        return math.prod(self.shape)

    @property
    def requires_grad(self) -> bool:
        """Whether operations on it are recorded."""
        return self.node is not None

    @property
    def is_leaf(self) -> bool:
        """Whether it was made and not computed."""
        return self.node is None or type(self.node) is Leaf

    @property
    def name(self) -> str:
        """Name of a leaf, "" for others."""
        return self.node.name if isinstance(self.node, Leaf) else ""

    def numpy(self) -> Array:
        """The values as a read-only view; write with `assign`.

        Example:
            >>> import lab
            >>> lab.tensor([1.0, 2.0]).numpy().flags.writeable
            False
        """
        view: Array = np.asarray(_concrete(self)).view()
        view.flags.writeable = False
        return view

    def item(self) -> Any:
        """The only entry as a Python number.

        Raises:
            ArgumentError: more than one entry.
            UnsupportedError: inside `grad` or `jvp`, where the number would be a constant; `detach()` says you mean it.

        Example:
            >>> import lab
            >>> lab.tensor([[2.5]]).item()
            2.5
        """
        return entry(self)

    # --- its gradient ---

    @property
    def grad(self) -> Tensor | None:
        """The accumulated gradient of a leaf; None is "no gradient yet", which is not the same as zero.

        Example:
            >>> import lab
            >>> x = lab.tensor(2.0, requires_grad=True)
            >>> x.grad is None
            True
            >>> (x * 0.0).backward(); x.grad
            tensor(0.)
        """
        found = self.node.grad if isinstance(self.node, Leaf) else None
        return found if found is None or isinstance(found, Tensor) else wrap(found)

    @grad.setter
    def grad(self, value: Any) -> None:
        if not isinstance(self.node, Leaf):
            raise GradientError(
                "only a leaf has a gradient to set", given=repr(self), hint="lab.tensor(..., requires_grad=True)"
            )
        set_gradient(self.node, None if value is None else gradient_for(self, _concrete(value)))

    def zero_grad(self) -> None:
        """Forget the gradient of a leaf: back to "no gradient yet".

        Example:
            >>> import lab
            >>> x = lab.tensor(2.0, requires_grad=True)
            >>> (x * x).backward(); x.zero_grad(); x.grad is None
            True
        """
        self.grad = None

    def backward(self, gradient: Any = None, *, retain_graph: bool = False, create_graph: bool = False) -> None:
        """Walk back from here and add to `.grad` of every leaf on the way.

        Several threads may walk graphs of their own at once and add to the same leaves. Each must be done before the
        leaves are written: a training run on them that writes meanwhile makes a walk fail, not wrong.

        Args:
            gradient: cotangent of this tensor, of its shape; 1 for a single entry.
            retain_graph: keep what the graph saved, so that it can be walked again.
            create_graph: record the walk itself, so that gradients can be differentiated.

        Raises:
            GradientError: nothing tracked, freed graph, several entries without a gradient, an array that was changed.

        Example:
            >>> import lab
            >>> x, y = lab.tensor(2.0, requires_grad=True), lab.tensor(3.0, requires_grad=True)
            >>> (x * y + x).backward()
            >>> x.grad.item(), y.grad.item()
            (4.0, 2.0)
        """
        from lab.autograd.backward import backward

        backward(self, gradient, retain_graph=retain_graph, create_graph=create_graph)

    def detach(self) -> Tensor:
        """The same values without history; they share memory, and a write to either is noticed.

        Example:
            >>> import lab
            >>> x = lab.tensor(3.0, requires_grad=True)
            >>> (x * x.detach()).backward(); x.grad
            tensor(3.)
        """
        return wrap(self.value) if type(self) is Tensor else _stopped(self)

    def register_hook(self, hook: Callable[[Any], Any]) -> Callable[[], None]:
        """Call `hook(gradient)` whenever this tensor's gradient is complete; what it returns, unless None, replaces it.

        The gradient is a read-only array (a Tensor under `create_graph`). Returns a function that removes the hook.

        Example:
            >>> import lab
            >>> x = lab.tensor(2.0, requires_grad=True)
            >>> remove = x.register_hook(lambda g: 10 * g)
            >>> (x * 3.0).backward(); x.grad.item()
            30.0
        """
        node = self.node
        if node is None:
            raise GradientError(
                "a hook needs a tensor that requires a gradient",
                given=repr(self),
                hint="lab.tensor(..., requires_grad=True), or what was computed from such",
            )
        if not callable(hook):
            raise GradientError(
                "a hook must be a function of the gradient", given=repr(hook), hint="x.register_hook(lambda g: 2 * g)"
            )
        entry = functools.partial(hook)  # an object of its own: the same hook may be registered twice
        node.hooks = [*(node.hooks or []), entry]

        def remove() -> None:
            node.hooks = [h for h in node.hooks or [] if h is not entry] or None

        return remove

    # --- how it looks ---

    def __repr__(self) -> str:
        text, short = array_text(self.value)
        words = [text, f"shape={self.shape}"] if short else [text]
        if self.value.dtype not in (np.float64, np.int64, np.bool_):
            words.append(f"dtype={self.value.dtype}")
        if self.name:
            words.append(f"name={self.name!r}")
        if isinstance(self.node, Leaf):
            words.append("requires_grad=True")
        elif self.node is not None:
            words.append(f"op={self.node.op.name}")
        return f"tensor({', '.join(words)})"

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        role = " · leaf" if isinstance(self.node, Leaf) else f" · {self.node.op.name}" if self.node is not None else ""
        shape = " × ".join(map(str, self.shape)) or "a single number"
        return mimebundle(repr(self), f"{self.name or 'Tensor'} · {shape} · {self.dtype}{role}", include, exclude)

    def __format__(self, spec: str) -> str:
        if not spec:
            return repr(self)
        if self.size != 1:
            raise ArgumentError(
                "a format for one number needs a single entry",
                given=f"{spec!r} for shape {self.shape}",
                hint="index it",
            )
        return format(entry(self), spec)

    def __reduce__(self) -> tuple[Any, ...]:
        # A tensor with history pickles its value only: a graph belongs to the process in which it was recorded.
        return _unpickle, (np.array(_concrete(self)), isinstance(self.node, Leaf), self.name)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        if type(self) is not Tensor:
            return self  # inside a transform a value cannot change, and a copy would lose its history
        made = _unpickle(np.array(self.value), isinstance(self.node, Leaf), self.name)
        memo[id(self)] = made
        return made


def wrap(value: Any, node: AnyNode | None = None) -> Tensor:
    """A plain Tensor around an array, without a copy. For the lab itself; users call `tensor`."""
    made: Tensor = object.__new__(Tensor)
    made.value, made.node = value, node
    return made


def _concrete(tensor: Any) -> Any:
    """The array below all levels, anything else as it is; a tracer whose values are not known raises."""
    value = tensor
    while isinstance(value, Tensor):
        value = value.value if type(value) is Tensor else value.interp.concrete(value)  # type: ignore[attr-defined]
    return value


def entry(tensor: Tensor) -> Any:
    """See `Tensor.item`; also inside a transform, for what decides or prints: a truth, a whole number, a text."""
    if tensor.size != 1:
        raise ArgumentError(
            "item() needs a single entry", given=f"shape {tensor.shape}", hint="index it first, or use .numpy()"
        )
    return np.asarray(_concrete(tensor)).item()


def gradient_for(tensor: Tensor, given: Any) -> Any:
    """A given gradient of a tensor: an array of its shape and dtype, a copy; a Tensor stays one.

    Raises:
        GradientError: another shape, or not numbers.
    """
    try:
        array = given if isinstance(given, Tensor) else np.asarray(given)
    except (TypeError, ValueError):
        array = np.asarray(None)
    if array.dtype.kind not in "fiub":
        raise GradientError(
            "a gradient must be numbers",
            given=repr(given)[:60],
            hint="an array, a tensor or a number of the tensor's shape",
        )
    if tuple(array.shape) != tensor.shape:
        raise GradientError(
            "a gradient has the shape of its tensor",
            given=f"{array.shape} for {tensor.shape}",
            hint="np.ones_like(x.numpy()) counts every entry once",
        )
    return array.astype(tensor.dtype) if array.dtype != tensor.dtype or not isinstance(array, Tensor) else array


def _stopped(tensor: Tensor) -> Tensor:
    from lab.ops import stop_gradient

    found: Tensor = stop_gradient(tensor)
    return found


def _unpickle(value: Array, is_leaf: bool, name: str) -> Tensor:
    return wrap(value, Leaf(name) if is_leaf else None)


def tensor(
    data: npt.ArrayLike | Tensor, *, dtype: npt.DTypeLike | None = None, requires_grad: bool = False, name: str = ""
) -> Tensor:
    """A Tensor from numbers, lists, arrays or another Tensor; always a copy.

    Args:
        data: anything that NumPy makes an array of.
        dtype: as in NumPy; None keeps NumPy's choice.
        requires_grad: record operations on it and give it a `.grad`. Needs a float dtype.
        name: shown in pictures.

    Raises:
        DTypeError: requires_grad for a dtype that is not float, or data that are not numbers.
        UnsupportedError: a tensor that was computed from tracked ones (its history would be lost), a list of tensors.

    Example:
        >>> import lab
        >>> lab.tensor([1.0, 2.0], requires_grad=True)
        tensor([1., 2.], requires_grad=True)
    """
    if isinstance(data, Tensor) and (not data.is_leaf or type(data) is not Tensor):
        raise UnsupportedError(
            "lab.tensor would cut the history of what it copies", given=repr(data),
            hint="use the tensor as it is, or its .detach()",
        )  # fmt: skip
    source = _concrete(data) if isinstance(data, Tensor) else data
    if isinstance(data, list | tuple) and _holds_tensors(data):
        raise UnsupportedError(
            "a list of tensors is joined, not copied",
            given=repr(data)[:60],
            hint="lab.stack([a, b]) keeps their gradients; inner lists first; lab.concatenate joins along an axis",
        )
    if hasattr(source, "filled"):
        raise UnsupportedError("a tensor has no mask", given=type(source).__name__, hint="x.filled(0.0), and lab.where")
    try:
        np.dtype(dtype)
    except (ValueError, TypeError):
        hint = 'a dtype of numbers, as "float64", "float32" or "int64"'
        raise DTypeError("this is no dtype", given=repr(dtype)[:60], hint=hint) from None
    try:
        value = np.array(source, dtype=dtype)
    except (ValueError, TypeError) as why:
        raise DTypeError(
            "a tensor needs numbers in a rectangular arrangement",
            given=f"{type(data).__name__}: {why}",
            hint="rows of one length, without text or None",
        ) from None
    if value.dtype.kind not in "fiub":
        raise DTypeError(
            "a tensor holds floats, integers or booleans", given=str(value.dtype), hint="convert the data first"
        )
    if requires_grad and value.dtype.kind != "f":
        raise DTypeError(
            "only floats can require a gradient", given=str(value.dtype), hint="write 2.0 instead of 2, or dtype=float"
        )
    return wrap(value, Leaf(str(name)) if requires_grad else None)


def _holds_tensors(data: Any) -> bool:
    if isinstance(data, list | tuple):
        return any(map(_holds_tensors, data))
    return isinstance(data, Tensor)
