"""Best-first search for the paths that make up one entry of a gradient, with books that always balance.

A path from an entry to the root multiplies local derivatives. A prefix with factor p that stands at (node, entry)
stands for p times the gradient there, and so do all of its continuations together: whatever has been expanded, the
finished paths and the open prefixes add up to the gradient.
"""

from __future__ import annotations

import functools
import heapq
import math
from collections.abc import Iterator
from itertools import count
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.local import Local
from lab.autograd.recorded import NotKept, Recorded, Walk, remembering
from lab.autograd.reread import Rules

HOOK = "a hook changed what had come back"
EXPANSIONS = 2_000
"""So many prefixes are expanded at most."""


class At(NamedTuple):
    """Where a prefix stands, how it came there, and its factor."""

    node: int
    entry: int
    argument: int
    """Number of the operand that the last entry was; -1 at the start."""
    slope: float
    """The local derivative of this last step."""
    factor: float
    before: At | None


class Found(NamedTuple):
    """A path to the root: factor times seed is its share."""

    end: At
    seed: float
    share: float
    walk: int


class Part(NamedTuple):
    """A part of a gradient that is no path: where it arises, how much, and why it cannot be followed."""

    node: int
    why: str
    share: float


class Steps(NamedTuple):
    """How a prefix goes on from (node, entry): one step each, the largest first, and what cannot be followed."""

    node: Any
    argument: Any
    entry: Any
    slope: Any
    term: Any
    """slope times the gradient there: the share for a factor of 1."""
    left: Any
    """Sum of the terms from here on."""
    parts: tuple[Part, ...]


class Search:
    """The paths of one walk, from one entry.

    Args:
        recorded: what the recording says.
        walk: the walk.
        rules: what its rules had read.
    """

    def __init__(self, recorded: Recorded, walk: Walk, rules: Rules) -> None:
        self.recorded, self.walk, self.rules = recorded, walk, rules
        self.parts: dict[tuple[int, str], list[float]] = {}
        self.gradient = remembering(self._gradient)
        self.local = remembering(self._local)
        self.steps = remembering(self._expanded)

    def _gradient(self, node: int) -> Any:
        operation = self.recorded.operation(node)
        if operation is None:
            raise NotKept("it was recorded before this recording began")
        return self.recorded.gradient(self.walk, node, operation.shape)

    def _local(self, node: int) -> Local:
        return Local(self.rules[node], self.gradient(node))

    def _expanded(self, place: tuple[int, int]) -> Steps:
        node, entry = place
        whole = float(self.gradient(node).reshape(-1)[entry])
        shape = self.gradient(node).shape
        edges = self.walk.consumers.get(node, [])
        came, parts, made, dark = [], [], [], []
        for edge in edges:
            try:
                sent = self.recorded.contribution(self.walk, edge, shape).reshape(-1)[entry]
            except NotKept as why:
                dark.append((edge[0], str(why)))
                continue
            came.append(float(sent))
            try:
                made.append((edge, *self._terms(edge, entry, shape, sent)))
            except NotKept as why:
                parts.append(Part(edge[0], str(why), float(sent)))
        gap = whole - math.fsum(came)
        if dark:
            parts.append(Part(dark[0][0], "; ".join(dict.fromkeys(why for _, why in dark)), gap))
        elif edges and not abs(gap) <= rounding(self.gradient(node).dtype, came, len(came)):
            parts.append(Part(node, HOOK, gap))
        return _sorted(made, tuple(part for part in parts if part.share))

    def _terms(self, edge: tuple[int, int], entry: int, shape: tuple[int, ...], sent: Any) -> tuple[Any, Any, Any]:
        """(entries of the consumer, slopes, terms) of one edge, checked against what the run sent along it."""
        node, argument = edge
        local = self.local(node)
        at, slopes = local.column(argument, entry, shape)
        cts = local.ct.reshape(-1)
        here, slopes = cts[at].astype(np.float64), slopes.astype(np.float64)
        with np.errstate(all="ignore"):
            terms = np.where(here == 0, 0.0, slopes * here)  # a branch that was not taken sends nothing, not 0 * inf
            total = float(terms.sum())
        mixed = () if local.exact else np.abs(cts.astype(np.float64))
        coarse = max((np.dtype(d) for d in (sent.dtype, local.ct.dtype)), key=spacing)
        room = rounding(coarse, (*terms, *mixed), len(terms) + len(mixed))
        if not abs(total - float(sent)) <= room:
            raise NotKept(
                f"its rule, evaluated again, sends {total:.6g} where the run sent {float(sent):.6g}: "
                "a value was changed unseen, or the op is another one in this lab"
            )
        used = np.flatnonzero(terms)
        return at[used], slopes[used], terms[used]

    # --- the search ---

    def stand(self, at: At) -> tuple[Steps | None, float]:
        """The continuations of a prefix, None at the root; what cannot be followed is put in the books."""
        if at.node == self.walk.root:
            return None, float(self.gradient(at.node).reshape(-1)[at.entry])
        steps = self.steps((at.node, at.entry))
        for part in steps.parts:
            self.parts.setdefault((part.node, part.why), []).append(at.factor * part.share)
        return steps, 0.0


