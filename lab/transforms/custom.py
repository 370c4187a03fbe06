"""custom_vjp and custom_jvp: functions whose derivative the user says, where that of their ops is not the one wanted.

To cut a tape short, to keep less, to be exact where the formula is not, or to be deliberately wrong: straight-through
estimators, reversed or clipped gradients. What a rule returns is checked, and said with the names of its function.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from lab import tree
from lab.errors import ArgumentError, TransformError
from lab.graph.make import is_weak
from lab.transforms.arguments import function, returned, taken
from lab.transforms.calls import Call, apply, zeros_like
from lab.transforms.gradients import pullback
from lab.transforms.rulings import fitted, pair, spec_of
from lab.transforms.rulings import tangents as slopes_of


class _Run:
    """The containers of one call: arguments for leaves, leaves for results."""

    def __init__(self, name: str, structure: tree.Structure) -> None:
        self.name, self.structure = name, structure
        self.out_structure = tree.LEAF

    def arguments(self, leaves: Sequence[Any]) -> tuple[Any, ...]:
        """The arguments that these leaves stand for."""
        return tuple(tree.unflatten(self.structure, leaves))

    def leaves_of(self, out: Any) -> list[Any]:
        """The leaves of a result, whose structure is remembered."""
        flat, self.out_structure = tree.flatten(out)
        return [returned(x, self.name) for x in flat]


class _Custom:
    """A function with a rule: what both kinds share."""

    what = "a custom function"
    define = ""

    def __init__(self, f: Callable[..., Any]) -> None:
        self.f = function(f, self.what)
        self.name = getattr(f, "__name__", type(f).__name__)
        self.signature = inspect.signature(f)
        functools.update_wrapper(self, f, updated=())  # f may carry the attributes of another such function

    def __repr__(self) -> str:
        return f"<{self.what} {self.name}{self.signature}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function; its rule is asked when somebody differentiates it.

        Raises:
            TransformError: it has no rule yet.
        """
        args = self._positional(args, kwargs)
        flat, structure = tree.flatten(args)
        names = tuple(
            f"{name}{path}" for name, a in zip(self.signature.parameters, args, strict=False) for path in tree.paths(a)
        )
        names += tuple(f"argument {i}" for i in range(len(names), len(flat)))  # those of *args
        values = [x if is_weak(x) else taken(x, self.what) for x in flat]
        run = _Run(self.name, structure)
        outs = apply(self._call(run, names), values)
        return tree.unflatten(run.out_structure, outs)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as why:
            raise ArgumentError(
                f"{self.name} cannot be called like this", given=str(why), hint=f"{self.name}{self.signature}"
            ) from None
        bound.apply_defaults()
        if bound.kwargs:
            raise ArgumentError(
                f"{self.name} has a rule of its own, so its arguments are positional",
                given=", ".join(bound.kwargs),
                hint="remove the * from its parameters, or close over what is no number",
            )
        return bound.args

    def _call(self, run: _Run, names: tuple[str, ...]) -> Call:
        raise AssertionError(f"{type(self).__name__} does not say what its rule is")

    def _primal(self, run: _Run) -> Callable[..., list[Any]]:
        return lambda *leaves: run.leaves_of(self.f(*run.arguments(leaves)))

    def _no_rule(self) -> TransformError:
        return TransformError(f"{self.name} has no rule yet", given=repr(self), hint=f"{self.name}.{self.define}")



class CustomVjp(_Custom):
    """What `custom_vjp` makes of a function."""

    what, define = "custom_vjp", "defvjp(fwd, bwd)"

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(f)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any]) -> CustomVjp:
        """Set the rule: `fwd(*args) -> (out, kept)`, `bwd(kept, ct) -> (ct of each argument, ...)`."""
        self.fwd, self.bwd = function(fwd, "defvjp"), function(bwd, "defvjp")
        return self

    def _call(self, run: _Run, names: tuple[str, ...]) -> Call:
        if self.fwd is None or self.bwd is None:
            raise self._no_rule()
        fwd, bwd, name = self.fwd, self.bwd, self.name

        def forward(*leaves: Any) -> tuple[list[Any], Any]:
            out, kept = pair(fwd(*run.arguments(leaves)), f"fwd of {name}", "(the result, what bwd needs)")
            return run.leaves_of(out), (kept, [spec_of(x) for x in leaves])

        def backward(kept: Any, cotangents: list[Any]) -> list[Any]:
            of, specs = kept
            ct = tree.unflatten(run.out_structure, cotangents)
            return fitted(bwd(of, ct), run.structure, specs, names, f"bwd of {name}")

        text = f"{getattr(bwd, '__name__', 'bwd')}(kept, ct)"
        return Call(name, names, self._primal(run), forward, backward, None, text)


