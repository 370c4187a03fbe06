"""Signs of mistakes in a plan: what it does wrong on every world that it was tried on, whatever its code looks like."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, wraps

import numpy as np
import numpy.typing as npt

from lab.errors import PlanError
from lab.parallel.paper.lockstep import simulate_arrays
from lab.parallel.paper.plans import Recv, Send, Step
from lab.teach.exercise import Seen
from lab.teach.plain import Plain

Sign = Callable[[Seen], bool]
Parts = npt.NDArray[np.int64]


def read(value: Plain) -> list[list[Step]] | None:
    """The steps of every rank from what `list_hops` gave; None if it is something else."""
    if not isinstance(value, tuple) or not all(isinstance(steps, tuple) for steps in value):
        return None
    try:
        return [[tuple(_hop(*hop) for hop in step) for step in steps] for steps in value]
    except (TypeError, ValueError):
        return None


def _hop(adds: bool | None, peer: int, start: int, stop: int) -> Send | Recv:
    if not (type(peer) is type(start) is type(stop) is int and (adds is None or type(adds) is bool)):
        raise TypeError
    return Send(peer, start, stop) if adds is None else Recv(peer, start, stop, adds)


@dataclass(frozen=True)
class Tried:
    """What a plan did on one world of at least two ranks."""

    n: int
    steps: list[list[Step]]
    """Of each rank, without steps in which it rests."""

    def sends(self, rank: int) -> list[Send]:
        """In their order."""
        return [hop for step in self.steps[rank] for hop in step if isinstance(hop, Send)]

    def receives(self, rank: int) -> list[Recv]:
        """In their order."""
        return [hop for step in self.steps[rank] for hop in step if isinstance(hop, Recv)]

    @cached_property
    def received(self) -> list[Recv]:
        """The receives of all ranks."""
        return [hop for rank in range(self.n) for hop in self.receives(rank)]

    @cached_property
    def hops(self) -> list[Send | Recv]:
        """The sends and receives of all ranks."""
        return [hop for steps in self.steps for step in steps for hop in step]

    @property
    def all_add(self) -> bool:
        """Every receive adds."""
        return all(hop.reduce for hop in self.received)

    @staticmethod
    def any_adds(receives: list[Recv]) -> bool:
        """Some receive adds."""
        return any(hop.reduce for hop in receives)

    @cached_property
    def parts(self) -> Parts | None:
        """(rank, chunk, whose part): how often it is there in the end; None if the plan cannot run."""
        return self.after(None)

    def after(self, n_steps: int | None) -> Parts | None:
        """The same after the first steps of every rank."""
        own = [np.tile(np.eye(self.n, dtype=np.int64)[rank], (self.n, 1)) for rank in range(self.n)]
        try:
            return np.stack(simulate_arrays(lambda rank, n, k: self.steps[rank][:n_steps], own))
        except PlanError:
            return None

    @property
    def single(self) -> bool:
        """Every hop carries one chunk."""
        return all(hop.stop - hop.start == 1 for hop in self.hops)

    @property
    def right(self) -> bool:
        """Every rank has every part once."""
        return self.parts is not None and bool((self.parts == 1).all())

    @property
    def counts_twice(self) -> bool:
        """Some part is in a sum more than once."""
        return self.parts is not None and bool(self.parts.max() > 1)

    def offsets(self) -> Iterator[int]:
        """By how many chunks, forwards or backwards, receives differ from their sends, where they do."""
        for dst in range(self.n):
            for src in range(self.n):
                sent = [hop.start for hop in self.sends(src) if hop.peer == dst]
                expected = [hop.start for hop in self.receives(dst) if hop.peer == src]
                around = ((r - s) % self.n for s, r in zip(sent, expected, strict=False) if r != s)
                yield from (offset if offset < 2 else offset - self.n for offset in around)


def tried(seen: Seen) -> list[Tried]:
    """The worlds of two and more ranks, each once; none if the plan raised in one of them."""
    found: dict[int, Tried] = {}
    for (n,), answer in seen:
        steps = None if answer.failure else read(answer.value)
        if n > 1 and (steps is None or len(steps) != n):
            return []
        if n > 1 and steps is not None:
            found.setdefault(n, Tried(n, [[step for step in own if step] for own in steps]))
    return list(found.values())


def sign(shows: Callable[[Tried], bool]) -> Sign:
    """A sign that has to show in every world."""

    @wraps(shows)
    def everywhere(seen: Seen) -> bool:
        worlds = tried(seen)
        return bool(worlds) and all(map(shows, worlds))

    return everywhere


def says(words: str) -> Sign:
    """The plan was refused with these words, in any world."""
    return lambda seen: any(answer.failure == "PlanError" and words in answer.message for _, answer in seen)


@sign
def nothing_is_added(t: Tried) -> bool:
    """Every receive stores."""
    return bool(t.received) and not t.any_adds(t.received)


@sign
def added_again(t: Tried) -> bool:
    """Every receive adds, and parts count twice."""
    return t.all_add and t.counts_twice


@sign
def adds_too_often(t: Tried) -> bool:
    """It adds and stores, but each rank adds n times, and parts count twice."""
    adds = {sum(hop.reduce for hop in t.receives(rank)) for rank in range(t.n)}
    return not t.all_add and adds == {t.n} and t.counts_twice


@sign
def only_one_rank_has_it(t: Tried) -> bool:
    """One rank has the whole sum, no other has."""
    return t.parts is not None and not t.counts_twice and int(t.parts.all(axis=(1, 2)).sum()) == 1


@sign
def not_handed_round(t: Tried) -> bool:
    """Every chunk's sum is at some rank, but nothing is ever stored."""
    return t.all_add and _made_but_not_shared(t.parts)


