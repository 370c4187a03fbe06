"""A parser of the command line that says what is wrong in three lines, as the lab does everywhere.

That of Python prints the whole usage first, and what matters stands below it.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from typing import Any, NoReturn

from lab.errors import LabError


class Parser(argparse.ArgumentParser):
    """An ArgumentParser, also of each verb, whose errors are a problem, the words that were given, and a hint.

    Example:
        >>> Parser(prog="autodiff-lab").parse_args(["--fast"])
        Traceback (most recent call last):
        SystemExit: 2
    """

    _words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        if args is not None:
            self._words = list(args)
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the three lines and leave with 2."""
        told = LabError(f"{self.prog}: {message}", given=shlex.join([*self.prog.split(), *self._words]),
                        hint=f"{self.prog} --help lists what can be said")  # fmt: skip
        self.exit(2, f"{told}\n")
