"""An optimiser: parameters in flat vectors, state beside them, and one kernel call a step for each dtype.

What rules have in common stands here; a rule says which hyperparameters and state it has, and what a step does.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from lab.autograd import Leaf, Tensor
from lab.autograd.between import set_gradient
from lab.checks import number
from lab.errors import ArgumentError, ShapeError
from lab.optim.flat import FlatParameters

Vector = npt.NDArray[Any]
Slots = dict[str, Vector]
"""State vectors of a rule by name, each as long as the flat parameters."""


class Snapshot(NamedTuple):
    """Parameters and state at one moment, as flat vectors."""

    n_steps: int
    values: list[Vector]
    slots: list[Slots]


class Optimizer(ABC):
    """Base of the update rules.

    Making one moves the parameters into flat vectors, one for each dtype: their arrays become views. Two optimisers may
    share parameters: each takes them back before its step, with the values that they have. Every parameter must have a
    gradient when `step` is called: one without is more often a mistake than a wish, and nothing is updated then.

    Args:
        parameters: leaf tensors that require a gradient.

    Attributes:
        n_steps: steps done so far.

    Raises:
        ArgumentError: no parameters, one that is none, one given twice, or a hyperparameter out of range.
    """

    slot_names: ClassVar[tuple[str, ...]] = ()
    ranges: ClassVar[Mapping[str, tuple[float, float]]] = {}
    """Each hyperparameter with its least value and the value that it must stay below."""

    def __init__(self, parameters: Iterable[Tensor], **hyperparameters: float) -> None:
        self._values: dict[str, float] = {}
        for name, value in hyperparameters.items():
            self.set(name, value)
        self.parameters = _checked(parameters)
        self._lay_out()
        self.n_steps = 0

    def part(self, parameters: Iterable[Tensor]) -> Self:
        """An optimiser like this one for some of its parameters, with their state and values of its own.

        Its parameters are moved into its vectors: from then on this one must not step. A pipeline's ranks take theirs;
        one whose layers have no parameters takes a part of none, whose steps do nothing.

        Raises:
            ArgumentError: a parameter that this optimiser does not have.

        Example:
            >>> from lab.autograd import tensor
            >>> from lab.optim import SGD
            >>> a, b = tensor([1.0], requires_grad=True), tensor([2.0], requires_grad=True)
            >>> SGD([a, b], learning_rate=0.5, momentum=0.9).part([b])
            SGD(learning_rate=0.5, momentum=0.9, weight_decay=0)
        """
        made, asked = copy.copy(self), list(parameters)
        wanted = _checked(asked) if asked else []
        places = {id(p): i for i, p in enumerate(self.parameters)}
        if foreign := [p.name or f"number {i}" for i, p in enumerate(wanted) if id(p) not in places]:
            hint = "a part is made of parameters of the whole"
            raise ArgumentError("the optimiser does not have these parameters", given=", ".join(foreign), hint=hint)
        slots = {name: self._by_parameter(name) for name in self.slot_names}
        made._values, made.parameters = dict(self._values), wanted
        made._lay_out()
        for name, arrays in slots.items():
            made._fill(name, [arrays[places[id(p)]] for p in wanted])
        return made

    def _lay_out(self) -> None:
        """Move the parameters into flat vectors, with empty state beside them."""
        by_dtype: dict[np.dtype[Any], list[Tensor]] = {}
        for p in self.parameters:
            by_dtype.setdefault(p.dtype, []).append(p)
        self.groups = [FlatParameters(group) for group in by_dtype.values()]
        self.slots: list[Slots] = [{name: np.zeros_like(g.values) for name in self.slot_names} for g in self.groups]

    def _fill(self, slot: str, arrays: Sequence[npt.ArrayLike]) -> None:
        """Set a slot from arrays in the order of the parameters."""
        found = {id(p): a for p, a in zip(self.parameters, arrays, strict=True)}
        for group, mine in zip(self.groups, self.slots, strict=True):
            np.concatenate([np.ravel(found[id(p)]) for p in group.parameters], out=mine[slot])

    # --- steps ---------------------------------------------------------------------------------------------------

    def step(self) -> None:
        """Update every parameter by its gradient.

        Raises:
            GradientError: a parameter has no gradient; none has been updated.
        """
        self.gather()
        self.apply()

    def gather(self) -> None:
        """The first half of a step: copy every gradient into the flat vectors, `groups[i].gradients`."""
        for group in self.groups:
            group.gather()

    def apply(self) -> None:
        """The second half: update every parameter by what the flat vectors hold."""
        self.n_steps += 1
        for group, slots in zip(self.groups, self.slots, strict=True):
            group.adopt()
            self.update(group.values, group.gradients, slots)
            group.changed()

    @abstractmethod
    def update(self, values: Vector, gradients: Vector, slots: Slots) -> None:
        """The rule: change `values` and `slots` in place. Called with `n_steps` counting this step."""

    def zero_grad(self) -> None:
        """Forget all gradients, so that the next backward does not add to them."""
        for group in self.groups:
            for leaf in group.leaves:
                set_gradient(leaf, None)

    # --- hyperparameters -----------------------------------------------------------------------------------------

    @property
    def hyperparameters(self) -> dict[str, float]:
        """All of them by name."""
        return dict(self._values)

    def check(self, name: str, value: float) -> None:
        """Refuse a hyperparameter that does not exist or cannot have this value.

        Raises:
            ArgumentError: so it is.
        """
        if name not in self.ranges:
            hint = f"one of {', '.join(self.ranges)}"
            raise ArgumentError(f"{type(self).__name__} has no such hyperparameter", given=repr(name), hint=hint)
        low, high = self.ranges[name]
        hint = f"at least {low:g}" + (f", below {high:g}" if high < math.inf else ", finite")
        if not low <= number(name, value, hint=hint) < high:
            raise ArgumentError(f"{name} is out of range", given=repr(value), hint=hint)

    def set(self, name: str, value: float) -> None:
        """Set a hyperparameter from the next step on.

        Raises:
            ArgumentError: it does not exist, or cannot have this value.

        Example:
            >>> from lab.autograd import tensor
            >>> from lab.optim import SGD
            >>> sgd = SGD([tensor([1.0], requires_grad=True)], learning_rate=0.1)
            >>> sgd.set("momentum", 0.9)
            >>> sgd
            SGD(learning_rate=0.1, momentum=0.9, weight_decay=0)
        """
        self.check(name, value)
        self._values[name] = float(value)

    @property
    def learning_rate(self) -> float:
        """How far a step goes; readable and settable."""
        return self._values["learning_rate"]

    @learning_rate.setter
    def learning_rate(self, value: float) -> None:
        self.set("learning_rate", value)

    # --- state ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on as if nothing had happened, in an optimiser made alike; copies.

        Keys: "kind", "n_steps", "hyperparameters", and "slots": for each name arrays in the order of the parameters.
        """
        slots = {name: self._by_parameter(name) for name in self.slot_names}
        return {
            "kind": type(self).__name__,
            "n_steps": self.n_steps,
            "hyperparameters": self.hyperparameters,
            "slots": slots,
        }

    def _by_parameter(self, slot: str) -> list[Vector]:
        pairs = zip(self.groups, self.slots, strict=True)
        found = {id(p): a for g, s in pairs for p, a in zip(g.parameters, g.split(s[slot]), strict=True)}
        return [found[id(p)] for p in self.parameters]

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over a state; all or, on an error, nothing.

        Raises:
            ArgumentError: the state is of another rule, or its hyperparameters cannot be.
            ShapeError: it is of other parameters.
        """
        kind, slots = type(self).__name__, state.get("slots", {})
        if state.get("kind") != kind or set(slots) != set(self.slot_names):
            raise ArgumentError("the state is of another optimiser", given=f"{state.get('kind')} for {kind}",
                                hint="load it into one made alike")  # fmt: skip
        shapes = [p.shape for p in self.parameters]
        for name in self.slot_names:
            if (found := [np.shape(a) for a in slots[name]]) != shapes:
                raise ShapeError(
                    "the state is of other parameters", given=f"{name} {found}", hint=f"the parameters {shapes}"
                )
        for name, value in state["hyperparameters"].items():
            self.check(name, value)
        self._values.update(state["hyperparameters"])
        self.n_steps = state["n_steps"]
        for name in self.slot_names:
            self._fill(name, slots[name])

    def snapshot(self) -> Snapshot:
        """Copies of parameters and state, to `restore` soon; not for a file, as `state_dict` is."""
        return Snapshot(
            self.n_steps,
            [group.values.copy() for group in self.groups],
            [{name: a.copy() for name, a in slots.items()} for slots in self.slots],
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Write parameters and state back as they were; hyperparameters stay."""
        self.n_steps = snapshot.n_steps
        for group, values, slots, saved in zip(self.groups, snapshot.values, self.slots, snapshot.slots, strict=True):
            group.adopt()
            group.values[...] = values
            group.changed()
            for name, a in saved.items():
                slots[name][...] = a

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value:g}' for name, value in self._values.items())})"


def _checked(parameters: Iterable[object]) -> list[Tensor]:
    found = list(parameters)
    if not found:
        raise ArgumentError("an optimiser needs parameters", given="none", hint="Adam(model.parameters())")
    seen: dict[int, Tensor] = {}
    for i, p in enumerate(found):
        if not isinstance(p, Tensor) or not isinstance(p.node, Leaf):
            given = f"number {i}: {type(p).__name__}"
            hint = "give leaf tensors made with requires_grad=True, such as model.parameters()"
            raise ArgumentError("this cannot be optimised", given=given, hint=hint)
        if id(p.node) in seen:
            raise ArgumentError(
                "a parameter is given twice", given=p.name or f"number {i}", hint="each would move twice"
            )
        seen[id(p.node)] = p
    return list(seen.values())
