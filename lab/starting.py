"""Ctrl-C while a command still imports what it needs: one line and exit code 130, at once.

A KeyboardInterrupt there would come up in the middle of a half-loaded module, and in a callback of the import system it
is printed and lost. So until the imports are over the signal itself ends the process: nothing has begun by then.
"""

from __future__ import annotations

import os
import signal
import sys

STOPPED = 130
"""Exit code after Ctrl-C: 128 and the number of the signal, as shells count it."""
SAID = "\nStopped.\n"
_HERE = os.path.dirname(__file__)  # noqa: PTH120 -- pathlib is imported later than this


def is_command() -> bool:
    """Whether this process is `python -m lab`; it looks so from the import of `lab` on.

    Example:
        >>> is_command()
        False
    """
    if sys.argv[:1] not in (["-m"], [os.path.join(_HERE, "__main__.py")]):  # noqa: PTH118 -- as above
        return False
    words = sys.orig_argv
    return "-m" in words and words[words.index("-m") + 1 :][:1] == ["lab"]


def begin() -> None:
    """From here on Ctrl-C ends the process; where somebody else handles it, or ignores it, that stays."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        _set(_leave)


def over() -> None:
    """From here on Ctrl-C is a KeyboardInterrupt again, for what has to end in order."""
    if signal.getsignal(signal.SIGINT) is _leave:
        _set(signal.default_int_handler)


def _set(handler: object) -> None:
    try:
        signal.signal(signal.SIGINT, handler)  # type: ignore[arg-type]  # one of the two above
    except ValueError:  # only the main thread may; what runs in another is no command of a terminal
        return


def _leave(*_: object) -> None:
    os.write(2, SAID.encode())
    os._exit(STOPPED)
