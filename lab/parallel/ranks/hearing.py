"""What ranks tell whoever launched them, while their program runs: few words, in order, none lost.

Events may be dropped where there are too many, and their arrays are small; a trained parameter must come home. A word
goes by the worker's stream to the scheduler, where it waits for the launcher's next question.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol


class Told(Protocol):
    """Where a rank puts a word: `comm.home`. A Mailbox of this process, or the way to the launcher's."""

    def put(self, message: object) -> None:
        """Tell it; never waits. It is read later: arrays in it must not change any more."""


class WayHome:
    """The way of a rank's words to its launcher.

    Args:
        send: takes a pickled word; never waits, keeps the order.
    """

    def __init__(self, send: Callable[[bytes], None]) -> None:
        self._send = send

    def put(self, message: object) -> None:
        """Tell it."""
        import cloudpickle

        self._send(cloudpickle.dumps(message))


class Hearing:
    """The launcher's ear: one question for words is always under way, so that an answer costs one way only.

    Args:
        ask: asks for the words that have come, and for the next one if none has; the answer may take a while.

    Example:
        >>> from concurrent.futures import Future
        >>> answer = Future()
        >>> hearing = Hearing(lambda: answer)
        >>> hearing.hear(timeout=0.0)
        []
        >>> answer.set_result([(0, pickle.dumps("step 3"))])
        >>> hearing.hear(timeout=0.0)
        [(0, 'step 3')]
    """

    def __init__(self, ask: Callable[[], Future[list[tuple[int, bytes]]]]) -> None:
        self._ask = ask
        self._asked: Future[list[tuple[int, bytes]]] | None = None
        self._stir = threading.Event()

    def hear(self, timeout: float) -> list[tuple[int, Any]]:
        """Words and the ranks that told them; none if none come in so many seconds, or the scheduler tires of waiting.

        Raises:
            OSError: the scheduler has gone.
        """
        if self._asked is None:
            self._stir.clear()
            self._asked = self._ask()
            self._asked.add_done_callback(lambda _: self._stir.set())
        self._stir.wait(timeout)
        if not self._asked.done():
            return []
        asked, self._asked = self._asked, None
        return [(rank, pickle.loads(word)) for rank, word in asked.result()]  # noqa: S301 -- our own ranks'

    def close(self) -> None:
        """Wait for nothing any more."""
        self._stir.set()
