"""A module: parameters and smaller modules as attributes, and a forward that uses them.

Nothing is declared: whatever tensor or module an attribute holds, also in a list or dict, is found, in order of
definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, ClassVar, Self, TypeAlias

import numpy.typing as npt

from lab.autograd import Leaf, Tensor, tensor
from lab.autograd.between import set_gradient, wrote
from lab.autograd.training_mode import MODES
from lab.config import STATE, using
from lab.errors import ArgumentError, UnsupportedError
from lab.events import bus
from lab.nn.state import fitting
from lab.words import kind_of

Seer: TypeAlias = "Callable[[Module, Any], None]"
WATCH: ContextVar[Seer | None] = ContextVar("lab_watch", default=None)
"""Told of each call of a module in this context, and of what it gave; None: nobody is."""


class Mode:
    """`Module.training`: an attribute like others, but who traces is told that it was read."""

    def __get__(self, module: Module | None, owner: object = None) -> bool:
        if module is None:
            return True
        if (told := MODES.get()) is not None:
            told(module)
        mode: bool = vars(module).get("training", True)
        return mode

    def __set__(self, module: Module, mode: bool) -> None:
        vars(module)["training"] = mode


class Module:
    """Base of everything that has parameters. Set attributes in `__init__`, define `forward`, call the module.

    Parameters are the tensors among the attributes that require a gradient; each one's name becomes its path from the
    outermost module ("layers.0.weight").

    Attributes:
        training: False after `eval()`; for modules that behave differently then.

    Example:
        >>> class Scale(Module):
        ...     def __init__(self):
        ...         self.factor = tensor([2.0], requires_grad=True)
        ...     def forward(self, x):
        ...         return x * self.factor
        >>> from lab.autograd import tensor
        >>> model = Scale()
        >>> model(tensor([1.0, 3.0])).numpy().tolist()
        [2.0, 6.0]
        >>> list(model.named_parameters())[0][0]
        'factor'
    """

    training = Mode()
    path: str = ""
    """Path from the outermost module, "" for that one itself."""
    buffers: ClassVar[tuple[str, ...]] = ()
    """Names of attributes that hold tensors which are not trained but belong to the state, such as running means."""

    def forward(self, *inputs: Any) -> Any:
        """What the module computes; a subclass says it."""
        kind = type(self).__name__
        raise UnsupportedError(
            f"{kind} has no forward", given=f"{kind}(...) was called", hint="define forward(self, x)"
        )

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        if bus.sources:  # somebody records where operations come from
            with using(module=self.path):
                out = self.forward(*inputs, **options)
        else:
            out = self.forward(*inputs, **options)
        if (seen := WATCH.get()) is not None:
            seen(self, out)
        return out

    def __setattr__(self, name: str, value: Any) -> None:
        before = vars(self).get(name, self)
        object.__setattr__(self, name, value)
        if isinstance(value, Module | Tensor | list | tuple | dict):
            try:
                self.name_parts()
            except ArgumentError:  # a circle: as if nothing had been set, or every later use would meet it
                object.__delattr__(self, name) if before is self else object.__setattr__(self, name, before)
                raise

    # --- what it is made of --------------------------------------------------------------------------------------

    def parts(self) -> Mapping[str, Any]:
        """Where to look for parameters and modules: the attributes, by name."""
        return vars(self)

    def named_modules(self, path: str = "") -> Iterator[tuple[str, Module]]:
        """This module and all within it with their paths, outermost first, each once."""
        seen: set[int] = set()
        for where, part in _walk(path, self):
            if isinstance(part, Module) and id(part) not in seen:
                seen.add(id(part))
                yield where, part

    def named_parameters(self) -> Iterator[tuple[str, Tensor]]:
        """The parameters with their paths, in order of definition, each once.

        Example:
            >>> from lab.nn import Linear, ReLU, Sequential
            >>> [name for name, p in Sequential(Linear(2, 3), ReLU(), Linear(3, 1)).named_parameters()]
            ['0.weight', '0.bias', '2.weight', '2.bias']
        """
        seen: set[int] = set()
        for where, part in _walk("", self):
            if isinstance(part, Tensor) and isinstance(part.node, Leaf) and id(part) not in seen:
                seen.add(id(part))
                yield where, part

    def parameters(self) -> list[Tensor]:
        """The parameters, in order of definition."""
        return [p for _, p in self.named_parameters()]

    def named_buffers(self) -> Iterator[tuple[str, Tensor]]:
        """The tensors that classes name in `buffers`, with their paths.

        Example:
            >>> from lab.nn import BatchNorm1d, Linear, Sequential
            >>> [name for name, b in Sequential(Linear(2, 3), BatchNorm1d(3)).named_buffers()]
            ['1.running_mean', '1.running_var']
        """
        for path, module in self.named_modules():
            for name in module.buffers:
                yield f"{path}.{name}" if path else name, getattr(module, name)

    @property
    def n_parameters(self) -> int:
        """Number of trainable entries.

        Example:
            >>> from lab.nn import Linear
            >>> Linear(64, 10).n_parameters
            650
        """
        return sum(p.size for p in self.parameters())

    def name_parts(self) -> None:
        """Tell each part its path. Done whenever an attribute is set; call it after changing a list in place."""
        for where, module in self.named_modules():
            object.__setattr__(module, "path", where)
        for where, parameter in self.named_parameters():
            leaf_of(parameter).name = where

    # --- what can be done to it ----------------------------------------------------------------------------------

    def train(self, mode: bool = True) -> Self:
        """Set `training` here and in all modules within."""
        for _, module in self.named_modules():
            module.training = mode
        return self

    def eval(self) -> Self:
        """The same as `train(False)`."""
        return self.train(False)

    def zero_grad(self) -> None:
        """Forget the gradients of all parameters."""
        for parameter in self.parameters():
            set_gradient(leaf_of(parameter), None)

    def state_dict(self) -> dict[str, npt.NDArray[Any]]:
        """Copies of the parameters by path, then of the buffers."""
        return {name: p.value.copy() for name, p in self._state()}

    def _state(self) -> Iterator[tuple[str, Tensor]]:
        yield from self.named_parameters()
        yield from self.named_buffers()

    def load_state_dict(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Write values into the parameters, in place, and buffers, cast to their dtypes; all or, on an error, none.

        Raises:
            ArgumentError: a parameter or buffer is missing in `state`, or a name there is neither.
            ShapeError: a value has another shape than its parameter.
            DTypeError: a value holds no real numbers.

        Example:
            >>> from lab.nn import Linear
            >>> a, b = Linear(2, 2, rng=0), Linear(2, 2, rng=1)
            >>> b.load_state_dict(a.state_dict())
            >>> bool((a.weight.numpy() == b.weight.numpy()).all())
            True
        """
        own = dict(self._state())
        for p, value in zip(own.values(), fitting(own, state), strict=True):
            if isinstance(p.node, Leaf):
                p.value[...] = value
                wrote(p.node, p.value)
            else:
                p.value = value

    # --- how it looks --------------------------------------------------------------------------------------------

    def describe(self) -> str:
        """What stands between the brackets of its own line; a subclass says it."""
        return ""

    def __repr__(self) -> str:
        inner = [(name, part) for name, part in _direct(self) if isinstance(part, Module)]
        if not inner:
            return f"{type(self).__name__}({self.describe()})"
        lines = [f"  {name}: {part!r}".replace("\n", "\n  ") for name, part in inner]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])


