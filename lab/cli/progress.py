"""Progress of a long verb: one line that moves on a terminal, a log that grows anywhere else."""

from __future__ import annotations

import os
import shutil
import sys
from typing import Self

WIDTH = 20


class Progress:
    """Writes to stdout; what `show` wrote is gone when something else is said.

    Example:
        >>> with Progress() as progress:
        ...     progress.say("epoch 1 of 2: loss 0.7")
        epoch 1 of 2: loss 0.7
    """

    def __init__(self) -> None:
        self.moves = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"
        self._shown = 0

    def show(self, line: str) -> None:
        """Replace the moving line; nothing where none can move."""
        if self.moves:
            line = line[: shutil.get_terminal_size().columns - 1]
            print(f"\r{line:<{self._shown}}", end="", flush=True)
            self._shown = len(line)

    def say(self, line: str) -> None:
        """Write a line that stays."""
        self.clear()
        print(line, flush=True)

    def clear(self) -> None:
        """Take the moving line away."""
        if self._shown:
            print(f"\r{'':<{self._shown}}\r", end="", flush=True)
            self._shown = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()


def bar(done: int, total: int) -> str:
    """How far it is.

    Example:
        >>> bar(5, 20), bar(0, 0)
        ('[#####               ]', '[                    ]')
    """
    return f"[{'#' * (WIDTH * done // max(total, 1)):<{WIDTH}}]"
