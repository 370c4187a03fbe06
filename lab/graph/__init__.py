"""Graphs as values: the representation, how a trace makes one, how it is read and checked, how it runs."""

from lab.graph.ir import Equation, Graph, Literal, Var
from lab.graph.make import make_graph
from lab.graph.parsing import parse
from lab.graph.serial import load, save
from lab.graph.verify import verify

__all__ = ["Equation", "Graph", "Literal", "Var", "load", "make_graph", "parse", "save", "verify"]
