"""Parallel: plans of collectives and schedules of pipelines as values, checked on paper, and ranks that run them."""

from lab.parallel.cluster.cluster import Cluster, launch
from lab.parallel.cluster.launching import Launch
from lab.parallel.paper import collectives as _collectives  # noqa: F401 -- fills COLLECTIVES
from lab.parallel.paper.check_plan import PlanReport, check_plan
from lab.parallel.paper.check_schedule import ScheduleReport, Slot, check_schedule
from lab.parallel.paper.lockstep import Hop, simulate_arrays
from lab.parallel.paper.operations import OPERATIONS
from lab.parallel.paper.plans import (
    COLLECTIVES,
    Plan,
    Recv,
    Send,
    Step,
    block,
    collective,
    compile_plan,
    elements,
    plan_of,
)
from lab.parallel.paper.schedules import (
    SCHEDULES,
    Action,
    Schedule,
    Table,
    format_table,
    parse_table,
    schedule,
    table_of,
)
from lab.parallel.pipeline.pacing import Paced
from lab.parallel.pipeline.pipeline import Pipeline
from lab.parallel.pipeline.stages import Stage, split
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.threads import run_local, run_ranks
from lab.parallel.training.data_parallel import DataParallel

__all__ = [
    "COLLECTIVES",
    "OPERATIONS",
    "SCHEDULES",
    "Action",
    "Cluster",
    "Comm",
    "DataParallel",
    "Hop",
    "Launch",
    "Paced",
    "Pipeline",
    "Plan",
    "PlanReport",
    "Recv",
    "Schedule",
    "ScheduleReport",
    "Send",
    "Slot",
    "Stage",
    "Step",
    "Table",
    "block",
    "check_plan",
    "check_schedule",
    "collective",
    "compile_plan",
    "elements",
    "format_table",
    "launch",
    "parse_table",
    "plan_of",
    "run_local",
    "run_ranks",
    "schedule",
    "simulate_arrays",
    "split",
    "table_of",
]
