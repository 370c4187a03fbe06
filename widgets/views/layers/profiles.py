"""What a training tells of its layers up to a point: the first measured step and the newest, layer by layer."""

from __future__ import annotations

import math
from typing import NamedTuple

from lab.events import Event, LayerMeasured, RunStarted
from widgets.pictures.theme import short

LOST = 1e-3
"""A gradient that is so much shorter at the first layer than at the last, or at the last than at the first, is told."""


class Layer(NamedTuple):
    """A layer at a step."""

    name: str
    kind: str
    mean: float
    deviation: float
    n_nonfinite: int
    dead: float
    """Share of its units, 0 to 1."""
    gradient: float

    @property
    def label(self) -> str:
        """What to call it: "2 ReLU"."""
        return f"{self.name} {self.kind}".strip()

    def account(self) -> str:
        """The layer in words."""
        bad = f", {self.n_nonfinite:,} entries not finite" if self.n_nonfinite else ""
        dead = f", {100 * self.dead:.3g} % of its units dead" if self.dead else ""
        back = "no gradient came back" if math.isnan(self.gradient) else f"gradient {short(self.gradient)}"
        return f"{self.label}: {short(self.mean)} ± {short(self.deviation)}{dead}{bad}, {back}"


class Profile(NamedTuple):
    """All layers at one step, in the order in which they ran."""

    step: int = -1
    layers: tuple[Layer, ...] = ()

    def more(self, event: LayerMeasured) -> Profile:
        """With one more layer; of another step: that one alone."""
        layer = Layer(
            event.name, event.kind, event.mean, event.deviation, event.n_nonfinite,
            event.n_dead / event.n_units if event.n_units else 0.0, event.gradient_norm,
        )  # fmt: skip
        return Profile(event.step, (*(self.layers if event.step == self.step else ()), layer))

    def verdict(self) -> str:
        """What to look at: a gradient that vanishes or explodes on its way back, layers that are dead; or ""."""
        told = []
        known = [x for x in self.layers if math.isfinite(x.gradient)]
        if len(known) > 1:
            first, last = known[0], known[-1]
            if first.gradient < LOST * last.gradient:
                told.append(f"The gradient vanishes: {_times(last.gradient, first.gradient)} shorter at {first.label}")
            elif last.gradient < LOST * first.gradient:
                told.append(f"The gradient explodes: {_times(first.gradient, last.gradient)} longer at {first.label}")
            if told:
                told[-1] += f" than at {last.label}."
        told += [f"{x.label} is dead as a whole: nothing gets through it." for x in self.layers if x.dead == 1][:1]
        told += [f"{x.label} holds nan or infinity." for x in self.layers if x.n_nonfinite][:1]
        return " ".join(told)


class Profiles(NamedTuple):
    """The first measured step of a training, and the newest as far as it is told; of several runs the latest."""

    first: Profile = Profile()
    newest: Profile = Profile()

    def folded(self, event: Event) -> Profiles:
        """These profiles after one more event."""
        if isinstance(event, RunStarted):
            return Profiles()
        if not isinstance(event, LayerMeasured):
            return self
        newest = self.newest.more(event)
        first = newest if self.first.step in (-1, event.step) else self.first
        return Profiles(first, newest)


def _times(large: float, small: float) -> str:
    return f"{float(f'{large / small:.2g}'):,.0f} times" if small else "without measure"
