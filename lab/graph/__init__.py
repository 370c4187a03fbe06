"""Graphs as values: the representation, how a trace makes one, how it is read and checked, how it runs.

There are three ways to one: tracing a function (`make_graph`), writing it down first (`with Graph()`, `Session`), and
reading the source of a function (`script`).
"""

from lab.graph.building import assign, placeholder, variable
from lab.graph.gradients import gradients
from lab.graph.ir import Equation, Graph, Literal, Var
from lab.graph.make import make_graph
from lab.graph.parsing import parse
from lab.graph.script import script
from lab.graph.serial import load, save
from lab.graph.session import Session
from lab.graph.verify import verify

__all__ = [
    "Equation", "Graph", "Literal", "Session", "Var", "assign", "gradients", "load", "make_graph", "parse",
    "placeholder", "save", "script", "variable", "verify",
]  # fmt: skip
