"""The source of a function as a tree, with the lines that errors show, and what in it no graph can say."""

from __future__ import annotations

import ast
import inspect
import sysconfig
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from lab.errors import ScriptError

_PACKAGES = tuple(str(Path(file).resolve().parent) for file in (inspect.getfile(ScriptError), np.__file__))
_LIBRARY = sysconfig.get_path("stdlib")

_SCOPE = "assign values to names and return what the caller needs"
_LIST = "a for loop, lab.vmap, or make the list outside"
_LOOP = "put it into the condition of a while loop"
REFUSED: Final[dict[type[ast.AST], tuple[str, str]]] = {
    ast.Try: ("try", "a graph cannot catch errors: choose by if, before they happen"),
    ast.With: ("with", "use it around the call of the script"),
    ast.Match: ("match", "if and elif"),
    ast.ListComp: ("a comprehension", _LIST),
    ast.SetComp: ("a comprehension", _LIST),
    ast.DictComp: ("a comprehension", _LIST),
    ast.GeneratorExp: ("a generator", _LIST),
    ast.Yield: ("yield", "return all values at the end, as lab.stack of them"),
    ast.YieldFrom: ("yield", "return all values at the end, as lab.stack of them"),
    ast.Await: ("await", "a script waits for nothing"),
    ast.Break: ("break", _LOOP),
    ast.Continue: ("continue", "an if around the rest of the turn"),
    ast.Lambda: ("a lambda", "a function with def, outside the script"),
    ast.FunctionDef: ("a function inside", "define it outside the script"),
    ast.AsyncFunctionDef: ("async", "an ordinary def"),
    ast.ClassDef: ("a class", "define it outside the script"),
    ast.Global: ("global", _SCOPE),
    ast.Nonlocal: ("nonlocal", _SCOPE),
    ast.Delete: ("del", "leave the name alone"),
    ast.Import: ("an import", "import outside the script"),
    ast.ImportFrom: ("an import", "import outside the script"),
    ast.Starred: ("a starred expression", "write the parts out"),
    ast.NamedExpr: ("an assignment inside an expression", "a line of its own before"),
}
"""What is not read, as errors call it, each with a hint."""


@dataclass(frozen=True)
class Source:
    """What is known of the text of a function.

    Attributes:
        name, file: of the function.
        text: as it was written, without the indentation that it stands in.
        first: the number of its first line.
        tree: its definition; line numbers are those of the file.
    """

    name: str
    file: str
    text: str
    first: int
    tree: ast.FunctionDef

    def line(self, number: int) -> str:
        """A line of it, as given."""
        lines = self.text.splitlines()[number - self.first :]
        return lines[0].strip() if lines else ""

    def where(self, number: int) -> str:
        """File and line."""
        return f"{self.file}:{number}"

    def refused(self, node: ast.AST, problem: str, hint: str) -> ScriptError:
        """The error for a place of the source."""
        number: int = getattr(node, "lineno", self.first)
        return ScriptError(f"{problem}, at {self.where(number)}", given=self.line(number), hint=hint)


NOWHERE: Final = Source("", "", "", 0, ast.parse("def f(): pass").body[0])  # type: ignore[arg-type]
_READ: dict[CodeType, Source] = {}


def source_of(f: FunctionType) -> Source:
    """The source of a function, read once.

    Raises:
        ScriptError: it cannot be found, or has in it what no graph can say.

    Example:
        >>> found = source_of(source_of)
        >>> found.name, found.line(found.first)
        ('source_of', 'def source_of(f: FunctionType) -> Source:')
    """
    code = f.__code__
    if code not in _READ:
        _READ[code] = _read(code)
    return _READ[code]


def _read(code: CodeType) -> Source:
    try:
        lines, first = inspect.getsourcelines(code)
        text = textwrap.dedent("".join(lines))
        tree = ast.parse(text).body[0]
    except (OSError, SyntaxError):  # a SyntaxError for a lambda in the middle of a line
        tree, text, first = ast.Pass(), "", code.co_firstlineno
    if not isinstance(tree, ast.FunctionDef) or tree.name != code.co_name:  # a file that was changed meanwhile
        kind = "a lambda" if code.co_name == "<lambda>" else "async" if isinstance(tree, ast.AsyncFunctionDef) else ""
        raise ScriptError(
            f"lab.script cannot read {kind or 'the source of a function'}",
            given=f"{code.co_name} of {code.co_filename}:{first}",
            hint="a function that a file or a cell defines with def",
        )
    return Source(code.co_name, code.co_filename, text, first, ast.increment_lineno(tree, first - 1))


def check(source: Source) -> None:
    """Refuse what no graph can say, wherever it stands in the function.

    Raises:
        ScriptError: it names the line.
    """
    for node in (n for statement in source.tree.body for n in ast.walk(statement)):
        if type(node) in REFUSED:
            word, hint = REFUSED[type(node)]
            raise source.refused(node, f"lab.script cannot read {word}", hint)
        if isinstance(node, ast.keyword) and node.arg is None:
            raise source.refused(node.value, "lab.script cannot read **", "write the parameters out")
        if isinstance(node, ast.For | ast.While) and node.orelse:
            raise source.refused(node, "lab.script cannot read a loop with else", "an if after the loop")
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            word = "an attribute" if isinstance(node, ast.Attribute) else "an entry"
            raise source.refused(node, f"a script cannot write to {word}", "x = lab.index_update(x, values, index)"
                                 if word == "an entry" else _SCOPE)  # fmt: skip
        if isinstance(node, ast.Expr) and type(node.value) not in (ast.Constant, *REFUSED):
            raise source.refused(node, f"a script does nothing by the way, as in {_effect(node.value)}", _SCOPE)


def _effect(node: ast.expr) -> str:
    return ast.unparse(node.func) if isinstance(node, ast.Call) else "a value that nobody uses"


def is_own(f: Any) -> bool:
    """Whether a function is the user's, to be read as well, and not one of the lab, of NumPy or of Python.

    Example:
        >>> import textwrap
        >>> is_own(is_own), is_own(len), is_own(textwrap.dedent)
        (False, False, False)
    """
    if not isinstance(f, FunctionType):
        return False
    file = f.__code__.co_filename
    if file.startswith((*_PACKAGES, "<frozen ", "<formula ")):
        return False
    return not file.startswith(_LIBRARY) or "site-packages" in file


def assigned(nodes: Iterable[ast.AST]) -> list[str]:
    """The names that these statements assign, each once."""
    found = [n.id for node in nodes for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
    return list(dict.fromkeys(found))


def returns(nodes: Sequence[ast.AST]) -> ast.Return | None:
    """A return among these statements."""
    return next((n for node in nodes for n in ast.walk(node) if isinstance(n, ast.Return)), None)
