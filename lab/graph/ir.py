"""A Graph is a value: typed variables and equations in order, nothing else.

It has no rules of its own: its ops are those of the op table, and its backward is a trace of the same vjp rules. What
branches and loops do stands in graphs inside their equations (`regions.py`).
"""

from __future__ import annotations

import keyword
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np

from lab.autograd.display import mimebundle
from lab.graph.values import key_of
from lab.ops.primitive import Op
from lab.shapes import Spec

T = TypeVar("T")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORDS = frozenset({"bool", "float", "graph", "inf", "int", "let", "nan", "slice", *keyword.kwlist})
"""What means something else in the text of a graph or in Python; a variable of that name has a "_" behind it."""


@dataclass(frozen=True, slots=True)
class Var:
    """A value of a graph: number, shape and dtype.

    Attributes:
        weak: a Python number, which takes the dtype of what it meets, as in NumPy.

    Example:
        >>> str(Var(0, Spec((), np.dtype(float)))), str(Var(27, Spec((), np.dtype(float))))
        ('a', 'ab')
    """

    number: int
    spec: Spec
    weak: bool = False

    def __str__(self) -> str:
        word, n = "", self.number
        while True:
            word, n = _LETTERS[n % 26] + word, n // 26 - 1
            if n < 0:
                return f"{word}_" if word in WORDS else word


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """A constant that stands in the graph itself: a number, or an array that no caller can change."""

    value: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and key_of(self.value) == key_of(other.value)

    def __hash__(self) -> int:
        return hash(key_of(self.value))

    @property
    def spec(self) -> Spec:
        """Shape and dtype, of a Python number those of its array."""
        array = np.asarray(self.value)
        return Spec(array.shape, array.dtype)

    @property
    def weak(self) -> bool:
        """Whether it is a Python number."""
        return type(self.value) is float or type(self.value) is int

    def __str__(self) -> str:
        from lab.graph.printing import atom_text

        return atom_text(self)


Atom: TypeAlias = Var | Literal


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """One op applied: `outs = op(inputs, **params)`.

    Attributes:
        outs: one variable, or several of an op that holds graphs.
        params: parameters of the op; a Graph among them is what the op runs.
        origin: "file:line" of the code that made it, "" where unknown.
        buffer: for each of `outs` the number of the buffer that a memory plan gave it; () before planning.
        sources: the variables, by number, of the graph before the pass that made this equation, which it stands for;
            () for an equation that the pass left as it was.
    """

    op: Op
    inputs: tuple[Atom, ...]
    outs: tuple[Var, ...]
    params: Mapping[str, Any]
    origin: str = ""
    buffer: tuple[int, ...] = ()
    sources: tuple[int, ...] = ()

    @property
    def out(self) -> Var:
        """Its only result."""
        (out,) = self.outs
        return out

    @property
    def graphs(self) -> Mapping[str, Graph]:
        """The graphs that it holds."""
        return {name: value for name, value in self.params.items() if isinstance(value, Graph)}

    @property
    def meets(self) -> bool:
        """Whether it, or an equation inside it, meets other ranks, who wait for it."""
        return bool(self.op.collective) or any(e.meets for inner in self.graphs.values() for e in inner.equations)

    def key(self) -> tuple[Any, ...]:
        """What two equations share that compute the same: op, operands, parameters."""
        inputs = tuple(a if isinstance(a, Var) else key_of(a.value) for a in self.inputs)
        params = tuple((k, str(v) if isinstance(v, Graph) else key_of(v)) for k, v in sorted(self.params.items()))
        return self.op.name, inputs, params

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Equation) and (self.outs, self.op, self.key()) == (other.outs, other.op, other.key())

    def __hash__(self) -> int:
        return hash(self.outs)

    def __str__(self) -> str:
        from lab.graph.printing import equation_text

        return equation_text(self)


@dataclass(frozen=True, slots=True, repr=False)
class Graph:
    """Inputs, equations in an order in which they can run, outputs.

    Called without arguments it is no value yet, but a `Building` for `with lab.Graph() as g:`, from which `g.graph()`
    makes one.

    Attributes:
        inputs: variables that the caller gives.
        captured: values from outside that the traced function used, one for each of the last `inputs`; in the place of
            a random key a Draw, which gives another one whenever the graph runs (`keys.py`).

    Example:
        >>> import lab
        >>> lab.make_graph(lab.grad(lambda x: lab.exp(x)))(1.0)
        graph(a:f64[]) { let
            b:f64[] = exp(a)
            c:f64[] = multiply(1.0:f64[], b)
          in (c) }
    """

    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    captured: tuple[Any, ...] = ()
    _made: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)

    if not TYPE_CHECKING:  # a value needs its inputs: without them it is one that is still to be built

        def __new__(cls, *args: Any, **kwargs: Any) -> Any:
            if args or kwargs:
                return object.__new__(cls)
            from lab.graph.building import Building

            return Building()

    def __reduce__(self) -> tuple[Any, ...]:
        return Graph, (self.inputs, self.equations, self.outputs, self.captured)

    def __hash__(self) -> int:
        return hash((self.inputs, self.outputs, len(self.equations)))

    def __str__(self) -> str:
        from lab.graph.printing import text_of

        return text_of(self)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        return mimebundle(str(self), f"Graph · {len(self.equations)} equations", include, exclude)

    def once(self, what: str, make: Callable[[Graph], T]) -> T:
        """What `make` makes of this graph, made at the first time and kept with it."""
        if what not in self._made:
            self._made[what] = make(self)
        made: T = self._made[what]
        return made

    @property
    def n_vars(self) -> int:
        """The first number that no variable has."""
        return 1 + max((v.number for v in self.variables()), default=-1)

    def variables(self) -> Iterator[Var]:
        """Every variable, in the order of definition."""
        yield from self.inputs
        for e in self.equations:
            yield from e.outs

    def walk(self) -> Iterator[Graph]:
        """This graph and every graph inside it, from the outside in."""
        yield self
        for e in self.equations:
            for inner in e.graphs.values():
                yield from inner.walk()
