"""What a loss is a mean of: the examples of a batch, or something that some have more of, such as tokens.

Means of parts make the mean of the whole when each is weighed by what it counts. A loss over tokens of which some are
padding counts tokens; weighed by examples its parts make another loss, in silence.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.autograd import Tensor
from lab.errors import ArgumentError, ShapeError
from lab.words import shown

Counts = npt.NDArray[np.float64]
"""(n,), how much each example counts."""


class Counted:
    """A loss that is a mean of something else than examples: `lab.fit(model, data, loss=Counted(loss, count))`.

    Wherever a batch is cut, into micro-batches or into the shards of ranks, each part is weighed by what it counts.

    Args:
        loss: `(prediction, targets) -> scalar`, a mean over what is counted.
        count: `targets -> (n,)`: how much each example counts, 0 or more.

    Raises:
        ArgumentError: one of the two is no function.

    Example:
        >>> import lab
        >>> def mean_over_tokens(prediction, targets):  # -1 is padding
        ...     is_token = targets >= 0
        ...     each = lab.cross_entropy(prediction, np.maximum(targets, 0), reduction="none")
        ...     return (each * is_token).sum() / is_token.sum()
        >>> loss = Counted(mean_over_tokens, lambda targets: (targets >= 0).sum(axis=1))
        >>> loss.counts(np.array([[3, 1, -1], [2, -1, -1]])).tolist()
        [2.0, 1.0]
    """

    def __init__(self, loss: Callable[[Any, Any], Tensor], count: Callable[[Any], npt.ArrayLike]) -> None:
        for name, given in (("loss", loss), ("count", count)):
            if not callable(given):
                raise ArgumentError(f"{name} is a function", given=shown(given),
                                    hint="Counted(loss, lambda targets: (targets >= 0).sum(axis=1))")  # fmt: skip
        self.loss, self.count = loss, count

    def __call__(self, prediction: Any, targets: Any) -> Tensor:
        return self.loss(prediction, targets)

    def __repr__(self) -> str:
        return f"Counted({getattr(self.loss, '__name__', self.loss)})"

    def counts(self, targets: npt.NDArray[Any]) -> Counts:
        """How much each example counts.

        Raises:
            ShapeError: that is no number for each.
            ArgumentError: one is below 0, or no number.
        """
        found = np.asarray(self.count(targets), np.float64)
        if found.shape != (len(targets),):
            raise ShapeError("a count gives a number for each example", given=f"shape {found.shape} for "
                             f"{len(targets)} examples", hint="sum over all axes but the first")  # fmt: skip
        if not (found >= 0).all():
            raise ArgumentError("an example counts 0 or more", given=shown(float(found.min())),
                                hint="it is the number of terms that the loss is a mean of")  # fmt: skip
        return found


def counts_of(loss: object, targets: npt.NDArray[Any]) -> Counts | None:
    """How much each example of a batch counts; None where each counts once.

    Example:
        >>> print(counts_of(abs, np.ones(3)))
        None
    """
    return loss.counts(targets) if isinstance(loss, Counted) else None
