"""What scheduler, workers and clients must call by the same name, and who shares a host with whom."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

NAME = f"lab {getattr(sys.modules['lab'], '__version__', '')}"
"""Of both plugins: two labs of different versions may use one cluster."""


def host_identity() -> str:
    """Equal for processes that can reach each other by unix sockets: one host, one network namespace."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        return f"{boot}/{os.stat('/proc/self/ns/net').st_ino}"  # noqa: PTH116 -- a link into the kernel
    except OSError:  # no Linux
        return socket.gethostname()
