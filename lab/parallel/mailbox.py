"""What whoever launched a program says to a rank while it runs: put from any thread, taken between two steps."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable


class Mailbox:
    """Messages to one rank, in the order in which they were put.

    Args:
        decode: makes of what was put what is taken, in the taker's thread; messages from afar come pickled.

    Example:
        >>> box = Mailbox()
        >>> box.put("pause")
        >>> box.take(), box.take(), box.wait(0.0)
        (['pause'], [], False)
    """

    def __init__(self, decode: Callable[[object], object] = lambda message: message) -> None:
        self._decode = decode
        self._messages: deque[object] = deque()
        self._changed = threading.Condition()

    def put(self, message: object) -> None:
        """Add a message; never waits."""
        with self._changed:
            self._messages.append(message)
            self._changed.notify_all()

    def take(self) -> list[object]:
        """All messages that came since the last time; costs 50 ns when there are none."""
        if not self._messages:
            return []
        with self._changed:
            taken = list(self._messages)
            self._messages.clear()
        return [self._decode(message) for message in taken]

    def wait(self, seconds: float) -> bool:
        """Wait until there is a message, at most so long; whether there is one."""
        with self._changed:
            return self._changed.wait_for(lambda: bool(self._messages), seconds)
