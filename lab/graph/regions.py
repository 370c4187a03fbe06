"""Ops that hold graphs: a branch, two loops, and a part of a graph that shall run as one.

Each has a record like an op of the table, returns a tuple, and means: run the graphs inside. Applied to tensors it runs
them op by op, so that a tape, a tangent or a batch axis goes through them as through any code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from lab.autograd.interpreter import newest
from lab.errors import GraphError
from lab.graph.execute import run, run_arrays
from lab.graph.ir import Graph
from lab.graph.make import Trace
from lab.ops import concatenate, expand_dims, getitem
from lab.ops.primitive import Op
from lab.shapes import Spec

REGIONS: dict[str, Region] = {}
"""Every op that holds graphs, by name."""

Runner = Callable[[Graph, Sequence[Any]], list[Any]]
"""How the graphs inside are run: by ops on any values, or by bare forwards on arrays."""


class Region(Op):
    """One op that holds graphs.

    Attributes:
        graphs: names of the parameters that are graphs.
        follow: `follow(run, args, **params) -> outs`: what it does, with a way to run the graphs inside.
        fit: `fit(specs, **params) -> Specs of the outs`; raises where the graphs inside do not fit the operands.
        elsewhere: what applying it means where its operands are tracers that hide what must be known; set by the
            room of transforms, which can differentiate and map what is not known yet.
    """

    __slots__ = ("elsewhere", "fit", "follow", "graphs")
    several: ClassVar[bool] = True

    def __init__(
        self,
        name: str,
        graphs: tuple[str, ...],
        follow: Callable[..., list[Any]],
        fit: Callable[..., tuple[Spec, ...]],
        *,
        doc: str,
        defaults: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(
            name,
            ("*xs",),
            self._forward,
            doc=doc,
            defaults={**dict.fromkeys(graphs), **(defaults or {})},
            listed=False,
        )
        self.graphs, self.follow, self.fit = graphs, follow, fit
        self.elsewhere: Callable[..., Any] | None = None
        self.apply = self._apply
        self.shape = self._shape  # type: ignore[assignment]
        REGIONS[name] = self

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _find, (self.name,)

    def _forward(self, *arrays: Any, **params: Any) -> tuple[Any, ...]:
        return self.computed(run_arrays, arrays, params)

    def computed(self, run: Runner, arrays: Sequence[Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
        """The results for arrays, with a way to run the graphs inside on arrays."""
        outs, taken = [], {id(a) for a in arrays}
        for out in self.follow(run, arrays, **params):
            own = out.base is None and out.flags.writeable and id(out) not in taken
            outs.append(out if own else np.array(out))  # as of every op: no operand, no constant, no view of either
            taken.add(id(outs[-1]))
        return tuple(outs)

    def _shape(self, *specs: Any, **params: Any) -> tuple[Spec, ...]:
        return self.fit([s if isinstance(s, Spec) else _spec(s) for s in specs], **params)

    def _apply(self, *args: Any, **given: Any) -> tuple[Any, ...]:
        params = {**self.defaults, **given}
        top = newest(args)
        if isinstance(top, Trace):
            return tuple(top.apply(self, args, params))
        if top is not None and self.elsewhere is not None:
            return tuple(self.elsewhere(self, top, args, params))
        return tuple(self.follow(run, args, **params))


def _find(name: str) -> Region:
    return REGIONS[name]


def _spec(value: Any) -> Spec:
    array = np.asarray(value)
    return Spec(array.shape, array.dtype)


def region(name: str, *graphs: str, fit: Callable[..., tuple[Spec, ...]], **defaults: Any) -> Callable[..., Region]:
    """Make a region from the function that follows it."""

    def make(follow: Callable[..., list[Any]]) -> Region:
        return Region(name, graphs, follow, fit, doc=follow.__doc__ or "", defaults=defaults)

    return make


def specs_of(atoms: Sequence[Any]) -> tuple[Spec, ...]:
    """Shape and dtype of each of some variables and constants."""
    return tuple(a.spec for a in atoms)


def _accepts(name: str, graph: Graph, specs: Sequence[Spec], what: str) -> None:
    """Refuse operands that are not what a graph inside takes."""
    own = specs_of(graph.inputs)
    if own != tuple(specs):
        raise GraphError(
            f"{name}: {what} does not take the operands",
            given=f"{_words(specs)} for {_words(own)}",
            hint="all graphs of a branch or a loop take the same values",
        )


def _words(specs: Sequence[Spec]) -> str:
    return ", ".join(f"{s.dtype}{list(s.shape)}" for s in specs) or "nothing"


def _is_one_bool(name: str, spec: Spec, what: str) -> None:
    if spec != Spec((), np.dtype(bool)):
        raise GraphError(
            f"{name}: {what} is not one bool", given=_words([spec]), hint="a comparison of numbers, as x > 0.0"
        )


# --- a branch -----------------------------------------------------------------------------------------------------


def _cond_fit(specs: Sequence[Spec], *, then: Graph, otherwise: Graph) -> tuple[Spec, ...]:
    if not specs:
        raise GraphError("cond has no condition", given="no operands", hint="cond(condition, *operands)")
    _is_one_bool("cond", specs[0], "the condition")
    _accepts("cond", then, specs[1:], "then")
    _accepts("cond", otherwise, specs[1:], "otherwise")
    outs, others = specs_of(then.outputs), specs_of(otherwise.outputs)
    if outs != others:
        raise GraphError(
            "cond: both branches must give the same shapes and dtypes",
            given=f"{_words(outs)} and {_words(others)}",
            hint="cast or broadcast one of them",
        )
    return outs


@region("cond", "then", "otherwise", fit=_cond_fit)
def COND(run: Runner, args: Sequence[Any], *, then: Graph, otherwise: Graph) -> list[Any]:  # noqa: N802 - an op
    """One of two graphs, by a condition that is known when it runs: `cond(condition, *operands)`."""
    return run(then if bool(args[0]) else otherwise, args[1:])


# --- loops --------------------------------------------------------------------------------------------------------


def _keeps(name: str, body: Graph, carry: Sequence[Spec]) -> None:
    """Refuse a body that gives back other values than it took."""
    outs = specs_of(body.outputs)[: len(carry)]
    if outs != tuple(carry):
        raise GraphError(
            f"{name}: a turn must give back values of the shapes and dtypes that it took",
            given=f"{_words(outs)} for {_words(carry)}",
            hint="start with the dtype that the turn makes, as 0.0 and not 0",
        )


def _while_fit(specs: Sequence[Spec], *, test: Graph, body: Graph, n_fixed: int) -> tuple[Spec, ...]:
    _accepts("while_loop", test, specs, "the test")
    _accepts("while_loop", body, specs, "the body")
    if len(test.outputs) != 1:
        given = f"{len(test.outputs)} results"
        raise GraphError("while_loop: the test gives one bool", given=given, hint="a comparison, as x > 0.0")
    _is_one_bool("while_loop", test.outputs[0].spec, "what the test gives")
    carry = tuple(specs[n_fixed:])
    _keeps("while_loop", body, carry)
    return carry


@region("while_loop", "test", "body", fit=_while_fit, n_fixed=0)
def WHILE(run: Runner, args: Sequence[Any], *, test: Graph, body: Graph, n_fixed: int) -> list[Any]:  # noqa: N802
    """Turns of `body` as long as `test` holds; the first `n_fixed` operands are the same in every turn."""
    fixed, carry = list(args[:n_fixed]), list(args[n_fixed:])
    while bool(run(test, [*fixed, *carry])[0]):
        carry = run(body, [*fixed, *carry])
    return carry


def _scan_fit(
    specs: Sequence[Spec], *, body: Graph, n_fixed: int, n_carry: int, length: int, reverse: bool
) -> tuple[Spec, ...]:
    n = n_fixed + n_carry
    rows = specs[n:]
    if any(s.shape[:1] != (length,) for s in rows):
        raise GraphError(
            "scan: what is scanned has another length",
            given=f"{_words(rows)} for {length} turns",
            hint="one row for each turn, along axis 0",
        )
    _accepts("scan", body, [*specs[:n], *(Spec(s.shape[1:], s.dtype) for s in rows)], "the body")
    _keeps("scan", body, specs[n_fixed:n])
    outs = specs_of(body.outputs)
    return (*outs[:n_carry], *(Spec((length, *s.shape), s.dtype) for s in outs[n_carry:]))


@region("scan", "body", fit=_scan_fit, n_fixed=0, n_carry=0, length=0, reverse=False)
def SCAN(  # noqa: N802 - an op
    run: Runner, args: Sequence[Any], *, body: Graph, n_fixed: int, n_carry: int, length: int, reverse: bool
) -> list[Any]:
    """One turn of `body` for each row of what is scanned: values are carried along, and a row comes out of each turn.

    Operands are the fixed ones, those carried, those scanned; results those carried, then the rows.
    """
    n = n_fixed + n_carry
    fixed, carry, rows = list(args[:n_fixed]), list(args[n_fixed:n]), args[n:]
    made: list[list[Any]] = [[] for _ in body.outputs[n_carry:]]
    for i in reversed(range(length)) if reverse else range(length):
        outs = run(body, [*fixed, *carry, *(_row(x, i) for x in rows)])
        carry = outs[:n_carry]
        for list_, out in zip(made, outs[n_carry:], strict=True):
            list_.append(out)
    pairs = zip(made, body.outputs[n_carry:], strict=True)
    return [*carry, *(_stacked(rows[::-1] if reverse else rows, a.spec) for rows, a in pairs)]


def _row(x: Any, i: int) -> Any:
    return np.asarray(x[i]) if type(x) is np.ndarray else getitem(x, index=i)  # half the time of an op


def _stacked(rows: list[Any], spec: Spec) -> Any:
    if not rows:
        return np.zeros((0, *spec.shape), spec.dtype)
    if all(type(row) is np.ndarray for row in rows):
        return np.stack(rows)
    return concatenate(*(expand_dims(row, axis=0) for row in rows), axis=0)


# --- a part that runs as one --------------------------------------------------------------------------------------


def _fused_fit(specs: Sequence[Spec], *, body: Graph, kind: str) -> tuple[Spec, ...]:
    _accepts("fused", body, specs, kind or "the body")
    return specs_of(body.outputs)


@region("fused", "body", fit=_fused_fit, kind="")
def FUSED(run: Runner, args: Sequence[Any], *, body: Graph, kind: str) -> list[Any]:  # noqa: N802 - an op
    """Equations that a pass put together, to be compiled as one kernel; `kind` says by which pattern."""
    return run(body, args)
