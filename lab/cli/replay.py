"""`replay`: the report of a training from its recording, byte for byte the one that `train` wrote."""

from __future__ import annotations

import argparse

from lab.cli import outputs
from lab.cli.reading import read
from lab.events import RunFinished, RunStarted, StepFinished


def replay(arguments: argparse.Namespace) -> int:
    """Make the page; 1 if it cannot be written."""
    outputs.require_writable(arguments.report, "report", outputs.REPORT_ROOM)
    recording = read(arguments.recording, salvage=arguments.salvage, does="makes the page of")
    print(repr(recording))
    started, finished = recording.columns(RunStarted), recording.columns(RunFinished)
    if unended := set(started["name"]) - set(finished["name"]):
        steps = recording.columns(StepFinished)["step"]
        last = f"its last step here is {steps[-1]} of {started['n_steps'][-1]}" if len(steps) else "no step is here"
        print(f"The run {min(unended)!r} had not ended when this was written: {last}")
    return int(not outputs.write(recording, report=arguments.report))
