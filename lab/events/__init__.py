"""Events: what the engine, the compiler and the cluster say of themselves, and the Recording that keeps it."""

from lab.events.arrays import Arrays
from lab.events.bus import Batch, Bus, Detail, Listener, Row, bus
from lab.events.catalogue import (
    BackwardFinished,
    BackwardStarted,
    Evaluated,
    GradientCleared,
    GradientStored,
    HyperparameterChanged,
    LeafUsed,
    OpRecorded,
    ParameterMeasured,
    RuleApplied,
    RunFinished,
    RunStarted,
    RunStateChanged,
    StepFinished,
    ValueSeen,
    ValueWritten,
)
from lab.events.columns import Ragged
from lab.events.event import EVENTS, ORIGIN, Array, Event, Origin, event, fields_of
from lab.events.listen import Listening, listen
from lab.events.recording import Recording, record
from lab.events.table import Columns

__all__ = [
    "EVENTS",
    "ORIGIN",
    "Array",
    "Arrays",
    "BackwardFinished",
    "BackwardStarted",
    "Batch",
    "Bus",
    "Columns",
    "Detail",
    "Evaluated",
    "Event",
    "GradientCleared",
    "GradientStored",
    "HyperparameterChanged",
    "LeafUsed",
    "Listener",
    "Listening",
    "OpRecorded",
    "Origin",
    "ParameterMeasured",
    "Ragged",
    "Recording",
    "Row",
    "RuleApplied",
    "RunFinished",
    "RunStarted",
    "RunStateChanged",
    "StepFinished",
    "ValueSeen",
    "ValueWritten",
    "bus",
    "event",
    "fields_of",
    "listen",
    "record",
]
