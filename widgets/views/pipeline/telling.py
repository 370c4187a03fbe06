"""What a PipelineView says: its caption, what happened last, the bubble in numbers, every rank in words."""

from __future__ import annotations

from lab.words import counted
from widgets.fold import Events
from widgets.pictures.theme import short
from widgets.views.nothing import nothing_for
from widgets.views.pipeline.moment import Moment
from widgets.views.pipeline.trace import Trace
from widgets.views.words import milliseconds, share

PACED = "paced: an action lasts at least its nominal time; no measure of this machine"

MANY = 10.0
"""An action that takes so many times as long as others makes them thin."""


FAR = 0.15
"""A bubble so much above the ideal one, as a part of all time, is explained."""


def bubble_lines(moment: Moment) -> list[str]:
    """The bubble, measured and on paper, as a line or two."""
    if moment.report is None or not moment.over:  # a player at an early stop must not give the end away
        n_all = f" of {moment.n_actions}" if moment.n_actions else ""
        return [f"step {moment.number}: {len(moment.done)}{n_all} actions so far; the bubble is known at its end"]
    p, m = moment.report.n_ranks, moment.report.n_micro
    paper = f", {share(moment.plan.bubble)} ideal for this order" if moment.plan is not None else ""
    formula = f"(p − 1) / (m + p − 1) = {p - 1} / {m + p - 1} = {share(moment.report.ideal_bubble)}"
    return [
        f"bubble of step {moment.number}: {share(moment.report.bubble)} measured{paper}",
        f"text book: {formula} for p = {counted(p, 'rank')}, m = {counted(m, 'micro-batch', 'micro-batches')}",
    ]


def more_than_ideal(moment: Moment) -> str:
    """Why a step's bubble is far above that of its order, as far as its recording knows; "" where it is not."""
    report, plan = moment.report, moment.plan
    if report is None or plan is None or moment.paced or not moment.over or report.bubble < plan.bubble + FAR:
        return ""
    p, cores = report.n_ranks, moment.n_cores
    few = 0 < cores < p
    shared = f"{p} ranks share {counted(cores, 'core')}, so at most {cores} can compute at once; " * few
    or_core = " or a core" * (few or not cores)
    busy = sum(d.end - d.start for d in moment.done)
    each, idle = (time / len(moment.done) for time in (busy, p * report.makespan - busy))
    return (
        f"The bubble is far above the ideal: {shared}an action takes {milliseconds(each)} on average,"
        f" and beside each a rank waits {milliseconds(idle)} for a message{or_core}."
    )


def sentence(moment: Moment) -> str:
    """What happened last."""
    done = moment.last
    if done is None:
        if moment.over and moment.report is not None:
            took = f"{moment.n_actions} actions in {milliseconds(moment.report.makespan)}"
            return f"Step {moment.number} is over: {took}, bubble {share(moment.report.bubble)}."
        n_all = f" of {moment.n_actions}" if moment.n_actions else ""
        return f"Step {moment.number}: {len(moment.done)}{n_all} actions are finished."
    way = "backward" if done.backward else "forward"
    sent = ""
    if moment.moved is not None:
        what, side = ("gradient", "left") if done.backward else ("activation", "right")
        sent = f"; its {what} ({n_bytes(moment.moved.n_bytes)}) goes {side} to stage {moment.moved.dst}"
    return f"Stage {done.stage} finished the {way} of micro-batch {done.micro}{sent}."


def n_bytes(n: int) -> str:
    """A number of bytes.

    Example:
        >>> n_bytes(512), n_bytes(2048), n_bytes(3_500_000)
        ('512 B', '2.0 KiB', '3.3 MiB')
    """
    value, unit = float(n), "B"
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{n} B" if unit == "B" else f"{value:.1f} {unit}"


def account(moment: Moment) -> str:
    """The whole moment in words."""
    lines = [sentence(moment), *bubble_lines(moment)]
    for rank in range(moment.n_ranks):
        mine = sorted((d for d in moment.done if d.rank == rank), key=lambda d: d.start)
        busy = milliseconds(sum(d.end - d.start for d in mine))
        if moment.in_ticks:
            busy = f"{len(mine)} of {counted(round(max((d.end for d in moment.done), default=0)), 'tick')}"
        order = " ".join(d.name if d.stage == rank else f"{d.stage}{d.name}" for d in mine) or "nothing yet"
        live = [n for _, n in moment.live(rank)]
        held = f"; holds {counted(live[-1], 'activation')} now, {max(live)} at most" if live else ""
        lines.append(f"rank {rank}: {order}; busy for {busy}{held}")
    if moment.paced and not moment.in_ticks:
        lines.append(f"Times are {PACED}.")
    return "\n".join([*lines, *filter(None, [more_than_ideal(moment)])])


def caption(moment: Moment) -> str:
    """The point of the picture."""
    plan = ""
    if moment.plan is not None and moment.report is not None:
        plan = " Below each: the same order without delays."
    elif moment.plan is not None:
        plan = " Below each: an earlier step without delays."
    elif not moment.n_actions:
        plan = " The same order without delays is drawn when a step is over."
    core = "" if moment.paced else " or for a core"
    if moment.in_ticks:
        return (
            "Each column is a tick: every rank whose next action has what it needs does that one, and the others rest."
            " Activations move right (F, plain bars), gradients left (B, hatched bars). Grey: the activations that a"
            " rank holds. Times are shown when the step is over."
        )
    words = (
        f"Activations move right (F, plain bars), gradients left (B, hatched bars). Where a rank has no bar"
        f" it waits for another{core}.{plan} Grey: the activations that it holds, strongest at the peak."
    )
    return " ".join(filter(None, (words, _slow(moment) or more_than_ideal(moment))))


def _slow(moment: Moment) -> str:
    """A sentence on the one action that makes all others thin; "" if there is none."""
    lengths = sorted(d.end - d.start for d in moment.done)
    usual = lengths[len(lengths) // 2] if lengths else 0.0
    if len(lengths) < 4 or lengths[-1] < MANY * usual:
        return ""
    longest = max(moment.done, key=lambda d: d.end - d.start)
    took = f"{longest.name} of rank {longest.rank} took {milliseconds(lengths[-1])}, others {milliseconds(usual)}"
    return f"{took}: the first actions of a run also load their kernels; a later step shows the rest wider."


def why_empty(trace: Trace, events: Events, chosen: int | None) -> str:
    """Why there is no picture.

    Args:
        events: the recording that it would be of.
        chosen: the step that was asked for.
    """
    if trace.n and chosen is not None:
        return f"There is no step {short(chosen)} here: choose another."
    if trace.running:
        return "A pipeline has begun; its first action is not finished yet."
    if events.live:
        return "No action of a pipeline is finished yet: each will be a bar."
    write = "run = lab.fit(model, train, on=Pipeline(cluster)), then PipelineView(run)"
    return nothing_for("PipelineView", "a training on a pipeline, stage by stage", write, events)
