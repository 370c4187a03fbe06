"""Optimisers: update rules over flat vectors of parameters."""

from lab.optim.flat import FlatParameters
from lab.optim.optimizer import Optimizer
from lab.optim.rules import SGD, Adam, AdamW

__all__ = ["SGD", "Adam", "AdamW", "FlatParameters", "Optimizer"]
