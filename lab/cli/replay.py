"""`replay`: the report of a training from its recording, byte for byte the one that `train` wrote."""

from __future__ import annotations

import argparse

from lab.cli import outputs
from lab.errors import RecordingError
from lab.events import Recording, RunFinished, RunStarted, StepFinished
from lab.events.loading import SALVAGE_HINT


def replay(arguments: argparse.Namespace) -> int:
    """Make the page; 1 if it cannot be written."""
    outputs.require_writable(arguments.report, "report", outputs.REPORT_ROOM)
    try:
        recording = Recording.load(arguments.recording, salvage=arguments.salvage)
    except RecordingError as why:
        if why.hint != SALVAGE_HINT:
            raise
        hint = "the same command with --salvage makes the page of the part before the damage"
        raise RecordingError(why.problem, given=why.given, hint=hint) from why
    print(repr(recording))
    started, finished = recording.columns(RunStarted), recording.columns(RunFinished)
    if unended := set(started["name"]) - set(finished["name"]):
        steps = recording.columns(StepFinished)["step"]
        last = f"its last step here is {steps[-1]} of {started['n_steps'][-1]}" if len(steps) else "no step is here"
        print(f"The run {min(unended)!r} had not ended when this was written: {last}")
    return int(not outputs.write(recording, report=arguments.report))
