"""What a transform does at a branch or a loop whose way is not known yet: it makes new ones, one level below.

Where the way is known, the ops of the branch that is taken are applied one by one, and nothing of this is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.autograd.batch import Batch
from lab.autograd.forward import Forward
from lab.autograd.interpreter import Interpreter
from lab.autograd.reverse import Reverse
from lab.errors import TransformError
from lab.graph.execute import run
from lab.graph.regions import COND, SCAN, WHILE, Region
from lab.transforms import crossing_batch, crossing_forward, crossing_reverse
from lab.transforms.unknown import hides, is_mapped, turns

Rule = Callable[[Any, Sequence[Any], dict[str, Any]], list[Any]]

RULES: dict[tuple[str, type[Interpreter]], Rule] = {
    ("cond", Forward): crossing_forward.cond,
    ("while_loop", Forward): crossing_forward.while_loop,
    ("scan", Forward): crossing_forward.scan,
    ("cond", Reverse): crossing_reverse.cond,
    ("while_loop", Reverse): crossing_reverse.while_loop,
    ("scan", Reverse): crossing_reverse.scan,
    ("cond", Batch): crossing_batch.cond,
    ("while_loop", Batch): crossing_batch.while_loop,
    ("scan", Batch): crossing_batch.scan,
}
"""For each region and kind of transform: `rule(top, args, params) -> results`."""


def elsewhere(op: Region, top: Interpreter, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The results of a region whose newest operands are values of `top`.

    Raises:
        TransformError: a transform that has no rule for it.
    """
    unknown = hides(args[0]) if op is COND else any(map(hides, args))
    if not unknown:
        return by_ops(op, args, params)
    rule = next((RULES[op.name, kind] for kind in type(top).__mro__ if (op.name, kind) in RULES), None)
    if rule is None:
        raise TransformError(
            f"{op.name} cannot be written into a graph under this transform",
            given=f"a value of {top.word}",
            hint="grad, vjp, jvp, vmap and what is made of them",
        )
    return rule(top, args, params)


def by_ops(op: Region, args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    """The ops of the way that is taken, of both where the members of a vmap go different ways."""
    if op is COND:
        then, otherwise = params["then"], params["otherwise"]
        if is_mapped(args[0]):
            return crossing_batch.both(args[0], then, otherwise, args[1:])
        return run(then if bool(args[0]) else otherwise, args[1:])
    if op is WHILE:
        test, body, n = params["test"], params["body"], params["n_fixed"]
        fixed = list(args[:n])
        return turns(lambda c: run(test, [*fixed, *c])[0], lambda c: run(body, [*fixed, *c]), list(args[n:]))
    return op.follow(run, args, **params)


for _region in (COND, WHILE, SCAN):
    _region.elsewhere = elsewhere
