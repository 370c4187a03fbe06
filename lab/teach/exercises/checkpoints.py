"""Exercise of lesson 06: a checkpoint that keeps only what goes in.

It is judged by what a run with it does: numbers, arrays held after the forward, and how often the function ran.
"""

from __future__ import annotations

import functools
import tracemalloc
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from lab.autograd import Tensor, no_grad, tensor
from lab.errors import ExerciseError
from lab.teach.exercise import Check, Exercise, Mutant
from lab.teach.exercises.expressions import says
from lab.teach.plain import Plain
from lab.transforms import checkpoint, custom_vjp, vjp


def _sines(x: Any) -> Any:
    for _ in range(6):
        x = x.sin()
    return x


FUNCTIONS: dict[str, tuple[Callable[..., Any], int]] = {
    "six sines": (_sines, 1),
    "exp(-x) * x.mean()": (lambda x: (-x).exp() * x.mean(), 1),
    "tanh(x * y) * y": (lambda x, y: (x * y).tanh() * y, 2),
}
"""By its text: a function of arrays of N numbers that gives such an array, and how many it takes."""

N = 20_000
"""Numbers in an array, so that it outweighs a graph's own objects by far."""


class Done(NamedTuple):
    """What a run with a checkpoint did: three entries of numbers, then counts."""

    value: Any
    gradients: Any
    """After one backward, a row for each argument."""
    again: Any
    """After a second one, that adds."""
    held: int
    """Arrays more than before the forward, the result among them."""
    forward: int
    """Runs of the function in the forward."""
    backward: int
    """And in each backward."""


