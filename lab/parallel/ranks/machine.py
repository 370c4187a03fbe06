"""Which machine this is, as a number that ranks can compare: those on one machine share a monotonic clock."""

from __future__ import annotations

import zlib
from pathlib import Path
from socket import gethostname

BOOT = Path("/proc/sys/kernel/random/boot_id")


def machine() -> int:
    """A number of the machine that this process runs on, the same until it is started again.

    Example:
        >>> machine() == machine() >= 0
        True
    """
    return zlib.crc32((BOOT.read_text("ascii") if BOOT.exists() else gethostname()).encode())
