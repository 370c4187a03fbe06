"""A graph as lines of Python: one line for an equation, `if`, `while` and `for` for what holds graphs."""

from __future__ import annotations

import ast
import builtins
import inspect
import keyword
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lab.errors import UnsupportedError
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.verify import op_named
from lab.interop.plain import functions, matrices, places, sliding
from lab.interop.plain.table import REFUSED, WIDE, WRITERS, Tools, writable
from lab.interop.plain.text import array_text, dtype_text, place, remark, scalar_text, typed_text
from lab.kernels.formula import CONSTANTS
from lab.shapes import Spec

HELPERS: dict[str, Callable[..., Any]] = {
    name: f
    for module in (functions, places, sliding, matrices)
    for name, f in vars(module).items()
    if inspect.isfunction(f) and f.__module__ == module.__name__
}
"""Functions that a file can bring along, by name."""
OWN = frozenset({"np", "math", "base64", "sys", "Any", "run", "given", "stored", "main", "xp"})
TAKEN = frozenset({*HELPERS, *OWN, *dir(builtins), *keyword.kwlist})
"""Words that no variable of a file has."""
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Lines:
    """The lines of one function, as they are written.

    Attributes:
        lines: what was written.
        constants: by name the arrays that it reads.
        helpers: names of the functions of `plain` that it calls.
    """

    def __init__(self, taken: frozenset[str] = frozenset()) -> None:
        self.lines: list[str] = []
        self.constants: dict[str, Any] = {}
        self.helpers: set[str] = set()
        self._taken, self._pad, self._n = set(TAKEN | taken), 1, 0
        self._known: dict[int, str] = {}
        self._tools = Tools(self._helper, self.keep)
        self._texts: dict[str, str] = {}

    def write(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """Write the equations of a graph whose inputs are these expressions; the expressions of its outputs."""
        texts = dict(zip((v.number for v in graph.inputs), operands, strict=True))
        for e in graph.equations:
            self._equation(e, texts)
        return [self._atom(a, texts) for a in graph.outputs]

    def fresh(self) -> str:
        """A name that nothing has: a, b, ..., aa, ab, ..."""
        while True:
            word, n = "", self._n
            self._n += 1
            while n >= 0:
                word, n = _LETTERS[n % 26] + word, n // 26 - 1
            if word not in self._taken:
                return word

    def keep(self, array: Any, prefix: str = "C") -> str:
        """The name of a constant; an array that is kept already has one."""
        text = self._known.get(id(array))
        if text is None:
            _refuse_dtype(Spec(np.shape(array), np.asarray(array).dtype))
            text = self._known[id(array)] = f"{prefix}{len(self.constants)}"
            self.constants[text] = array
        return text

    def _helper(self, name: str) -> str:
        needed = [name]
        while needed:
            one = needed.pop()
            if one not in self.helpers:
                self.helpers.add(one)
                needed += [n for n in HELPERS[one].__code__.co_names if n in HELPERS]
        return name

    def _line(self, text: str, e: Equation | None = None) -> None:
        where = f"  # {place(e.origin)}" if e is not None and e.origin else ""
        self.lines.append("    " * self._pad + text + where)

    def _atom(self, a: Atom, texts: dict[int, str]) -> str:
        if isinstance(a, Var):
            return texts[a.number]
        if a.weak or type(a.value) is bool:
            return scalar_text(a.value)
        if np.ndim(a.value) == 0:
            _refuse_dtype(a.spec)
            return typed_text(a.value)
        return self.keep(a.value)

    def _equation(self, e: Equation, texts: dict[int, str]) -> None:
        refuse(e)
        operands = [self._atom(a, texts) for a in e.inputs]
        if e.op.name in _REGIONS:
            outs = _REGIONS[e.op.name](self, e, operands)
            texts.update(zip((v.number for v in e.outs), outs, strict=True))
            return
        text = self._formula(e, operands) if e.op.formula else self._written(e, operands)
        name = texts[e.out.number] = self.fresh()
        self._line(f"{name} = {text}", e)

    def _written(self, e: Equation, operands: Sequence[str]) -> str:
        half = e.out.spec.dtype.char == "e" and e.op.name in WIDE
        if half:
            operands = [f"np.asarray({x}, np.float32)" if a.spec.dtype.kind == "f" else x
                        for a, x in zip(e.inputs, operands, strict=True)]  # fmt: skip
        text = WRITERS[e.op.name](self._tools, e, *operands)
        return f"({text}).astype(np.float16)" if half else text

    def _formula(self, e: Equation, operands: Sequence[str]) -> str:
        """An elementwise op: its formula, with the operands in place of their names."""
        if all(a.weak or type(getattr(a, "value", None)) is bool for a in e.inputs):
            operands = [f"np.asarray({x})" for x in operands]  # of numbers of Python NumPy makes arrays
        given = dict(zip(e.op.arguments, operands, strict=True))
        given |= {k: scalar_text(v) for k, v in e.params.items() if isinstance(v, int | float)}
        tree = ast.parse(e.op.formula, mode="eval").body
        ufunc = getattr(e.op.forward, "__name__", "")
        if isinstance(e.op.forward, np.ufunc) and getattr(np, ufunc, None) is e.op.forward and not _is_operator(tree):
            return f"np.{ufunc}({', '.join(operands)})"
        return ast.unparse(_Written(given, self._helper).visit(tree))

    # --- what holds graphs ---

    def _inside(self, graph: Graph, operands: Sequence[str]) -> list[str]:
        """The lines of a graph one step further in."""
        self._pad += 1
        outs = self.write(graph, operands)
        self._pad -= 1
        return outs

    def _assign(self, names: Sequence[str], values: Sequence[str], deeper: int = 0) -> None:
        """All at once, as a turn of a loop needs it."""
        self._pad += deeper
        if names:
            self._line(f"{', '.join(names)} = {', '.join(values)}")
        elif deeper:
            self._line("pass")
        self._pad -= deeper

    def _typed(self, e: Equation, operands: Sequence[str]) -> list[str]:
        """Operands of a graph inside: numbers of Python that count as arrays there."""
        return [f"np.asarray({x})" if isinstance(a, Literal) and a.weak else x
                for a, x in zip(e.inputs, operands, strict=True)]  # fmt: skip

    def _fused(self, e: Equation, operands: Sequence[str]) -> list[str]:
        if e.params["kind"]:
            self._line(f"# {remark(str(e.params['kind']))}:")
        return self.write(e.params["body"], self._typed(e, operands))

    def _cond(self, e: Equation, operands: Sequence[str]) -> list[str]:
        operands = self._typed(e, operands)
        names = [self.fresh() for _ in e.outs]
        self._line(f"if {operands[0]}:", e)
        self._assign(names, self._inside(e.params["then"], operands[1:]), 1)
        self._line("else:")
        self._assign(names, self._inside(e.params["otherwise"], operands[1:]), 1)
        return names

    def _while(self, e: Equation, operands: Sequence[str]) -> list[str]:
        operands, n = self._typed(e, operands), e.params["n_fixed"]
        names = [self.fresh() for _ in e.outs]
        self._assign(names, operands[n:])
        self._line("while True:", e)
        given = [*operands[:n], *names]
        (test,) = self._inside(e.params["test"], given)
        self._pad += 1
        self._line(f"if not {test}:")
        self._line("    break")
        self._pad -= 1
        self._assign(names, self._inside(e.params["body"], given), 1)
        return names

    def _scan(self, e: Equation, operands: Sequence[str]) -> list[str]:
        p, operands = e.params, self._typed(e, operands)
        n, carried = p["n_fixed"], p["n_carry"]
        names = [self.fresh() for _ in e.outs]
        turn, rows = self.fresh(), operands[n + carried :]
        self._assign(names[:carried], operands[n : n + carried])
        for name in names[carried:]:
            self._line(f"{name} = []")
        numbers = f"range({int(p['length'])})"
        self._line(f"for {turn} in {f'reversed({numbers})' if p['reverse'] else numbers}:", e)
        given = [*operands[:n], *names[:carried], *(f"{x}[{turn}]" for x in rows)]
        outs = self._inside(p["body"], given)
        self._pad += 1
        for name, out in zip(names[carried:], outs[carried:], strict=True):
            self._line(f"{name}.append({out})")
        self._pad -= 1
        self._assign(names[:carried], outs[:carried], 1)
        for name, v in zip(names[carried:], e.outs[carried:], strict=True):
            self._line(f"{name} = {_stacked(name, v, p['length'], p['reverse'])}")
        return names


_REGIONS: dict[str, Callable[[Lines, Equation, Sequence[str]], list[str]]] = {
    "fused": Lines._fused, "cond": Lines._cond, "while_loop": Lines._while, "scan": Lines._scan,
}  # fmt: skip


def _stacked(name: str, v: Var, length: int, reverse: bool) -> str:
    if not length:
        return f"np.zeros({v.spec.shape}, {dtype_text(v.spec.dtype)})"
    return f"np.stack({name}{'[::-1]' if reverse else ''})"


def _is_operator(tree: ast.expr) -> bool:
    """Whether a formula is one operator between operands that differ, as everybody writes it."""
    names = [n.id for n in ast.iter_child_nodes(tree) if isinstance(n, ast.Name)]
    if isinstance(tree, ast.Compare):
        names = [n.id for n in (tree.left, *tree.comparators) if isinstance(n, ast.Name)]
    count = {ast.BinOp: 2, ast.UnaryOp: 1, ast.Compare: 2}.get(type(tree), -1)
    return len(set(names)) == count


class _Written(ast.NodeTransformer):
    """Operands, constants and functions of a formula as they are called in the file."""

    def __init__(self, given: dict[str, str], helper: Callable[[str], str]) -> None:
        self.given, self.helper = given, helper

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id in self.given:
            return ast.parse(self.given[node.id], mode="eval").body
        number = CONSTANTS[node.id]
        text = "np.pi" if number == math.pi else scalar_text(number)
        return ast.parse(text, mode="eval").body

    def visit_Call(self, node: ast.Call) -> ast.expr:
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        called = ast.Name(self.helper(name)) if name in HELPERS else ast.Attribute(ast.Name("np"), name)
        return ast.Call(called, [self.visit(a) for a in node.args], [])


def refuse(e: Equation) -> None:
    """Refuse an equation that cannot be written.

    Raises:
        UnsupportedError: by name, and why.
    """
    name, own = e.op.name, op_named(e.op.name) is not e.op
    if not own and name in REFUSED:
        why = REFUSED[name]
    elif not own and (name in _REGIONS or name in WRITERS or e.op.formula):
        for spec in _specs(e):
            _refuse_dtype(spec, name)
        return
    elif e.op.formula:
        return
    else:
        why = "it has no formula, and no function of NumPy is known for it"
    raise UnsupportedError(
        f"{remark(name)} cannot be written in NumPy", given=why, hint="write what it does in ops of the table"
    )


def _specs(e: Equation) -> Iterator[Spec]:
    yield from (a.spec for a in (*e.inputs, *e.outs))


def _refuse_dtype(spec: Spec, name: str = "a constant") -> None:
    if not writable(spec.dtype):
        raise UnsupportedError(
            f"{name} has a dtype that NumPy alone does not know", given=str(spec.dtype), hint='x.astype("float32")'
        )


def array_lines(constants: dict[str, Any]) -> Iterator[str]:
    """The constants of a file."""
    for name, array in constants.items():
        yield f"{name} = {array_text(array)}"