def of_a_function(make: Callable[[Callable[..., Any]], Any], text: str) -> Plain:
    """What a run of a checkpointed function does, as a `Done`.

    Raises:
        ExerciseError: there is no checkpointed function, or its result has no gradient.

    Example:
        >>> done = Done(*of_a_function(checkpoint, "six sines"))
        >>> done.held, done.forward, done.backward
        (1, 1, 1)
    """
    f, n_arguments = FUNCTIONS[text]
    runs = []

    @functools.wraps(f)
    def counted(*args: Any) -> Any:
        runs.append(text)
        return f(*args)

    piece = make(counted)
    if not callable(piece):
        raise ExerciseError("my_checkpoint gave no function", given=f"{piece!r}"[:100],
                            hint="it ends with a return of the function that has the rule")  # fmt: skip
    args = [tensor(np.linspace(0.3 + i, 0.9, N), requires_grad=True) for i in range(n_arguments)]
    out, held = _held(lambda: piece(*args))
    if not isinstance(out, Tensor) or not out.requires_grad:
        raise ExerciseError("what comes out has no gradient", given=f"{out!r}"[:100],
                            hint="nothing was recorded: call the function that has the rule")  # fmt: skip
    forward = len(runs)
    once, again = (_walked(out, args) for _ in range(2))
    return Done(_few(out), once, again, held, forward, (len(runs) - forward) // 2)


def _walked(out: Tensor, args: list[Tensor]) -> Any:
    """What the arguments have as their gradients after one more backward."""
    out.backward(tensor(np.linspace(1.0, 2.0, N)), retain_graph=True)
    return np.array([_few(a.grad) for a in args])


def _few(array: Any) -> Any:
    """First, middle and last; zeros for no gradient."""
    return np.zeros(3) if array is None else array.numpy()[[0, N // 2, -1]]


def _held(run: Callable[[], Any]) -> tuple[Any, int]:
    """What a run gives, and how many arrays of N numbers are held afterwards that were not before."""
    began = not tracemalloc.is_tracing()
    if began:
        tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        out = run()
        return out, round((tracemalloc.get_traced_memory()[0] - before) / (8 * N))
    finally:
        if began:
            tracemalloc.stop()


def _by_rule(forward: Callable[..., Any], backward: Callable[..., Any]) -> Callable[..., Any]:
    """A checkpoint from forward(f, *args) -> (out, kept) and backward(f, kept, ct) -> cotangents."""
    return lambda f: custom_vjp(f).defvjp(lambda *args: forward(f, *args), lambda kept, ct: backward(f, kept, ct))


def _replayed(f: Any, args: Any, ct: Any) -> Any:
    return vjp(f, *args)[1](ct)


def _kept_args(f: Any, *args: Any) -> Any:
    return f(*args), args


def _run_twice(f: Any, *args: Any) -> Any:
    vjp(f, *args)
    return f(*args), args


def _kept_out(f: Any, *args: Any) -> Any:
    out = f(*args)
    return out, [out] * len(args)


def _kept_both(f: Any, *args: Any) -> Any:
    out, back = vjp(f, *args)
    return out, (args, back)


def _slopes_at_once(f: Any, *args: Any) -> Any:
    out, back = vjp(f, *args)
    return out, back(np.ones(out.shape))


def _unrecorded(f: Any) -> Any:
    def piece(*args: Any) -> Any:
        with no_grad():
            return f(*args)

    return piece


def _each_alone(f: Any, args: Any, ct: Any) -> Any:
    return tuple(_replayed(f, args, ct)[i] for i in range(len(args)))


MY_CHECKPOINT = Exercise(
    name="my_checkpoint",
    task="Return f with a rule that keeps only the arguments, and runs f again for backward.",
    stub='''\
def my_checkpoint(f):
    def forward(*args):
        out, back = lab.vjp(f, *args)
        return out, back

    def backward(back, ct):
        return back(ct)

    return lab.custom_vjp(f).defvjp(forward, backward)
''',
    arguments=("f",),
    results=("value", "gradient", "gradient after a second backward", "number of arrays held after the forward",
             "number of runs of f in the forward", "number of runs of f in a backward"),
    answer=checkpoint,
    call=of_a_function,
    checks=(
        Check("a chain of sines", [("six sines",)]),
        Check("a function in which all depends on all", [("exp(-x) * x.mean()",)]),
        Check("two arguments", [("tanh(x * y) * y",)]),
    ),
    mutants=(
        Mutant("all that f saved is kept", _by_rule(vjp, lambda f, back, ct: back(ct)),
               "it is behind `back`: hand on args in its place, and make `back` where it is needed"),
        Mutant("f runs again, and all is kept all the same", _by_rule(_kept_both, lambda f, kept, ct: _replayed(
               f, kept[0], ct)), "forward needs no lab.vjp: f(*args) is enough"),
        Mutant("f runs more than once in the forward", _by_rule(_run_twice, _replayed),
               "one call gives the result; backward makes the other"),
        Mutant("f is run again for each argument", _by_rule(_kept_args, _each_alone),
               "one vjp gives the gradients of all arguments: call `back` once"),
        Mutant("the result is kept in place of the arguments", _by_rule(_kept_out, _replayed),
               "from what does f begin when it runs again?"),
        Mutant("ct is left out", _by_rule(_kept_args, lambda f, args, ct: _replayed(f, args, np.ones(ct.shape))),
               "what comes back from above is ct: start the walk with it, not with ones"),
        Mutant("ct is passed on as it came", _by_rule(_kept_args, lambda f, args, ct: (ct,) * len(args)),
               "that is the rule of a function that does nothing: run f again, by lab.vjp"),
        Mutant("the slopes are taken in the forward", _by_rule(_slopes_at_once, lambda f, slopes, ct: tuple(
               s * ct for s in slopes)), "which holds for functions that go entry by entry only. Keep args"),
        Mutant("ct is multiplied behind the walk", _by_rule(_kept_args, lambda f, args, ct: tuple(
               s * ct for s in _replayed(f, args, np.ones(ct.shape)))),
               "which holds for functions that go entry by entry only: start the walk with ct"),
        Mutant("nothing is recorded", _unrecorded, "then nobody can walk back: lab.custom_vjp says how",
               says("has no gradient")),
    ),
    hints=(
        "what must forward hand to backward, so that f can run once more there?",
        "one line of forward belongs into backward",
        "forward: return f(*args), args. backward: out, back = lab.vjp(f, *args)",
    ),
    show=lambda case: f"For f = {case[0]}",
)  # fmt: skip
