"""A Graph as a Python function of straight lines over arrays that are there already, and the kernels that it calls.

Each equation is one line: a fused loop, a product by BLAS, a NumPy function that writes into its place, or, where none
of these does, the op's own forward. Views of buffers are made once and cost nothing in a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab.errors import KernelError
from lab.graph.contracting import product_of
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.rooms import LARGE, Room
from lab.graph.rows import Part, part_of
from lab.graph.views import is_contiguous_look, look_of, text_of_look
from lab.kernels.rowloop import RowLoop, row_loop
from lab.kernels.rowwise import Match, Pick
from lab.shapes import Shape

Function = Callable[..., list[Any]]


class Code(NamedTuple):
    """What a graph became.

    Attributes:
        source: of a function `step` of the graph's inputs, as arrays.
        loops: the fused loops that it calls, by the name that it has for them.
        scope: everything else that it has a name for.
        buffers: bytes of each buffer.
    """

    source: str
    loops: dict[str, RowLoop]
    scope: dict[str, Any]
    buffers: dict[int, int]

    def function(self) -> Function:
        """The function, with buffers of its own: two threads need two."""
        scope = dict(self.scope)
        scope.update({name: loop.run for name, loop in self.loops.items()})
        memory = {n: np.empty(size, np.uint8) for n, size in self.buffers.items()}
        for name, place in self.scope["_places"].items():
            scope[name] = place(memory)
        exec(compile(self.source, "<compiled graph>", "exec"), scope)  # noqa: S102 - written below from a checked graph
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


class _Writer:
    """Writes one function line by line.

    Every value has a name: its variable's. A value is fixed if it lies in a buffer or is a view of one that does: then
    its array is in the scope. All others are made anew in each run.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.out = {a for a in graph.outputs if isinstance(a, Var)}
        self.lines: list[str] = []
        self.scope: dict[str, Any] = {
            "np_dot": np.dot, "np_matmul": np.matmul, "np_empty": np.empty, "np_copyto": np.copyto,
            "np_broadcast_to": np.broadcast_to,
            "np_asarray": np.asarray, "contiguous": _contiguous, "owned": _owned,
        }  # fmt: skip
        self.loops: dict[str, RowLoop] = {}
        self.places: dict[str, Callable[[dict[int, Any]], Any]] = {}
        self.buffers: dict[int, int] = {}
        self.fixed: dict[Var, Callable[[dict[int, Any]], Any]] = {}
        self.solid: set[Var] = set()  # contiguous for sure
        self.own: set[Var] = set()  # made in every run, for the caller
        self.flat: dict[tuple[Var, Shape], str] = {}
        self._next = 1 + max((p for e in graph.equations for p in e.buffer), default=-1)

    def code(self) -> Code:
        for v in self.graph.inputs:
            if not v.weak and any(v in e.inputs for e in self.graph.equations if e.op.name == "fused"):
                self.lines.append(f"{name(v)} = contiguous({name(v)})")
                self.solid.add(v)
        for e in self.graph.equations:
            self._equation(e)
        returned = ", ".join(self._returned(a) for a in self.graph.outputs)
        head = f"def step({', '.join(map(name, self.graph.inputs))}):"
        source = "\n    ".join([head, *self.lines, f"return [{returned}]"]) + "\n"
        return Code(source.rstrip("\n"), self.loops, {**self.scope, "_places": self.places}, self.buffers)

    def _returned(self, a: Atom) -> str:
        """An output: never a buffer, which the next run writes over, nor an input itself."""
        if isinstance(a, Literal):
            return f"{self._constant(a.value)}.copy()"
        if a in self.graph.inputs:
            return f"np_asarray({name(a)}).copy()"
        return name(a) if a in self.own else f"owned({name(a)})"

    # --- places ---

    def _constant(self, value: Any) -> str:
        word = f"k{sum(key.startswith('k') and key[1:].isdigit() for key in self.scope)}"
        self.scope[word] = np.asarray(value)
        return word

    def _read(self, a: Atom) -> str:
        if isinstance(a, Var):
            return name(a)
        return repr(a.value) if a.weak and math.isfinite(a.value) else self._constant(a.value)

    def _make(self, e: Equation) -> list[str]:
        """A place for each result: fresh if it is given out, else its buffer."""
        for i, v in enumerate(e.outs):
            self.solid.add(v)
            if v in self.out:
                self.own.add(v)
                self.lines.append(self._given(v))
                continue
            number = e.buffer[i] if e.buffer and e.buffer[i] >= 0 else self._next
            self._next = max(self._next, number + 1)
            self.buffers[number] = max(self.buffers.get(number, 0), v.spec.size * v.spec.dtype.itemsize)
            self._fix(v, name(v), _in_buffer(number, v))
        return [name(v) for v in e.outs]

    def _given(self, v: Var) -> str:
        """The line that makes a place for an output."""
        if v.spec.size * v.spec.dtype.itemsize < LARGE:
            return f'{name(v)} = np_empty({tuple(v.spec.shape)}, "{v.spec.dtype}")'
        word = f"room_for_{name(v)}"
        self.places[word] = lambda _memory: Room(v.spec)
        return f"{name(v)} = {word}()"

    def _fix(self, v: Var, word: str, place: Callable[[dict[int, Any]], Any]) -> None:
        self.fixed[v] = place
        self.places[word] = place

    def _reshaped(self, v: Var, shape: Shape) -> str:
        """A value as a contiguous array of this shape."""
        if tuple(v.spec.shape) == shape and v in self.solid:
            return name(v)
        known = self.flat.get((v, shape))
        if known:
            return known
        word = f"{name(v)}_{len([1 for w, _ in self.flat if w == v]) + 1}"
        if v in self.fixed and v in self.solid:
            place = self.fixed[v]
            self.places[word] = lambda memory: place(memory).reshape(shape)
        else:
            whole = name(v) if v in self.solid else f"contiguous({name(v)})"
            self.lines.append(f"{word} = {whole}.reshape({shape})")
        self.flat[v, shape] = word
        return word

    # --- equations ---

    def _equation(self, e: Equation) -> None:
        look = look_of(e)
        x = e.inputs[0] if e.inputs else None
        if look is not None and isinstance(x, Var):
            self._look(e, x, look)
        elif not (self._fused(e) or self._product(e) or self._ufunc(e)):
            self._forward(e)

    def _look(self, e: Equation, x: Var, look: Callable[[Any], Any]) -> None:
        v = e.out
        if is_contiguous_look(e) and x not in self.solid and x in self.fixed:
            self._copied(v, x)
        elif x in self.fixed:
            place = self.fixed[x]
            self._fix(v, name(v), lambda memory: look(place(memory)))
        else:
            self.lines.append(f"{name(v)} = {text_of_look(e, name(x))}")
        if is_contiguous_look(e) and (x in self.solid or x in self.fixed):
            self.solid.add(v)

    def _copied(self, v: Var, x: Var) -> None:
        """The entries of a view in a row: no shape but a copy will give them that."""
        number, word, shape = self._next, f"{name(v)}_0", x.spec.shape
        self._next += 1
        self.buffers[number] = v.spec.size * v.spec.dtype.itemsize
        place = _in_buffer(number, v)
        self._fix(v, name(v), place)
        self.places[word] = lambda memory: place(memory).reshape(shape)
        self.lines.append(f"np_copyto({word}, {name(x)})  # {name(v)} = the entries of {name(x)} in a row")

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
        words = [self._beside(outer[v], layout, part) for v, layout in part.operands.items()]
        self._make(e)
        for v, layout in zip(e.outs, map(program.layout, program.outputs), strict=True):
            words.append(self._reshaped(v, _flat(layout, part)))
        words += self._scratch(loop, word, part.space.n_columns)
        call = f"{word}({', '.join(words)}, {part.space.n_rows}, {part.space.n_columns})"
        if any(isinstance(line, Match | Pick) for line in program.lines):
            call = f"if {call} >= 0: raise IndexError('a label outside the classes')"
        self.lines.append(f"{call}  # {', '.join(map(name, e.outs))} = {e.params['kind']}")
        return True

    def _scratch(self, loop: RowLoop, word: str, n_columns: int) -> list[str]:
        """Names of the rows that a loop needs for itself."""
        names = [f"{word}_row{i}" for i in range(len(loop.scratch(0)))]
        for i, row in enumerate(names):
            self.places[row] = lambda _memory, i=i: loop.scratch(n_columns)[i]  # type: ignore[misc]
        return names

    def _beside(self, a: Atom, layout: str, part: Part) -> str:
        shape = _flat(layout, part)
        if isinstance(a, Literal):
            array = np.asarray(a.value)
            whole = array.reshape(shape) if array.size == math.prod(shape) else np.broadcast_to(array, shape)
            return self._constant(np.array(whole))
        return self._reshaped(a, shape)

    def _product(self, e: Equation) -> bool:
        dtype = e.outs[0].spec.dtype
        if dtype.char not in "fd" or any(not isinstance(a, Var) or a.spec.dtype != dtype for a in e.inputs):
            return False
        words, ranks = [self._read(a) for a in e.inputs], [len(a.spec.shape) for a in e.inputs]
        if e.op.name == "matmul" and ranks == [2, 2]:
            function = "np_dot"
        elif e.op.name == "matmul" and ranks[0] > 2 and ranks[1] == 2:
            return self._rows_product(e)
        elif e.op.name == "matmul" and min(ranks) >= 2:
            function = "np_matmul"
        elif e.op.name == "contract" and (product := product_of(e.params["subscripts"])):
            a, b = e.inputs[::-1] if product.swapped else e.inputs
            words = [self._turned(a, product.left), self._turned(b, product.right)]
            function = "np_matmul" if product.stacked else "np_dot"
        else:
            return False
        (place,) = self._make(e)
        self.lines.append(f"{function}({', '.join(words)}, out={place})  # {_words(e)}")
        return True

    def _rows_product(self, e: Equation) -> bool:
        """A stack times one matrix: one product of all its rows."""
        a, b = e.inputs
        assert isinstance(a, Var)
        self._make(e)
        n = e.outs[0].spec.shape[-1]
        rows = self._reshaped(a, (math.prod(a.spec.shape[:-1]), a.spec.shape[-1]))
        out = self._reshaped(e.outs[0], (math.prod(a.spec.shape[:-1]), n))
        self.lines.append(f"np_dot({rows}, {self._read(b)}, out={out})  # {_words(e)}")
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
        (place,) = self._make(e)
        self.lines.append(f"{word}({', '.join(map(self._read, e.inputs))}, out={place})  # {_words(e)}")
        return True

    def _forward(self, e: Equation) -> None:
        word = f"{e.op.name.replace(' ', '_').replace('<', '').replace('>', '')}_{len(self.lines)}"
        self.scope[word] = e.op.forward
        for key, value in e.params.items():
            self.scope[f"{word}_{key}"] = value
        words = [*map(self._read, e.inputs), *(f"{key}={word}_{key}" for key in e.params)]
        outs = ", ".join(map(name, e.outs)) + ("," if e.op.several and len(e.outs) == 1 else "")
        self.lines.append(f"{outs} = {word}({', '.join(words)})")


def name(v: Var) -> str:
    """The name of a value in the source: letters alone, which no function there is called by."""
    return str(v)


def _words(e: Equation) -> str:
    text = str(e).splitlines()[0]
    return f"{', '.join(map(name, e.outs))} = {text.split(' = ', 1)[1]}"


def _flat(layout: str, part: Part) -> Shape:
    """The shape in which a loop takes an operand of this layout."""
    rows, columns = part.space.n_rows, part.space.n_columns
    return {"full": (rows, columns), "row": (columns,), "column": (rows,)}.get(layout, (1,))


def _in_buffer(number: int, v: Var) -> Callable[[dict[int, Any]], Any]:
    n_bytes, dtype, shape = v.spec.size * v.spec.dtype.itemsize, v.spec.dtype, v.spec.shape
    return lambda memory: memory[number][:n_bytes].view(dtype).reshape(shape)


def _owned(x: Any) -> Any:
    """An array that shares no memory with a buffer or an input."""
    array = np.asarray(x)
    return array if array.base is None and array.flags.owndata else array.copy()


def _contiguous(x: Any) -> Any:
    """An array as compiled loops take it: contiguous, and writable for all that numba knows."""
    return x if x.flags.carray else np.array(x, order="C")
