"""Passes: functions from a Graph to a Graph that computes the same, one file each."""

from lab.graph.passes import algebra, folding, products, pruning, sharing
from lab.graph.passes.pipeline import PASSES, Stage, graph_pass, optimized, stages

__all__ = [
    "PASSES", "Stage", "algebra", "folding", "graph_pass", "optimized", "products", "pruning", "sharing", "stages",
]  # fmt: skip
