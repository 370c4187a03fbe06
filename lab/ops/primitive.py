"""The op record: everything there is to know of one operation, in one place, and the table of all of them.

An op does not know who is listening. `Op.apply` is what applying it means; the autograd room replaces the plain meaning
(arrays in, array out) by one that also knows Tensors, tapes and tracers (`autograd/apply.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

import numpy as np

from lab.errors import ArgumentError
from lab.kernels.formula import Formula
from lab.ops.sample import Sample
from lab.shapes import Spec

F = TypeVar("F", bound=Callable[..., Any])

PRIMITIVES: dict[str, Op] = {}
"""Every op by name. A new op enters by being defined."""

PRECISIONS: tuple[str, ...] = ("follow", "narrow", "wide")
"""What autocast does: follow the operands, run narrow (matmul), insist on float32 (exp, sums, losses)."""


class Rule:
    """How a cotangent goes back along one edge: from an op's output to one of its arguments.

    Attributes:
        argument: number of the argument.
        text: what a picture shows, e.g. "ct * y".
        eager: the rule on arrays, called as `(ct, out, *args, **params)`.
        general: the same rule in ops, for values that are themselves tracked.
        reads_out: whether it reads the output.
        reads: for each argument "value", "like" (shape and dtype only) or "".
        passes: the rule is the identity: `ct` itself goes on.
    """

    __slots__ = ("_general", "argument", "eager", "passes", "reads", "reads_out", "text")

    def __init__(
        self,
        argument: int,
        text: str,
        eager: Callable[..., Any],
        general: Callable[[], Callable[..., Any]],
        reads_out: bool,
        reads: tuple[str, ...],
    ) -> None:
        self.argument, self.text, self.eager, self._general = argument, text, eager, general
        self.reads_out, self.reads, self.passes = reads_out, reads, text == "ct"

    @property
    def general(self) -> Callable[..., Any]:
        return self._general()


class Op:
    """One primitive operation.

    Attributes:
        name: key in PRIMITIVES, and the name in pictures, errors and files.
        arguments: names of the operands; a single "*xs" for a variadic op.
        defaults: parameters and their defaults; a parameter is fixed when the op is recorded.
        complete: every argument has a rule (known from the first call on).
        pull: sends a node's cotangent to its parents; made with `apply`.
        shared: the rules of all arguments in one pass over arrays, see `together`; None for most.
        joint: one rule for all arguments at once, `joint(node, ct, saved) -> [cotangents]`, in place of `rules`, which
            then only tell that there is one. Of a function with a rule of its own; None for every op of the table.
        forward: arrays in, array out: `forward(*arrays, **params)`.
        rules: one Rule (or None: not differentiable) for each argument; one shared by all for a variadic op.
        tangent: forward mode: `tangent(tangents, out, *args, **params)`, a missing tangent is None; elementwise and
            linear ops need none.
        linear: "" | "each" (linear in each argument alone) | "joint" (linear in all together).
        batch: `batch(size, mapped, *values, **params)`, the batch axis at 0 of each mapped value; None: loop and stack.
        shape: `shape(*specs, **params) -> Spec`.
        formula: text of an elementwise op, else "".
        doc: first line of its description.
        precision: one of PRECISIONS.
        masks: its rules send exact zeros along branches that were not taken.
        singular: its value or its rules can be inf or nan for ordinary operands (a pole, an edge, an overflow).
        collective: it meets other ranks or batch members along `axis_name`, and gives all of them the "same" or each
            its "own"; "" of all other ops.
        samples, error_samples: rows for the tests that the table generates.
        reference: an independent implementation on arrays.
        numpy: which of NumPy's functions (not ufuncs, which are found by name) it is on a tensor; each with None if its
            parameters have the same names, or with a function that takes NumPy's call.
        method: Tensor has it as a method, too.
        listed: it stands in PRIMITIVES (an argument only).
        several: it returns a tuple of arrays; of no op of the table, but of those that hold graphs.

    Example:
        >>> from lab.ops import PRIMITIVES
        >>> op = PRIMITIVES["tanh"]
        >>> op, op.formula, op.rule_text(0)
        (<op tanh(x)>, 'tanh(x)', 'ct * (1 - out * out)')
    """

    __slots__ = (
        "apply", "arguments", "batch", "collective", "complete", "defaults", "doc", "elementwise", "error_samples",
        "fixed", "formula", "forward", "joint", "linear", "masks", "method", "name", "numpy", "precision", "pull",
        "reference", "rules", "samples", "shape", "shared", "singular", "tangent", "variadic",
    )  # fmt: skip

    several: ClassVar[bool] = False

    def __init__(
        self,
        name: str,
        arguments: tuple[str, ...],
        forward: Callable[..., Any],
        *,
        doc: str,
        defaults: Mapping[str, Any] | None = None,
        fixed: Mapping[str, Callable[[], Any]] | None = None,
        formula: str = "",
        reference: Callable[..., Any] | None = None,
        samples: Sequence[Sample] = (),
        error_samples: Sequence[tuple[tuple[Any, ...], dict[str, Any], str]] = (),
        precision: str = "follow",
        linear: str = "",
        masks: bool = False,
        singular: bool = False,
        collective: str = "",
        numpy: Mapping[Any, Callable[..., Any] | None] | None = None,
        method: bool = False,
        listed: bool = True,
    ) -> None:
        if listed and name in PRIMITIVES:
            raise ArgumentError(
                "an op of that name exists", given=name, hint=f'another name, or first: del lab.PRIMITIVES["{name}"]'
            )
        if precision not in PRECISIONS:
            raise ArgumentError("unknown precision class", given=precision, hint=", ".join(PRECISIONS))
        self.name, self.arguments, self.forward, self.doc = name, arguments, forward, doc
        self.variadic = arguments[0].startswith("*")
        self.defaults: dict[str, Any] = dict(defaults or {})
        self.fixed: dict[str, Callable[[], Any]] = dict(fixed or {})
        self.formula, self.elementwise = formula, bool(formula)
        self.reference, self.samples, self.error_samples = reference, tuple(samples), tuple(error_samples)
        self.precision, self.linear, self.masks, self.singular, self.collective = (
            precision, linear, masks, singular, collective)  # fmt: skip
        self.numpy, self.method = dict(numpy or {}), method
        self.rules: list[Rule | None] = [None] * len(arguments)
        self.tangent: Callable[..., Any] | None = None
        self.batch: Callable[..., Any] | None = None
        self.shape: Callable[..., Spec] = self._shape_by_trial
        self.pull: Callable[..., None] | None = None
        self.shared: Callable[..., Sequence[Any] | None] | None = None
        self.joint: Callable[..., list[Any]] | None = None
        self.complete = False
        self.apply: Callable[..., Any] = self._first
        if listed:
            PRIMITIVES[name] = self

    def __repr__(self) -> str:
        return f"<op {self.name}({', '.join((*self.arguments, *self.defaults))})>"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return _find, (self.name,)

    def __call__(self, *args: Any, **params: Any) -> Any:
        return self.apply(*args, **params)

    def _first(self, *args: Any, **params: Any) -> Any:
        self.apply = MAKE_APPLY[-1](self)  # rules are added after the record is made: so at the first call, not before
        return self.apply(*args, **params)

    def parameters(self, rest: tuple[Any, ...], given: dict[str, Any]) -> dict[str, Any]:
        """All parameters by name: positional ones after the operands, keywords, defaults, and those the State fixes.

        Raises:
            ArgumentError: a parameter that the op does not have.
        """
        if not rest and not given:  # as activations are called mostly, in a third of the time
            params = self.defaults.copy()
            for name, value in self.fixed.items():
                params[name] = value()
            return params
        if not rest and not self.fixed and not self.elementwise and given.keys() <= self.defaults.keys():
            return {**self.defaults, **given}
        params = {**self.defaults, **{n: f() for n, f in self.fixed.items() if n not in given}, **given}
        params.update(zip(self.defaults, rest, strict=False))
        if len(params) > len(self.defaults) + len(self.fixed) or len(rest) > len(self.defaults):
            raise ArgumentError(
                f"{self.name} got a parameter that it does not have",
                given=", ".join([*map(repr, rest), *given]),
                hint=f"{self.name}({', '.join((*self.arguments, *(f'{k}={v!r}' for k, v in self.defaults.items())))})",
            )
        if self.elementwise and (rest or given):
            return {n: v if type(v) is float else _number(self, n, v) for n, v in params.items()}
        return params

    def rule(self, argument: int) -> Rule | None:
        """The rule of the edge to that argument."""
        return self.rules[0 if self.variadic else argument]

    def rule_text(self, argument: int) -> str:
        """What the edge to `argument` does to a cotangent, as text; "" if it lets nothing through.

        Example:
            >>> from lab.ops import PRIMITIVES
            >>> PRIMITIVES["multiply"].rule_text(0)
            'ct * y'
        """
        rule = self.rule(argument)
        return rule.text if rule else ""

    # --- decorators that complete the record ---

    def vjp(self, argument: int = 0, *, text: str) -> Callable[[F], F]:
        """Enter a rule for one argument: `rule(ct, out, *args, **params)`, in ops, so that it differentiates again.

        The names of its parameters say what must be saved: "_name" is not read, "name_like" gets a Spec (shape, dtype)
        only. A rule returns a fresh array, a view of `ct`, or `ct`, never a saved array itself. For a variadic op it
        also gets `argument=`.
        """

        def enter(rule: F) -> F:
            names = [p.name for p in inspect.signature(rule).parameters.values() if p.kind is not p.KEYWORD_ONLY]
            reads = tuple("" if n.startswith("_") else "like" if n.endswith("_like") else "value" for n in names[2:])
            self.rules[argument] = Rule(argument, text, rule, lambda: rule, not names[1].startswith("_"), reads)
            return rule

        return enter

    def together(self, rules: F) -> F:
        """Enter a fast twin of all rules at once: `rules(ct, out, *args, **params)`, the cotangents of all arguments.

        It is asked on arrays where every argument is tracked, and may answer None: then the rules are, one by one.
        """
        self.shared = rules
        return rules

    def jvp(self, rule: F) -> F:
        """Enter the forward-mode rule."""
        self.tangent = rule
        return rule

    def batching(self, rule: F) -> F:
        """Enter the batching rule."""
        self.batch = rule
        return rule

    def shaped(self, rule: F) -> F:
        """Enter the shape rule."""
        self.shape = rule
        return rule

    def _shape_by_trial(self, *specs: Any, **params: Any) -> Spec:
        """The default shape rule: run on ones, whose strides are 0 so that they take no memory."""
        with np.errstate(all="ignore"):
            trial = [np.broadcast_to(np.ones((), s.dtype), s.shape) if isinstance(s, Spec) else s for s in specs]
            out = np.asarray(self.forward(*trial, **params))
        return Spec(out.shape, out.dtype)


def _number(op: Op, name: str, value: Any) -> float:
    """A parameter of a formula as a number of Python, which takes the dtype of what it meets."""
    if not isinstance(value, Real):
        raise ArgumentError(
            f"{name} of {op.name} is a plain number",
            given=type(value).__name__,
            hint="it is fixed when the op is recorded; write the formula in ops to learn it or to map over it",
        )
    return int(value) if isinstance(value, Integral) else float(value)


def _find(name: str) -> Op:
    return PRIMITIVES[name]


def _plain(op: Op) -> Callable[..., Any]:
    """What applying an op means where nobody listens: run it."""

    def apply(*args: Any, **params: Any) -> Any:
        n = len(args) if op.variadic else len(op.arguments)
        return op.forward(*args[:n], **op.parameters(args[n:], params))

    return apply


MAKE_APPLY: list[Callable[[Op], Callable[..., Any]]] = [_plain]
"""The last entry makes `Op.apply` at the op's first call; `autograd/apply.py` appends its own."""


