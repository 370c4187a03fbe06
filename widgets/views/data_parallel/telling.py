"""What data-parallel training says in sentences: what happened last, the caption, and each replica in words."""

from __future__ import annotations

import math

from widgets.pictures.theme import short
from widgets.views.data_parallel.moment import Moment
from widgets.views.data_parallel.parts import MOST_RANKS, milliseconds, odd_ones, spread
from widgets.views.data_parallel.replicas import Replica
from widgets.views.words import why_lost

TIMED = ("shard", "gradient", "all-reduce", "update")
REACHED = ("took their examples", "found a gradient", "have the sum", "made the update")


def ranks(numbers: tuple[int, ...]) -> str:
    """Ranks in words.

    Example:
        >>> ranks((2,)), ranks((0, 2, 3))
        ('rank 2', 'ranks 0, 2 and 3')
    """
    if len(numbers) == 1:
        return f"rank {numbers[0]}"
    return f"ranks {', '.join(map(str, numbers[:-1]))} and {numbers[-1]}"


def heading(moment: Moment) -> str:
    """Step and batch."""
    at = next(iter(moment.replicas.values()), None)
    batch = "" if at is None else f": a batch of {at.n_global:,} examples on {_replicas(len(moment.crew))}"
    return f"step {moment.step}{batch}"


def _replicas(n: int) -> str:
    return f"{n} replica{'s' * (n != 1)}"


def sentence(moment: Moment) -> str:
    """What happened last."""
    if moment.lost:
        reasons = "; ".join(f"rank {rank} was lost ({why_lost(rank, why)})" for rank, why in moment.lost.items())
        return f"{reasons[0].upper()}{reasons[1:]}, in step {moment.step}.{_ended_too(moment)}"
    if moment.failed:
        rank, why = next(iter(moment.failed.items()))
        return f"Rank {rank} failed in step {moment.step}: {why.rstrip('.')}.{_ended_too(moment)}"
    step = f"Step {moment.step}"
    if moment.late or moment.phase < 0:
        furthest = max((at.phase for at in moment.replicas.values()), default=0)
        there = tuple(rank for rank in moment.here if rank in moment.replicas and rank not in moment.late)
        waited = f"; {ranks(moment.late)} {'is' if len(moment.late) == 1 else 'are'} not so far" if moment.late else ""
        return f"{step}: {len(there)} of {_replicas(len(moment.crew))} {REACHED[furthest]}{waited}."
    return f"{step}: {_reached(moment)}."


def _ended_too(moment: Moment) -> str:
    others = tuple(sorted(moment.stopped))
    words = f"{ranks(others)} {'was' if len(others) == 1 else 'were'} ended with it" if others else ""
    return f" {words[0].upper()}{words[1:]}." if words else ""


def _reached(moment: Moment) -> str:
    told = [moment.replicas[rank] for rank in moment.here if rank in moment.replicas]
    if len(moment.crew) == 1:
        return _alone(told[0])
    who = {1: "one replica", 2: "both replicas"}.get(len(told), f"all {len(told)} replicas")
    if moment.phase == 0:
        return f"{who} took their examples, {spread([at.stop - at.start for at in told])} each"
    if moment.phase == 1:
        losses = [at.loss for at in told if math.isfinite(at.loss)]
        return f"{who} found a gradient of their own{f', losses {spread(losses)}' if losses else ''}"
    row = 4 if moment.phase == 2 else 5
    odd = tuple(sorted(odd_ones(moment, row)))
    if moment.phase == 2:
        if odd:
            return f"the all-reduce left different sums: {ranks(odd)} {'has' if len(odd) == 1 else 'have'} another"
        return f"{who} have the same sum, norm {short(told[0].total)}"
    if odd:
        hold = "holds" if len(odd) == 1 else "hold"
        return f"the replicas are not alike any more: {ranks(odd)} {hold} other parameters"
    return f"{who} made the same update, checksum {told[0].checksum:08x}"


def _alone(at: Replica) -> str:
    """What one replica without others reached."""
    return (
        f"the one replica took all {at.n_global:,} examples",
        f"the one replica found its gradient, loss {short(at.loss)}",
        f"nothing to add: the gradient is the sum, norm {short(at.total)}",
        f"the one replica made its update, checksum {at.checksum:08x}",
    )[at.phase]


def account(moment: Moment) -> list[str]:
    """A line for each replica."""
    lines = []
    for rank in moment.crew[:MOST_RANKS]:
        at = moment.replicas.get(rank)
        gone = ["lost"] if rank in moment.lost else []
        if at is None:
            lines.append(f"rank {rank}: {'lost' if gone else 'has not begun this step'}")
            continue
        n = at.stop - at.start
        taken = f"examples {at.start} to {at.stop - 1}" if n > 1 else f"example {at.start}" if n else "no examples"
        told = [*gone, taken]
        if at.phase >= 1:
            loss = "no loss" if math.isnan(at.loss) and not n else f"loss {short(at.loss)}"
            told += [loss, f"gradient of norm {short(at.contributed)}"]
        moved = moment.moved(rank)
        if moved is not None and moved.n_hops:
            told.append(f"{moved.n_hops} hop{'s' * (moved.n_hops != 1)} received")
        told += [f"sum of norm {short(at.total)}"] * (at.phase >= 2)
        told += [f"parameters {at.checksum:08x} of norm {short(at.parameters)}"] * (at.phase >= 3)
        times = [f"{name} {time}" for k, name in enumerate(TIMED) if (time := milliseconds(at, k))]
        lines.append(f"rank {rank}: {', '.join(told)}; {', '.join(times)}")
    return lines


def caption(moment: Moment, *, n_dropped: int) -> str:
    """The point of the picture."""
    if len(moment.crew) == 1:
        point = "one replica takes the whole batch; with more ranks each would take a shard of it"
    else:
        point = (
            "each replica holds the whole model, takes a shard of the batch and adds its gradient to the others';"
            " the sum is the same everywhere, so they stay alike bit for bit"
        )
    if odd_ones(moment, 4) or odd_ones(moment, 5):
        point = "each replica holds the whole model; they should stay alike bit for bit, and here they do not"
    chunks = "" if moment.links or len(moment.crew) == 1 else " The chunks of the all-reduce were not recorded."
    more = f" {len(moment.crew) - MOST_RANKS} more replicas are not drawn." * (len(moment.crew) > MOST_RANKS)
    lost = f" {n_dropped:,} events were lost on the way." * (n_dropped > 0)
    return f"{point[0].upper()}{point[1:]}.{chunks}{more}{lost}"
