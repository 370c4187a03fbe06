"""The plan of one rank, run in one call through queues in shared memory, without the interpreter's lock.

Between each two ranks there is a queue of cells each way. Who sends fills a cell and counts `tail` up; who receives
empties it and counts `head` up; each count is written by one side only, so there is no lock, and no count ever goes
back. A call of `move` ends when the plan is done, or earlier with a word for its caller, who calls again: all that it
knows stands in `state`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from lab.kernels.atomics import give_way, load, nap, now, pause, store
from lab.kernels.cells import EXACT, Octets, add, copy
from lab.kernels.kernel import helper

Words = NDArray[np.int64]

DONE, IDLE, MISMATCH, FOREIGN, HOP, WAVE, ROOM = range(7)
"""What a call ends with: all is done; nothing moves, look around; a cell that is not the one expected; a cell to be
added by NumPy; a hop is complete; a step begins; more room is needed for what is kept aside."""

KIND, PEER, START, STOP, MEETS, LANE, END = range(7)
"""Columns of `rows`: 0 send, 1 store, 2 add; of a send whether a receive of its wave meets it, of a receive whether
there is such a send; the row before it in the same queue, -1 for none; the first row of the next wave."""

SEGMENT, FIRST, LAST, OLDEST, WAITED, MOVED, PENDING, ASIDE, WHICH, CELL_AT, INTO, LENGTH, NAPS, TOLD = range(14)
SCALARS = 16
"""Of `state`, before four words of each row: which of its stretches, bytes of that, whether it is done, and where what
is left of it stands aside (-1: it does not)."""

(ENTRIES, ITEM, CHUNKS, SEGMENTS, RANK, WORLD, SLOTS, CELL, HEADS, DATA, SPINS, YIELDS, ADDS, STEPS, HOPS) = range(15)
"""Of `setting`: sizes of the array, places in the region, how to wait, the dtype to add (a value of ADDED), whether to
end before each step and after each hop."""

LINE = 32
"""Words of the counts of a queue: `head` and `tail` have pairs of cache lines of their own."""
TAIL = 16
HEADER = 24
"""Words of a header."""
N_BYTES = 4
"""The word of a header that says how long the stretch is."""
NAP = 50
"""Microseconds."""

@helper(fastmath=EXACT)
def bounds(rows: Words, setting: Words, r: int, cut: int, segment: int) -> tuple[int, int]:
    """First byte and end of a stretch of a row: all its chunks, or of a large array a part of each."""
    entries, chunks, segments = setting[ENTRIES], setting[CHUNKS], setting[SEGMENTS]
    if segments == 1:
        a, b = entries * rows[r, START] // chunks, entries * rows[r, STOP] // chunks
    else:
        chunk = rows[r, START] + cut
        low = entries * chunk // chunks
        n = entries * (chunk + 1) // chunks - low
        a, b = low + n * segment // segments, low + n * (segment + 1) // segments
    return a * setting[ITEM], b * setting[ITEM]


@helper(fastmath=EXACT)
def advance(rows: Words, setting: Words, state: Words, r: int, pos: int, length: int) -> None:
    """A row has got to byte `pos` of its stretch of `length` bytes."""
    at = SCALARS + 4 * r
    state[at + 1] = pos
    if pos >= length:
        state[at + 1] = 0
        state[at] += 1
        if setting[SEGMENTS] == 1 or state[at] == rows[r, STOP] - rows[r, START]:
            state[at + 2] = 1


@helper(fastmath=EXACT)
def put(
    octets: Octets, spill: Octets, rows: Words, setting: Words, head: Words, words: Words, cells: Octets, state: Words,
    r: int,
) -> bool:  # fmt: skip
    """Fill one cell, if there is a free one."""
    lane = setting[RANK] * setting[WORLD] + rows[r, PEER]
    tail = words[lane * LINE + TAIL]
    if tail - load(words, lane * LINE) >= setting[SLOTS]:
        return False
    at = SCALARS + 4 * r
    a, b = bounds(rows, setting, r, state[at], state[SEGMENT])
    pos, kept = state[at + 1], state[at + 3]
    n = min(setting[CELL], b - a - pos)
    slot = lane * setting[SLOTS] + tail % setting[SLOTS]
    place = setting[HEADS] + slot * HEADER
    for i in range(HEADER):
        words[place + i] = head[i]
    words[place + N_BYTES] = b - a
    if kept < 0:
        copy(cells, setting[DATA] + slot * setting[CELL], octets, a + pos, n)
    else:
        copy(cells, setting[DATA] + slot * setting[CELL], spill, kept, n)
        state[at + 3] = kept + n
    store(words, lane * LINE + TAIL, tail + 1)
    advance(rows, setting, state, r, pos + n, b - a)
    return True


@helper(fastmath=EXACT)
def is_held(rows: Words, setting: Words, state: Words, x: int, y: int) -> bool:
    """Whether bytes x to y still have to be sent as they are, by a row of this wave."""
    for r in range(state[FIRST], state[LAST]):
        at = SCALARS + 4 * r
        if rows[r, KIND] == 0 and rows[r, MEETS] and not state[at + 2] and state[at + 3] < 0:
            cuts = 1 if setting[SEGMENTS] == 1 else rows[r, STOP] - rows[r, START]
            for cut in range(state[at], cuts):
                a, b = bounds(rows, setting, r, cut, state[SEGMENT])
                if cut == state[at]:
                    a += state[at + 1]
                if x < b and a < y:
                    return True
    return False


@helper(fastmath=EXACT)
def took(rows: Words, setting: Words, words: Words, state: Words, r: int, n: int) -> None:
    """The cell in front of a row's queue is empty again."""
    lane = rows[r, PEER] * setting[WORLD] + setting[RANK]
    store(words, lane * LINE, words[lane * LINE] + 1)
    at = SCALARS + 4 * r
    a, b = bounds(rows, setting, r, state[at], state[SEGMENT])
    advance(rows, setting, state, r, state[at + 1] + n, b - a)