def primitive(
    *,
    reference: Callable[..., Any] | None = None,
    samples: Sequence[Sample] = (),
    error_samples: Sequence[tuple[tuple[Any, ...], dict[str, Any], str]] = (),
    **flags: Any,
) -> Callable[[Callable[..., Any]], Op]:
    """Make an op from its forward function: positional parameters are operands, keyword-only ones are parameters.

    Example:
        >>> import lab
        >>> @primitive(linear="each")
        ... def scaled(x, *, by=2.0):
        ...     "x times a fixed number."
        ...     return x * by
        >>> @scaled.vjp(text="ct * by")
        ... def scaled_vjp(ct, _out, _x, *, by):
        ...     return ct * by
        >>> lab.grad(lambda x: scaled(x, by=3.0))(1.0)
        tensor(3.)
        >>> del PRIMITIVES["scaled"]
    """

    def make(forward: Callable[..., Any]) -> Op:
        parameters = inspect.signature(forward).parameters.values()
        operands = tuple(
            f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name for p in parameters if p.kind is not p.KEYWORD_ONLY
        )
        doc = inspect.cleandoc(forward.__doc__ or "")
        return Op(
            forward.__name__.rstrip("_"),
            operands,
            forward,
            doc=doc,
            defaults={p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY},
            reference=reference,
            samples=samples,
            error_samples=error_samples,
            **flags,
        )

    return make


