"""`train`: the network of the first lesson, in this process or on workers, with a report of what happened.

The recording takes every event but those of single operations, of all ranks; the report is made from it alone.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import logging
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress

from lab.cli import outputs
from lab.cli.arguments import ON_LOSS, on_workers
from lab.cli.keeping import Keeper
from lab.cli.progress import Progress, bar
from lab.data import digits
from lab.errors import ArgumentError, RunError
from lab.events import EVENTS, Evaluated, Recording, StepFinished, TrainingResumed, bus
from lab.nn import mlp
from lab.optim import Adam
from lab.parallel import Cluster, DataParallel, Paced, Pipeline
from lab.parallel.cluster import memory
from lab.training import Run, fit

log = logging.getLogger("lab.cli")

DATA = {"digits": (digits, (64, 128, 128, 10))}
"""What can be learned: train and test data, and the widths of the network that learns them."""
MOST_WORKERS = 64
"""What is started on one machine: for as many ranks plans and schedules are proved."""
TICK_S = 0.1
PATIENCE_S = 10.0
"""How long ranks may take to stop after Ctrl-C."""


def train(arguments: argparse.Namespace) -> int:
    """Train, then write what was asked for; 1 if a file could not be written."""
    outputs.require_writable(arguments.report, "report", outputs.REPORT_ROOM)
    outputs.require_writable(arguments.record, "recording", outputs.RECORDING_ROOM)
    kinds = [kind for kind in EVENTS.values() if not kind.per_operation]
    recording = Recording(kinds=kinds, run="*", detail="value", sources=False)
    recording.meta.update(_about(arguments))
    written = True
    bus.attach(recording)
    try:
        _train(arguments, recording)
    finally:  # also after Ctrl-C, and when a rank was lost
        recording.close()
        if len(recording.positions(StepFinished)):
            written = outputs.write(recording, report=arguments.report, record=arguments.record)
    return int(not written)


def _train(arguments: argparse.Namespace, recording: Recording) -> None:
    data, widths = DATA[arguments.data]
    training, test = data()
    model = mlp(*widths, rng=0)
    _require_workers(arguments, len(model))
    with Progress() as progress, _place(arguments, progress) as place:
        run = fit(model, training, validation=test, optimizer=Adam(model.parameters(), arguments.learning_rate),
                  epochs=arguments.epochs, batch_size=arguments.batch_size, name=arguments.data, on=place)  # fmt: skip
        try:
            with suppress(RunError):  # it has not ended yet: but now it knows that somebody waits, and will tell
                run.wait(timeout=0)
            _follow(run, recording, progress, Keeper(recording, arguments.record))
            if run.trouble:
                hint = f"a smaller --learning-rate than {arguments.learning_rate:g}"
                raise RunError(run.trouble.problem, given=run.trouble.given, hint=hint)
            result = run.wait()
        finally:
            run.stop()
            run.join(PATIENCE_S)
        progress.say(f"{result}")


def _require_workers(arguments: argparse.Namespace, n_layers: int) -> None:
    """Refuse, in the words of the command line, more workers than there can be."""
    n_workers = arguments.workers or 0
    if arguments.parallel == "pipeline" and n_workers > n_layers:
        raise ArgumentError("there are fewer layers than workers", given=f"--workers {n_workers}, {n_layers} layers",
                            hint=f"--workers {n_layers} at most, or --parallel data")  # fmt: skip
    if on_workers(arguments) and not arguments.scheduler:
        if n_workers > MOST_WORKERS:
            hint = f"--workers {MOST_WORKERS} at most; --scheduler ADDRESS uses a cluster that is there"
            raise ArgumentError("so many workers are not started on one machine", given=f"--workers {n_workers}",
                                hint=hint)  # fmt: skip
        memory.require(n_workers, memory.room(), "--workers {}")


def _follow(run: Run, recording: Recording, progress: Progress, keeper: Keeper) -> None:
    """Tell how far it is, and keep the recording, until it ends, or pauses because the loss is no number."""
    told = n_losses = 0
    while True:
        ended = run.wait_until("finished", "stopped", "failed", "paused", timeout=TICK_S)
        resumed = recording.columns(TrainingResumed)
        for k in range(n_losses, len(resumed["step"])):
            progress.say(_resumed(*(int(resumed[name][k]) for name in ("lost_rank", "step", "world_size"))))
        n_losses = len(resumed["step"])
        rows = recording.columns(Evaluated)
        if not progress.moves:
            for k in range(told, len(rows["step"])):
                progress.say(_said(run, *(rows[name][k] for name in ("step", "loss", "accuracy"))))
        told = len(rows["step"])
        if ended:
            return
        keeper.look()
        progress.show(_moving(run, recording))


def _said(run: Run, step: int, loss: float, accuracy: float) -> str:
    share = "" if math.isnan(accuracy) else f", accuracy {100 * accuracy:.1f} %"
    return f"Step {step} of {run.progress[1]}: test loss {loss:.4g}{share}"


def _resumed(lost: int, step: int, world_size: int) -> str:
    who = "All ranks were" if lost < 0 else f"Rank {lost} was"
    return f"{who} lost: on from step {step} with {world_size} rank{'s' * (world_size > 1)}"


def _moving(run: Run, recording: Recording) -> str:
    done, total = run.progress
    steps, tests = recording.columns(StepFinished), recording.columns(Evaluated)
    parts = [f"{bar(done, total)} step {done} of {total}"]
    parts += [f"loss {steps['loss'][-1]:.3g}"] if len(steps["loss"]) else []
    parts += [f"accuracy {100 * tests['accuracy'][-1]:.1f} %"] if len(tests["accuracy"]) else []
    parts += [run.waits_for] if run.waits_for else []
    return ", ".join(parts)


@contextmanager
def _place(arguments: argparse.Namespace, progress: Progress) -> Iterator[DataParallel | Pipeline | None]:
    """Where it trains: None for this process, else on ranks of a cluster that ends with the training if it is ours."""
    if not on_workers(arguments):
        yield None
        return
    with ExitStack() as stack:
        stack.enter_context(hushed())
        if arguments.scheduler:
            cluster = stack.enter_context(Cluster(client=arguments.scheduler))
        else:
            progress.say(f"Starting {arguments.workers} workers ...")
            cluster = stack.enter_context(Cluster(arguments.workers))
        if arguments.parallel == "data":
            yield DataParallel(cluster, arguments.workers, on_loss=arguments.on_loss or ON_LOSS[0])
        else:
            paced = Paced(arguments.paced, 2 * arguments.paced) if arguments.paced else None
            yield Pipeline(cluster, schedule=arguments.schedule, n_stages=arguments.workers, n_micro=arguments.micro,
                           paced=paced)  # fmt: skip


@contextmanager
def hushed() -> Iterator[None]:
    """Dask's log of workers that come and go stays away: what matters is told as an error of the run."""
    with ExitStack() as stack:
        if not log.isEnabledFor(logging.INFO):  # LAB_LOG=info shows it
            name = "DASK_DISTRIBUTED__LOGGING__DISTRIBUTED"  # which workers read when they start
            before = os.environ.get(name)
            os.environ[name] = "critical"
            stack.callback(lambda: os.environ.pop(name) if before is None else os.environ.update({name: before}))
            import distributed

            dask = logging.getLogger(distributed.__name__)
            stack.callback(dask.setLevel, dask.level)
            dask.setLevel(logging.CRITICAL)
        yield


def _about(arguments: argparse.Namespace) -> dict[str, str]:
    """What the report says of how it was made; without paths, for recordings travel."""
    words = ["autodiff-lab train", f"--data {arguments.data}"]
    names = ("workers", "parallel", "epochs", "batch_size", "learning_rate", "schedule", "micro", "paced", "on_loss")
    words += [f"--{n.replace('_', '-')} {value}" for n in names if (value := getattr(arguments, n)) is not None]
    place = "in one process"
    if on_workers(arguments):
        ranks = f"{arguments.workers} workers" if arguments.workers else "a cluster"
        place = f"{'data-parallel' if arguments.parallel == 'data' else 'as a pipeline'} on {ranks}"
    about = {"title": f"Training on {arguments.data}, {place}", "data": arguments.data, "command": " ".join(words)}
    about |= {"schedule": arguments.schedule} if arguments.schedule else {}
    return about | {name: importlib.metadata.version(name) for name in ("numba", "distributed", "plotly")}
