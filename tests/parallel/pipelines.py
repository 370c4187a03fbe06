"""What the tests of pipelines share: the spans of a recording, and what must hold for them."""

from itertools import pairwise

from lab.events import ActionFinished
from lab.parallel import Action
from lab.parallel.check_schedule import needs


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
