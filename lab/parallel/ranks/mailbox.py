"""What whoever launched a program says to a rank while it runs: put from any thread, taken between two steps.

At the rank a Mailbox; where it is said an Outbox, which keeps it until the ranks have workers.
"""

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


class Outbox:
    """Messages on their way to ranks: kept until the ranks have workers, refused when the launch has ended.

    Example:
        >>> box, sent = Outbox(), []
        >>> box.put(0, b"early")
        True
        >>> box.open(lambda rank, message: sent.append(message))
        >>> box.close()
        >>> sent, box.put(0, b"late")
        ([b'early'], False)
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._send: Callable[[int, bytes], None] | None = None
        self._kept: list[tuple[int, bytes]] = []
        self._closed = False

    def put(self, rank: int, message: bytes) -> bool:
        """Send or keep it; whether it may still be heard."""
        with self._lock:
            if self._send is None:
                self._kept.append((rank, message))
            elif not self._closed:
                self._send(rank, message)
            return not self._closed

    def open(self, send: Callable[[int, bytes], None]) -> None:
        """Send what was kept, and what comes from now on."""
        with self._lock:
            for rank, message in self._kept:
                send(rank, message)
            self._send, self._kept = send, []

    def close(self) -> None:
        """Refuse what comes from now on."""
        with self._lock:
            self._closed, self._kept = True, []
