"""Exercise of lesson 03, step 1: a value that remembers what it was made of, and the rule of its gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from lab.autograd import tensor
from lab.errors import ExerciseError
from lab.teach import usual
from lab.teach.exercise import Case, Check, Exercise, Mutant, Wrong
from lab.teach.exercises.expressions import ONCE, says, where
from lab.teach.plain import Plain, describe, first_difference


def look_into(kind: Callable[[float], Any], text: str, a: float, b: float, ct: float) -> Plain:
    """What a value made of x and y knows: its number, the parts of x and y in a gradient `ct`, and x.grad, y.grad.

    Raises:
        ExerciseError: it cannot tell.

    Example:
        >>> look_into(usual.Value, "x * y", 2.0, 3.0, 10.0)
        (6.0, (30.0, 20.0), (0.0, 0.0))
    """
    x, y = kind(a), kind(b)
    (z,) = ONCE[text](x, y)
    if z is None:
        raise ExerciseError("it gave nothing", given="None", hint="does the method end with `return Value(...)`?")
    parents = tuple(z.parents)
    if not parents:
        raise ExerciseError("it has no parents", given="parents: ()",
                            hint="whose gradients change with it? Value(data, (self, other), rule)")  # fmt: skip
    if not all(parent is x or parent is y for parent in parents):
        raise ExerciseError("a parent is not one of the values x and y", given=f"parents: {parents}"[:100],
                            hint="keep the values themselves, not their numbers: (self, other)")  # fmt: skip
    if not callable(z.rule):
        raise ExerciseError("its rule is no function", given=f"rule: {z.rule!r}"[:100],
                            hint="ct comes only on the way back: lambda ct: (...)")  # fmt: skip
    parts = z.rule(ct)
    if not isinstance(parts, Sequence) or len(parts) != len(parents):
        raise ExerciseError("its rule does not give one part for each parent", given=f"rule({ct:g}): {parts!r}"[:100],
                            hint="two parents, two parts, in the same order")  # fmt: skip
    shares = [sum(part for p, part in zip(parents, parts, strict=True) if p is leaf) for leaf in (x, y)]
    return z.data, tuple(shares), (x.grad, y.grad)


def knows(case: Case, value: Plain) -> Wrong | None:
    """Number and rule are those of the lab, and nothing was added to any gradient yet."""
    text, a, b, ct = case
    x, y = tensor(a, requires_grad=True), tensor(b, requires_grad=True)
    (z,) = ONCE[text](x, y)
    z.backward(tensor(ct))
    expected = (z.item(), tuple(0.0 if t.grad is None else t.grad.item() for t in (x, y)), (0.0, 0.0))
    names = ("value", f"what its rule gives for ct = {describe(ct)}", "gradient of x and y before any walk")
    for got, wanted, name in zip(value, expected, names, strict=True):
        inner = tuple(f"{part} of {leaf}" for part, leaf in (("part", "x"), ("part", "y")))
        difference = first_difference(got, wanted, inner if isinstance(wanted, tuple) else (name,), 1e-9)
        if difference:
            what, is_there, there = difference
            about = f" in {name}" if isinstance(wanted, tuple) else ""
            return Wrong(f"{where(case)}: {what}{about} is wrong.", is_there, f"{there}, as the lab has it")
    return None


def _kind(multiply: Callable[[Any, Any], Any]) -> Callable[[float], Any]:
    """A class of values that multiply like this."""
    return type("Value", (usual.Value,), {"__mul__": multiply})


def _rule(rule: Callable[[Any, Any, Any], Any]) -> Callable[[float], Any]:
    """A class of values whose product has this rule: (ct, x, y) -> parts."""
    return _kind(lambda x, y: usual.Value(x.data * y.data, (x, y), lambda ct: rule(ct, x.data, y.data)))


def _walks_forward(x: Any, y: Any) -> Any:
    x.grad, y.grad = x.grad + y.data, y.grad + x.data
    return usual.Value.__mul__(x, y)


VALUE = Exercise(
    name="Value",
    task="Let a product remember its parents and its rule.",
    stub='''\
class Value:
    def __init__(self, data, parents=(), rule=lambda ct: ()):
        self.data, self.grad = data, 0.0
        self.parents, self.rule = parents, rule

    def __add__(self, other):
        return Value(self.data + other.data, (self, other), lambda ct: (ct, ct))

    def __mul__(self, other):
        return Value(self.data * other.data)
''',
    arguments=("text", "x", "y", "ct"),
    results=("value", "parts", "gradients"),
    answer=usual.Value,
    call=look_into,
    checks=(
        Check("a product knows its parents and its rule", [("x * y", 2.0, 3.0, 1.0)], knows),
        Check("its rule passes on what comes in", [("x * y", 2.0, 3.0, 10.0), ("x * y", -1.5, 0.5, -2.0)], knows),
        Check("a value times itself", [("x * x", 3.0, 1.0, 2.0)], knows),
        Check("a sum still does", [("x + y", 2.0, 3.0, 10.0)], knows),
    ),
    mutants=(
        Mutant("the product forgets what it was made of", _kind(lambda x, y: usual.Value(x.data * y.data)),
               "look at __add__: what does it hand on beside the number?", says("it has no parents")),
        Mutant("numbers are kept in place of the values", _kind(lambda x, y: usual.Value(
               x.data * y.data, (x.data, y.data), lambda ct: (ct * y.data, ct * x.data))),
               "a number has no .grad to add to: keep self and other", says("is not one of the values")),
        Mutant("the rule is worked out at once", _kind(lambda x, y: usual.Value(
               x.data * y.data, (x, y), (y.data, x.data))),  # type: ignore[arg-type]
               "the rule waits for ct, so it is a function: lambda ct: (...)", says("its rule is no function")),
        Mutant("the rule gives only one part", _rule(lambda ct, x, y: ct * y),
               "two parents, two parts: (part of self, part of other)", says("one part for each parent")),
        Mutant("the product is made, but not returned", _kind(lambda x, y: None),
               "a method gives back what stands behind `return`", says("it gave nothing")),
        Mutant("the two parts are swapped", _rule(lambda ct, x, y: (ct * x, ct * y)),
               "the first part is for self: by how much does the product grow when self grows by 1?"),
        Mutant("the incoming gradient ct is left out", _rule(lambda ct, x, y: (y, x)),
               "what comes in has to be passed on: where is ct?"),
        Mutant("the rule is that of addition", _rule(lambda ct, x, y: (ct, ct)),
               "a sum passes ct on unchanged, a product multiplies it: by what?"),
        Mutant("both parts hold the product itself", _rule(lambda ct, x, y: (ct * x * y, ct * x * y)),
               "a product grows by the other factor for each bit that one of them grows"),
        Mutant("gradients are filled in on the way forward", _kind(_walks_forward),
               "what z does to the result is known only on the way back: let the rule wait for ct",
               lambda seen: any(not a.failure and tuple(a.value[2]) != (0.0, 0.0) for _, a in seen)),
    ),
    hints=(
        "Value(data, parents, rule): the stub gives only the first",
        "the rule of lesson 00: ct times the other factor",
        "lambda ct: (ct * other.data, ct * self.data)",
    ),
    show=where,
)  # fmt: skip
