"""Graphs as values: the representation, how a trace makes one, how it runs."""

from lab.graph.ir import Equation, Graph, Literal, Var
from lab.graph.make import make_graph

__all__ = ["Equation", "Graph", "Literal", "Var", "make_graph"]
