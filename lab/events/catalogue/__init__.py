"""Every event that the lab can emit: past tense, ids and numbers, units in the names.

One list, because it is also the schema of the recording file: a view or a test starts reading here.
"""

from lab.events.catalogue.engine import (
    BackwardFinished,
    BackwardStarted,
    GradientCleared,
    GradientStored,
    LeafUsed,
    OpRecorded,
    RuleApplied,
    ValueSeen,
    ValueWritten,
)
from lab.events.catalogue.ranks import (
    ActionFinished,
    ActionStarted,
    ActivationMoved,
    ChunkMoved,
    ClockAligned,
    CollectiveFinished,
    CollectiveStarted,
    RankFinished,
    RankLost,
    RankStarted,
    ReplicaAdvanced,
    StrangerRefused,
    WorkerSeen,
)
from lab.events.catalogue.training import (
    Evaluated,
    HyperparameterChanged,
    ParameterMeasured,
    RunFinished,
    RunStarted,
    RunStateChanged,
    StepFinished,
)

__all__ = [
    "LeafUsed",
    "OpRecorded",
    "ValueSeen",
    "BackwardStarted",
    "RuleApplied",
    "GradientStored",
    "GradientCleared",
    "ValueWritten",
    "BackwardFinished",
    "RunStarted",
    "RunStateChanged",
    "StepFinished",
    "Evaluated",
    "ParameterMeasured",
    "HyperparameterChanged",
    "RunFinished",
    "RankStarted",
    "RankFinished",
    "RankLost",
    "ClockAligned",
    "StrangerRefused",
    "WorkerSeen",
    "CollectiveStarted",
    "CollectiveFinished",
    "ChunkMoved",
    "ReplicaAdvanced",
    "ActivationMoved",
    "ActionStarted",
    "ActionFinished",
]