class CustomJvp(_Custom):
    """What `custom_jvp` makes of a function."""

    what, define = "custom_jvp", "defjvp(rule)"

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(f)
        self.rule: Callable[..., Any] | None = None

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule: `rule(primals, tangents) -> (out, tangent of out)`; a decorator."""
        self.rule = function(rule, "defjvp")
        return rule

    def _call(self, run: _Run, names: tuple[str, ...]) -> Call:
        if self.rule is None:
            raise self._no_rule()
        rule, name, who = self.rule, self.name, f"the rule of {self.name}"

        def push(primals: list[Any], tangents: list[Any]) -> tuple[list[Any], list[Any]]:
            result = rule(run.arguments(primals), run.arguments(tangents))
            out, tangent = pair(result, who, "(the result, its tangent)")
            outs = run.leaves_of(out)
            return outs, slopes_of(tangent, outs, run.out_structure, who)

        def forward(*leaves: Any) -> tuple[list[Any], Any]:
            places = [i for i, x in enumerate(leaves) if spec_of(x) is not None]
            zeros = [zeros_like(x) for x in leaves]

            def of_tangents(*tangents: Any) -> tuple[list[Any], list[Any]]:
                full = list(zeros)
                for i, t in zip(places, tangents, strict=True):
                    full[i] = t
                outs, slopes = push(list(leaves), full)
                return slopes, outs

            # A rule is linear in its tangents, so its derivative by them is the rule's transpose, wherever it is taken.
            _, back, outs = pullback(of_tangents, [zeros[i] for i in places], has_aux=True, what=name)
            return outs, (back, places)

        def backward(kept: Any, cotangents: list[Any]) -> list[Any]:
            back, places = kept
            cts: list[Any] = [None] * len(names)
            for i, c in zip(places, back(cotangents), strict=True):
                cts[i] = c
            return cts

        text = f"transposed {getattr(rule, '__name__', 'rule')}(ct)"
        return Call(name, names, self._primal(run), forward, backward, push, text)


def custom_vjp(f: Callable[..., Any]) -> CustomVjp:
    """A function whose reverse-mode derivative you say: `f.defvjp(fwd, bwd)`, as in JAX.

    `fwd(*args)` returns the result and whatever `bwd` should keep; `bwd(kept, ct)` returns a tuple with the cotangent
    of each argument (None: zero). They run where somebody differentiates, f itself elsewhere. Written in ops they can
    be differentiated again; `vmap` maps them, a Graph holds the call as one equation. Arguments may be containers; what
    is no number is closed over. On the plain tape the arguments are kept, too: second derivatives start from them.

    Raises:
        TransformError: forward mode (use `custom_jvp`); a value that f uses around its arguments is differentiated.
        ShapeError, ArgumentError: a rule returned what does not fit, when it did.

    Example:
        >>> import lab
        >>> @lab.custom_vjp
        ... def rounded(x):  # a step has no slope: pretend that it is straight
        ...     return lab.rint(x)
        >>> _ = rounded.defvjp(lambda x: (lab.rint(x), None), lambda kept, ct: (ct,))
        >>> lab.value_and_grad(rounded)(1.7)
        (tensor(2.), tensor(1.))
    """
    return CustomVjp(f)


def custom_jvp(f: Callable[..., Any]) -> CustomJvp:
    """A function whose derivative along a direction you say: `f.defjvp(rule)`, as in JAX; reverse mode follows from it.

    `rule(primals, tangents)` gets two tuples and returns the result and its tangent, linear in the tangents. Written
    in ops it is transposed by itself, and can be differentiated again.

    Raises:
        TransformError: a value that f uses around its arguments is differentiated.
        ShapeError, ArgumentError: the rule returned what does not fit, when it did.

    Example:
        >>> import lab
        >>> @lab.custom_jvp
        ... def log1pexp(x):
        ...     return lab.log(1.0 + lab.exp(x))
        >>> @log1pexp.defjvp
        ... def rule(primals, tangents):
        ...     (x,), (t,) = primals, tangents
        ...     return log1pexp(x), t * (1.0 - 1.0 / (1.0 + lab.exp(x)))
        >>> lab.grad(log1pexp)(0.0), lab.jvp(log1pexp, (0.0,), (2.0,))[1]
        (tensor(0.5), tensor(1.))
    """
    return CustomJvp(f)