def _made_but_not_shared(parts: Parts | None) -> bool:
    """For every chunk some rank has the sum, and nothing counts twice, but not all have all."""
    if parts is None or parts.max() > 1:
        return False
    has = (parts == 1).all(axis=2)
    return bool(has.any(axis=0).all()) and not bool(has.all())


@sign
def begins_unfinished(t: Tried) -> bool:
    """After n - 1 steps every chunk's sum is at some rank; then there is only storing, and the end is wrong."""
    later = [hop for steps in t.steps for step in steps[t.n - 1 :] for hop in step if isinstance(hop, Recv)]
    return bool(later) and not t.any_adds(later) and not t.right and _made_but_not_shared(t.after(t.n - 1))


@sign
def chunks_left_at_home(t: Tried) -> bool:
    """No hop names some of the chunks."""
    touched = {chunk for hop in t.hops for chunk in range(hop.start, hop.stop)}
    return bool(t.hops) and len(touched) < t.n


@sign
def a_rank_left_out(t: Tried) -> bool:
    """All ranks but one talk to each other."""
    ranks = {rank for rank in range(t.n) if t.steps[rank]} | {hop.peer for hop in t.hops}
    return len(ranks) == (t.n - 1 if t.n > 2 else 0)


@sign
def one_side_is_missing(t: Tried) -> bool:
    """There are only sends, or only receives."""
    return bool(t.hops) and len({type(hop) for hop in t.hops}) == 1


@sign
def all_wait_first(t: Tried) -> bool:
    """The first step of every rank only receives."""
    return all(steps and not any(isinstance(hop, Send) for hop in steps[0]) for steps in t.steps)


@sign
def wrong_direction(t: Tried) -> bool:
    """Each rank receives from the one rank to which it sends, and nobody gets on (two ranks would)."""
    to = [{hop.peer for hop in t.sends(rank)} for rank in range(t.n)]
    come = [{hop.peer for hop in t.receives(rank)} for rank in range(t.n)]
    return to == come and all(len(peers) == 1 for peers in to) and (t.n == 2 or t.parts is None)


@sign
def one_rank_does_it_all(t: Tried) -> bool:
    """The sums are right, and one rank takes part in every hop."""
    pairs = [{rank, hop.peer} for rank in range(t.n) for step in t.steps[rank] for hop in step]
    return t.right and bool(pairs) and bool(set.intersection(*pairs))


@sign
def whole_buffers(t: Tried) -> bool:
    """Every hop carries all chunks."""
    return bool(t.hops) and all((hop.start, hop.stop) == (0, t.n) for hop in t.hops)


@sign
def same_chunk_again(t: Tried) -> bool:
    """Each rank sends one and the same chunk n - 1 times."""
    sent = [t.sends(rank)[: t.n - 1] for rank in range(t.n)]
    return t.single and all(len(hops) == t.n - 1 and len(set(hops)) == 1 for hops in sent)


def one_chunk_off(seen: Seen) -> bool:
    """Wherever a receive does not name its send's chunk, it names the next; or everywhere the one before."""
    off = [set(t.offsets()) if t.single else set() for t in tried(seen) if t.n > 2]
    return bool(off) and off[0] in ({1}, {-1}) and all(o == off[0] for o in off)


@sign
def a_step_short(t: Tried) -> bool:
    """One half has a step less than n - 1, or both have, and the sums are wrong."""
    n_receives = {len(t.receives(rank)) for rank in range(t.n)}
    return t.single and not t.right and n_receives in ({2 * (t.n - 1) - 1}, {2 * (t.n - 2)})


@sign
def a_step_too_many(t: Tried) -> bool:
    """The sums are right after a step more than 2 (n - 1)."""
    return t.single and t.right and all(len(t.receives(rank)) == 2 * t.n - 1 for rank in range(t.n))