@helper(fastmath=EXACT)
def take(
    octets: Octets, rows: Words, setting: Words, head: Words, words: Words, cells: Octets, state: Words, r: int
) -> int:
    """Empty one cell: 0 there is none, 1 so it was, 2 a receive waits for a send, MISMATCH + 2, FOREIGN + 2."""
    lane = rows[r, PEER] * setting[WORLD] + setting[RANK]
    count = words[lane * LINE]
    if load(words, lane * LINE + TAIL) <= count:
        return 0
    at = SCALARS + 4 * r
    a, b = bounds(rows, setting, r, state[at], state[SEGMENT])
    pos = state[at + 1]
    n = min(setting[CELL], b - a - pos)
    slot = lane * setting[SLOTS] + count % setting[SLOTS]
    place = setting[HEADS] + slot * HEADER
    for i in range(6):  # magic and kind, generation, number, tag, bytes and the mark of the call
        if words[place + i] != (b - a if i == N_BYTES else head[i]):
            state[WHICH] = r
            return MISMATCH + 2
    if rows[r, MEETS] and is_held(rows, setting, state, a + pos, a + pos + n):
        return 2
    cell = setting[DATA] + slot * setting[CELL]
    if rows[r, KIND] == 1:
        copy(octets, a + pos, cells, cell, n)
    elif setting[ADDS]:
        add(octets, a + pos, cells, cell, n, setting[ADDS])
    elif n:
        state[WHICH], state[CELL_AT], state[INTO], state[LENGTH], state[PENDING] = r, cell, a + pos, n, 1
        return FOREIGN + 2
    took(rows, setting, words, state, r, n)
    return 1


@helper(fastmath=EXACT)
def put_aside(octets: Octets, spill: Octets, rows: Words, setting: Words, state: Words, last: int) -> bool:
    """Copy what could not be sent, so that the plan goes on; False if there is too little room."""
    for r in range(state[OLDEST], last):
        at = SCALARS + 4 * r
        if rows[r, KIND] == 0 and not state[at + 2] and state[at + 3] < 0:
            cuts = 1 if setting[SEGMENTS] == 1 else rows[r, STOP] - rows[r, START]
            start = state[ASIDE]
            for cut in range(state[at], cuts):
                a, b = bounds(rows, setting, r, cut, state[SEGMENT])
                if cut == state[at]:
                    a += state[at + 1]
                if state[ASIDE] + b - a > spill.size:
                    state[ASIDE] = start
                    return False
                copy(spill, state[ASIDE], octets, a, b - a)
                state[ASIDE] += b - a
            state[at + 3] = start
    return True


