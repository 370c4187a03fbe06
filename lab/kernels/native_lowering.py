"""A loop in Python as LLVM, with the types known from the start: no inference, and no file of numba's read.

It knows the Python that `rowsource.py` writes, that of the kernels, and that of the functions which such loops call
(`scalars.py`, `special.py`, `running.py`, helpers): numbers, arrays and rows of them, loops over ranges, branches. What
it does not know it refuses, and numba compiles the loop instead.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from lab.kernels.native_expressions import Expressions, is_simple
from lab.kernels.native_frame import Frame, flat
from lab.kernels.native_values import INT, Array, Known, Number, converted, number, refused, write

RESULT = "return"
"""The name under which a function that may end early keeps what it returns: no name of Python's."""


class Lowering(Expressions):
    """Writes one function, with known arguments, at the place of a builder.

    Attributes:
        simple: it has neither loops nor branches, so that each of its names stands for one value.
        end: where it goes on when it has returned early; None while it has not.
    """

    def __init__(
        self, b: Any, tree: ast.FunctionDef, scope: Mapping[str, Any], flags: Sequence[str] = (),
        frame: Frame | None = None, end: Any = None,
    ) -> None:  # fmt: skip
        super().__init__(b, tree, scope, flags, frame)
        self.simple, self.end = is_simple(tree), end

    def write(self, values: Sequence[Known]) -> Known:
        """The lines of the function, given its arguments; what it returns, None if nothing."""
        names = [a.arg for a in self.tree.args.args]
        if len(names) != len(values):
            raise refused(f"{self.tree.name} with {len(values)} arguments")
        self.names.update(zip(names, values, strict=True))
        *body, last = self.tree.body
        self._lines(body)
        result = None
        if isinstance(last, ast.Return):
            result = last.value and self.value(last.value)
        else:
            self._lines([last])
        if self.end is None:
            return result
        self._leave(result)
        self.b.position_at_end(self.end)
        return None if result is None else self._named(RESULT)

    def _leave(self, result: Known) -> None:
        """Return early."""
        if self.end is None:
            self.end = self.b.append_basic_block()
        if result is not None:
            self._keep(RESULT, number(result))
        if not self.b.block.is_terminated:
            self.b.branch(self.end)

    def _lines(self, lines: Sequence[ast.stmt]) -> None:
        for line in lines:
            match line:
                case ast.Assign(targets=[target], value=value):
                    self._assign(target, value)
                case ast.AugAssign(target=target, op=op, value=value):
                    self._store(target, self._binary(op, self.value(target), self.value(value)))
                case ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range"), args=args), orelse=[]):
                    self._loop(name, [self.value(a) for a in args], line.body)
                case ast.If(test=test, body=body, orelse=orelse):
                    self._branch(self.truth(test), body, orelse)
                case ast.Return(value=value):
                    self._leave(value and self.value(value))
                case ast.Raise(exc=ast.Call(func=func, args=[text], keywords=[]), cause=None) if self.frame is not None:
                    self.frame.leave(self.value(func), self.value(text))
                case ast.Expr(value=ast.Constant(value=str())):
                    pass
                case ast.Expr(value=ast.Call() as call):
                    self.value(call)
                case _:
                    raise refused(ast.unparse(line))

    def _branch(self, test: Number, body: Sequence[ast.stmt], orelse: Sequence[ast.stmt]) -> None:
        if not orelse:
            with self.b.if_then(test.ir):
                self._lines(body)
            return
        with self.b.if_else(test.ir) as (then, otherwise):
            with then:
                self._lines(body)
            with otherwise:
                self._lines(orelse)

    def _assign(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple):
            for one, x in zip(target.elts, self.value(value), strict=True):
                self._store(one, x)
        else:
            self._store(target, self.value(value))

    def _store(self, target: ast.expr, x: Known) -> None:
        if isinstance(target, ast.Subscript):
            whole, at = self.value(target.value), target.slice
            if isinstance(at, ast.Tuple):
                *rows, at = at.elts
                for row in rows:
                    whole = self._part(whole, row)
            if isinstance(at, ast.Slice):
                self._fill(self._part(whole, at), number(x))
            else:
                write(self.b, whole, number(self.value(at)), number(x))
        elif not isinstance(target, ast.Name):
            raise refused(ast.unparse(target))
        elif self.simple:
            self.names[target.id] = x
        elif isinstance(x, Number | int | float):
            self._keep(target.id, number(x))
        elif target.id in self.names:  # in the next turn of a loop it would still be what it was
            raise refused(f"{target.id} is something else later")
        else:
            self.names[target.id] = x

    def _keep(self, name: str, x: Number) -> None:
        """Store a number under a name that may get another one in the next turn of a loop."""
        if name not in self.slots:
            with self.b.goto_entry_block():
                self.slots[name] = (x.kind, self.b.alloca(x.ir.type))
        kind, slot = self.slots[name]
        if x.kind != kind and (x.kind, kind) != ("f4", "f8"):
            raise refused(f"{name} is {kind} and {x.kind}")
        self.b.store(converted(self.b, x, kind).ir, slot)

    def _fill(self, array: Array, x: Number) -> None:
        row = flat(self.b, array)
        self._turns(INT(0), row.shape[0], INT(1), signed=True, body=lambda at: write(self.b, row, at, x))

    def _loop(self, name: str, ends: list[Known], body: Sequence[ast.stmt]) -> None:
        start, stop, step = map(number, (0, *ends, 1) if len(ends) == 1 else (*ends, 1)[:3])
        kinds = {x.kind for x in ends if isinstance(x, Number)} or {"i8"}
        known = ends[2] if len(ends) == 3 else 1
        if kinds not in ({"i8"}, {"u8"}) or (isinstance(known, int) and known < 1):
            raise refused(f"a range of {kinds} by {known}")
        self.slots.pop(name, None)  # what the name stood for before is over

        def turn(at: Number) -> None:
            self.names[name] = at
            self._lines(body)

        self._turns(start.ir, stop.ir, step.ir, signed=kinds == {"i8"}, body=turn)

    def _turns(self, start: Any, stop: Any, step: Any, *, signed: bool, body: Callable[[Number], None]) -> None:
        b = self.b
        less, before = (b.icmp_signed if signed else b.icmp_unsigned), b.block
        inside, behind = b.append_basic_block(), b.append_basic_block()
        b.cbranch(less("<", start, stop), inside, behind)
        b.position_at_end(inside)
        at = b.phi(INT)
        at.add_incoming(start, before)
        body(Number("i8" if signed else "u8", at))
        next_ = b.add(at, step, flags=("nsw",) if signed else ("nuw",))
        at.add_incoming(next_, b.block)
        b.cbranch(less("<", next_, stop), inside, behind)
        b.position_at_end(behind)


def lowered(b: Any, tree: ast.FunctionDef, scope: Mapping[str, Any], flags: Sequence[str], frame: Frame,
            values: Sequence[Known]) -> None:  # fmt: skip
    """Write a whole loop, with its end; it returns what the function does, as a 64-bit integer if anything."""
    result = Lowering(b, tree, scope, flags, frame, frame.end).write(values)
    frame.close()
    if result is None:
        b.ret_void()
    else:
        b.ret(converted(b, result, "i8").ir)
