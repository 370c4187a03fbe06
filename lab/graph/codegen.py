"""A Graph as a Python function of straight lines over arrays that are there already, and the kernels that it calls.

Each equation is one line: a fused loop, a product by BLAS, a NumPy function that writes into its place, or, where none
of these does, the op's own forward. Views of buffers are made once and cost nothing in a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, cast

import numpy as np

from lab.errors import KernelError
from lab.graph.codeplaces import Places, name
from lab.graph.contracting import product_of
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.placed import placed
from lab.graph.regions import FUSED, Region
from lab.graph.rows import Part, part_of
from lab.graph.spaces import Space
from lab.graph.views import look_of
from lab.kernels.rowloop import RowLoop, row_loop
from lab.kernels.rowwise import Match, Pick, Program
from lab.shapes import Shape

Function = Callable[..., list[Any]]
_AS_THEY_ARE = (np.ndarray, float, int)
ROOM = -1
"""The number of the buffer in which ops keep what they need while they run."""


class Code(NamedTuple):
    """What a graph became.

    Attributes:
        source: of a function `step` of the graph's inputs, as arrays.
        loops: the fused loops that it calls, by the name that it has for them.
        scope: everything else that it has a name for.
        buffers: bytes of each buffer.
        parts: for each equation its first line, counted from below the head, and the first that is not its own.
        inside: what the graphs in branches and loops became, with the names of the functions that run them.
    """

    source: str
    loops: dict[str, RowLoop]
    scope: dict[str, Any]
    buffers: dict[int, int]
    parts: tuple[tuple[int, int], ...] = ()
    inside: Mapping[str, Code] = MappingProxyType({})

    def function(self, source: str = "") -> Function:
        """The function, with buffers of its own: two threads need two.

        Args:
            source: another one that does the same with the same names.
        """
        scope = dict(self.scope)
        scope.update({word: loop.run for word, loop in self.loops.items()})
        memory = {n: np.empty(size, np.uint8) for n, size in self.buffers.items()}
        for word, place in self.scope["_places"].items():
            scope[word] = place(memory)
        text = source or self.source
        exec(compile(text, "<compiled graph>", "exec"), scope)  # noqa: S102 - written below from a checked graph
        step: Function = scope["step"]
        return step


def generate(graph: Graph) -> Code:
    """The code of a graph whose equations have been fused and given buffers, or not.

    Example:
        >>> import lab
        >>> code = generate(lab.make_graph(lambda x, y: lab.tanh(x @ y))(np.ones((2, 3)), np.ones((3, 2))))
        >>> print(code.source)
        def step(a, b):
            np_dot(a, b, out=c)  # c = matmul(a, b)
            d = np_empty((2, 2), "float64")
            np_tanh(c, out=d)  # d = tanh(c)
            return [d]
        >>> code.function()(np.zeros((2, 3)), np.zeros((3, 2)))[0].tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    return _Writer(graph).code()


