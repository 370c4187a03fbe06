"""Statements of a script: names get values; an if or a loop that cannot be decided yet becomes a region.

What follows an if is read as part of both its ways where one of them returns: an early return needs nothing else.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from lab.errors import ScriptError
from lab.graph.scripting.desk import Env
from lab.graph.scripting.expressions import Expressions
from lab.graph.scripting.joining import Branch, MismatchError, choose, merged
from lab.graph.scripting.numbers import is_unknown
from lab.graph.scripting.source import assigned, returns

NEXT: Final = object()
"""What a statement gives that does not return."""


@dataclass
class Bind:
    """The beginning of a turn that is read by itself: the target of the loop gets a value."""

    target: ast.expr
    value: Any
    lineno: int


class Statements(Expressions):
    """Reads statements other than loops."""

    def block(self, statements: list[Any], env: Env) -> Any:
        """Do statements; what they return, NEXT if they do not."""
        todo = list(statements)
        while todo:
            node = todo.pop(0)
            self.number = node.lineno
            try:
                out = self._bind(node, env) if isinstance(node, Bind) else self._step(node, env, todo)
            except Exception as why:
                self._note(why)
                raise
            if out is not NEXT:
                return out
        return NEXT

    def _note(self, why: Exception) -> None:
        """Tell an error where in the script it came up: the innermost line, and no other."""
        told = isinstance(why, ScriptError) or any(n.startswith("script: ") for n in getattr(why, "__notes__", ()))
        if not told:
            where, line = self.place()
            why.add_note(f"script: {line}, at {where}")

    def _step(self, node: ast.stmt, env: Env, todo: list[Any]) -> Any:
        """One statement; it may put others before what is still to do."""
        if isinstance(node, ast.Return):
            return None if node.value is None else self.evaluate(node.value, env)
        step = getattr(self, f"_{type(node).__name__}", None)
        if step is None:
            hint = "assignments, if, while, for, return"
            raise self.refused(node, f"lab.script cannot read {ast.unparse(node)}", hint)
        return step(node, env, todo)

    # --- names get values ---

    def _set(self, target: ast.expr, value: Any, env: Env) -> None:
        if isinstance(target, ast.Name):
            env[target.id] = value
            return
        assert isinstance(target, ast.Tuple | ast.List)
        values = list(value)
        if len(values) != len(target.elts):
            problem = f"{len(values)} values for {len(target.elts)} names"
            raise self.refused(target, problem, "a name for each")
        for t, v in zip(target.elts, values, strict=True):
            self._set(t, self.lift(v), env)

    def _bind(self, node: Bind, env: Env) -> Any:
        self._set(node.target, self.lift(node.value), env)
        return NEXT

    def _Assign(self, node: ast.Assign, env: Env, todo: list[Any]) -> Any:  # noqa: N802 - names of Python's grammar
        value = self.evaluate(node.value, env)
        for target in node.targets:
            self._set(target, value, env)
        return NEXT

    def _AnnAssign(self, node: ast.AnnAssign, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        if node.value is not None:
            self._set(node.target, self.evaluate(node.value, env), env)
        return NEXT

    def _AugAssign(self, node: ast.AugAssign, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        """Make a new value of `x += y`: in a graph nothing is written over."""
        assert isinstance(node.target, ast.Name)
        old = self.evaluate(ast.copy_location(ast.Name(node.target.id, ast.Load()), node), env)
        env[node.target.id] = self.lift(self.combined(type(node.op), old, self.evaluate(node.value, env)))
        return NEXT

    def _Expr(self, node: ast.Expr, env: Env, todo: list[Any]) -> Any:  # noqa: N802 - a docstring
        return NEXT

    def _Pass(self, node: ast.Pass, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        return NEXT

    def _Assert(self, node: ast.Assert, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        test = self.truth(self.evaluate(node.test, env))
        if is_unknown(test):
            hint = "assert shapes and constants; check numbers outside"
            raise self.refused(node, "a graph cannot assert what is known only when it runs", hint)
        if not test:
            self._at_once(node, "assert")
            raise AssertionError(*([] if node.msg is None else [self.evaluate(node.msg, env)]))
        return NEXT

    def _Raise(self, node: ast.Raise, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        self._at_once(node, "raise")
        found = None if node.exc is None else self.evaluate(node.exc, env)
        raise found if found is not None else RuntimeError("no error to raise again")

    def _at_once(self, node: ast.stmt, word: str) -> None:
        if self.depth:
            hint = "raise by shapes and constants, before the branch or the loop"
            raise self.refused(node, f"{word} stands where only the run of the graph decides", hint)

    # --- branches ---

    def _If(self, node: ast.If, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        test = self.truth(self.evaluate(node.test, env))
        if not is_unknown(test):
            todo[:0] = node.body if test else node.orelse
            return NEXT
        if returns([node]):
            return self._both(node, test, env, todo)

        def way(body: list[ast.stmt]) -> Callable[[], Env]:
            def read() -> Env:
                inner = dict(env)
                self.block(body, inner)
                return inner

            return read

        branch = Branch(self, way(node.body), way(node.orelse))
        env.update(merged(branch, test, assigned([node]), self.source.where(node.lineno)))
        return NEXT

    def _both(self, node: ast.If, test: Any, env: Env, todo: list[Any]) -> Any:
        """An if of which a way returns: each way goes on to the end of the function."""

        def way(body: list[ast.stmt]) -> Callable[[], Any]:
            def read() -> Any:
                out = self.block([*body, *todo], dict(env))
                return None if out is NEXT else out

            return read

        try:
            return choose(self, test, way(node.body), way(node.orelse))
        except MismatchError as why:
            problem = f"both ways of an if must return the same kind of value: {why}"
            raise self.refused(node, problem, "the same containers, shapes and dtypes") from None