def parameter(value: npt.ArrayLike, name: str = "") -> Tensor:
    """A trainable tensor with the lab's dtype for parameters.

    Example:
        >>> parameter([1, 2]).dtype.name, parameter([1, 2]).requires_grad
        ('float32', True)
    """
    return tensor(value, dtype=STATE.get().dtype, requires_grad=True, name=name)


def buffer(value: npt.ArrayLike) -> Tensor:
    """A tensor with the dtype of parameters that is not trained; a class says in `buffers` which attributes hold one.

    Example:
        >>> buffer([1, 2]).dtype.name, buffer([1, 2]).requires_grad
        ('float32', False)
    """
    return tensor(value, dtype=STATE.get().dtype)


def leaf_of(parameter: Tensor) -> Leaf:
    """The leaf that holds a parameter's gradient and name."""
    assert isinstance(parameter.node, Leaf)
    return parameter.node


def _direct(module: Module) -> Iterator[tuple[str, Tensor | Module]]:
    """The tensors and modules that a module holds itself, also in lists and dicts."""
    for name, part in module.parts().items():
        yield from _held(name, part)


def _held(where: str, part: object) -> Iterator[tuple[str, Tensor | Module]]:
    if isinstance(part, Tensor | Module):
        yield where, part
    elif isinstance(part, list | tuple | dict):
        for key, inner in part.items() if isinstance(part, dict) else enumerate(part):
            yield from _held(f"{where}.{key}", inner)


def _walk(where: str, part: Tensor | Module, around: tuple[int, ...] = ()) -> Iterator[tuple[str, Tensor | Module]]:
    """A part and everything within it with paths, outermost first; `around` are the modules that it lies in."""
    if id(part) in around:
        given = f"{where} is {kind_of(part)} that it lies in"
        raise ArgumentError("a module cannot hold itself", given=given, hint="hold the inner one from the outer only")
    yield where, part
    if isinstance(part, Module):
        for name, inner in _direct(part):
            yield from _walk(f"{where}.{name}" if where else name, inner, (*around, id(part)))
