"""Rows of tests made from the op table: each sample of each op, and what of it can be differentiated."""

import numpy as np
import pytest

import lab
from lab.ops import Composite, Op, records


class Joined(Composite):
    """A function that returns several tensors, as one that returns their entries in a row."""

    def __init__(self, record):
        for slot in Composite.__slots__:
            setattr(self, slot, getattr(record, slot))
        self.reference = lambda *xs, **params: _joined(record.reference(*xs, **params))

    def __call__(self, *operands, **params):
        return _joined(super().__call__(*operands, **params))


def _joined(parts):
    return lab.concatenate([lab.ops.cast(lab.ops.reshape(p), dtype=parts[0].dtype) for p in parts])


def _returns_several(record):
    if not isinstance(record, Composite):
        return False
    sample = record.samples[0]
    return isinstance(record(*sample.draw(), **sample.params), list | tuple)


RECORDS = tuple(Joined(record) if _returns_several(record) else record for record in records())
SAMPLED = [pytest.param(op, sample, id=f"{op.name}-{i}") for op in RECORDS for i, sample in enumerate(op.samples)]


def smooth_operands(op, sample):
    """Numbers of the operands by which the sample is differentiated."""
    if sample.differentiable is not None:
        return list(sample.differentiable)
    floats = [i for i, x in enumerate(sample.draw()) if x.dtype.kind == "f"]
    return [i for i in floats if isinstance(op, Composite) or op.rule(i) is not None]


SMOOTH = [case for case in SAMPLED if smooth_operands(*case.values)]
OF_RULES = [case for case in SMOOTH if isinstance(case.values[0], Op)]
"""Those that have rules of their own."""


class Case:
    """A sample drawn: `f` is the op as a function of the operands that are differentiated, at `xs`."""

    def __init__(self, op, sample, seed=0, dtype="float64"):
        self.op, self.params = op, dict(sample.params)
        self.all = sample.draw(seed, dtype)
        self.chosen = smooth_operands(op, sample)
        self.xs = tuple(self.all[i] for i in self.chosen)
        self.rng = np.random.default_rng(seed + 100)
        plain = op.forward if isinstance(op, Op) else op
        self.out = np.asarray(plain(*self.all, **self.given()))

    def given(self):
        return {**self.op.defaults, **{name: make() for name, make in self.op.fixed.items()}, **self.params}

    def f(self, *xs):
        full = list(self.all)
        for i, x in zip(self.chosen, xs, strict=True):
            full[i] = x
        return self.op(*full, **self.params)

    def directions(self):
        return tuple(np.asarray(self.rng.normal(size=x.shape), x.dtype) for x in self.xs)

    def cotangent(self):
        return np.asarray(self.rng.normal(size=self.out.shape), self.out.dtype)


def dot(xs, ys):
    """Inner product of two tuples of arrays."""
    return sum(np.sum(np.asarray(x, np.float64) * np.asarray(y, np.float64)) for x, y in zip(xs, ys, strict=True))