@helper(fastmath=EXACT)
def is_complete(rows: Words, setting: Words, state: Words, times: Words, r: int) -> bool:
    """Whether a receive is done, of the whole array; its time is kept if that is wanted."""
    done: bool = state[SCALARS + 4 * r + 2] == 1 and state[SEGMENT] == setting[SEGMENTS] - 1
    if done and times.size:
        times[r] = now()
    return done


@helper(fastmath=EXACT)
def begin_segment(state: Words, n_rows: int) -> None:
    """No row has begun."""
    state[FIRST] = state[LAST] = state[OLDEST] = state[ASIDE] = 0
    for r in range(n_rows):
        at = SCALARS + 4 * r
        state[at] = state[at + 1] = state[at + 2] = 0
        state[at + 3] = -1


def move(  # noqa: C901 -- one loop: every call out of it would have all its arrays to hand over
    octets: Octets, spill: Octets, rows: Words, setting: Words, head: Words, words: Words, cells: Octets, state: Words,
    times: Words, flag: Words,
) -> int:  # fmt: skip
    """Go on with the plan until it is done, or there is a word for the caller.

    Args:
        octets: the bytes of the array.
        spill: room for what could not be sent and would be overwritten.
        rows, setting: as above; they do not change.
        head: the header that each cell of this collective has.
        words, cells: the region, as words and as bytes.
        state: as above.
        times: when each row was complete; empty if nobody wants to know.
        flag: its first word is not 0 when the group has ended.
    """
    n_rows, n_naps, waited = rows.shape[0], 0, state[WAITED]
    if state[PENDING]:
        state[PENDING] = 0
        r = state[WHICH]
        took(rows, setting, words, state, r, state[LENGTH])
        if is_complete(rows, setting, state, times, r) and setting[HOPS]:
            return HOP
    while True:
        if state[FIRST] == state[LAST]:
            if load(flag, 0):
                return IDLE
            if state[LAST] < n_rows:
                if setting[STEPS] and state[SEGMENT] == 0 and state[TOLD] <= state[FIRST]:
                    state[TOLD] = state[FIRST] + 1
                    return WAVE
                state[LAST] = rows[state[FIRST], END]
        last = state[LAST]
        moved = is_kept = waits = lags = owes = False
        for r in range(state[OLDEST], last):
            at = SCALARS + 4 * r
            if state[at + 2]:
                continue
            before = rows[r, LANE]
            is_first = before < 0 or state[SCALARS + 4 * before + 2] == 1
            if rows[r, KIND] == 0:
                if is_first and put(octets, spill, rows, setting, head, words, cells, state, r):
                    moved = True
                if not state[at + 2]:
                    if state[at + 3] < 0:
                        lags = True
                    else:
                        owes = True
                continue
            if is_first:
                found = take(octets, rows, setting, head, words, cells, state, r)
                if found > 2:
                    return found - 2
                moved |= found == 1
                is_kept |= found == 2
                if found == 1 and is_complete(rows, setting, state, times, r) and setting[HOPS]:
                    state[WHICH] = r
                    return HOP
            if not state[at + 2]:
                waits = True
        if not waits and not lags and not (owes and last == n_rows):
            state[FIRST] = last
            if last == n_rows:
                state[SEGMENT] += 1
                begin_segment(state, n_rows)
                if state[SEGMENT] == setting[SEGMENTS]:  # as it was before the first call: ready for the next array
                    state[SEGMENT] = state[WAITED] = state[TOLD] = 0
                    return DONE
            while not owes and state[OLDEST] < state[FIRST]:
                state[OLDEST] = state[FIRST]
            moved = True
        if moved:
            waited = n_naps = 0
            state[MOVED] += 1
            state[WAITED] = 0
            continue
        waited += 1
        if waited <= setting[SPINS]:
            pause()
        elif waited <= setting[SPINS] + setting[YIELDS]:
            give_way()
        else:
            if lags and (is_kept or not waits):
                if not put_aside(octets, spill, rows, setting, state, last):
                    return ROOM
                continue
            state[WAITED] = waited
            if load(flag, 0) or n_naps >= state[NAPS]:
                return IDLE
            n_naps += 1
            nap(NAP)
