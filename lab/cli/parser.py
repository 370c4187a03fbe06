"""A parser of the command line that says what is wrong in three lines, as the lab does everywhere.

That of Python prints the whole usage first, and what matters stands below it; an option that a verb does not know it
tells of the program, whose help does not list the options of verbs.
"""

from __future__ import annotations

import argparse
import re
import shlex
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from lab import starting
from lab.errors import LabError
from lab.words import nearest


def program() -> str:
    """How this program was called, so that what a hint says can be typed.

    Example:
        >>> program()
        'autodiff-lab'
    """
    return "python -m lab" if starting.is_command() else "autodiff-lab"


class Layout(argparse.HelpFormatter):
    """Paragraphs are filled as ever; a text of several lines, as examples are, stays as it was written."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        return text if "\n" in text else super()._fill_text(text, width, indent)


class Parser(argparse.ArgumentParser):
    """An ArgumentParser, also of each verb, whose errors are a problem, the words that were given, and a hint.

    Example:
        >>> Parser(prog="autodiff-lab").parse_args(["--fast"])
        Traceback (most recent call last):
        SystemExit: 2
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**{"formatter_class": Layout} | options)
        self._words: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As ever, except that nothing is left over for another parser: what is not known is told here."""
        self._words = list(sys.argv[1:] if args is None else args)
        if unknown := self._unknown():
            self.error(f"there is no option {unknown}", meant=nearest(unknown, self._options()))
        found, left = super().parse_known_args(self._words, namespace)
        if left:
            self.error(f"unrecognized arguments: {' '.join(left)}")
        return found, left

    def _options(self) -> list[str]:
        return [option for option in self._option_string_actions if option.startswith("--")]

    def _unknown(self) -> str:
        """The first option that there is not; "" if there is none. What stands behind a verb is for that verb."""
        for word in self._words:
            name = word.partition("=")[0]
            if word == "--" or (self._subparsers is not None and not word.startswith("-")):
                break
            if not re.fullmatch(r"-(?![\d.]).+", name) or name in self._option_string_actions or " " in name:
                continue
            if name.startswith("--") and any(option.startswith(name) for option in self._options()):
                continue  # a beginning is as good, or ambiguous: Python's own parser says so
            return name
        return ""

    def error(self, message: str, *, meant: str = "") -> NoReturn:
        """Print the three lines and leave with 2."""
        if chosen := re.match(r"argument ([^:]+): invalid choice: '(.*?)'", message):
            choices = next((list(map(str, a.choices)) for a in self._actions if a.choices is not None and chosen[1] in
                            {*a.option_strings, a.metavar, a.dest}), [])  # fmt: skip
            meant = nearest(chosen[2], choices)
        hint = f"{self.prog} --help lists what can be said"
        told = LabError(f"{self.prog}: {message}", given=shlex.join([*self.prog.split(), *self._words]),
                        hint=f"did you mean {meant}? {hint}" if meant else hint)  # fmt: skip
        self.exit(2, f"{told}\n")
