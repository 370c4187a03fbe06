"""Where a rank listens, and how a peer reaches it: a unix socket on one host, TCP between hosts.

Nothing is found first and bound later: names are drawn or given by the kernel, and what is published is what is bound.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Self

LONGEST = 100
"""Bytes of a unix socket's path; the kernels allow 104 to 108."""
BACKLOG = 1024
ABSTRACT = sys.platform == "linux"
"""Names of unix sockets that are no files."""


class Listener:
    """A listening socket and its address, "unix:@name", "unix:/path" or "tcp:host:port".

    Example:
        >>> with Listener("tcp") as door: door.address.rpartition(":")[0]
        'tcp:127.0.0.1'
    """

    def __init__(self, transport: str, host: str = "127.0.0.1") -> None:
        self._folder = ""
        if transport == "unix":
            self.address, self.socket = self._unix(host)
        else:
            self.address, self.socket = self._tcp(host)
        self.socket.setblocking(False)

    def _unix(self, host: str) -> tuple[str, socket.socket]:
        name = f"lab-{secrets.token_hex(12)}"
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        if ABSTRACT:  # no file: nothing can be stale, too long or left behind
            sock.bind(f"\0{name}")
            sock.listen(BACKLOG)
            return f"unix:@{name}", sock
        try:
            path = self._short_folder() / "s"
            sock.bind(str(path))
            sock.listen(BACKLOG)
        except OSError:  # no folder that is writable and short enough
            sock.close()
            self._remove_folder()
            return self._tcp(host)
        return f"unix:{path}", sock

    def _short_folder(self) -> Path:
        for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 -- mkdtemp makes it private
            if len(os.fsencode(parent)) < LONGEST - 20 and os.access(parent, os.W_OK):
                self._folder = tempfile.mkdtemp(prefix="lab-", dir=parent)  # mode 0700
                return Path(self._folder)
        raise OSError("no short, writable folder for a socket")

    @staticmethod
    def _tcp(host: str) -> tuple[str, socket.socket]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.socket(family, socket.SOCK_STREAM)
        sock.bind((host, 0))
        sock.listen(BACKLOG)
        return f"tcp:{host}:{sock.getsockname()[1]}", sock

    def _remove_folder(self) -> None:
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    def close(self) -> None:
        """Stop listening and leave no file."""
        self.socket.close()
        self._remove_folder()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def reach(address: str) -> socket.socket:
    """A non-blocking socket on its way to `address`; it is writable when it got there.

    Raises:
        BlockingIOError: the other's backlog is full: try again.
        OSError: nobody listens there.
    """
    kind, _, where = address.partition(":")
    if kind == "unix":
        sock, target = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM), "\0" + where[1:] if where[0] == "@" else where
    else:
        host, _, port = where.rpartition(":")
        sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
        target = (host, int(port))  # type: ignore[assignment]
    try:
        sock.setblocking(False)
        tune(sock)
        # Only TCP may still be under way. A unix socket says "again" when the backlog is full, and is not.
        with contextlib.nullcontext() if kind == "unix" else contextlib.suppress(BlockingIOError):
            sock.connect(target)
    except BaseException:
        sock.close()
        raise
    return sock


def tune(sock: socket.socket) -> None:
    """No waiting for more on TCP, and room in the kernel for a large piece; less than asked for is fine."""
    if sock.family != socket.AF_UNIX:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for option in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        sock.setsockopt(socket.SOL_SOCKET, option, 1 << 20)