def rounding(dtype: Any, terms: Any, n: int) -> float:
    """How far a sum of `n` terms may be off in that dtype."""
    size = float(np.sum(np.abs(np.asarray(terms, np.float64)))) if n else 0.0
    return (16 + n) * spacing(dtype) * size + float(np.finfo(np.float32).tiny)


@functools.lru_cache(64)
def spacing(dtype: Any) -> float:
    """How far numbers of a dtype near 1 lie apart."""
    return float(np.finfo(dtype).eps) if np.dtype(dtype).name in ("float16", "float32", "float64") else 2.0**-7


def _sorted(made: list[Any], parts: tuple[Part, ...]) -> Steps:
    """One array a column, largest terms first."""
    sizes = [len(terms) for _, _, _, terms in made]
    columns = [
        np.repeat([edge[0] for edge, *_ in made], sizes).astype(np.int64),
        np.repeat([edge[1] for edge, *_ in made], sizes).astype(np.int64),
        *(np.concatenate([np.empty(0), *(one[k] for one in made)]) for k in (1, 2, 3)),
    ]
    order = np.argsort(-np.abs(columns[4]), kind="stable")
    node, argument, entry, slope, term = (column[order] for column in columns)
    left = np.cumsum(term[::-1])[::-1]
    return Steps(node, argument, entry.astype(np.int64), slope, term, left, parts)


class Books(NamedTuple):
    """The end of a search: paths, largest first, and all else that adds up to the gradient."""

    paths: list[Found]
    rest: float
    n_open: int
    parts: list[tuple[int, Part]]
    """(number of the walk, part)."""
    certain: bool
    """Nothing that is left is larger, taken as a whole, than the smallest path given."""


def searched(searches: list[tuple[Search, int, int]], n_paths: int, budget: int = EXPANSIONS) -> Books:
    """The `n_paths` largest paths that are found from the given (search, node, entry).

    The open prefix with the largest share is taken, again and again, and followed along its largest continuations to
    the root: so there is a path early, and the best ones soon.
    """
    tie, found = count(), _Best(n_paths)
    # An entry stands for its r-th continuation and, in the books, for all from there on.
    heap: list[tuple[float, int, Search, At, Steps, int]] = []

    def push(search: Search, at: At, steps: Steps, r: int) -> None:
        if r < len(steps.term):
            heapq.heappush(heap, (-abs(at.factor * steps.term[r]), next(tie), search, at, steps, r))

    def follow(search: Search, at: At) -> int:
        n = 0
        while True:
            steps, seed = search.stand(at)
            n += 1
            if steps is None:
                found.add(Found(at, seed, at.factor * seed, search.walk.number))
                return n
            if not len(steps.term):
                return n
            push(search, at, steps, 1)
            at = _next(at, steps, 0)

    spent = sum(follow(search, At(node, entry, -1, 1.0, 1.0, None)) for search, node, entry in searches)
    while heap and spent < budget and not found.beats(-heap[0][0]):
        _, _, search, at, steps, r = heapq.heappop(heap)
        push(search, at, steps, r + 1)
        spent += follow(search, _next(at, steps, r))
    certain = not heap or found.beats(-heap[0][0])
    left = [at.factor * steps.left[r] for _, _, _, at, steps, r in heap]
    parts = [
        (search.walk.number, Part(node, why, math.fsum(shares)))
        for search, _, _ in searches
        for (node, why), shares in search.parts.items()
    ]
    n_open = sum(len(steps.term) - r for *_, steps, r in heap) + len(found.others)
    return Books(found.paths, math.fsum([*left, *found.others]), n_open, parts, certain)


def _next(at: At, steps: Steps, r: int) -> At:
    slope = float(steps.slope[r])
    return At(int(steps.node[r]), int(steps.entry[r]), int(steps.argument[r]), slope, at.factor * slope, at)


class _Best:
    """The largest paths so far, and the shares of all others."""

    def __init__(self, most: int) -> None:
        self.most, self._heap, self.others = most, list[tuple[float, int, Found]](), list[float]()
        self._tie = count()

    def add(self, path: Found) -> None:
        entry = abs(path.share), -next(self._tie), path
        if len(self._heap) < self.most:
            heapq.heappush(self._heap, entry)
        else:
            self.others.append(heapq.heappushpop(self._heap, entry)[2].share)

    def beats(self, size: float) -> bool:
        """Whether there are enough, and none is smaller."""
        return len(self._heap) == self.most and (not self._heap or self._heap[0][0] >= size)

    @property
    def paths(self) -> list[Found]:
        return [entry[2] for entry in sorted(self._heap, reverse=True)]


def walked(at: At) -> Iterator[At]:
    """The places of a prefix from its start on."""
    places = []
    place: At | None = at
    while place is not None:
        places.append(place)
        place = place.before
    yield from reversed(places)
