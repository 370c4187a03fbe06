"""Into the steps of a run: operation by operation, node by node of the backward walk, or on to a breakpoint.

The run's own thread is held by a `Gate`; what the step did until then is in a recording of its own, which begins anew
with each step, so that a picture of it stays small however long the run is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lab.events import EVENTS, Detail, OpRecorded, Recording, bus
from lab.events.gate import UNITS, Condition, Gate, Passing
from lab.nn import Module
from lab.training.places import check_place, modules_of

PER_OPERATION = tuple(kind for kind in EVENTS.values() if kind.per_operation)
LIMIT = 200_000
"""Events of one step that are kept; more are counted as dropped."""


class Inside:
    """What is known of the step under way while somebody looks into it; nothing, and no cost, while nobody does.

    Args:
        run: name of the run.
        held: called in the run's thread with the words for where and why, before it waits.
        within: model, loss or function whose modules it can be held in; nothing known of them if empty.
        abandons: whether a stop leaves the step in its middle.

    Attributes:
        graph: operations, values and gradients of the step that was looked into last; None before.
        gate: holds the run's thread.
    """

    units: tuple[str, ...] = UNITS

    def __init__(
        self, run: str, held: Callable[[str], object], *, within: Sequence[object] = (), abandons: bool = False
    ) -> None:
        self.run, self._within, self._abandons = run, within, abandons
        self.graph: Recording | None = None
        self.gate = Gate(run, lambda passing, why: held(words_for(passing, why)))
        self._is_stepped = False
        self._awaited: tuple[str, ...] = ()
        self._unmet: tuple[str, ...] = ()

    @property
    def is_wanted(self) -> bool:
        """Whether the next step is to be looked into."""
        return self._is_stepped or bool(self.gate.conditions)

    @property
    def is_held(self) -> bool:
        """Whether the run waits in the middle of a step."""
        return self.gate.held is not None

    @property
    def breakpoints(self) -> tuple[str, ...]:
        """The names of its breakpoints."""
        return tuple(self.gate.conditions)

    @property
    def unmet(self) -> tuple[str, ...]:
        """The names of those at places to which the last whole step did not come."""
        return tuple(name for name in self._unmet if name in self.gate.conditions)

    def step(self, n: int, unit: str) -> None:
        """Let `n` operations ("op") or backward nodes ("node") pass, and hold there."""
        self._is_stepped = True
        self.gate.step(n, unit)

    def go_on(self) -> None:
        """Let the step pass to its end, or to a breakpoint."""
        self._is_stepped = False
        self.gate.open()

    def add(self, condition: Condition) -> str:
        """Hold there from now on, from the next step on at the latest; returns the name of the breakpoint.

        Raises:
            ArgumentError: nothing that runs here is called so.
        """
        if condition.at:
            all_known = bool(self._within) and isinstance(self._within[0], Module)
            seen = () if self.graph is None else self.graph.columns(OpRecorded)["op"]
            check_place(condition.at, modules_of(*self._within), all_known=all_known, seen=set(seen))
        name = str(condition)
        self.gate.conditions = {**self.gate.conditions, name: condition}
        return name

    def remove(self, name: str) -> None:
        """Hold there no more."""
        self.gate.conditions = {n: c for n, c in self.gate.conditions.items() if n != name}

    def leave(self) -> None:
        """Nobody looks into it any more: the step goes on to its end without a gate, or is abandoned."""
        self._is_stepped = False
        if self._abandons:
            self.gate.abandon()
        else:
            self.gate.open(for_good=True)

    # --- in the run's thread ---

    def begin(self, step: int) -> None:
        """The step of this number begins."""
        wanted, gated = self.is_wanted, self.run in bus.gates
        if not (wanted or gated):
            return
        self._end_graph()
        self._look_back()
        if wanted:
            self.gate.forget()
            self._awaited = tuple(name for name, condition in self.gate.conditions.items() if condition.at)
            self.graph = Recording(kinds=PER_OPERATION, run=self.run, detail=Detail.VALUE, limit=LIMIT)
            self.graph.meta["title"] = f"step {step:,} of {self.run}"
            bus.attach(self.graph)
        if wanted != gated:
            bus.set_gate(self.run, self.gate if wanted else None)

    def step_ended(self) -> None:
        """The step is done, and the run is held behind it: what it was let through is forgotten."""
        self._look_back()
        if self._is_stepped:
            self.gate.open()

    def _look_back(self) -> None:
        """A step is over: all of it has passed the gate, and met those of its breakpoints that it can."""
        self._unmet = tuple(name for name in self._awaited if name not in self.gate.met)

    def end(self) -> None:
        """The run ended."""
        bus.set_gate(self.run, None)
        self._end_graph()

    def _end_graph(self) -> None:
        if self.graph is not None:
            self.graph.close()


def words_for(passing: Passing, why: str) -> str:
    """Where a run is held, as its `reason` says it.

    Example:
        >>> words_for(Passing("op", 12, "matmul", "1", None), "")
        'held after matmul of module 1'
        >>> words_for(Passing("node", 12, "matmul", "", None), "nan or inf")
        'nan or inf: held after the backward rule of matmul'
    """
    rule = "the backward rule of " if passing.unit == "node" else ""
    place = f"held after {rule}{passing.op}{f' of module {passing.module}' if passing.module else ''}"
    return f"{why}: {place}" if why else place
