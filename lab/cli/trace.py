"""`trace`: a recording as a file that ui.perfetto.dev and chrome://tracing open."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.cli import outputs
from lab.cli.reading import read
from lab.interop import perfetto

ROOM_AN_EVENT = 200
"""Bytes of a trace for each event, about."""


def trace(arguments: argparse.Namespace) -> int:
    """Write it; 1 if it cannot be written."""
    recording = read(arguments.recording, salvage=arguments.salvage, does="writes the trace of")
    packed = 10 if arguments.out.name.lower().endswith(".gz") else 1
    outputs.require_writable(arguments.out, "trace", ROOM_AN_EVENT * len(recording) // packed)
    print(repr(recording))

    def save(path: Path) -> None:
        perfetto.save(recording, path)

    return int(not outputs.tried("trace", arguments.out, save))
