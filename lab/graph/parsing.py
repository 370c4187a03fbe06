"""The text of a graph read back: what `printing.py` writes, and nothing that could run code."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

import numpy as np

from lab.errors import GraphError
from lab.graph.ir import Atom, Equation, Graph, Literal, Var
from lab.graph.values import type_text
from lab.graph.verify import op_named, verify
from lab.shapes import Spec

MAX_DEPTH = 64
"""So deep may graphs and tuples stand inside each other: a text that goes deeper is an attack, or a mistake."""
MAX_ENTRIES = 10**9
"""The most entries of a shape: what is larger fits no memory."""

_TOKEN = re.compile(
    r"""(?P<space>[ \t\r]+)|(?P<line>\n)|(?P<comment>\#[^\n]*)
    |(?P<number>\d+\.?\d*(?:e[+-]?\d+)?|\.\d+(?:e[+-]?\d+)?)(?![\w])
    |(?P<text>'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*")
    |(?P<name>[A-Za-z_]\w*)|(?P<dots>\.\.\.)|(?P<sign>[(){}\[\]=:,@-])""",
    re.VERBOSE,
)
_CONSTANT = re.compile(r"const\d+")
_DTYPES = {
    "f16": "float16", "f32": "float32", "f64": "float64", "bool": "bool",
    **{f"{k[0]}{bits}": f"{k}{bits}" for k in ("int", "uint") for bits in (8, 16, 32, 64)},
}  # fmt: skip
_WORDS = {"True": True, "False": False, "None": None}


class _Token(NamedTuple):
    kind: str
    text: str
    line: int


def parse(text: str, constants: Sequence[Any] = ()) -> Graph:
    """The graph that a text stands for, checked to be legal.

    Args:
        text: what `str(graph)` or `text_of(graph)` gave.
        constants: the arrays that the text names `const0`, `const1`, ...

    Raises:
        GraphError: the text cannot be read, names an op that is not in the table, or makes no legal graph.

    Example:
        >>> parse("graph(a:f64[2]) { let b:f64[2] = tanh(a) in (b) }")
        graph(a:f64[2]) { let
            b:f64[2] = tanh(a)
          in (b) }
    """
    if not isinstance(text, str):
        raise GraphError("a graph is read from its text", given=type(text).__name__, hint="parse(str(graph))")
    reader = _Reader(text, constants)
    graph = reader.graph(0)
    if reader.next.kind != "end":
        reader.refuse("the end of the text")
    verify(graph)
    return graph


def number_of(name: str) -> int:
    """The number of the variable of this name.

    Example:
        >>> number_of("a"), number_of("ab"), number_of("in_")
        (0, 27, 247)
    """
    n = 0
    for letter in name.rstrip("_"):
        n = 26 * n + ord(letter) - ord("a") + 1
    return n - 1


class _Reader:
    """A text taken token by token, from the left."""

    def __init__(self, text: str, constants: Sequence[Any]) -> None:
        self._lines, self._constants = text.split("\n"), constants
        self._tokens = self._split(text)
        self._at, self._vars, self._depth = 0, {}, 0  # type: ignore[var-annotated]

    def _split(self, text: str) -> list[_Token]:
        tokens, place, line = [], 0, 0
        while place < len(text):
            match = _TOKEN.match(text, place)
            if match is None:
                self._fail(line, f"no part of a graph begins with {text[place]!r}")
            kind = str(match.lastgroup)
            if kind == "line":
                line += 1
            elif kind != "space":
                tokens.append(_Token(kind, match[0], line))
            place = match.end()
        return [*tokens, _Token("end", "the end of the text", line)]

    def _fail(self, line: int, hint: str) -> NoReturn:
        raise GraphError(
            f"line {line + 1} of the text of a graph cannot be read",
            given=self._lines[line].strip()[:100] or "nothing",
            hint=hint,
        )

    # --- tokens ---

    @property
    def next(self) -> _Token:
        while self._tokens[self._at].kind == "comment":
            self._at += 1
        return self._tokens[self._at]

    def refuse(self, wanted: str) -> NoReturn:
        self._fail(self.next.line, f"{wanted} is expected where {self.next.text[:40]} stands")

    def take(self, *texts: str) -> str:
        """The next token, which must be one of these."""
        if self.next.text not in texts or self.next.kind == "text":
            self.refuse(" or ".join(texts))
        return self.advance().text

    def advance(self) -> _Token:
        token = self.next
        self._at += 1
        return token

    def found(self, text: str) -> bool:
        """Whether the next token is this, which is then taken."""
        if self.next.text != text or self.next.kind == "text":
            return False
        self._at += 1
        return True

    def follows(self, text: str) -> bool:
        """Whether this stands behind the next token."""
        here = self.next
        return self._tokens[self._at + 1].text == text if here.kind != "end" else False

    def word(self, wanted: str) -> str:
        if self.next.kind != "name":
            self.refuse(wanted)
        return self.advance().text

    def integer(self) -> int:
        if self.next.kind != "number" or not self.next.text.isdigit() or len(self.next.text) > 18:
            self.refuse("a whole number")
        return int(self.advance().text)

    def listed(self, end: str, item: Callable[[], Any]) -> list[Any]:
        """Items between commas, up to `end`, which is taken."""
        items = []
        while not self.found(end):
            items.append(item())
            if not self.found(","):
                self.take(end)
                break
        return items

    # --- graphs ---

    def graph(self, depth: int) -> Graph:
        if depth > MAX_DEPTH:
            self.refuse(f"no graph deeper than {MAX_DEPTH}")
        around, self._vars = self._vars, {}
        self.take("graph")
        self.take("(")
        inputs = []
        while not self.found(")"):
            inputs.append(self.variable()[0])
        self.take("{")
        self.take("let")
        equations = []
        while not (self.next.text == "in" and self.follows("(")):
            equations.append(self.equation(depth))
        self.take("in")
        self.take("(")
        outputs = self.listed(")", self.atom)
        self.take("}")
        self._vars = around
        return Graph(tuple(inputs), tuple(equations), tuple(outputs))

    def variable(self) -> tuple[Var, int | None]:
        """A variable where it is defined, and the number of its buffer."""
        name = self.word("a variable")
        if not re.fullmatch(r"[a-z]{1,6}_?", name):
            self._fail(self.next.line, f"{name} is no name of a variable: a to z, aa, ab, ...")
        self.take(":")
        if self.next.text in ("float", "int"):
            weak = self.advance().text
            var = Var(number_of(name), Spec((), np.dtype(float if weak == "float" else int)), weak=True)
        else:
            var = Var(number_of(name), self.spec())
        if name in self._vars:
            self._fail(self.next.line, f"{name} is defined twice")
        self._vars[name] = var
        return var, self.integer() if self.found("@") else None

    def spec(self) -> Spec:
        name = self.word("a type, as f32[2,3]")
        if name not in _DTYPES:
            self._fail(self.next.line, f"{name} is no dtype: one of {', '.join(_DTYPES)}")
        self.take("[")
        shape = tuple(self.listed("]", self.integer))
        size = 1
        for n in shape:
            size *= max(n, 1)
        if size > MAX_ENTRIES or len(shape) > 64:
            self._fail(self.next.line, f"no array has more than {MAX_ENTRIES:,} entries or 64 axes")
        return Spec(shape, np.dtype(_DTYPES[name]))

    def equation(self, depth: int) -> Equation:
        outs = [self.variable()]
        while not self.found("="):
            outs.append(self.variable())
        line, name = self.next.line, self.word("an op")
        op = op_named(name)
        if op is None:
            self._fail(line, f"no op is called {name}; lab.PRIMITIVES holds all of them")
        self.take("(")
        inputs: list[Atom] = []
        params: dict[str, Any] = {}
        for key, value in self.listed(")", self.argument):
            if key:
                params[key] = value
            elif params:
                self._fail(line, "operands stand before parameters")
            else:
                inputs.append(value)
        origin = self.remark()
        if self.found("{"):
            origin = self.remark()
            while not self.found("}"):
                key = self.word("the name of a graph")
                self.take("=")
                params[key] = self.graph(depth + 1)
        placed = any(place is not None for _, place in outs)
        places = [-1 if place is None else place for _, place in outs] if placed else []
        return Equation(op, tuple(inputs), tuple(o for o, _ in outs), params, origin, tuple(places))

    def remark(self) -> str:
        """The comment that stands here, "" if none does."""
        here = self._tokens[self._at]
        return here.text[1:].strip() if here.kind == "comment" else ""

    def argument(self) -> tuple[str, Any]:
        if self.next.kind == "name" and self.follows("="):
            key = self.advance().text
            self.take("=")
            return key, self.value()
        return "", self.atom()

    # --- values ---

    def atom(self) -> Atom:
        here = self.next
        if here.kind == "name" and here.text in self._vars:
            return self._vars[self.advance().text]  # type: ignore[no-any-return]
        value = self.value()
        if not isinstance(value, bool | int | float | np.ndarray):
            self._fail(here.line, "an operand is a variable, a number or an array")
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
        return Literal(value)

    def value(self) -> Any:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self.refuse(f"nothing deeper than {MAX_DEPTH}")
        try:
            return self._value()
        finally:
            self._depth -= 1

    def _value(self) -> Any:
        here = self.next
        if here.kind == "number" or here.text in ("-", "nan", "inf", "True", "False"):
            entry = self.entry()
            return self.filled([entry], self.spec()) if self.found(":") else entry
        if here.kind == "text":
            return ast.literal_eval(self.advance().text)
        if here.kind == "dots":
            self.advance()
            return ...
        if self.found("("):
            return tuple(self.listed(")", self.value))
        if self.found("["):
            return self.listed("]", self.value)
        if here.text in _WORDS:
            return _WORDS[self.advance().text]
        if here.text == "slice":
            self.advance()
            self.take("(")
            parts = self.listed(")", self.value)
            if len(parts) != 3:
                self._fail(here.line, "a slice has a start, a stop and a step")
            return slice(*parts)
        if _CONSTANT.fullmatch(here.text):
            return self.constant()
        if here.text in _DTYPES:
            return self.array()
        return self.refuse("a defined variable, a number, an array or a parameter")

    def number(self) -> float:
        sign = -1 if self.found("-") else 1
        if self.next.text in ("nan", "inf"):
            return sign * float(self.advance().text)
        if self.next.kind != "number" or len(self.next.text) > 400:
            self.refuse("a number")
        text = self.advance().text
        return sign * (int(text) if text.isdigit() else float(text))

    def entry(self) -> Any:
        return _WORDS[self.advance().text] if self.next.text in ("True", "False") else self.number()

    def array(self) -> Any:
        line, spec = self.next.line, self.spec()
        self.take("{")
        return self.filled(self.listed("}", self.entry), spec, line)

    def filled(self, entries: list[Any], spec: Spec, line: int = -1) -> Any:
        """An array of these entries."""
        line = line if line >= 0 else self.next.line
        if len(entries) != spec.size:
            self._fail(line, f"{type_text(spec)} has {spec.size} entries, not {len(entries)}")
        try:
            return np.array(entries, spec.dtype).reshape(spec.shape)
        except (OverflowError, ValueError) as why:
            return self._fail(line, str(why))

    def constant(self) -> Any:
        here = self.advance()
        self.take(":")
        n, spec = int(here.text[5:][:9]), self.spec()
        if n >= len(self._constants):
            self._fail(here.line, f"{here.text} is not among the {len(self._constants)} constants given with the text")
        array = np.asarray(self._constants[n])
        if (array.shape, array.dtype) != spec:
            self._fail(here.line, f"{here.text} was given as {type_text(Spec(array.shape, array.dtype))}")
        return array
