"""An optimiser: parameters in flat vectors, state beside them, and one kernel call a step for each dtype.

What rules have in common stands here; a rule says which hyperparameters and state it has, and what a step does.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from lab.autograd import Leaf, Tensor
from lab.autograd.between import set_gradient
from lab.errors import ArgumentError, ShapeError
from lab.optim.clipping import global_norm, shrunk_to
from lab.optim.flat import FlatParameters, leaf_at
from lab.optim.schedules import Rate
from lab.optim.tuned import Tuned

Vector = npt.NDArray[Any]
Slots = dict[str, Vector]
"""State vectors of a rule by name, each as long as the flat parameters."""


class Snapshot(NamedTuple):
    """Parameters and state at one moment, as flat vectors."""

    n_steps: int
    values: list[Vector]
    slots: list[Slots]


class Optimizer(Tuned):
    """Base of the update rules.

    Making one moves the parameters into flat vectors, one for each dtype: their arrays become views. Two optimisers may
    share parameters: each takes them back before its step, with the values that they have. Every parameter must have a
    gradient when `step` is called: one without is more often a mistake than a wish, and nothing is updated then.

    Args:
        parameters: leaf tensors that require a gradient.
        learning_rate: a number, or a schedule: a function of the steps done before, such as `lab.optim.Cosine`. Whoever
            sets a number later takes over from it.
        clip_norm: if given, gradients are scaled together before each step so that their norm is at most this; a
            hyperparameter, too.

    Attributes:
        n_steps: steps done so far.

    Raises:
        ArgumentError: no parameters, one that is none, one given twice, or a hyperparameter out of range.
    """

    slot_names: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self,
        parameters: Iterable[Tensor],
        learning_rate: Rate,
        *,
        clip_norm: float | None = None,
        **hyperparameters: float,
    ) -> None:
        super().__init__(learning_rate, clip_norm=clip_norm, **hyperparameters)
        self.parameters = _checked(parameters)
        self._lay_out()

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

    def gather(self, lacking: list[Tensor] | None = None) -> None:
        """The first half of a step: copy every gradient into the flat vectors, `groups[i].gradients`.

        Args:
            lacking: takes the parameters without a gradient, which count as 0; without it they are refused.

        Raises:
            GradientError: a parameter has none.
        """
        for group in self.groups:
            group.gather(lacking)

    @property
    def clips(self) -> bool:
        """Whether it was made with `clip_norm`, and needs the norm of the whole gradient."""
        return "clip_norm" in self._values

    def gradient_norm(self) -> float:
        """Euclidean norm of the gradient that is in the flat vectors, in float64."""
        return global_norm(group.gradients for group in self.groups)

    def apply(self, norm: float | None = None) -> None:
        """The second half: update every parameter by what the flat vectors hold.

        Args:
            norm: that of the whole gradient, where these parameters are a part; their own if not given.

        Raises:
            ArgumentError: the schedule gives what is no learning rate; nothing has been updated.
            GradientError: the gradient shall be clipped and its norm is nan or inf; nothing has been updated.
        """
        if self.schedule is not None:
            self._values["learning_rate"] = self.learning_rate
        if self.clips:
            scale = shrunk_to(self._values["clip_norm"], self.gradient_norm() if norm is None else norm)
            for group in self.groups:
                group.gradients *= group.gradients.dtype.type(scale)
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

    # --- state ---------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """All that `load_state_dict` needs to go on as if nothing had happened, in an optimiser made alike; copies.

        Keys: "kind", "n_steps", "hyperparameters", "schedule" (or None), and "slots": for each name arrays in the order
        of the parameters.
        """
        slots = {name: self._by_parameter(name) for name in self.slot_names}
        return {
            "kind": type(self).__name__,
            "n_steps": self.n_steps,
            "hyperparameters": self.hyperparameters,
            "schedule": self.schedule,
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
        self.n_steps, self.schedule = state["n_steps"], state.get("schedule")
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


def _checked(parameters: Iterable[Any]) -> list[Tensor]:
    found = list(parameters)
    if not found:
        raise ArgumentError("an optimiser needs parameters", given="none", hint="Adam(model.parameters())")
    seen: dict[Leaf, Tensor] = {}
    for i, p in enumerate(found):
        if (leaf := leaf_at(i, p)) in seen:
            raise ArgumentError(
                "a parameter is given twice", given=p.name or f"number {i}", hint="each would move twice"
            )
        seen[leaf] = p
    return list(seen.values())
