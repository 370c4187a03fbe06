"""One call at a time goes through a rank's connections, and none after a call that failed in the middle of a message.

What a failed call left unread would be taken for the next call's; so the first problem stays the answer to all calls.
"""

from __future__ import annotations

import threading

from lab.errors import LabError, MeshError


class Turnstile:
    """Lets one call in; a lock that is never waited for.

    Attributes:
        enter: with False, whether the call is in.
        leave: the call that was inside has ended well.

    Example:
        >>> gate = Turnstile(rank=0)
        >>> gate.enter(False), gate.enter(False)
        (True, False)
        >>> print(gate.refusal("recv", "barrier"))
        two calls of rank 0 at once
        given: barrier while it is in recv
        hint:  a Comm belongs to one thread, and to one call at a time
        >>> gate.fail(MeshError("ranks 0 and 1 make different calls", given="barrier and recv"))
        >>> print(gate.refusal("recv", "barrier"))
        ranks 0 and 1 make different calls
        given: barrier and recv
        hint:  rank 0 caught this error and went on; no call works after it, so let it end the program
    """

    def __init__(self, rank: int) -> None:
        lock = threading.Lock()
        self.rank, self.enter, self.leave = rank, lock.acquire, lock.release
        self._failed: BaseException | None = None

    def fail(self, error: BaseException) -> None:
        """The call that is inside raised: nobody comes in any more."""
        self._failed = self._failed or error

    def refusal(self, inside: str, call: str) -> MeshError:
        """Why `call` cannot come in while `inside` is there."""
        error = self._failed
        if error is None:
            return MeshError(f"two calls of rank {self.rank} at once", given=f"{call} while it is in {inside}",
                             hint="a Comm belongs to one thread, and to one call at a time")  # fmt: skip
        problem, given = (error.problem, error.given) if isinstance(error, LabError) else (
            f"a call of rank {self.rank} was broken off", f"{type(error).__name__}: {error}".rstrip(": "))  # fmt: skip
        return MeshError(problem, given=given, hint=f"rank {self.rank} caught this error and went on; "
                         "no call works after it, so let it end the program")  # fmt: skip
