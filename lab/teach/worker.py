"""The process in which a learner's function runs: one job in, one line of JSON for each case out.

Whatever the function does (loop, recurse, print without end, take all memory, end the process) happens here and not in
the notebook's kernel; `guard.py` is the other side.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import pickle
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from typing import Any, TextIO

MAX_PRINTED = 2_000
"""Characters of the learner's prints that are kept and shown."""
MEMORY = 1 << 30
"""Bytes that the function may take on top of what the process holds when it starts."""


class Printed(io.TextIOBase):
    """A stdout that keeps the first characters and counts the rest."""

    def __init__(self) -> None:
        self.kept, self.n_characters = "", 0

    def write(self, text: str) -> int:
        self.n_characters += len(text)
        if len(self.kept) < MAX_PRINTED:
            self.kept = (self.kept + text)[:MAX_PRINTED]
        return len(text)


def main() -> None:
    """Take a pickled job of (call, function, cases) from stdin and answer on stdout."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 1)
    os.dup2(silence, 2)
    sys.modules["numba"] = None  # type: ignore[assignment]  # the NumPy twins do: no compiler, less memory, a quick start
    call, function, cases, filename, cpu_seconds = pickle.load(sys.stdin.buffer)  # noqa: S301 - from our own parent
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _limit(cpu_seconds)
    _send(answers, {"ready": True})
    for case in cases:
        _send(answers, run_case(call, function, case, filename))


def run_case(call: Callable[..., object], function: object, case: tuple[object, ...], filename: str) -> dict[str, Any]:
    """What one call came to, ready for JSON: its value, or what was raised and in which line of the learner's cell."""
    from lab.errors import LabError
    from lab.teach.plain import encode

    printed = Printed()
    with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(printed):
        try:
            outcome: dict[str, Any] = {"value": encode(call(function, *case))}
        except BaseException as why:  # noqa: BLE001 - SystemExit and KeyboardInterrupt of the learner's are answers too
            line = next((f.lineno for f in _frames(why) if f.filename == filename), 0)
            told = [str(why.given)[:1_000], str(why.hint)[:1_000]] if isinstance(why, LabError) else None
            outcome = {"raised": type(why).__name__, "message": _message(why), "line": line, "told": told}
    return outcome | {"printed": printed.kept, "n_printed": printed.n_characters}


def _frames(why: BaseException) -> Iterator[traceback.FrameSummary]:
    return reversed(traceback.extract_tb(why.__traceback__, limit=-200))


def _message(why: BaseException) -> str:
    try:
        notes = "".join(f" ({note})" for note in getattr(why, "__notes__", ()))
        return f"{getattr(why, 'problem', why)}{notes}"[:1_000]
    except Exception:  # noqa: BLE001 - a learner's exception may have a broken __str__
        return "(its text cannot be shown)"


def _send(answers: TextIO, line: dict[str, Any]) -> None:
    answers.write(json.dumps(line) + "\n")
    answers.flush()


def _end_with_parent() -> None:
    sys.stdin.buffer.read()  # returns when the kernel closes the pipe, or dies
    os._exit(1)


def _limit(cpu_seconds: int) -> None:
    try:
        import resource
    except ImportError:  # Windows has no such limits; the time-out still holds
        return
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_seconds, cpu_seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(OSError, ValueError):  # no /proc (macOS), or a lower hard limit is in force already
        with open("/proc/self/statm", encoding="ascii") as statm:  # noqa: PTH123 - one line of a pseudo-file
            held = int(statm.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (held + MEMORY, held + MEMORY))
