"""Optimisers: update rules over flat vectors of parameters, schedules of learning rates, gradients kept in bounds."""

from lab.optim.clipping import clip_by_global_norm, clip_by_value
from lab.optim.flat import FlatParameters
from lab.optim.optimizer import Optimizer
from lab.optim.rules import SGD, Adagrad, Adam, AdamW, RMSprop
from lab.optim.schedules import Constant, Cosine, Exponential, OneCycle, Schedule, StepDecay, Warmup

__all__ = [
    "SGD",
    "Adagrad",
    "Adam",
    "AdamW",
    "Constant",
    "Cosine",
    "Exponential",
    "FlatParameters",
    "OneCycle",
    "Optimizer",
    "RMSprop",
    "Schedule",
    "StepDecay",
    "Warmup",
    "clip_by_global_norm",
    "clip_by_value",
]