class _Writer(Places):
    """Writes one function line by line, an equation in each."""

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.loops: dict[str, RowLoop] = {}
        self.inside: dict[str, Code] = {}
        self.room = 0

    def code(self) -> Code:
        for v in self.graph.inputs:
            if not v.weak and any(v in e.inputs for e in self.graph.equations if e.op.name == "fused"):
                self.lines.append(f"{name(v)} = fitting({name(v)}, {tuple(v.spec.shape)})")
                self.solid.add(v)
        parts = []
        for e in self.graph.equations:
            first = len(self.lines)
            self._equation(e)
            parts.append((first, len(self.lines)))
        if self.room:
            self.buffers[ROOM] = self.room
        returned = ", ".join(self._returned(a) for a in self.graph.outputs)
        head = f"def step({', '.join(map(name, self.graph.inputs))}):"
        source = "\n    ".join([head, *self.lines, f"return [{returned}]"]) + "\n"
        scope = {**self.scope, "_places": self.places}
        return Code(source.rstrip("\n"), self.loops, scope, self.buffers, tuple(parts), self.inside)

    def _returned(self, a: Atom) -> str:
        """An output: never a buffer, which the next run writes over, nor an input itself."""
        if isinstance(a, Literal):
            return f"{self.constant(a.value)}.copy()"
        if a in self.graph.inputs:
            return f"np_asarray({name(a)}).copy()"
        return name(a) if a in self.own else f"owned({name(a)})"

    def _equation(self, e: Equation) -> None:
        look = look_of(e)
        x = e.inputs[0] if e.inputs else None
        if look is not None and isinstance(x, Var):
            self.look(e, x, look)
        elif not (self._fused(e) or self._product(e) or self._ufunc(e) or self._placed(e) or self._region(e)):
            self._forward(e)

    def _fused(self, e: Equation) -> bool:
        if e.op.name != "fused":
            return False
        body: Graph = e.params["body"]
        try:
            part = part_of(body)
            program = part.program(body.outputs)  # type: ignore[arg-type]
        except KernelError:
            return False
        loop = row_loop(program)
        word = f"loop{len(self.loops)}"
        self.loops[word] = loop
        outer = dict(zip(body.inputs, e.inputs, strict=True))
        space = _flattened(part, program)
        words = [self._beside(outer[v], layout, space) for v, layout in part.operands.items()]
        self.make(e)
        for v, layout in zip(e.outs, map(program.layout, program.outputs), strict=True):
            words.append(self.reshaped(v, _flat(layout, space)))
        words += self._scratch(loop, word, space)
        call = f"{word}({', '.join(words)}, {space.n_rows}, {space.n_columns})"
        if any(isinstance(line, Match | Pick) for line in program.lines):
            call = f"if {call} >= 0: raise IndexError('a label outside the classes')"
        self.lines.append(f"{call}  # {', '.join(map(name, e.outs))} = {e.params['kind']}")
        return True

    def _scratch(self, loop: RowLoop, word: str, space: Space) -> list[str]:
        """Names of the rows that a loop needs for itself."""
        sizes = space.n_columns, space.n_cycle
        names = [f"{word}_row{i}" for i in range(len(loop.scratch(0)))]
        for i, row in enumerate(names):
            self.places[row] = lambda _memory, i=i: loop.scratch(*sizes)[i]  # type: ignore[misc]
        return names

    def _beside(self, a: Atom, layout: str, space: Space) -> str:
        shape = _flat(layout, space)
        if isinstance(a, Literal):
            array = np.asarray(a.value)
            whole = array.reshape(shape) if array.size == math.prod(shape) else np.broadcast_to(array, shape)
            return self.constant(np.array(whole))
        return self.reshaped(a, shape)

    def _product(self, e: Equation) -> bool:
        dtype = e.outs[0].spec.dtype
        if e.op.name not in ("matmul", "contract") or dtype.char not in "fd":
            return False
        if any(a.weak or a.spec.dtype != dtype for a in e.inputs):
            return False
        ranks = [len(a.spec.shape) for a in e.inputs]
        if e.op.name == "matmul" and ranks == [2, 2]:
            function, words = "np_dot", [self.read(a) for a in e.inputs]
        elif any(isinstance(a, Literal) for a in e.inputs):
            return False
        elif e.op.name == "matmul" and ranks[0] > 2 and ranks[1] == 2:
            return self._rows_product(e)
        elif e.op.name == "matmul" and min(ranks) >= 2:
            function, words = "np_matmul", [self.read(a) for a in e.inputs]
        elif e.op.name == "contract" and (product := product_of(e.params["subscripts"])):
            a, b = e.inputs[::-1] if product.swapped else e.inputs
            words = [self._turned(a, product.left), self._turned(b, product.right)]
            function = "np_matmul" if product.stacked else "np_dot"
        else:
            return False
        (place,) = self.make(e)
        self.lines.append(f"{function}({', '.join(words)}, out={place})  # {_words(e)}")
        return True

    def _rows_product(self, e: Equation) -> bool:
        """A stack times one matrix: one product of all its rows."""
        a, b = e.inputs
        assert isinstance(a, Var)
        self.make(e)
        n = e.outs[0].spec.shape[-1]
        rows = self.reshaped(a, (math.prod(a.spec.shape[:-1]), a.spec.shape[-1]))
        out = self.reshaped(e.outs[0], (math.prod(a.spec.shape[:-1]), n))
        self.lines.append(f"np_dot({rows}, {self.read(b)}, out={out})  # {_words(e)}")
        return True

    def _turned(self, a: Atom, order: tuple[int, ...]) -> str:
        assert isinstance(a, Var)
        if order == tuple(range(len(order))):
            return name(a)
        if a in self.fixed:
            place, word = self.fixed[a], f"{name(a)}_{''.join(map(str, order))}"
            self.places[word] = lambda memory: place(memory).transpose(order)
            return word
        return f"{name(a)}.T" if order == (1, 0) else f"{name(a)}.transpose({order})"

    def _ufunc(self, e: Equation) -> bool:
        if not isinstance(e.op.forward, np.ufunc) or e.params:
            return False
        word = f"np_{e.op.forward.__name__}"
        self.scope[word] = e.op.forward
        (place,) = self.make(e)
        self.lines.append(f"{word}({', '.join(map(self.read, e.inputs))}, out={place})  # {_words(e)}")
        return True

    def _placed(self, e: Equation) -> bool:
        """An op that needs room of its own; all in a function share it, as they run one after the other."""
        into = placed(e)
        if into is None:
            return False
        word = f"{e.op.name}_into_{name(e.out)}"
        (place,) = self.make(e)
        if into.n_bytes:
            self.room = max(self.room, into.n_bytes)
        self.places[word] = lambda memory: into.make(memory.get(ROOM))
        self.lines.append(f"{word}({', '.join(map(name, e.inputs))}, {place})  # {_words(e)}")  # type: ignore[arg-type]
        return True

    def _region(self, e: Equation) -> bool:
        """A branch or a loop: Python takes it, and what is inside runs compiled."""
        if not isinstance(e.op, Region) or e.op is FUSED:
            return False
        word = f"{e.op.name}_{len(self.lines)}"
        codes = {key: generate(inner) for key, inner in e.graphs.items()}
        for key, code in codes.items():
            self.inside[f"{word}_{key}"] = code
            self.loops |= {f"{word}_{key}_{loop}": made for loop, made in code.loops.items()}
        self.places[word] = lambda _memory: _followed(e, codes)
        outs = ", ".join(map(name, e.outs)) + ("," if len(e.outs) == 1 else "")
        self.lines.append(f"{outs} = {word}({', '.join(map(self.read, e.inputs))})  # {', '.join(codes)} compiled")
        return True

    def _forward(self, e: Equation) -> None:
        word = f"{e.op.name.replace(' ', '_').replace('<', '').replace('>', '')}_{len(self.lines)}"
        self.scope[word] = e.op.forward
        for key, value in e.params.items():
            self.scope[f"{word}_{key}"] = value
        words = [*map(self.read, e.inputs), *(f"{key}={word}_{key}" for key in e.params)]
        outs = ", ".join(map(name, e.outs)) + ("," if e.op.several and len(e.outs) == 1 else "")
        self.lines.append(f"{outs} = {word}({', '.join(words)})")


