"""Parallel: plans of collectives and schedules of pipelines as values, checked on paper, and ranks that run them."""

from lab.parallel.cluster.cluster import Cluster, launch
from lab.parallel.cluster.launching import Launch
from lab.parallel.local.local_sgd import LocalSGD
from lab.parallel.local.outer import Outer
from lab.parallel.mapped import pmap
from lab.parallel.paper.check_plan import PlanReport, check_plan
from lab.parallel.paper.check_schedule import ScheduleReport, Slot, check_schedule
from lab.parallel.paper.collectives import hierarchical  # its package fills COLLECTIVES
from lab.parallel.paper.cost import LINKS, Link, Network
from lab.parallel.paper.lockstep import Hop, simulate_arrays
from lab.parallel.paper.operations import OPERATIONS
from lab.parallel.paper.orders import SumOrder, measure_orders
from lab.parallel.paper.plans import (
    COLLECTIVES,
    Plan,
    Recv,
    Send,
    Step,
    block,
    chunks_of,
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
from lab.parallel.paper.simulate import Timeline, crossing, predict
from lab.parallel.pipeline.pacing import Paced
from lab.parallel.pipeline.pipeline import Pipeline
from lab.parallel.pipeline.stages import Stage, split
from lab.parallel.ranks.axis import axis
from lab.parallel.ranks.handles import Handle
from lab.parallel.ranks.runtime import Comm
from lab.parallel.ranks.threads import run_local, run_ranks
from lab.parallel.training.data_parallel import DataParallel
from lab.parallel.transport.throttle import Throttle

__all__ = [
    "COLLECTIVES",
    "LINKS",
    "OPERATIONS",
    "SCHEDULES",
    "Action",
    "Cluster",
    "Comm",
    "DataParallel",
    "Handle",
    "Hop",
    "Launch",
    "Link",
    "LocalSGD",
    "Network",
    "Outer",
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
    "SumOrder",
    "Table",
    "Timeline",
    "Throttle",
    "axis",
    "block",
    "check_plan",
    "check_schedule",
    "chunks_of",
    "collective",
    "compile_plan",
    "crossing",
    "elements",
    "format_table",
    "hierarchical",
    "launch",
    "measure_orders",
    "parse_table",
    "plan_of",
    "pmap",
    "predict",
    "run_local",
    "run_ranks",
    "schedule",
    "simulate_arrays",
    "split",
    "table_of",
]
