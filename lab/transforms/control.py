"""cond, while_loop, scan, fori_loop: branches and loops that a graph can hold, in JAX's words.

With values that are known they are Python's if, while and for, op by op. Inside a traced function each is one equation
that holds the graphs of its parts.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from lab import tree
from lab.autograd.tensor import Tensor
from lab.errors import ArgumentError
from lab.graph.make import TRACING
from lab.ops import getitem
from lab.ops.shape import stack
from lab.transforms import written
from lab.transforms.arguments import function, returned, taken
from lab.transforms.carrying import condition, gives_way, leaves_like, n_rows, raw, settled, spec_of, tensors
from lab.transforms.unknown import chosen, hides, is_mapped, turns


def cond(pred: Any, then: Callable[..., Any], otherwise: Callable[..., Any], *operands: Any) -> Any:
    """`then(*operands)` if `pred` holds, else `otherwise(*operands)`; one of them runs, also where a graph decides.

    Inside `jit` and `make_graph` both are traced into one equation, and must give the same containers, shapes and
    dtypes. Under a `vmap` whose members differ both run, and each member's values are chosen. Derivatives go through
    the branch that is taken; what the branches use from outside is differentiated, too.

    Args:
        pred: one truth; a number counts as in Python.

    Raises:
        ShapeError: several conditions; branches of different shapes.
        ArgumentError, DTypeError: branches of different containers or dtypes.

    Example:
        >>> import lab
        >>> f = lab.jit(lambda x: lab.cond(x > 0.0, lambda x: 2.0 * x, lambda x: -x, x))
        >>> f(3.0), f(-3.0), lab.jit(lab.grad(f))(-3.0)
        (tensor(6.), tensor(3.), tensor(-1.))
    """
    function(then, "cond")
    function(otherwise, "cond")
    pred = condition(pred, "cond")
    flat, structure = tree.flatten(operands)
    flat = [raw(x, "cond") for x in flat]
    if hides(pred):
        return written.branch(pred, then, otherwise, flat, structure)
    shapes: list[tree.Structure] = []

    def run(branch: Callable[..., Any]) -> list[Any]:
        outs, out_structure = tree.flatten(branch(*tree.unflatten(structure, tensors(flat))))
        shapes.append(out_structure)
        return [raw(o, "cond") for o in outs]

    if is_mapped(pred):
        yes, no = run(then), run(otherwise)
        written.same_containers(shapes[0], shapes[1], "cond: both branches")
        for a, b, name in zip(yes, no, written.names_of(shapes[0]), strict=True):
            written.agreed(spec_of(a), spec_of(b), (gives_way(a), gives_way(b)), name)
        outs = chosen(pred, yes, no)
    else:
        outs = run(then if bool(pred) else otherwise)
    return tree.unflatten(shapes[0], [returned(o, "cond") for o in outs])


def while_loop(
    test: Callable[[Any], Any], body: Callable[[Any], Any], init: Any, *, max_steps: int | None = None
) -> Any:
    """What a carry becomes by turns of `body(carry) -> carry`, as long as `test(carry)` holds.

    With `max_steps` it stops after so many turns without an error, even where `test` still holds.

    Every turn must keep containers, shapes and dtypes. Python numbers in init become arrays of the dtype that the body
    makes (without a turn they keep their own, where nothing is traced). Under a `vmap` whose members differ the loop
    goes on while any of them does, and those that are done keep their values.

    A graph does not know how many turns there will be, so it keeps none of the carries: its reverse mode computes the
    carry of each turn again from the start, n turns in n**2 / 2. With `max_steps` it keeps them, in arrays of that many
    rows; a loop that is longer stops there, whoever runs it. Forward mode needs no carries. Integers have no gradient.

    Raises:
        ShapeError, DTypeError, ArgumentError: a turn changes the carry; the error names the leaf.

    Example:
        >>> import lab
        >>> lab.while_loop(lambda x: x < 100.0, lambda x: x * x, 3.0)
        tensor(6561.)
        >>> f = lab.jit(lambda x: lab.while_loop(lambda y: y < 100.0, lambda y: y * x, x))
        >>> f(5.0), lab.jit(lab.grad(f))(5.0)
        (tensor(125.), tensor(75.))
    """
    function(test, "while_loop")
    function(body, "while_loop")
    most = None if max_steps is None else count(max_steps, "max_steps")
    flat, structure = tree.flatten(init)
    flat, names = [raw(x, "while_loop") for x in flat], tree.paths(init)

    def go(leaves: list[Any]) -> Any:
        return condition(test(tree.unflatten(structure, tensors(leaves))), "while_loop")

    def turn(leaves: list[Any]) -> list[Any]:
        return leaves_like(body(tree.unflatten(structure, tensors(leaves))), structure, names, "while_loop")

    if not (TRACING.get() or any(map(hides, flat))):
        carry = turns(go, lambda leaves: settled(turn, leaves, names, "while_loop"), flat, most)
    elif most is None:
        carry = written.loop(go, turn, flat, names)
    else:
        carry = _bounded(go, turn, flat, names, most)
    return tree.unflatten(structure, [returned(x, "while_loop") for x in carry])


def _bounded(
    go: Callable[[list[Any]], Any],
    turn: Callable[[list[Any]], list[Any]],
    flat: list[Any],
    names: list[str],
    most: int,
) -> list[Any]:
    """At most so many turns, written as a scan: so its carries are kept, and it is differentiated as one."""
    if not most:
        return flat
    flat = written.firm_carry(turn, flat, names, "while_loop")

    def onward(carry: list[Any]) -> tuple[Any, list[Any]]:
        after = settled(turn, carry, names, "while_loop")
        return go(after), after

    def step(leaves: list[Any], _: list[Any]) -> tuple[list[Any], list[Any]]:
        going, after = cond(leaves[0], onward, lambda carry: (np.asarray(False), carry), leaves[1:])
        return [going, *after], []

    carry, _ = written.scan(step, [go(flat), *flat], [], ["", *names], most, reverse=False, what="while_loop")
    return carry[1:]


def scan(
    body: Callable[[Any, Any], Any], init: Any, xs: Any, length: int | None = None, reverse: bool = False
) -> tuple[Any, Any]:
    """(the last carry, a row for each turn) of turns `body(carry, x) -> (carry, y)` over the rows of xs.

    Rows are along axis 0 of every leaf; `xs=None` with `length` goes over nothing. Every turn must keep the containers,
    shapes and dtypes of the carry; Python numbers in init become arrays of the dtype that the body makes. In a graph
    reverse mode keeps the carry of each turn and runs the turn again from there.

    Args:
        reverse: from the last row to the first; row i of the result still belongs to row i of xs.

    Raises:
        ShapeError, DTypeError, ArgumentError: a turn changes the carry (the error names the leaf), xs of different
            lengths, a body that returns no pair.

    Example:
        >>> import lab
        >>> lab.scan(lambda total, x: (total + x, total), 0.0, lab.tensor([1.0, 2.0, 3.0]))
        (tensor(6.), tensor([0., 1., 3.]))
    """
    function(body, "scan")
    flat, structure = tree.flatten(init)
    rows, row_structure = tree.flatten(xs)
    flat, names = [raw(x, "scan") for x in flat], tree.paths(init)
    rows = [x if isinstance(x, Tensor) else taken(x, "scan").value for x in rows]
    n = n_rows(rows, tree.paths(xs), None if length is None else count(length, "length"))
    made: list[tree.Structure] = []

    def turn(leaves: list[Any], row: list[Any]) -> tuple[list[Any], list[Any]]:
        out = body(tree.unflatten(structure, tensors(leaves)), tree.unflatten(row_structure, tensors(row)))
        if not isinstance(out, tuple) or len(out) != 2:
            raise ArgumentError(
                "scan: a turn must return a pair", given=type(out).__name__, hint="return carry, y; y may be None"
            )
        outs, found = tree.flatten(out[1])
        written.same_containers(made[-1] if made else found, found, "scan: every turn")
        made[:] = [found]
        return leaves_like(out[0], structure, names, "scan"), [raw(y, "scan") for y in outs]

    if n and not (TRACING.get() or any(map(hides, [*flat, *rows]))):
        carry, ys = _in_turn(turn, flat, rows, names, n, reverse)
    else:
        carry, ys = written.scan(turn, flat, rows, names, n, reverse=reverse, what="scan")
    results = [returned(x, "scan") for x in (*carry, *ys)]
    return tree.unflatten(structure, results[: len(flat)]), tree.unflatten(made[-1], results[len(flat) :])


def _in_turn(
    turn: Callable[[list[Any], list[Any]], tuple[list[Any], list[Any]]],
    carry: list[Any],
    rows: list[Any],
    names: list[str],
    n: int,
    reverse: bool,
) -> tuple[list[Any], list[Any]]:
    """A scan whose turns are plain code."""
    made: list[list[Any]] = []

    def step(leaves: list[Any], row: list[Any]) -> list[Any]:
        after, ys = turn(leaves, row)
        made.append(ys)
        return after

    for i in reversed(range(n)) if reverse else range(n):
        row = [getitem(x, index=i) for x in rows]
        carry = settled(lambda leaves, row=row: step(leaves, row), carry, names, "scan")  # type: ignore[misc]
    return carry, [stack(list(ys)) for ys in zip(*(reversed(made) if reverse else made), strict=True)]


def fori_loop(lower: Any, upper: Any, body: Callable[[Any, Any], Any], init: Any) -> Any:
    """What a carry becomes by `body(i, carry) -> carry` for i from `lower` up to `upper`, which is left out.

    With Python integers it is a scan, and keeps its carries for reverse mode; else a `while_loop`.

    Example:
        >>> import lab
        >>> lab.fori_loop(0, 4, lambda i, total: total + i, 0)
        tensor(6)
    """
    function(body, "fori_loop")
    if not isinstance(lower, Tensor) and not isinstance(upper, Tensor):
        try:
            numbers = np.arange(operator.index(lower), operator.index(upper))
        except TypeError:
            raise ArgumentError("fori_loop counts by whole numbers", given=f"{lower!r} to {upper!r}"[:60],
                                hint="lab.fori_loop(0, 3, body, init)") from None  # fmt: skip
        return scan(lambda carry, i: (body(i, carry), None), init, numbers)[0]
    end = while_loop(
        lambda state: state[0] < upper, lambda state: (state[0] + 1, body(state[0], state[1])), (lower, init)
    )
    return end[1]


def count(x: Any, name: str) -> int:
    """A number of turns.

    Raises:
        ArgumentError: no whole number from 0.
    """
    try:
        n = operator.index(x)
    except TypeError:
        n = -1
    if n < 0:
        raise ArgumentError(f"{name} is a number of turns", given=repr(x)[:60], hint="a whole number from 0")
    return n
