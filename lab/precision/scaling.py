"""Scaled losses: gradients too small for float16 are multiplied before backward and divided again in float32.

The scale is sought while the training goes on: it falls when a gradient overflows, and that step is not made; it grows
after many steps without (Micikevicius et al., Mixed precision training, ICLR 2018).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from lab.checks import number, whole
from lab.errors import ArgumentError
from lab.precision.formats import FLOAT16, Format, format_of
from lab.words import shown

LEAST, MOST = 2.0**-24, 2.0**40
"""A scale stays between; below the least nothing would be helped."""


@dataclass(frozen=True)
class LossScale:
    """How the scale of a loss is sought.

    Args:
        initial: where it begins; a power of two changes no digit.
        growth, backoff: what it is multiplied by after `interval` steps without overflow, and after one with it; 1 and
            1 keep it where it is.
        interval: steps.

    Raises:
        ArgumentError: numbers that would not do that.

    Example:
        >>> LossScale(initial=1024.0, interval=100)
        LossScale(initial=1024.0, growth=2.0, backoff=0.5, interval=100)
    """

    initial: float = 2.0**16
    growth: float = 2.0
    backoff: float = 0.5
    interval: int = 2000

    def __post_init__(self) -> None:
        for name, least, most in (("initial", LEAST, MOST), ("growth", 1.0, 1024.0), ("backoff", 2.0**-10, 1.0)):
            found = number(name, getattr(self, name), hint="LossScale(2.0**16, growth=2, backoff=0.5, interval=2000)")
            if not least <= found <= most:
                raise ArgumentError(f"{name} is out of range", given=f"{name}={shown(found)}",
                                    hint=f"from {least:g} to {most:g}")  # fmt: skip
        whole("interval", self.interval, least=1, hint="2000 steps are usual")


class Scaler(NamedTuple):
    """A scale on its way: a value, so that what a training stands on can be kept.

    Attributes:
        scale: what losses are multiplied by now.
        n_good: steps since it changed.
    """

    scale: float
    n_good: int = 0

    def after(self, rule: LossScale, *, is_finite: bool) -> Scaler:
        """The scaler after a step.

        Example:
            >>> rule = LossScale(8.0, interval=2)
            >>> found = Scaler(8.0)
            >>> for is_finite in (True, True, False, True):
            ...     found = found.after(rule, is_finite=is_finite); print(found)
            Scaler(scale=8.0, n_good=1)
            Scaler(scale=16.0, n_good=0)
            Scaler(scale=8.0, n_good=0)
            Scaler(scale=8.0, n_good=1)
        """
        if not is_finite:
            return Scaler(max(self.scale * rule.backoff, LEAST))
        if self.n_good + 1 < rule.interval:
            return Scaler(self.scale, self.n_good + 1)
        return Scaler(min(self.scale * rule.growth, MOST))


UNSCALED = Scaler(1.0)
"""Of a loss that is taken as it is."""


@dataclass(frozen=True)
class Mixed:
    """Training in mixed precision: `lab.fit(model, data, precision=Mixed("float16"))`.

    Parameters and the optimiser's state are float32; forward and backward go through `lab.autocast`. A step whose
    gradient is no number while the scale can still fall is not made, on any rank: the scale falls instead.

    Args:
        dtype: "float16" or "bfloat16".
        scale: of the loss; None does not scale. If not given, float16 is scaled and bfloat16, which has the exponents
            of float32, is not.

    Raises:
        ArgumentError: there is no such format, or what is no scale.

    Example:
        >>> Mixed("bfloat16").scale is None, Mixed("float16").scale.initial
        (True, 65536.0)
    """

    dtype: str = FLOAT16.name
    scale: LossScale | str | None = "usual"

    def __post_init__(self) -> None:
        found = format_of(self.dtype)
        if self.scale == "usual":
            object.__setattr__(self, "scale", LossScale() if found is FLOAT16 else None)
        scale: object = self.scale
        if not (scale is None or isinstance(scale, LossScale)):
            raise ArgumentError("a scale is a LossScale, or None", given=f"scale={shown(scale)}",
                                hint="Mixed('float16', scale=LossScale(initial=2.0**10))")  # fmt: skip

    @property
    def format(self) -> Format:
        """The narrow format."""
        return format_of(self.dtype)

    @property
    def rule(self) -> LossScale | None:
        """How the scale is sought; None where there is none."""
        return self.scale if isinstance(self.scale, LossScale) else None

    def begins(self) -> Scaler:
        """The scale of the first step."""
        return Scaler(self.rule.initial) if self.rule else UNSCALED

    def can_back_off(self, scaler: Scaler) -> bool:
        """Whether a lower scale may help."""
        return self.rule is not None and self.rule.backoff < 1 and scaler.scale > LEAST


def mixed_of(precision: object) -> Mixed | None:
    """What was meant by the name of a format.

    Raises:
        ArgumentError: there is none such.

    Example:
        >>> mixed_of("bfloat16").dtype, mixed_of(None)
        ('bfloat16', None)
    """
    if precision is None or isinstance(precision, Mixed):
        return precision
    return Mixed(format_of(precision).name)
