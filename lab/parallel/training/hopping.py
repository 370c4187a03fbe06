"""Into the steps of a training on ranks: a step of a collective, or a tick of a pipeline at a time, all ranks alike."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from time import perf_counter

from lab.errors import RunError
from lab.events.gate import Condition
from lab.events.recording import Recording
from lab.parallel.ranks.hops import Allowed, AtHop
from lab.parallel.ranks.ticks import AtTick


class Hopping:
    """What of a `Look` ranks can do: they are held before steps of a collective, or ticks of a pipeline.

    How, is in `lab.parallel.ranks.hops` and `ticks`.

    Args:
        units: ("hop",) or ("action",), or () where ranks cannot be held in a step.
        order: tells all ranks between two steps; called in the run's thread.
        say: tells those whom it concerns at once; called in any thread.

    Attributes:
        held: called in the run's thread with the words for where ranks are held.
    """

    def __init__(
        self, units: tuple[str, ...], order: Callable[[str, float], object], say: Callable[[object], object]
    ) -> None:
        self.units = units
        self.graph: Recording | None = None
        self.breakpoints: tuple[str, ...] = ()
        self.unmet: tuple[str, ...] = ()
        self.held: Callable[[str], object] = lambda words: None
        self._order, self._say = order, say
        self._lock = threading.Lock()
        self._hold = 0  # number of the hold that is wanted, or was last
        self._is_wanted = self._has_ended = False
        self._of_ranks = 0  # number of the hold that the ranks have, 0 for none
        self._n_allowed = 0.0
        self._at: AtHop | AtTick | None = None
        self._since = self._held_s = 0.0  # when this hold began, and how long those before it lasted

    @property
    def is_held(self) -> bool:
        """Whether ranks wait within a step."""
        return self._at is not None

    def step(self, n: int, unit: str) -> None:
        """Let ranks do `n` steps of collectives, or ticks, more."""
        with self._lock:
            self._release()
            if self._is_wanted and not self._has_ended:
                self._n_allowed += n
            else:  # another hold, so that what this one let through and was not used is forgotten
                self._hold, self._n_allowed = self._hold + 1, float(n)
                self._is_wanted, self._has_ended = True, False
            word = self._word()
        self._tell(word)

    def go_on(self) -> None:
        """Let ranks do all steps, from the next step of the training on without asking."""
        with self._lock:
            self._release()
            self._is_wanted, self._n_allowed = False, math.inf
            word = self._word()
        self._tell(word)

    def again(self) -> None:
        """Other ranks go on in the places of some: all have to be told anew what they may do."""
        with self._lock:
            self._release()
            word = self._word()
        self._tell(word)

    def leave(self) -> None:
        """The same."""
        self.go_on()

    def add(self, condition: Condition) -> str:
        """Operations run on workers, out of reach.

        Raises:
            RunError: always.
        """
        raise RunError("ranks cannot be held at an operation", given=str(condition), hint="bounds hold there, too")

    def remove(self, name: str) -> None:
        """There is none."""

    def begin(self, step: int) -> None:
        """A step of the training begins: the order goes before it."""
        with self._lock:
            wanted = self._hold if self._is_wanted else 0
            if wanted == self._of_ranks:
                return
        self._order("within", wanted)
        with self._lock:  # more may have been asked for since
            self._of_ranks = wanted
            word = self._word()
        self._tell(word)

    def step_ended(self) -> None:
        """The run is held between two steps."""
        with self._lock:
            self._has_ended = True

    def end(self) -> None:
        """The run ended."""

    def heard(self, word: AtHop | AtTick) -> None:
        """Rank 0 waits; so will all others."""
        with self._lock:
            if word.hold != self._hold or word.n_allowed != self._n_allowed:
                return  # more was allowed since
            self._at, self._since = word, perf_counter()
        self.held(word.words)

    def held_for(self) -> float:
        """Seconds for which ranks were held since this was asked last."""
        with self._lock:
            seconds, self._held_s = self._held_s, 0.0
        return seconds

    def _word(self) -> Allowed | None:
        """What ranks may do in the hold that they have; the lock is held."""
        if not self._of_ranks:
            return None
        is_theirs = self._is_wanted and self._of_ranks == self._hold
        return Allowed(self._of_ranks, self._n_allowed if is_theirs else math.inf)

    def _tell(self, word: Allowed | None) -> None:
        if word is not None:
            self._say(word)

    def _release(self) -> None:
        """Ranks wait no more; the lock is held."""
        if self._at is not None:
            self._held_s += perf_counter() - self._since
        self._at = None
