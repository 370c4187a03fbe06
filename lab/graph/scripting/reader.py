"""The reader of a script: functions, whose calls are read in place, and their loops."""

from __future__ import annotations

import ast
import builtins
import inspect
from collections.abc import Callable
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from lab.autograd.tensor import Tensor
from lab.errors import ScriptError
from lab.graph.scripting.desk import Env
from lab.graph.scripting.loops import Loop
from lab.graph.scripting.numbers import is_soft, is_unknown
from lab.graph.scripting.source import assigned, check, returns, source_of
from lab.graph.scripting.statements import NEXT, Bind, Statements
from lab.ops import cast

MOST_TURNS: Final = 1000
"""So many turns of a loop may be read one by one."""


class Reader(Statements):
    """Reads functions.

    Attributes:
        function: the one that is read.
        open: the code of all that are being read.
        turns: how often each while loop was decided by plain numbers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.function: FunctionType | None = None
        self.open: list[CodeType] = []
        self.turns: dict[ast.While, int] = {}

    def inlined(self, f: FunctionType, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        source = source_of(f)
        if f.__code__ in self.open:
            where, line = self.place()
            hint = "a while loop: a graph has no stack to come back to"
            raise ScriptError(f"lab.script cannot read recursion, at {where}", given=line, hint=hint)
        check(source)
        bound = inspect.signature(f).bind(*args, **kwargs)
        bound.apply_defaults()
        outer = self.source, self.number, self.function
        self.source, self.number, self.function = source, source.first, f
        self.open.append(f.__code__)
        try:
            out = self.block(source.tree.body, dict(bound.arguments))
        finally:
            self.open.pop()
            self.source, self.number, self.function = outer
        return None if out is NEXT else out

    def outside(self, node: ast.Name) -> Any:
        f = self.function
        assert f is not None
        if node.id in f.__code__.co_varnames:
            raise self.refused(node, f"{node.id} has no value yet", f"set {node.id} before")
        if node.id in f.__code__.co_freevars:
            cell = (f.__closure__ or ())[f.__code__.co_freevars.index(node.id)]
            return cell.cell_contents
        found = f.__globals__.get(node.id, getattr(builtins, node.id, NEXT))
        if found is NEXT:
            raise self.refused(node, f"{node.id} is not known", "a name of the function, of its file or of Python")
        return found

    def _While(self, node: ast.While, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        test = self.truth(self.evaluate(node.test, env))
        if is_unknown(test):
            self._region(node, assigned(node.body), lambda e, _: self.block(node.body, e), env,
                         lambda e: self.truth(self.evaluate(node.test, e)))  # fmt: skip
            return NEXT
        turns = self.turns[node] = self.turns.get(node, 0) + 1 if test else 0
        if turns > MOST_TURNS:
            problem = f"more than {MOST_TURNS} turns are decided before the graph runs"
            raise self.refused(node, problem, "give the number that decides as an argument, or for ... in range(n)")
        if test:
            todo[:0] = [*node.body, node]
        return NEXT

    def _region(
        self,
        node: ast.While | ast.For,
        names: list[str],
        turn: Callable[[Env, Any], Any],
        env: Env,
        test: Callable[[Env], Any] | None,
        rows: Any = None,
    ) -> None:
        if found := returns(node.body):
            problem = "a loop whose turns the graph decides cannot be left by return"
            raise self.refused(found, problem, "put it into the condition, and return after the loop")
        Loop(self, names, turn, test, rows, self.source.where(node.lineno)).write(env)

    def _For(self, node: ast.For, env: Env, todo: list[Any]) -> Any:  # noqa: N802
        rows = self._rows(node, env)
        if rows is None:
            return NEXT

        def turn(e: Env, row: Any) -> None:
            self._set(node.target, row, e)
            self.block(node.body, e)

        scanned = isinstance(rows, Tensor | range)
        if scanned and len(rows):
            try:
                along = np.asarray(rows) if isinstance(rows, range) else rows
                self._region(node, assigned([node.target, *node.body]), turn, env, None, along)
            except Exception:  # a turn needs its number, or no two are alike: one by one; a mistake comes up again
                if len(rows) > MOST_TURNS:
                    raise
            else:
                return NEXT
        todo[:0] = [part for row in rows for part in (Bind(node.target, row, node.lineno), *node.body)]
        return NEXT

    def _rows(self, node: ast.For, env: Env) -> Any:
        """What a loop goes through; None if its number of turns was not known, and the loop is written already."""
        call = node.iter
        if isinstance(call, ast.Call) and self.evaluate(call.func, env) is range:
            bounds = [self.evaluate(a, env) for a in call.args]
            if any(map(is_unknown, bounds)):
                self._counted(node, env, *bounds)
                return None
            return range(*bounds)
        found = self.evaluate(node.iter, env)
        return found if is_unknown(found) else list(found)

    def _counted(self, node: ast.For, env: Env, *bounds: Any) -> None:
        """A loop over a range that ends where only the run of the graph tells."""
        start, stop, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
        if is_unknown(step) or not step:
            problem = "the step of a range is a number that is known, and not 0"
            raise self.refused(node, problem, "range(start, stop, 1)")
        counter = f".{node.lineno}"
        env[counter] = self._whole(node, start)
        stop = self._whole(node, stop)

        def turn(e: Env, _: Any) -> None:
            self._set(node.target, self.lift(e[counter]), e)
            self.block(node.body, e)
            e[counter] = self.lift(e[counter]) + step

        def test(e: Env) -> Any:
            at = self.lift(e[counter])
            return at < self.lift(stop) if step > 0 else at > self.lift(stop)

        self._region(node, [counter, *assigned([node.target, *node.body])], turn, env, test)
        del env[counter]

    def _whole(self, node: ast.For, x: Any) -> Any:
        """A bound of a range, which is a number of Python also where it comes from a tensor."""
        if not is_unknown(x):
            return int(x)
        if x.dtype.kind not in "iu" or x.shape:
            raise self.refused(node, f"range needs whole numbers, not {x.dtype} {x.shape}", "n.astype(int)")
        return x if is_soft(x) else self.trace.soften(cast(x, dtype="int64"))