def _followed(e: Equation, codes: Mapping[str, Code]) -> Callable[..., tuple[Any, ...]]:
    """What runs a region, with functions and buffers of its own for the graphs inside."""
    region, functions = cast(Region, e.op), {id(e.params[key]): code.function() for key, code in codes.items()}

    def run(graph: Graph, args: Sequence[Any]) -> list[Any]:
        return functions[id(graph)](*(a if type(a) in _AS_THEY_ARE else np.asarray(a) for a in args))

    return lambda *arrays: region.computed(run, arrays, e.params)


def _words(e: Equation) -> str:
    text = str(e).splitlines()[0]
    return f"{', '.join(map(name, e.outs))} = {text.split(' = ', 1)[1]}"


def _flattened(part: Part, program: Program) -> Space:
    """The space of a part; where nothing lies along rows or columns alone, all entries are one row, without ends."""
    layouts = {*part.operands.values(), *map(program.layout, (line.name for line in program.lines))}
    return Space((math.prod(part.space.shape),)) if layouts <= {"full", "single"} else part.space


def _flat(layout: str, space: Space) -> Shape:
    """The shape in which a loop takes an operand of this layout."""
    rows, columns = space.n_rows, space.n_columns
    known: dict[str, Shape] = {"full": (rows, columns), "row": (columns,), "column": (rows,)}
    return (space.n_cycle,) if layout == "cycle" else known.get(layout, (1,))
