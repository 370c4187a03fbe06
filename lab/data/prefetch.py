"""Batches that are loaded and preprocessed in a thread of their own, while the loop computes with those before them."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from contextvars import copy_context
from time import perf_counter_ns
from typing import Any, Generic, NamedTuple, TypeVar

from lab.checks import whole
from lab.errors import ArgumentError, UnsupportedError
from lab.events import StageRan, bus
from lab.words import shown

T = TypeVar("T")


class Prefetch(Generic[T]):
    """Goes over a loader in its order, at most `depth` items ahead of the loop.

    What the loader or `work` raises reaches the loop at the item where it happened. The thread ends with the loop,
    also when that is left early; it sees the settings that held where the loop began.

    Args:
        loader: a Loader, or anything to go over; each loop begins it anew.
        depth: finished items that may wait for the loop; 0 does all in the loop itself.
        work: what becomes of each item: `work(item)`; None leaves it as it is.

    Example:
        >>> import lab
        >>> batches = lab.data.Prefetch(range(4), depth=2, work=lambda n: n * n)
        >>> list(batches), [n for n in batches]
        ([0, 1, 4, 9], [0, 1, 4, 9])
    """

    def __init__(self, loader: Iterable[Any], depth: int = 2, work: Callable[[Any], T] | None = None) -> None:
        given: Any = loader
        if not isinstance(given, Iterable):
            hint = "a Loader, a list of files, ..."
            raise ArgumentError("Prefetch goes over a loader", given=shown(loader), hint=hint)
        if work is not None and not callable(work):
            raise ArgumentError("work is a function of an item", given=shown(work), hint="work=lambda batch: ...")
        self.loader, self.work = loader, work
        self.depth = whole("depth", depth, least=0, hint="2 is a good beginning; 0 loads in the loop")

    def __len__(self) -> int:
        """Items in one loop, where the loader knows it.

        Raises:
            UnsupportedError: it does not.
        """
        if not isinstance(self.loader, Sized):
            raise UnsupportedError("this loader does not know how many items it has", given=shown(self.loader),
                                   hint="a list or a Loader does; or count them in the loop")  # fmt: skip
        return len(self.loader)

    def __repr__(self) -> str:
        return f"Prefetch(depth={self.depth}) of {self.loader!r}"

    def __iter__(self) -> Iterator[T]:
        stages = _Stages(iter(self.loader), self.work, perf_counter_ns())
        return _told(_ahead(stages, self.depth) if self.depth else _in_line(stages), stages.begun)


class _Failed(NamedTuple):
    """What is handed over in place of an item."""

    why: BaseException


_END: Any = object()
"""What is handed over behind the last item."""


class _Stages:
    """Makes one item after another: loaded, then preprocessed."""

    def __init__(self, items: Iterator[Any], work: Callable[[Any], Any] | None, begun: int) -> None:
        self.items, self.work, self.begun = items, work, begun
        self.n = 0

    def next(self, lane: int) -> Any:
        """The next item, or _END."""
        start = perf_counter_ns()
        item = next(self.items, _END)
        if item is _END:
            return item
        _tell("load", self.n, lane, start, self.begun)
        if self.work is not None:
            start = perf_counter_ns()
            item = self.work(item)
            _tell("preprocess", self.n, lane, start, self.begun)
        self.n += 1
        return item


def _tell(stage: str, n: int, lane: int, start: int, begun: int) -> None:
    if bus.listeners:
        bus.emit(StageRan(stage, n, lane, start - begun, perf_counter_ns() - begun))


def _told(items: Iterator[Any], begun: int) -> Iterator[Any]:
    """The items; what the loop does with each is told, too."""
    try:
        for n, item in enumerate(items):
            start = perf_counter_ns()
            yield item
            _tell("compute", n, 0, start, begun)
    finally:
        items.close()  # type: ignore[attr-defined] # a generator: its thread ends now, and not when it is collected


def _in_line(stages: _Stages) -> Iterator[Any]:
    while (item := stages.next(0)) is not _END:
        yield item


def _ahead(stages: _Stages, depth: int) -> Iterator[Any]:
    """The items from a thread that is started here, and ends with this."""
    line = _Line(depth)

    def work() -> None:
        try:
            item = None
            while item is not _END and line.put(item := stages.next(1)):
                pass
        except BaseException as why:  # noqa: BLE001 - raised again in the loop, where the item would have been
            line.put(_Failed(why))

    thread = threading.Thread(target=copy_context().run, args=(work,), name="lab.prefetch", daemon=True)
    thread.start()
    try:
        while (item := line.get()) is not _END:
            if isinstance(item, _Failed):
                raise item.why
            yield item
    finally:
        line.close()
        thread.join()


class _Line:
    """A queue of at most `depth` items between two threads, that can be closed from its end."""

    def __init__(self, depth: int) -> None:
        self._depth = depth
        self._items: deque[Any] = deque()
        self._closed = False
        self._changed = threading.Condition()

    def put(self, item: Any) -> bool:
        """Wait until there is room; whether somebody still wants items."""
        with self._changed:
            while len(self._items) >= self._depth and not self._closed:
                self._changed.wait()
            self._items.append(item)
            self._changed.notify_all()
            return not self._closed

    def get(self) -> Any:
        """Wait for the next item."""
        with self._changed:
            while not self._items:
                self._changed.wait()
            self._changed.notify_all()
            return self._items.popleft()

    def close(self) -> None:
        """Nothing more is wanted."""
        with self._changed:
            self._closed = True
            self._items.clear()
            self._changed.notify_all()
