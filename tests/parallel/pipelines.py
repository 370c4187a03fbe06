"""What the tests of pipelines share: a training in threads, the spans of a recording, and what must hold for them."""

import math
from itertools import pairwise

from lab.events import ActionFinished
from lab.parallel import Action, run_ranks
from lab.parallel.paper.check_schedule import needs
from lab.parallel.pipeline.pipeline import train
from lab.parallel.training.packing import packed
from lab.parallel.training.steering import Order


def unattended(comm, *args):
    """A rank of a training that nobody steers: it goes on to its end."""
    comm.mailbox.put(Order(1, "go", math.inf))
    return train(comm, *args)


def train_in_threads(pipeline, training):
    """Train with ranks that are threads of this process, all in one recording; `training` then stands at the end."""
    n_stages = pipeline.stages_of(training.model)
    order = pipeline.check(n_stages).order
    args = packed(training), "run", order, pipeline.n_micro, pipeline.paced
    training.stand(run_ranks(unattended, *args, world_size=n_stages)[0])


def spans(rec):
    rows = rec.columns(ActionFinished)
    actions = [Action(*row) for row in zip(rows["kind"], rows["stage"].tolist(), rows["micro"].tolist(), strict=True)]
    times = zip(rows["start_ns"].tolist(), rows["end_ns"].tolist(), strict=True)
    return dict(zip(actions, times, strict=True))


def assert_spans_follow(found, report, n_stages):
    """In the order of the schedule, nothing at once on a rank, nothing before what it needs."""
    for own in report.order:
        assert all(found[before][1] <= found[after][0] for before, after in pairwise(own))
    for action, (start, _) in found.items():
        assert all(found[need][1] <= start for need in needs(action, n_stages))
