"""What happens to a leaf between two walks: its gradient is set or forgotten, its array is written; and who is told.

All that does so goes through here, so that a picture of a training loop shows what the next step starts from.
"""

from __future__ import annotations

from typing import Any

from lab.autograd import mutation
from lab.autograd.observe import emit_value
from lab.autograd.tape import Leaf
from lab.events.bus import bus
from lab.events.catalogue import GradientCleared, GradientStored, ValueWritten


def set_gradient(leaf: Leaf, gradient: Any) -> None:
    """Give a leaf a gradient, or with None take it away: back to "no gradient yet".

    Example:
        >>> import lab
        >>> x = lab.tensor(2.0, requires_grad=True)
        >>> set_gradient(x.node, x.numpy()); x.grad
        tensor(2.)
        >>> set_gradient(x.node, None); x.grad is None
        True
    """
    had = leaf.grad is not None
    leaf.grad = gradient
    if not bus.operations:
        return
    if gradient is not None:
        if bus.detail:
            emit_value(leaf.id, "gradient", gradient)
        bus.emit_row(GradientStored, leaf.id, False)
    elif had:
        bus.emit_row(GradientCleared, leaf.id)


def wrote(leaf: Leaf, array: Any) -> None:
    """Say that `array`, the value of a leaf, was just written in place: to the tapes and to who listens.

    Example:
        >>> import lab
        >>> x = lab.tensor(2.0, requires_grad=True)
        >>> with lab.record() as rec:
        ...     x.value[...] = 3.0
        ...     wrote(x.node, x.value)
        >>> [type(event).__name__ for event in rec]
        ['ValueWritten', 'ValueSeen']
    """
    mutation.mark(array)
    tell_written(leaf, array)


def tell_written(leaf: Leaf, array: Any) -> None:
    """The second half of `wrote`, where many leaves are marked at once."""
    if bus.operations:
        bus.emit_row(ValueWritten, leaf.id)
        if bus.detail:
            emit_value(leaf.id, "value", array)
