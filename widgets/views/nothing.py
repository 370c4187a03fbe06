"""What a view of ranks says of a recording that has nothing for it: what it shows, how to get that, and who shows this.

The learner may have taken the wrong view or the wrong recording; so both ways on are named.
"""

from __future__ import annotations

from lab.events import (
    AccumulationBegun,
    ActionFinished,
    BucketsBegun,
    BuildBegun,
    CallsBegun,
    CapturesBegun,
    CollectiveStarted,
    CostBegun,
    EquationRan,
    ErrorsBegun,
    MeansBegun,
    MemoryBegun,
    NodeVisited,
    OpBatched,
    OpRecorded,
    OrderMeasured,
    PassesBegun,
    RankStarted,
    ReplicaAdvanced,
    RootLinkBegun,
    RuleCheckBegun,
    RunFinished,
    SlopesBegun,
    SpreadBegun,
    StageRan,
    StepFinished,
    SwellBegun,
    TangentPushed,
    TimesBegun,
    Traced,
)
from widgets.fold import Events

SHOWN_BY = {ActionFinished: "PipelineView", ReplicaAdvanced: "DataParallelView", CollectiveStarted: "RingView",
            StepFinished: "LossView", TangentPushed: "DualView", NodeVisited: "VisitsView",
            OpBatched: "VmapView", ErrorsBegun: "ErrorView", CostBegun: "CostView", SwellBegun: "SwellView",
            SlopesBegun: "SlopesView", RuleCheckBegun: "RuleView", MemoryBegun: "MemoryView",
            PassesBegun: "PassesView", CallsBegun: "CallsView", BuildBegun: "BuildView",
            CapturesBegun: "CaptureView", Traced: "RetraceView",
            TimesBegun: "TimesView", RootLinkBegun: "RootLinkView", SpreadBegun: "SpreadView",
            OrderMeasured: "OrdersView", BucketsBegun: "BucketView",
            AccumulationBegun: "AccumulationView", MeansBegun: "MeansView",
            EquationRan: "ScheduleView", StageRan: "PrefetchView",
            OpRecorded: "GraphView", RankStarted: "ClusterView"}  # fmt: skip
"""The view for what was recorded, the first that fits."""


def nothing_for(view: str, shows: str, write: str, events: Events) -> str:
    """Why the picture of an ended recording is empty.

    Args:
        view: the name of its class.
        shows: the kind of run that it shows.
        write: code that makes such a recording and shows it.

    Example:
        >>> from lab.events import Recording
        >>> nothing_for("LossView", "a training", "LossView(run)", Recording())
        'LossView shows a training, and none was recorded. To get one: LossView(run).'
    """
    if began := never_began(events):
        return f"{view} shows {shows}: {began}"
    return f"{view} shows {shows}, and none was recorded. To get one: {write}.{shown_by(events, view)}"


def never_began(events: Events) -> str:
    """What became of a run that ended before its first step, as a sentence; "" of others.

    Example:
        >>> from lab.events import Recording
        >>> never_began(Recording())
        ''
    """
    ends, steps = events.columns(RunFinished), events.columns(StepFinished)
    if not len(ends["state"]) or len(steps["step"]):
        return ""
    state, name, reason = (str(ends[field][-1]) for field in ("state", "name", "reason"))
    if state not in ("failed", "stopped") or ends["n_steps"][-1]:
        return ""
    ended = "failed" if state == "failed" else "was stopped"
    return f"the run {name} {ended} before its first step{f' ({reason})' if reason else ''}."


def shown_by(events: Events, view: str) -> str:
    """Which view shows what was recorded, as a sentence after a space; "" if none does but `view`.

    Example:
        >>> from lab.events import Recording
        >>> shown_by(Recording(), "GraphView")
        ''
    """
    other = next((name for kind, name in SHOWN_BY.items() if len(events.positions(kind)) and name != view), "")
    return f" What was recorded is shown by {other}." if other else ""
