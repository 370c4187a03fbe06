"""Who strikes ranks at a named moment of their training, from within their own process, and leaves a witness.

Events come late at the launcher; so what strikes is put into the worker before, where it sees each moment come. The
witness is a line of a file, on disk before the blow: a checker first asserts that the blow fell where it should.
"""

import functools
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from lab.events import ChunkMoved, RankLost, RankStarted, Recording, StepFinished, TrainingResumed, bus
from lab.events.bus import Bus
from lab.optim import Optimizer
from lab.parallel.cluster import rank as rank_room
from lab.parallel.cluster.seats import Seat
from lab.parallel.ranks.shelves import SHELVES, Shelf
from lab.parallel.transport.door import Doorkeeper
from lab.training.snapshots import Snapshots
from lab.training.trainer import Training

PHASES = ("before rendezvous", "in rendezvous", "compute", "mid collective", "optimiser step", "keeping the state",
          "disk write", "after the last step")  # fmt: skip
KINDS = ("kill", "stop", "pause")
PAUSE_S = 2.0


class Blow(NamedTuple):
    """What is to happen to the process in which it is armed.

    Attributes:
        phase: one of PHASES, or "bystander": another process is struck while this one computes.
        kind: SIGKILL, SIGSTOP for ever, or for two seconds.
        step: of the training, where the phase is in one.
        witness: file to which a line is added.
        pid: whom it strikes; 0 for the process itself.
    """

    phase: str
    kind: str
    step: int
    witness: str
    pid: int = 0


def arm(blow):
    """Lie in wait in this process; called there by `client.run`."""
    undo = []
    struck = False

    def strike():
        nonlocal struck
        if struck:
            return
        struck = True
        for room, name, before in undo:
            setattr(room, name, before)
        pid = blow.pid or os.getpid()
        with Path(blow.witness).open("a") as file:
            file.write(json.dumps({"phase": blow.phase, "kind": blow.kind, "pid": pid,
                                   "time_ns": time.perf_counter_ns()}) + "\n")  # fmt: skip
            file.flush()
            os.fsync(file.fileno())
        if blow.kind == "pause":
            subprocess.Popen(["sh", "-c", f"sleep {PAUSE_S}; kill -CONT {pid}"], start_new_session=True)
        os.kill(pid, signal.SIGKILL if blow.kind == "kill" else signal.SIGSTOP)

    def instead(room, name, made):
        before = getattr(room, name)
        undo.append((room, name, before))
        setattr(room, name, functools.wraps(before)(made(before)))

    def first_of(room, name):
        def made(before):
            def struck_first(*args, **more):
                strike()
                return before(*args, **more)

            return struck_first

        instead(room, name, made)

    {
        "before rendezvous": lambda: first_of(rank_room, "load"),
        "in rendezvous": lambda: first_of(Doorkeeper, "gather"),
        "compute": lambda: in_step(instead, strike, blow.step),
        "bystander": lambda: in_step(instead, strike, blow.step),
        "mid collective": lambda: in_collective(instead, strike, blow.step),
        "optimiser step": lambda: in_update(instead, strike, blow.step),
        "keeping the state": lambda: in_keeping(instead, strike, blow.step),
        "disk write": lambda: on_disk(instead, strike, blow.step),
        "after the last step": lambda: first_of(Seat, "program_ends"),
    }[blow.phase]()


def in_step(instead, strike, step):
    """Before the forward of that step."""

    def made(before):
        def differentiate(training, mine):
            if training.step + 1 == step:
                strike()
            return before(training, mine)

        return differentiate

    instead(Training, "_differentiate", made)


def in_collective(instead, strike, step):
    """When the second chunk of that step has come."""
    at, n_moved = 0, 0

    def counting(before):
        def differentiate(training, mine):
            nonlocal at, n_moved
            at, n_moved = training.step + 1, 0
            return before(training, mine)

        return differentiate

    def watching(before):
        def emit_row(source, kind, *values):
            nonlocal n_moved
            before(source, kind, *values)
            n_moved += kind is ChunkMoved
            if kind is ChunkMoved and at == step and n_moved == 2:
                strike()

        return emit_row

    bus.attach(Recording(kinds=[ChunkMoved], limit=1))  # it wants to hear of each chunk as it comes, so we do, too
    instead(Training, "_differentiate", counting)
    instead(Bus, "emit_row", watching)


def in_update(instead, strike, step):
    """When the parameters have moved and nothing says so yet."""

    def made(before):
        def apply(optimizer, norm=None):
            before(optimizer, norm)
            if optimizer.n_steps == step:
                strike()

        return apply

    instead(Optimizer, "apply", made)


def in_keeping(instead, strike, step):
    """When half of the state of that step is copied."""

    class Trap(list):
        n_looks = 0

        def __iter__(self):
            self.n_looks += 1
            for i, array in enumerate(super().__iter__()):
                if self.n_looks > 1 and i == 1:
                    strike()
                yield array

    def made(before):
        def put(shelf, number, about, arrays):
            return before(shelf, number, about, Trap(arrays) if about.footing.step == step else arrays)

        return put

    instead(Shelf, "put", made)


def on_disk(instead, strike, step):
    """When a snapshot is written and not yet in its place."""
    at = 0

    def counting(before):
        def write_if_due(snapshots, training, more=None):
            nonlocal at
            at = training.step
            before(snapshots, training, more)

        return write_if_due

    def made(before):
        def fsync(handle):
            if at == step:
                strike()
            before(handle)

        return fsync

    instead(Snapshots, "write_if_due", counting)
    instead(os, "fsync", made)


def kept_runs():
    """Runs of which this process keeps states."""
    return list(SHELVES._runs)


# --- the checker -----------------------------------------------------------------------------------------------------


def witnesses(path):
    """The blows that fell."""
    return [json.loads(line) for line in Path(path).read_text().splitlines()] if Path(path).exists() else []


def check_story(recording, n_steps, n_losses):
    """What the recording of a run that outlived so many losses must say, whatever happened."""
    steps = [event.step for event in recording if isinstance(event, StepFinished)]
    assert steps == list(range(1, n_steps + 1))
    generations = [event.generation for event in recording if isinstance(event, RankStarted)]
    assert generations == sorted(generations)
    story = [event for event in recording if isinstance(event, RankLost | TrainingResumed)]
    assert [type(event) for event in story] == [RankLost, TrainingResumed] * n_losses
    resumed = [event for event in story if isinstance(event, TrainingResumed)]
    assert [event.restart for event in resumed] == list(range(1, n_losses + 1))
    begun = [event.step for event in resumed]
    assert begun == sorted(begun)
