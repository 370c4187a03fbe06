"""What the launcher of a training keeps, to go on after the loss of a rank: its orders, and how often it goes on.

An order is kept until no state that ranks may go on from is older than it; said again, it is carried out once.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from lab.checks import whole
from lab.errors import ArgumentError, LostRankError, MeshError, RankMemoryError
from lab.parallel.training.steering import Order
from lab.words import counted, one_of, shown

ON_LOSS = ("replace", "shrink", "stop")


class OrderLog:
    """Orders that may have to be said again.

    Example:
        >>> log = OrderLog()
        >>> for serial in range(1, 5): log.add(Order(serial, "set"))
        >>> log.carried_out(2); log.stood(3); log.carried_out(4)
        >>> [order.serial for order in log.after(0)], [order.serial for order in log.after(3)]
        ([3, 4], [4])
    """

    def __init__(self) -> None:
        self._orders: list[Order] = []
        self._last, self._before, self._stood = 0, 0, 0

    def add(self, order: Order) -> None:
        """It has been given."""
        self._orders.append(order)

    def carried_out(self, serial: int) -> None:
        """Rank 0 has told so. Others may be one state behind it, and that has what rank 0 had told before."""
        if serial > self._last:
            self._before, self._last = self._last, serial
        self._prune()

    def stood(self, serial: int) -> None:
        """The training at home stands where the ranks stood after this one: all may have to go on from there."""
        self._stood = max(self._stood, serial)
        self._prune()

    @property
    def base(self) -> int:
        """The last order that the training at home has carried out."""
        return self._stood

    def after(self, serial: int) -> Iterator[Order]:
        """Those that a state with this last order has not seen."""
        return (order for order in self._orders if order.serial > serial)

    def _prune(self) -> None:
        limit = min(self._before, self._stood)
        self._orders = [order for order in self._orders if order.serial > limit]


class Crew(NamedTuple):
    """Who shall be the ranks of the next launch: workers by rank, "" for one that is new."""

    keeps: tuple[str, ...]
    world_size: int


class Restarts:
    """How often, and with whom, a run goes on.

    Args:
        on_loss: "replace" waits for another worker, "shrink" goes on with fewer ranks, "stop" does not go on.
        most: restarts of the whole run.

    Attributes:
        key: of what ranks keep; "" where they need not keep anything.
        n: restarts until now.
    """

    def __init__(self, on_loss: str = "stop", most: int = 0) -> None:
        self.on_loss, self.most, self.n = on_loss, most, 0
        self.key = "" if on_loss == "stop" or most == 0 else f"kept-{secrets.token_hex(8)}"

    def crew(self, lost: int, workers: Sequence[str], there: Sequence[str]) -> Crew:
        """The ranks of the next launch.

        Args:
            lost: the rank that is known to be.
            workers: of the ranks until now.
            there: those of them that the cluster still has.

        Example:
            >>> Restarts("replace", 1).crew(1, ["a", "b", "c"], ["a", "b"])
            Crew(keeps=('a', '', ''), world_size=3)
            >>> Restarts("shrink", 1).crew(1, ["a", "b", "c"], ["a", "b", "c"])
            Crew(keeps=('a', 'c'), world_size=2)
        """
        keeps = tuple(w if w in there and rank != lost else "" for rank, w in enumerate(workers))
        if self.on_loss == "shrink" and any(keeps):
            keeps = tuple(filter(None, keeps))
        return Crew(keeps, len(keeps))

    def refusal(self, error: LostRankError) -> LostRankError:
        """What to raise instead of going on once more."""
        if self.on_loss == "stop" or not self.most:
            return error
        given = f"loss number {self.n + 1} of the run, which outlives {self.most} (max_restarts={self.most})"
        hint = "the model is as it was at the last pause; a larger max_restarts= outlives more"
        if isinstance(error, RankMemoryError):  # more restarts would end alike
            given, hint = f"{given}; {error.given}", error.hint
        return type(error)(error.problem, given=given, hint=hint, rank=error.rank)


def refuse_no_restarts(on_loss: object, max_restarts: object) -> None:
    """Refuse what is no way to go on.

    Raises:
        ArgumentError: so it is.

    Example:
        >>> refuse_no_restarts("hope", 3)
        Traceback (most recent call last):
        lab.errors.ArgumentError: a lost rank is replaced, done without, or ends the run
        given: on_loss='hope'
        hint:  one of replace, shrink, stop
    """
    if not (isinstance(on_loss, str) and on_loss in ON_LOSS):
        raise ArgumentError("a lost rank is replaced, done without, or ends the run", given=f"on_loss={shown(on_loss)}",
                            hint=one_of(on_loss, ON_LOSS))  # fmt: skip
    whole("max_restarts", max_restarts, least=0, hint="3 losses are outlived if nothing is said; 0 outlives none")


def nobody_came(loss: LostRankError | None, why: MeshError) -> LostRankError:
    """What to raise where a lost rank was to be replaced, and no worker came."""
    problem, rank = (loss.problem, loss.rank) if loss else ("a rank was lost", -1)
    return LostRankError(f"{problem}, and no other came", given=why.given, rank=rank, hint="start a worker, wait longer"
                         ' (wait=), or on_loss="shrink" to go on with those that are left')  # fmt: skip


def waits_for(crew: Crew) -> str:
    """For whom the next launch waits.

    Example:
        >>> waits_for(Crew(("a", "", "c"), 3))
        'waiting for a worker in the place of the lost one: the cluster starts it, or somebody does'
    """
    n = crew.keeps.count("")
    who = "a worker in the place of the lost one" if n == 1 else f"{counted(n, 'worker')} in the places of the lost"
    return f"waiting for {who}: the cluster starts it, or somebody does" if n else "waiting for the ranks that are left"
