"""`export`: a graph that was saved, as a file of NumPy or of ONNX."""

from __future__ import annotations

import argparse
from pathlib import Path

from lab.cli import outputs
from lab.graph import load
from lab.interop import export_numpy, export_onnx
from lab.words import counted

ROOM = 3
"""A file of NumPy has its constants as text, of a third more bytes; the graph's file is packed."""


def export(arguments: argparse.Namespace) -> int:
    """Write it; 1 if it cannot be written."""
    graph = load(arguments.graph).graph
    outputs.require_writable(arguments.out, "export", ROOM * arguments.graph.stat().st_size)
    print(f"{counted(len(graph.equations), 'equation')}, {counted(len(graph.inputs) - len(graph.captured), 'input')}")

    def save(path: Path) -> None:
        if arguments.to == "numpy":
            export_numpy(graph, path)
        else:
            export_onnx(graph, path, check=True)

    return int(not outputs.tried("export", arguments.out, save))
