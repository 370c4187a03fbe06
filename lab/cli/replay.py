"""`replay`: the report of a training from its recording, byte for byte the one that `train` wrote."""

from __future__ import annotations

import argparse

from lab.cli import outputs
from lab.events import Recording


def replay(arguments: argparse.Namespace) -> int:
    """Make the page; 1 if it cannot be written."""
    outputs.require_writable(arguments.report, "report", outputs.REPORT_ROOM)
    recording = Recording.load(arguments.recording)
    print(repr(recording))
    return int(not outputs.write(recording, report=arguments.report))
