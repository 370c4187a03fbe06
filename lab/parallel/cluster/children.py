"""Processes that a rank's program starts end with it: a fork or a pool must not outlive its launch.

Linux alone, where /proc tells who descends from whom; elsewhere nothing is ended. Not found is who has left the family:
a process whose parent has ended, or whose worker was killed.
"""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep

ENDS = 1.0
"""Seconds in which a killed process is gone."""


class Children:
    """The processes that this one has now, and those that come later.

    Example:
        >>> import subprocess, sys
        >>> children = Children()
        >>> sleeper = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
        >>> children.end(), sleeper.poll() is None
        (1, False)
        >>> sleeper.stdin.close()
    """

    def __init__(self) -> None:
        self._before = _descendants()

    def end(self, *, reap: bool = True) -> int:
        """Kill those that came later and all that descends from them; how many there were.

        Args:
            reap: wait until they are gone. Not while the program may wait for them itself.
        """
        late = _descendants()
        new = {pid: parent for pid, parent in late.items() if pid not in self._before}
        for pid in new:
            with suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        if reap:
            until = monotonic() + ENDS
            for pid in [pid for pid, parent in new.items() if parent == os.getpid()]:
                with suppress(ChildProcessError):
                    while os.waitpid(pid, os.WNOHANG) == (0, 0) and monotonic() < until:
                        sleep(0.001)
        return len(new)


def _descendants() -> dict[int, int]:
    """The parent of each process that descends from this one."""
    if not hasattr(os, "waitid") or not Path("/proc/self/stat").exists():
        return {}
    try:  # a look into all of /proc takes milliseconds; mostly one call of the kernel says that there is nobody
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return {}
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text("ascii", "replace").rpartition(")")[2].split()[1])
    found = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return {pid: parents[pid] for pid in found - {os.getpid()}}
