"""Passes: functions from a Graph to a Graph that computes the same, one file each."""

from lab.graph.passes import (
    algebra,
    decomposition,
    folding,
    fusion,
    memory,
    ordering,
    products,
    pruning,
    rematerialization,
    shapes,
    sharing,
)
from lab.graph.passes.pipeline import ORDER, PASSES, Stage, graph_pass, optimized, stages

__all__ = [
    "ORDER", "PASSES", "Stage", "algebra", "decomposition", "folding", "fusion", "graph_pass", "memory",
    "optimized", "ordering", "products", "pruning", "rematerialization", "shapes", "sharing", "stages",
]  # fmt: skip
