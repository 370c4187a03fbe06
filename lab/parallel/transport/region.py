"""Memory that the ranks of one host share: between each two of them a queue of cells each way, and nothing on disk.

Rank 0 makes it as a file without a name, and hands its descriptor to the others over the connections that the door has
made; who has no such connection cannot reach it. It is gone as soon as nobody holds it, however its holders ended.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from typing import Any, NamedTuple

import numpy as np

from lab.errors import MeshError
from lab.events.event import Array
from lab.kernels.passing import HEADER, LINE

CELL, SLOTS = 1 << 17, 8
"""Bytes of a cell, and cells of a queue: what fits into a queue goes through without a change of turns."""
LEAST_CELL, LEAST_SLOTS = 1 << 12, 2
MOST = 1 << 26
"""Bytes of cells in all: 8 ranks have the full number, more of them smaller ones."""
PAGE = 4096


class Layout(NamedTuple):
    """Where everything is in a region for `world_size` ranks.

    Example:
        >>> two, many = Layout.of(2), Layout.of(64)
        >>> (two.slots, two.cell >> 10), (many.slots, many.cell >> 10), many.n_bytes >> 20
        ((8, 128), (2, 8), 66)
    """

    world_size: int
    slots: int
    cell: int
    heads: int
    """Word at which the headers of the cells begin."""
    data: int
    """Byte at which the cells begin."""
    n_bytes: int

    @classmethod
    def of(cls, world_size: int) -> Layout:
        n_lanes, slots, cell = world_size * world_size, SLOTS, CELL
        while n_lanes * slots * cell > MOST and (cell > LEAST_CELL or slots > LEAST_SLOTS):
            if cell > 4 * LEAST_CELL * slots or (slots == LEAST_SLOTS and cell > LEAST_CELL):
                cell //= 2
            elif slots > LEAST_SLOTS and cell <= 4 * LEAST_CELL * slots:
                slots //= 2
        heads = n_lanes * LINE
        data = -(-(heads + n_lanes * slots * HEADER) * 8 // PAGE) * PAGE
        return cls(world_size, slots, cell, heads, data, data + n_lanes * slots * cell)


class Region:
    """The shared memory as one rank sees it.

    Attributes:
        words, cells: all of it, as words and as bytes.
        prepared: what a rank keeps of the collectives that it has run in it, by what they depend on.
    """

    def __init__(self, rank: int, layout: Layout, memory: Any) -> None:
        self.rank, self.layout, self._memory = rank, layout, memory
        self.cells: Array = np.frombuffer(memory, np.uint8)
        self.words: Array = self.cells.view(np.int64)
        self.prepared: dict[object, Any] = {}

    def counts(self, src: int, dst: int) -> tuple[int, int]:
        """How many cells went from one rank to another, and how many of them have been taken."""
        lane = (src * self.layout.world_size + dst) * LINE
        taken = int(self.words[lane])
        return int(self.words[lane + LINE // 2]), taken

    def next_header(self, src: int) -> bytes | None:
        """The header of the first cell that `src` has sent to this rank and that has not been taken."""
        sent, taken = self.counts(src, self.rank)
        if sent == taken:
            return None
        layout = self.layout
        slot = (src * layout.world_size + self.rank) * layout.slots + taken % layout.slots
        place = layout.heads + slot * HEADER
        return self.words[place : place + HEADER].tobytes()

    def is_full(self, dst: int) -> bool:
        """Whether no cell is free in the queue to `dst`."""
        sent, taken = self.counts(self.rank, dst)
        return sent - taken >= self.layout.slots

    def close(self) -> None:
        """Let it go; the last who does so frees it."""
        self.prepared.clear()
        self.cells = self.words = np.zeros(0, np.uint8)
        if isinstance(self._memory, mmap.mmap):
            with contextlib.suppress(BufferError):  # an array that looks into it lives on, in a traceback or a child
                self._memory.close()
        self._memory = None


def in_this_process(world_size: int) -> list[Region]:
    """A region for ranks that are threads of one process, seen by each of them."""
    layout = Layout.of(world_size)
    memory = mmap.mmap(-1, layout.n_bytes)
    return [Region(rank, layout, memoryview(memory)) for rank in range(world_size)]


def make(world_size: int) -> int:
    """The descriptor of a new region, all of whose memory is there: a page that is missing later would kill a process.

    Raises:
        MeshError: this system has no such memory, or too little of it.
    """
    if not hasattr(os, "memfd_create"):
        raise MeshError("ranks share no memory here", given="a system without memfd", hint='transport="unix"')
    fd = -1
    try:
        fd = os.memfd_create("lab-ranks", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, Layout.of(world_size).n_bytes)
        os.posix_fallocate(fd, 0, Layout.of(world_size).n_bytes)
        seal(fd)
    except OSError as why:
        if fd >= 0:
            os.close(fd)
        raise MeshError(
            "there is no memory that ranks could share",
            given=f"{Layout.of(world_size).n_bytes / 2**20:.1f} MiB: {why.strerror or why}",
            hint='transport="unix", or fewer ranks',
        ) from why
    return fd


def seal(fd: int) -> None:
    """Nobody can make it shorter: a rank would die of reading where nothing is any more."""
    import fcntl

    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)


def enter(fd: int, rank: int, world_size: int) -> Region:
    """The region of a descriptor, which may be closed then.

    Raises:
        OSError, ValueError: it cannot be mapped.
    """
    layout = Layout.of(world_size)
    return Region(rank, layout, mmap.mmap(fd, layout.n_bytes))
