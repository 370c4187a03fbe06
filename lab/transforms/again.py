"""Running a function again, later, as it ran before: the rule of a custom function, the forward of a checkpoint.

By then the transforms around the first call have ended. What they wrapped may be used once more, under the settings and
the named axes of that time, because nothing new is asked of them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager

from lab.autograd.interpreter import FRAMES
from lab.config import STATE


class Moment:
    """What held when a function was called.

    Example:
        >>> import lab
        >>> held = []
        >>> _ = lab.grad(lambda x: held.append((x, Moment())) or x)(2.0)
        >>> x, moment = held[0]
        >>> with moment.again():
        ...     x * 3.0
        <value inside grad: float64 ()>
    """

    __slots__ = ("_frames", "_state")

    def __init__(self) -> None:
        self._state, self._frames = STATE.get(), FRAMES.get()

    @contextmanager
    def again(self, *, recording: bool = True) -> Iterator[None]:
        """The block runs as then.

        Args:
            recording: tapes record as they did then; else as they do now.
        """
        now = STATE.get()
        frozen = self._state.frozen if recording else now.frozen
        state = STATE.set(dataclasses.replace(self._state, frozen=frozen, anomaly=now.anomaly, revived=True))
        frames = FRAMES.set(self._frames)
        try:
            yield
        finally:
            FRAMES.reset(frames)
            STATE.reset(state)
