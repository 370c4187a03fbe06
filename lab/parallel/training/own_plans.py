"""A learner's own plan is proved on paper before a training trusts it with gradients.

A wrong sum would train silently to wrong weights, and a sum that each rank adds in another order lets replicas drift
apart bit by bit. Plans of the house are proved in the tests.
"""

from __future__ import annotations

from lab.errors import PlanError
from lab.parallel.paper.calling import name_of
from lab.parallel.paper.check_plan import check_plan
from lab.parallel.paper.plans import Plan


def refuse_a_wrong_sum(algorithm: str | Plan, world_size: int) -> None:
    """Refuse a plan of one's own that does not sum over this many ranks, or not to the same bits on all.

    Raises:
        PlanError: the first wrong hop, as `check_plan` tells it; or where ranks add in another order.

    Example:
        >>> from lab.parallel import Recv, Send
        >>> def to_all(rank, n, k):
        ...     others = [peer for peer in range(n) if peer != rank]
        ...     yield tuple(Send(peer, 0, k) for peer in others) + tuple(Recv(peer, 0, k, True) for peer in others)
        >>> refuse_a_wrong_sum(to_all, 2)
        >>> refuse_a_wrong_sum(to_all, 3)
        Traceback (most recent call last):
        lab.errors.PlanError: this plan adds in another order on other ranks, so replicas would not stay alike
        given: plan 'to_all' on 3 ranks: chunk 0 is 0 + 1 + 2 on rank 0, 2 + 0 + 1 on rank 2
        hint:  add each chunk on one rank and send the finished sum to the others (reduce=False)
    """
    if isinstance(algorithm, str):
        return
    report = check_plan("all_reduce", algorithm, world_size)
    if not report.same_order:
        raise PlanError(
            "this plan adds in another order on other ranks, so replicas would not stay alike",
            given=f"plan {name_of(algorithm)!r} on {world_size} ranks: {report.disorder}",
            hint="add each chunk on one rank and send the finished sum to the others (reduce=False)",
        )
