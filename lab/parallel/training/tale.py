"""The tale of a training on ranks: what all of them have in common to tell, told once, whoever of them is lost.

Every rank notes it, rank 0 tells it. What was on its way home when rank 0 was lost is told again by the next one, and
what steps that are done again would repeat is not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from lab.events import Evaluated, Event, HyperparameterChanged, LossScaled, RunStarted, StepFinished
from lab.events.bus import Batch, Detail, bus

REMEMBERED = 1024
"""Events that each rank remembers: parcels leave thirty times a second, so that fewer are ever on their way."""
KINDS = (RunStarted, StepFinished, Evaluated, LossScaled, HyperparameterChanged)

Noted = tuple[int, Event]
"""An event, and the number of the state that holds what it tells."""


class Known(NamedTuple):
    """What has come home.

    Attributes:
        began: whether RunStarted has.
        step: the last StepFinished, since the last rewind.
        evaluated: the step of the last Evaluated, since then; -1 before the first.
        scaled: the step of the last LossScaled, since then.
        changes: step, name and value of each HyperparameterChanged.
    """

    began: bool = False
    step: int = 0
    evaluated: int = -1
    changes: frozenset[tuple[int, str, float]] = frozenset()
    scaled: int = 0

    def has(self, event: Event) -> bool:
        """Whether this event, or what was the same in a step that is done again, has come.

        Example:
            >>> Known(step=3).has(StepFinished(3, 0, 0.5, 64, 1.0)), Known(step=3).has(StepFinished(4, 0, 0.5, 64, 1.0))
            (True, False)
        """
        match event:
            case RunStarted():
                return self.began
            case StepFinished():
                return event.step <= self.step
            case Evaluated():
                return event.step <= self.evaluated
            case LossScaled():
                return event.step <= self.scaled
            case HyperparameterChanged():
                return (event.step, event.name, event.value) in self.changes
        return False

    def with_(self, event: Event) -> Known:
        """This, when that has come, too."""
        match event:
            case RunStarted():
                return self._replace(began=True)
            case StepFinished():
                return self._replace(step=event.step)
            case Evaluated():
                return self._replace(evaluated=event.step)
            case LossScaled():
                return self._replace(scaled=event.step)
            case HyperparameterChanged():
                return self._replace(changes=self.changes | {(event.step, event.name, event.value)})
        return self

    def back_at(self, step: int) -> Known:
        """After a rewind to that step, the steps behind it are to be told anew."""
        return self._replace(step=min(self.step, step), evaluated=min(self.evaluated, step),
                             scaled=min(self.scaled, step))  # fmt: skip


class Tale:
    """One rank's part.

    Args:
        known: what need not be told.
        speaks: whether this rank tells.

    Attributes:
        number: of the next state that will be kept.
        noted: what was told lately, here or by rank 0.
    """

    def __init__(self, known: Known, *, speaks: bool) -> None:
        self.number = 0
        self.noted: deque[Noted] = deque(maxlen=REMEMBERED)
        self._known, self._speaks = known, speaks

    def tell(self, event: Event) -> None:
        """Note it, and tell it where that is this rank's to do."""
        self.noted.append((self.number, event))
        if self._speaks and bus.listeners and not self._known.has(event):
            bus.emit(event)

    def tell_again(self, noted: Iterable[Noted], until: int) -> None:
        """Go on with what others have noted, up to the state of that number; told is what did not come home."""
        for number, event in noted:
            if number <= until:
                self.number = number
                self.tell(event)

    def rewound(self, step: int) -> None:
        """The training went back: what was told of the steps behind is told again when they are done again."""
        self.noted.clear()
        self._known = self._known.back_at(step)


class Homecoming:
    """At home: what of a run's tale has come. A listener of the bus, from `start` to `end`."""

    detail, sources = Detail.SHAPE, False

    def __init__(self, run: str) -> None:
        self.known = Known()
        self._run = run

    def start(self) -> None:
        """Listen from now on."""
        bus.attach(self)

    def end(self) -> None:
        """Listen no more."""
        bus.detach(self)

    def wants(self, kind: type[Event]) -> bool:
        return kind in KINDS

    def receive(self, batch: Batch) -> None:
        for event in batch:
            if event.run == self._run:
                self.known = self.known.with_(event)

    def lost(self, n_events: int) -> None:
        """What was dropped is not known; it may be told again."""

    def detached(self, why: BaseException) -> None:
        """Nothing more is known; what comes may be told again."""
