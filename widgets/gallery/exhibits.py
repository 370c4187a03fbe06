"""What hangs in the gallery, in its order: the one list to which a new view is added."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from lab.events import Recording
from widgets.export.film import frames_of, stops_of
from widgets.export.page import Frame, Part, page_of
from widgets.fold import Positions
from widgets.gallery.runs import Runs
from widgets.view import View
from widgets.views.broadcast.view import BroadcastView
from widgets.views.capture.view import CaptureView
from widgets.views.cluster.view import ClusterView
from widgets.views.collective.compare import CompareCollectives
from widgets.views.collective.ring import RingView
from widgets.views.collective.view import CollectiveView
from widgets.views.contributions.view import ContributionView
from widgets.views.data_parallel.view import DataParallelView
from widgets.views.difference.view import DifferenceView
from widgets.views.dual.view import DualView
from widgets.views.experiments.accumulation import AccumulationView
from widgets.views.experiments.buckets import BucketView
from widgets.views.experiments.building import BuildView
from widgets.views.experiments.calls import CallsView
from widgets.views.experiments.cost import CostView
from widgets.views.experiments.errors import ErrorView
from widgets.views.experiments.means import MeansView
from widgets.views.experiments.memory import MemoryView
from widgets.views.experiments.memory_plan import MemoryPlanView
from widgets.views.experiments.orders import OrdersView
from widgets.views.experiments.passes import PassesView
from widgets.views.experiments.rewrite.view import RewriteView
from widgets.views.experiments.root_link import RootLinkView
from widgets.views.experiments.rule import RuleView
from widgets.views.experiments.slopes import SlopesView
from widgets.views.experiments.spread import SpreadView
from widgets.views.experiments.swell import SwellView
from widgets.views.experiments.times import TimesView
from widgets.views.graph.view import GraphView
from widgets.views.layers.view import LayersView
from widgets.views.pipeline.view import PipelineView
from widgets.views.prefetch.view import PrefetchView
from widgets.views.retraces.view import RetraceView
from widgets.views.schedule.view import ScheduleView
from widgets.views.training.gradient import GradientView
from widgets.views.training.loss import LossView
from widgets.views.training.recovery import RecoveryView
from widgets.views.visits.view import VisitsView
from widgets.views.vmap.view import VmapView
from widgets.views.why.view import WhyView

MOST_FRAMES = 40
"""Of one exhibit."""


class Exhibit(NamedTuple):
    """One player of the gallery.

    Attributes:
        title: its heading.
        about: one sentence that says what to look for.
        view: the view that it shows.
        run: which recording: a name of `Runs`.
        made: makes the view; if not given, it is the view of that recording.
        opens_at_end: whether its last picture is seen first.
        stops: which of the view's stops it has; all if not given.
    """

    title: str
    about: str
    view: type[View[Any]]
    run: str
    made: Callable[[Runs], View[Any]] | None = None
    opens_at_end: bool = False
    stops: Callable[[Positions], Positions] | None = None


def _two_steps(stops: Positions) -> Positions:
    """The first and the last step of data-parallel training: each has four phases."""
    return np.append(stops[:4], stops[-4:])


def _lit(view: GraphView) -> GraphView:
    """The graph with the first nan or infinity lit."""
    view.light_nonfinite()
    return view


EXHIBITS: list[Exhibit] = [
    Exhibit("A small graph", "Values go along the arrows, gradients come back; a box says what it computed.",
            GraphView, "graph"),
    Exhibit("Contributions", "Rule by rule: local derivative × incoming gradient, and the sum where it ends.",
            ContributionView, "graph", opens_at_end=True),
    Exhibit("Forward mode", "The same function by jvp: a tangent goes along with each value.", DualView, "forward"),
    Exhibit("Visits", "Backward in topological order, then path by path: how often each node is visited.",
            VisitsView, "visits"),
    Exhibit("Error against step", "Each difference has a best step, between a curve that it sees and digits that "
            "cancel; the automatic derivative has none.", ErrorView, "errors", opens_at_end=True),
    Exhibit("Cost of a Jacobian", "Forward mode is for few inputs, reverse mode for few outputs; the lines cross.",
            CostView, "cost", opens_at_end=True),
    Exhibit("Expression swell", "As one expression a derivative repeats what it needs again; the tape has it once.",
            SwellView, "swell", opens_at_end=True),
    Exhibit("Broadcasting of shapes", "Axes that are stretched forward are summed over on the way back.",
            BroadcastView, "stretched"),
    Exhibit("vmap", "A function of one example, run for all at once: where the axis of the members is, op by op.",
            VmapView, "mapped", opens_at_end=True),
    Exhibit("Slopes at a kink", "A tie of two: every slope of the fan is as good, and each library takes one.",
            SlopesView, "slopes", opens_at_end=True),
    Exhibit("A rule against differences", "A rule of softmax that forgets what is beside the diagonal, found entry by "
            "entry.", RuleView, "rule", opens_at_end=True),
    Exhibit("Memory over forward and backward", "A checkpoint forgets what was saved, and runs it again.",
            MemoryView, "memory", opens_at_end=True),
    Exhibit("Pass by pass", "What the compiler makes of a layer and its gradient: fewer kernels, fewer bytes.",
            PassesView, "passes", opens_at_end=True),
    Exhibit("Before and after a pass", "What goes into others, what is left out, and what a pass made instead.",
            RewriteView, "passes"),
    Exhibit("Calls of jitted functions", "Which call found a graph, and why the others were traced.",
            RetraceView, "retraces", opens_at_end=True),
    Exhibit("First call and later calls", "A first call traces and compiles; it pays after so many more.",
            CallsView, "calls", opens_at_end=True),
    Exhibit("A graph each step, or once", "Define by run, traced anew, kept: what a step takes, and what all take.",
            BuildView, "building", opens_at_end=True),
    Exhibit("Traced and scripted", "A trace has the branch that its input took; a script has both.",
            CaptureView, "captures", opens_at_end=True),
    Exhibit("A graph in threads", "Equations that do not wait for each other run at once; the longest chain of those "
            "that do has strong outlines.", ScheduleView, "schedule",
            lambda runs: ScheduleView(runs.schedule, run=3), opens_at_end=True),
    Exhibit("Memory plan", "Buffers over the equations: used again, reordered, and what is cheap made again.",
            MemoryPlanView, "plan", opens_at_end=True),
    Exhibit("Prefetch", "The next batches are loaded and preprocessed while the loop computes with this one.",
            PrefetchView, "prefetch", lambda runs: PrefetchView(runs.prefetch, depth=2), opens_at_end=True),
    Exhibit("The gradient's graph", "What the first walk computed is a graph as well: the second goes over it.",
            GraphView, "twice", opens_at_end=True),
    Exhibit("First nan", "The operation in which nan or infinity began is lit, with the numbers that went in.",
            GraphView, "broken", lambda runs: _lit(GraphView(runs.broken)), opens_at_end=True),
    Exhibit("One step of a network", "The same for a network with one hidden layer: six operations, four parameters.",
            GraphView, "network", opens_at_end=True),
    Exhibit("A transformer block", "Operations lie in the modules that ran them: a box with a + opens.",
            GraphView, "block", lambda runs: GraphView(runs.block, most=20, direction="down"), opens_at_end=True),
    Exhibit("A transformer", "Blocks that do the same are one box, with how often it ran.",
            GraphView, "transformer", lambda runs: GraphView(runs.transformer, direction="down"), opens_at_end=True),
    Exhibit("Why this gradient", "One entry of a weight's gradient is a sum over paths: the largest of them.",
            WhyView, "network", lambda runs: WhyView(runs.network, "0.weight"), opens_at_end=True),
    Exhibit("First difference", "Two networks from two seeds on the same data, around the first event in which they "
            "differ.", DifferenceView, "network", lambda runs: DifferenceView(runs.network, runs.sibling),
            opens_at_end=True),
    Exhibit("Loss", "The loss of every batch, its mean, and loss and accuracy on data that it never saw.",
            LossView, "training", opens_at_end=True),
    Exhibit("Gradients", "How long each gradient is from step to step, and how the entries of one spread.",
            GradientView, "training", opens_at_end=True),
    Exhibit("Layers", "What each layer gives, the gradient that comes back, its dead units: first step and last.",
            LayersView, "training", opens_at_end=True),
    Exhibit("Size of the micro-batches", "The same update in smaller parts: less is held at a time, and below some "
            "size the step takes longer.", AccumulationView, "accumulation", opens_at_end=True),
    Exhibit("Means of micro-batches", "Weighed by what was counted they follow whole batches; two usual mistakes "
            "do not.", MeansView, "means", opens_at_end=True),
    Exhibit("All-reduce, ring", "Chunks travel around; which parts are in them, and how many bytes each rank sent.",
            RingView, "ring"),
    Exhibit("All-reduce as a matrix", "The same run: bytes from each rank to each other, and whose parts are where.",
            CollectiveView, "ring", lambda runs: CollectiveView(runs.ring, layout="matrix")),
    Exhibit("All-reduce, naive", "The same sum by way of rank 0, which sends most.", RingView, "naive"),
    Exhibit("Broadcast", "What rank 0 has goes to all.", RingView, "broadcast"),
    Exhibit("All-reduce, tree", "Partial sums go up the tree that the hops made, the sum comes down: few steps, all of "
            "the buffer in each.", CollectiveView, "tree"),
    Exhibit("All-reduce, two trees", "Half of the chunks go along one tree, half along another, in which other ranks "
            "are leaves.", CollectiveView, "double_tree"),
    Exhibit("All-to-all", "Each rank sends another chunk to each other: a matrix that is full but for its diagonal.",
            CollectiveView, "all_to_all"),
    Exhibit("Ring and tree", "The same numbers, step beside step: fewer bytes a rank, or fewer steps.",
            CompareCollectives, "two_ways"),
    Exhibit("Times of collectives", "A tree has few steps, a ring few bytes: the lines cross, measured and simulated.",
            TimesView, "times", opens_at_end=True),
    Exhibit("The link of the root", "One rank that talks to all carries what a tree and a ring share out.",
            RootLinkView, "root_link", opens_at_end=True),
    Exhibit("Data parallel", "Each replica takes its shard, all sum their gradients and make the same update: the "
            "first step and the last.", DataParallelView, "replicas", stops=_two_steps),
    Exhibit("Spread of replicas", "Gradients summed in each step keep replicas equal to the bit; others drift apart.",
            SpreadView, "spread", opens_at_end=True),
    Exhibit("Size of the buckets", "Small buckets pay for each message, large ones leave nothing to hide in "
            "backward.", BucketView, "buckets", opens_at_end=True),
    Exhibit("Orders of addition", "The same float32 numbers, added in another order, are another sum.",
            OrdersView, "orders", opens_at_end=True),
    Exhibit("A worker is killed", "Struck, known, replaced, gone on: on the lanes of the ranks, and on the loss.",
            RecoveryView, "killed", opens_at_end=True),
    Exhibit("Pipeline", "One step of 1F1B: what each rank does when, beside the same order without delays.",
            PipelineView, "pipeline", lambda runs: PipelineView(runs.pipeline, step=2), opens_at_end=True),
    Exhibit("Workers", "Which worker held which rank, and what it took of memory and processor.",
            ClusterView, "replicas", opens_at_end=True),
]  # fmt: skip
"""Every view is here; a test looks."""


EMPTY: dict[type[View[Any]], Callable[[Recording], View[Any]]] = {
    WhyView: lambda nothing: WhyView(nothing, "x"),
    DifferenceView: lambda nothing: DifferenceView(nothing, nothing),
}
"""How views that want more than a recording are shown one without events."""


def shown_of(exhibit: Exhibit, runs: Runs) -> tuple[View[Any], Positions]:
    """The view of an exhibit, and its stops."""
    view = exhibit.made(runs) if exhibit.made else exhibit.view(getattr(runs, exhibit.run))
    stops = stops_of([view])
    if exhibit.stops is not None:
        stops = exhibit.stops(stops)
    if exhibit.opens_at_end:  # what came after the last stop, as an evaluation, belongs to it
        stops = np.append(stops[:-1], len(view.recording))
    return view, stops


def part_of(exhibit: Exhibit, runs: Runs) -> Part:
    """The player of an exhibit."""
    view, stops = shown_of(exhibit, runs)
    return Part(frames_of([view], stops, MOST_FRAMES), exhibit.title, exhibit.about, exhibit.opens_at_end)


def nothing_yet(runs: Runs, exhibits: Sequence[Exhibit]) -> Part:
    """Every view before anything was recorded."""
    kinds = dict.fromkeys(exhibit.view for exhibit in exhibits)
    views = [EMPTY[kind](runs.nothing) if kind in EMPTY else kind(runs.nothing) for kind in kinds]
    frame = Frame("", tuple(view.picture_at(0) for view in views), "")
    return Part([frame], "Nothing yet", "What each view says before anything was recorded.")


def gallery_page(runs: Runs, exhibits: Sequence[Exhibit] = tuple(EXHIBITS)) -> str:
    """The gallery as the text of one stand-alone page."""
    parts = [*(part_of(exhibit, runs) for exhibit in exhibits), nothing_yet(runs, exhibits)]
    about = "Every view of the lab. Each picture is drawn from events of a run that took place when this page was made."
    return page_of(parts, "Gallery of autodiff-lab", about)
