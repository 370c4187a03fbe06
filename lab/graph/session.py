"""Sessions: they run parts of a graph that was built before, and keep its variables between the runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from lab import tree
from lab.autograd.interpreter import Tracer
from lab.autograd.plain import operand
from lab.autograd.tensor import Tensor, wrap
from lab.errors import ArgumentError, DTypeError, GraphError, ShapeError
from lab.graph.building import Assign, Building
from lab.graph.executors import executor_of
from lab.graph.ir import Graph
from lab.graph.make import Place


class Plan(NamedTuple):
    """What is kept of the first run of some fetches."""

    graph: Graph
    replay: Callable[[Any], list[Any]]
    assigned: tuple[str, ...]
    """For each fetch the variable that it writes, or ""."""


class Session:
    """Runs a graph; its variables are its own, so two sessions of one graph do not disturb each other.

    Args:
        graph: what `with lab.Graph() as g:` built.
        executor: what runs it, as of `lab.jit`: "interpreted", "compiled" or "parallel".

    Attributes:
        values: the arrays of the variables, by name.
        plans: the graphs that were cut so far, by their fetches.

    Example:
        >>> import lab
        >>> with lab.Graph() as g:
        ...     x = lab.placeholder((), "float64", name="x")
        ...     w = lab.variable(3.0, name="w")
        ...     loss = (w * x - 1.0) ** 2
        ...     train = lab.assign(w, w - 0.25 * lab.gradients(loss, [w])[0])
        >>> with lab.Session(g) as s:
        ...     s.run([loss, train], feed={x: 1.0})
        ...     s.run(loss, feed={x: 1.0})
        [tensor(4.), tensor(2.)]
        tensor(1.)
    """

    def __init__(self, graph: Building, *, executor: str = "interpreted") -> None:
        if not isinstance(graph, Building):
            raise ArgumentError(
                "a Session runs a graph that was built in a block",
                given=type(graph).__name__,
                hint="with lab.Graph() as g: ..., then lab.Session(g); a Graph value is run by its function",
            )
        self.graph, self._execute = graph, executor_of(executor)
        self.values: dict[str, Any] = {}
        self.plans: dict[Any, Plan] = {}
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, why: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed = True
        self.values.clear()
        self.plans.clear()

    def run(self, fetches: Any, feed: Mapping[Any, Any] | None = None) -> Any:
        """The values of what is fetched, in its container; then the assignments among them are done.

        Args:
            fetches: a value or an assignment of the graph, or a container of them.
            feed: the value of each placeholder that they need; by the placeholder, or by its name.

        Raises:
            ArgumentError: a fetch of another graph, a feed that is missing or unknown.
            ShapeError, DTypeError: a feed that is not like its placeholder.
        """
        if self._closed:
            raise GraphError("the session is closed", given="run after its block", hint="a new one: lab.Session(g)")
        leaves, structure = tree.flatten(fetches)
        plan = self._plan(leaves)
        outs = plan.replay(self._arguments(plan.graph, self._fed(feed or {})))
        new = {n: np.array(out.numpy()) for n, out in zip(plan.assigned, outs, strict=True) if n}
        self.values.update(new)
        return tree.unflatten(structure, [wrap(np.array(o.value)) if o.node is None else o for o in outs])

    def _plan(self, leaves: list[Any]) -> Plan:
        """The graph of these fetches, cut at their first run."""
        atoms = tuple(map(self.graph.atom, leaves))
        assigned = tuple(self._written(f) for f in leaves)
        written = [n for n in assigned if n]
        if len(set(written)) < len(written):
            raise ArgumentError(
                "a run assigns to a variable once", given=", ".join(written), hint="two runs, or one assignment"
            )
        key = atoms, assigned
        if key not in self.plans:
            graph = self.graph.graph(leaves)
            self.plans[key] = Plan(graph, self._execute(graph), assigned)
        return self.plans[key]

    def _written(self, fetch: Any) -> str:
        if not isinstance(fetch, Assign):
            return ""
        return next(name for name, v in self.graph.variables.items() if v is fetch.variable)

    def _fed(self, feed: Mapping[Any, Any]) -> dict[int, Tensor]:
        """The fed values by the number of their variable."""
        known = self.graph.placeholders
        names = {id(t): name for name, t in known.items()}
        fed = {}
        for key, value in feed.items():
            name = key if isinstance(key, str) else names.get(id(key), "")
            if name not in known:
                raise ArgumentError(
                    "only placeholders of the graph are fed",
                    given=repr(key)[:60],
                    hint=f"this graph has {', '.join(known) or 'none'}",
                )
            fed[known[name].extra.number] = _like(value, known[name], name)
        return fed

    def _arguments(self, graph: Graph, fed: dict[int, Tensor]) -> list[Any]:
        """A value for each input of a graph that was cut."""
        starts = self.graph.starts
        own = {t.extra.number: self.values.get(n, starts[n]) for n, t in self.graph.variables.items()}
        names = {t.extra.number: name for name, t in self.graph.placeholders.items()}
        args: list[Any] = []
        for v in graph.inputs[: len(graph.inputs) - len(graph.captured)]:
            if v.number in own:
                args.append(wrap(own[v.number]))
            elif v.number in fed:
                args.append(fed[v.number])
            else:
                raise ArgumentError(
                    "a placeholder that the fetches need was not fed",
                    given=f"nothing for {names[v.number]}, {v.spec.dtype} {v.spec.shape}",
                    hint=f"s.run(..., feed={{{names[v.number]}: array}})",
                )
        return [*args, *graph.captured]


def _like(value: Any, like: Tracer, name: str) -> Tensor:
    """A fed value as a tensor of the placeholder's kind; numbers and lists of Python take its dtype where they can."""
    if isinstance(value, Tensor):
        value = value.numpy()
    typed = hasattr(value, "dtype")
    array = operand(_FEED, value) if typed else np.asarray(operand(_FEED, value))
    if tuple(array.shape) != like.shape:
        raise ShapeError(
            f"what is fed to {name} has another shape",
            given=f"{tuple(array.shape)} for {like.shape}",
            hint="batches of the size that the graph was built for",
        )
    if array.dtype != like.dtype:
        if typed or not np.can_cast(array.dtype, like.dtype, "same_kind"):
            raise DTypeError(
                f"what is fed to {name} has another dtype",
                given=f"{array.dtype} for {like.dtype}",
                hint=f'array.astype("{like.dtype}")',
            )
        array = array.astype(like.dtype)
    return wrap(array)


_FEED: Any = Place("feed")
