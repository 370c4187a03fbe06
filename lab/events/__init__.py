"""Events: what the engine, the compiler and the cluster say of themselves, and the Recording that keeps it."""

from lab.events.arrays import Arrays
from lab.events.bus import Batch, Bus, Detail, Listener, Row, bus
from lab.events.catalogue import (
    BackwardFinished,
    BackwardStarted,
    ChunkMoved,
    CollectiveFinished,
    CollectiveStarted,
    Evaluated,
    GradientStored,
    HyperparameterChanged,
    LeafUsed,
    OpRecorded,
    ParameterMeasured,
    RankFinished,
    RankLost,
    RankStarted,
    RuleApplied,
    RunFinished,
    RunStarted,
    RunStateChanged,
    StepFinished,
    ValueSeen,
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
    "ChunkMoved",
    "CollectiveFinished",
    "CollectiveStarted",
    "Columns",
    "Detail",
    "Evaluated",
    "Event",
    "GradientStored",
    "HyperparameterChanged",
    "LeafUsed",
    "Listener",
    "Listening",
    "OpRecorded",
    "Origin",
    "ParameterMeasured",
    "Ragged",
    "RankFinished",
    "RankLost",
    "RankStarted",
    "Recording",
    "Row",
    "RuleApplied",
    "RunFinished",
    "RunStarted",
    "RunStateChanged",
    "StepFinished",
    "ValueSeen",
    "bus",
    "event",
    "fields_of",
    "listen",
    "record",
]