def formula_rule(
    argument: int, text: str, names: tuple[str, ...], namespace: Mapping[str, Any], more: tuple[str, ...] = ()
) -> Rule:
    """The Rule of an elementwise op from its text: a partial derivative, or the whole rule if it mentions `ct`.

    Args:
        names: the operands.
        more: the parameters of its formula.
    """
    partial = Formula(text)
    whole = partial
    if "ct" not in partial.names:
        simple = {"1": "ct", "1.0": "ct", "-1": "-ct", "-1.0": "-ct"}
        product = f"ct * {text}" if text.isidentifier() or text.replace(" ", "").isalnum() else f"ct * ({text})"
        whole = Formula(simple.get(text, product))
    parameters = ("ct", "out", *names, *more)
    made: list[Callable[..., Any]] = []

    def general() -> Callable[..., Any]:
        if not made:
            made.append(whole.compile({n: PRIMITIVES[NAMES_OF_OPS.get(n, n)] for n in whole.functions}, parameters))
        return made[0]

    return Rule(
        argument,
        whole.text,
        whole.compile(namespace, parameters),
        general,
        "out" in whole.names,
        tuple("value" if n in whole.names else "" for n in names),
    )


NAMES_OF_OPS: dict[str, str] = {"abs": "absolute"}
"""Functions of formulas whose op has another name."""
