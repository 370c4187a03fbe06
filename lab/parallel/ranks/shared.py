"""Runs a compiled plan on one rank through shared memory: one call does all of it, and comes back when it waits.

Then Python does what a loop without the interpreter cannot: hear the alarm, read what peers say over their sockets,
look at the clock, and add what numba has no numbers for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from lab.events.event import Array
from lab.kernels import cells, passing
from lab.kernels.cores import n_cores
from lab.kernels.mover import mover
from lab.parallel.paper.plans import REDUCE, SEND, STORE
from lab.parallel.transport.region import Region
from lab.parallel.transport.sockets import Links, Patience
from lab.parallel.transport.wire import COLLECTIVE, HEADER, Call, pack

if TYPE_CHECKING:
    from lab.parallel.ranks.execute import Hop, Waves

SPINS, SPINS_IN_TURNS, YIELDS = 20_000, 20, 200
"""Looks with a pause before a rank gives its core away, where each has one and where they take turns; then looks after
which another may run."""
NAPS, NAPS_OWING = 64, 2
"""Short sleeps before Python looks around; few where something waits to be sent over a socket."""
SEGMENT = 1 << 19
"""Bytes of one chunk that go through at once, at most: what is sent, added and sent again stays in the cache of a core.
64 MiB take 14.5 ms on two idle cores, and 17 with twice as much."""
KEPT = 64
"""Collectives whose arrays of numbers are kept."""
NUMBER = 2
"""The word of a header that says the number of the collective."""
NOTHING = np.zeros(0, np.int64)


class Prepared:
    """What a rank needs of one collective on arrays of one size and dtype, besides the array: used again and again.

    Attributes:
        rows, setting, state: as `passing.move` takes them.
        hops, n_bytes: of each row.
        n_sent: bytes that this rank sends.
        times: of each row, when it was complete, if somebody wanted to know.
    """

    def __init__(self, region: Region, waves: Waves, n_elements: int, dtype: np.dtype[Any], adds: int) -> None:
        layout, size = region.layout, dtype.itemsize
        longest = -(-n_elements // waves.n_chunks) * size
        segment = min(SEGMENT, layout.slots * layout.cell)  # a queue that is full has its ranks take turns
        self.rows, self.hops = _rows(waves)
        self.state = np.zeros(passing.SCALARS + 4 * len(self.rows), np.int64)
        self.times, self._clock = np.zeros(len(self.rows), np.int64), NOTHING
        self.state[passing.SCALARS + 3 :: 4] = -1
        self.state[passing.NAPS] = NAPS
        self.head, self._said = np.zeros(HEADER // 8, np.int64), ("", "")
        self._watched = False, False
        spins = SPINS if layout.world_size <= n_cores() else SPINS_IN_TURNS
        self.setting = np.array([n_elements, size, waves.n_chunks, max(1, -(-longest // segment)), region.rank,
                                 layout.world_size, layout.slots, layout.cell, layout.heads, layout.data, spins, YIELDS,
                                 adds, 0, 0], np.int64)  # fmt: skip
        self.spill = np.zeros(0, np.uint8)
        self.n_bytes = [size * (n_elements * hop.stop // waves.n_chunks - n_elements * hop.start // waves.n_chunks)
                        for hop in self.hops]  # fmt: skip
        sends = self.rows[:, passing.KIND] == SEND
        self.n_sent = sum(n for n, is_send in zip(self.n_bytes, sends.tolist(), strict=True) if is_send)

    def watch(self, *, steps: bool, each: bool, times: bool = False) -> None:
        """Come back to Python before each step, and after each hop; or note the time of each hop."""
        self._clock = self.times if times else NOTHING
        if times:
            self.times[:] = 0
        if self._watched != (steps, each):
            self.setting[passing.STEPS], self.setting[passing.HOPS] = self._watched = steps, each

    def move(self, flat: Array, links: Links, head: Array) -> int:
        """Go on as far as it goes without Python; after passing.DONE all is ready for the next call."""
        compiled, region = mover(), links.shared
        assert compiled is not None
        assert region is not None
        return compiled(flat.view(np.uint8), self.spill, self.rows, self.setting, head, region.words, region.cells,
                        self.state, self._clock, links.alarm.flag)  # fmt: skip

    def arrived(self) -> list[tuple[int, Hop, int]]:
        """The hops that came, with their times and bytes, in their order."""
        found = sorted((time, row) for row, time in enumerate(self.times.tolist()) if time)
        return [(time, self.hops[row], self.n_bytes[row]) for time, row in found]

    def header(self, generation: int, call: Call) -> Array:
        """What each cell of this call begins with; from one call of a loop to the next, only the number is another."""
        if self._said != call[1:]:
            self.head[:] = np.frombuffer(pack(COLLECTIVE, generation, call, 0), np.int64)
            self._said = call[1:]
        self.head[NUMBER] = call.number
        return self.head

    def make_room(self) -> None:
        """For all that may have to be kept aside in a segment."""
        segments = int(self.setting[passing.SEGMENTS])
        spread = (self.rows[:, passing.STOP] - self.rows[:, passing.START]) * int(self.setting[passing.ITEM])
        self.spill = np.empty(self.n_sent // segments + int(spread.sum()), np.uint8)

    def awaited(self) -> tuple[list[int], list[int]]:
        """Peers from which something must come, and to which something must go, before the plan goes on."""
        first, last = (int(self.state[at]) for at in (passing.OLDEST, passing.LAST))
        is_open = self.state[passing.SCALARS + 2 :: 4][first:last] == 0
        rows = self.rows[first:last][is_open]
        sends = rows[:, passing.KIND] == SEND
        return rows[~sends, passing.PEER].tolist(), rows[sends, passing.PEER].tolist()


def _rows(waves: Waves) -> tuple[passing.Words, list[Hop]]:
    """The waves as `passing.move` wants them, and the hops of the rows."""
    rows: list[list[int]] = []
    hops: list[Hop] = []
    last: dict[tuple[bool, int], int] = {}
    for sends, receives, _ in waves.waves:
        end = len(rows) + len(sends) + len(receives)
        is_met = any(copied for _, copied in sends)
        for hop, kind, meets in [
            *((hop, SEND, copied) for hop, copied in sends),
            *((hop, REDUCE if hop.reduce else STORE, is_met) for hop in receives),
        ]:
            lane = kind == SEND, hop.peer
            rows.append([kind, hop.peer, hop.start, hop.stop, meets, last.get(lane, -1), end])
            last[lane] = len(hops)
            hops.append(hop)
    return np.array(rows, np.int64).reshape(-1, passing.END + 1), hops


def execute_shared(
    links: Links,
    region: Region,
    call: Call,
    flat: Array,
    waves: Waves,
    moved: Callable[[Hop, int], object] | None,
    before: Callable[[int], object] | None,
    combine: np.ufunc,
    later: Callable[[int, Hop, int], object] | None,
) -> None:
    """As `execute`, through shared memory."""
    prepared = prepare(region, waves, flat, combine)
    if not prepared.hops:
        return
    prepared.watch(steps=before is not None, each=moved is not None and later is None, times=later is not None)
    try:
        run_prepared(links, call, flat, prepared, moved, before, combine)
    finally:
        if later is not None:
            for time_ns, hop, n_bytes in prepared.arrived():
                later(time_ns, hop, n_bytes)


def run_prepared(
    links: Links,
    call: Call,
    flat: Array,
    prepared: Prepared,
    moved: Callable[[Hop, int], object] | None,
    before: Callable[[int], object] | None,
    combine: np.ufunc,
) -> None:
    """Run a collective that has been looked at before, and has hops, on an array of the same size and dtype."""
    links.n_sent += prepared.n_sent
    head = prepared.header(links.generation, call)
    if (word := prepared.move(flat, links, head)) != passing.DONE:
        _attend(_Run(links, call, flat, prepared, head), word, moved, before, combine)


def _attend(
    run: _Run,
    first: int,
    moved: Callable[[Hop, int], object] | None,
    before: Callable[[int], object] | None,
    combine: np.ufunc,
) -> None:
    """Answer each word of the compiled call, the `first` and those that follow, until all is done."""
    prepared, state = run.prepared, run.prepared.state
    for word in run.words(first):
        if word == passing.WAVE and before is not None:
            before(prepared.hops[int(state[passing.FIRST])].step)
        elif word == passing.HOP and moved is not None:
            row = int(state[passing.WHICH])
            moved(prepared.hops[row], prepared.n_bytes[row])
        elif word == passing.FOREIGN:
            run.combine(combine)


def prepare(region: Region, waves: Waves, flat: Array, combine: np.ufunc) -> Prepared:
    """What is needed of these waves on arrays such as `flat`, from the last time or new."""
    dtype = flat.dtype
    adds = cells.ADDED.get(dtype.str[1:], 0) if combine is np.add and dtype.isnative and flat.flags.aligned else 0
    key = waves, len(flat), dtype.itemsize, adds
    if (known := region.prepared.get(key)) is None:
        if len(region.prepared) >= KEPT:
            region.prepared.pop(next(iter(region.prepared)))
        known = region.prepared[key] = Prepared(region, waves, len(flat), dtype, adds)
    assert isinstance(known, Prepared)
    return known


class _Run:
    """One collective on its way."""

    def __init__(self, links: Links, call: Call, flat: Array, prepared: Prepared, head: Array) -> None:
        self.links, self.call, self.flat, self.prepared, self._head = links, call, flat, prepared, head
        assert links.shared is not None
        self.region = links.shared

    def words(self, word: int) -> Iterator[int]:
        """Go on until all is done; each word that is for others."""
        links, state = self.links, self.prepared.state
        patience, seen = None, 0
        while word != passing.DONE:
            if word == passing.IDLE:
                if patience is None or state[passing.MOVED] != seen:
                    patience, seen = Patience(links, COLLECTIVE, self.call), int(state[passing.MOVED])
                self._look_around(patience)
            elif word == passing.MISMATCH:
                self._refuse(int(state[passing.WHICH]))
            elif word == passing.ROOM:
                self.prepared.make_room()
            else:
                yield word
            word = self.prepared.move(self.flat, links, self._head)
        if patience is not None:
            links.stop_waiting()
            state[passing.NAPS] = NAPS

    def _look_around(self, patience: Patience) -> None:
        links = self.links
        receives, flush = self.prepared.awaited()

        def is_stuck(peer: int) -> bool:
            nothing_comes = peer in receives and self.region.next_header(peer) is None
            return nothing_comes or (peer in flush and self.region.is_full(peer))

        links.glance(self.call, is_stuck)
        patience.spend(receives, flush)
        self.prepared.state[passing.NAPS] = NAPS_OWING if links.owes else NAPS

    def _refuse(self, row: int) -> None:
        hop = self.prepared.hops[row]
        header = self.region.next_header(hop.peer)
        assert header is not None
        state, setting = self.prepared.state, self.prepared.setting
        a, b = passing.bounds(self.prepared.rows, setting, row, int(state[passing.SCALARS + 4 * row]),
                              int(state[passing.SEGMENT]))  # fmt: skip
        self.links.refuse_cell(COLLECTIVE, self.call, hop.peer, header, int(b - a), hop.step)

    def combine(self, combine: np.ufunc) -> None:
        """Do for a cell what only NumPy can."""
        state, size = self.prepared.state, self.flat.itemsize
        place, into, n_bytes = (int(state[at]) for at in (passing.CELL_AT, passing.INTO, passing.LENGTH))
        target = self.flat[into // size : (into + n_bytes) // size]
        cell = self.region.cells[place : place + n_bytes].view(self.flat.dtype)
        with np.errstate(over="ignore", invalid="ignore"):  # as over sockets
            combine(target, cell, out=target)
