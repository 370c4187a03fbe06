"""What an event is: a record of something that happened, made of ids and numbers, under a common envelope.

A kind of event is a class with typed fields; its types decide how a Recording stores it in columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from contextvars import ContextVar
from typing import Any, ClassVar, NamedTuple, TypeVar, dataclass_transform, get_type_hints

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError

Array = npt.NDArray[np.generic]
"""An array carried by an event; only present when a listener asked for values."""


class Origin(NamedTuple):
    """Who emits: the rank in its group and the name of the run ("" outside a run)."""

    rank: int = 0
    run: str = ""


ORIGIN: ContextVar[Origin] = ContextVar("lab_event_origin", default=Origin())
"""A ContextVar and not a global: ranks may be threads of one process."""


class Event:
    """Base of all kinds. The envelope is filled by `bus.emit` (`seq` when the event is delivered).

    Attributes:
        seq: position in the order of delivery of this process, without gaps except for counted drops.
        time_ns: nanoseconds of `time.perf_counter_ns`, the same clock on all threads of a host.
        rank: the emitting rank.
        run: the name of the run that emitted it, "" outside a run.
    """

    __slots__ = ("rank", "run", "seq", "time_ns")
    seq: int
    time_ns: int
    rank: int
    run: str

    per_operation: ClassVar[bool] = False
    """True for kinds emitted once or more per operation: guarded by `bus.operations`, all others by `bus.listeners`."""
    per_equation: ClassVar[bool] = False
    """True for those of them that runs of graphs tell: guarded by `bus.equations` in place of `bus.operations`."""
    clocks: ClassVar[tuple[str, ...]] = ()
    """Names of own fields that are times of the clock of `time_ns`: they are aligned with it."""

    __hash__ = None  # type: ignore[assignment]  # fields may be arrays

    def __eq__(self, other: object) -> bool:
        """Equal kind and equal own fields, nan equal to nan, arrays entry by entry; the envelope does not count."""
        if type(self) is not type(other):
            return NotImplemented
        return all(map(_same, values_of(self), values_of(other)))


def _same(a: object, b: object) -> bool:
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind in "fc")
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(_same, a, b))
    return a is b or bool(a == b) or (a != a and b != b)  # noqa: PLR0124 -- only nan differs from itself


E = TypeVar("E", bound=Event)

EVENTS: dict[str, type[Event]] = {}
"""Every kind by name; the file format stores kinds by name and fields."""

ENVELOPE = frozenset({"seq", "time_ns", "rank", "run", "position", "origin"})
"""Names that no field may have: a Recording gives them beside the fields (`position` is the index in it), a file holds
rank and run as `origin`."""

FIELD_TYPES: tuple[object, ...] = (
    *(int, float, bool, str),
    *(tuple[int, ...], tuple[float, ...], tuple[str, ...]),
    Array | None,
)
"""What a field may be: each has one columnar form (`columns.py`)."""


@dataclass_transform(frozen_default=True)
def event(cls: type[E]) -> type[E]:
    """Make a class of typed fields a kind of event: slotted, compared by fields, entered in `EVENTS`.

    Frozen to the type checker, plain slots at run time: a frozen dataclass costs 475 ns to build, this one 120.

    Raises:
        TypeError: a field has a type that no column can hold, or a name of the envelope.

    Example:
        >>> from lab.events import StepFinished
        >>> StepFinished(step=1, epoch=0, loss=0.5, n_examples=64, elapsed_ms=2.0).loss
        0.5
    """
    made: type[E] = dataclasses.dataclass(slots=True, eq=False)(cls)
    for name, of_type in fields_of(made).items():
        if of_type not in FIELD_TYPES:
            raise TypeError(f"{cls.__name__}.{name}: {of_type} has no columnar form")
        if name in ENVELOPE:
            raise TypeError(f"{cls.__name__}.{name}: the envelope has this name")
    EVENTS[made.__name__] = made
    return made


_FIELDS: dict[type[Event], dict[str, object]] = {}  # by class, not by name: a cell that runs again makes a new class


def fields_of(kind: type[Event]) -> dict[str, object]:
    """Name and type of each own field of a kind, in order of definition (without the envelope)."""
    if kind not in _FIELDS:
        types = get_type_hints(kind)
        _FIELDS[kind] = {f.name: types[f.name] for f in dataclasses.fields(kind)}  # type: ignore[arg-type]
    return _FIELDS[kind]


def wanted_kinds(kinds: Iterable[type[Event]] | None) -> frozenset[type[Event]] | None:
    """The kinds of events that somebody asks for, None for all.

    Raises:
        ArgumentError: something among them is no kind of event.
    """
    if kinds is None:
        return None
    asked: Any = kinds
    found = list(asked) if isinstance(asked, Iterable) and not isinstance(asked, str) else [asked]
    for kind in found:
        if not (isinstance(kind, type) and issubclass(kind, Event)):
            hint = "classes, as kinds=[lab.events.OpRecorded]; None for all"
            raise ArgumentError("kinds holds kinds of events", given=repr(kind)[:60], hint=hint)
    return frozenset(found)


def values_of(event: Event) -> tuple[object, ...]:
    """The own field values of an event, in order."""
    return tuple(getattr(event, name) for name in fields_of(type(event)))


def build(kind: type[Event], values: tuple[object, ...], seq: int, time_ns: int, origin: Origin) -> Event:
    """The Event object of a row of the queue or of a Recording."""
    made = kind(*(str(v) if t is str else v for v, t in zip(values, fields_of(kind).values(), strict=False)))
    made.seq, made.time_ns, (made.rank, made.run) = seq, time_ns, origin
    return made
