"""Running a learner's function where it can do no harm: in a process of its own, against the clock.

A thread cannot be stopped and a forked kernel inherits locks, so the function travels to a fresh interpreter
(`worker.py`); a time-out ends that process and all it started, and the notebook goes on.
"""

from __future__ import annotations

import contextlib
import json
import linecache
import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Any

from lab.teach.pack import pack
from lab.teach.plain import Plain, decode
from lab.teach.source import code_of

START_SECONDS = 60.0
"""For the interpreter to start and import NumPy and the lab, on a busy machine; not counted as the learner's."""
_CHILD = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from lab.teach.worker import main; main()"


@dataclass(frozen=True, slots=True)
class Answer:
    """What one call of the learner's function came to.

    Attributes:
        value: the plain value that it returned, if `failure` is empty.
        failure: "" or what happened instead: the name of an exception, "timeout", "memory", "exit", "crash", "start".
        message: the failure in a sentence.
        line: text of the learner's line in which it happened, "" if unknown.
        printed: the beginning of what it printed.
        told: for an error of the lab's own, its second and third line: what was given, and a hint.
    """

    value: Plain = None
    failure: str = ""
    message: str = ""
    line: str = ""
    printed: str = ""
    told: tuple[str, str] | None = None


def run_guarded(
    function: Callable[..., object],
    cases: Sequence[tuple[object, ...]],
    *,
    call: Callable[..., object],
    timeout: float = 3.0,
) -> list[Answer]:
    """Call `call(function, *case)` for each case in a process of its own; one Answer a case, fewer if one ended it all.

    Args:
        function: the learner's.
        cases: arguments of each call.
        call: how to call it; takes the function, then a case.
        timeout: seconds for all the calls together, from when the process is ready.

    Raises:
        ExerciseError: the function uses something that cannot travel.

    Example:
        >>> run_guarded(lambda x: x + 1, [(1,), ("a",)], call=lambda f, x: f(x))[1].failure
        'TypeError'
    """
    code = code_of(function)
    filename = code.co_filename if code else ""
    job = pack((call, function, [tuple(c) for c in cases], filename, int(timeout) + 2))
    try:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter, our own worker
            [sys.executable, "-c", _CHILD, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # an interrupt of the kernel is ours to handle, and the whole group can be ended
        )
    except OSError as why:
        return [Answer(failure="start", message=f"a process for your function could not be started: {why}")]
    try:
        return _converse(process, job, len(cases), filename, timeout)
    finally:
        _end(process)


def _converse(
    process: subprocess.Popen[bytes], job: bytes, n_cases: int, filename: str, timeout: float
) -> list[Answer]:
    assert process.stdin is not None
    assert process.stdout is not None
    lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
    with contextlib.suppress(BrokenPipeError):  # it died already: the missing line below says so
        process.stdin.write(job)
        process.stdin.flush()
    if not _next(lines, time.monotonic() + START_SECONDS):
        return [Answer(failure="start", message="the process for your function did not start")]
    answers: list[Answer] = []
    deadline = time.monotonic() + timeout
    while len(answers) < n_cases:
        line = _next(lines, deadline)
        if line is None:
            answers.append(Answer(failure="timeout", message=f"it was still running after {timeout:g} s"))
            break
        if not line:
            answers.append(_died(process))
            break
        answers.append(_answer(json.loads(line), filename))
    return answers


def _read(stdout: IO[bytes], lines: queue.SimpleQueue[bytes]) -> None:
    with stdout:
        for line in stdout:
            lines.put(line)
    lines.put(b"")


def _next(lines: queue.SimpleQueue[bytes], deadline: float) -> bytes | None:
    """The next line; b"" when the process has ended, None when the deadline has passed."""
    try:
        return lines.get(timeout=max(deadline - time.monotonic(), 0.001))
    except queue.Empty:
        return None


def _answer(data: dict[str, Any], filename: str) -> Answer:
    printed = str(data["printed"])
    if int(data["n_printed"]) > len(printed):
        printed += f"... ({data['n_printed']} characters in all)"
    if "value" in data:
        return Answer(decode(data["value"]), printed=printed)
    failure, message = str(data["raised"]), str(data["message"])
    line = linecache.getline(filename, int(data["line"])).strip()
    if failure == "MemoryError":
        return Answer(failure="memory", message="it wanted more than 1 GB of memory", line=line, printed=printed)
    if failure == "SystemExit":
        return Answer(failure="exit", message="it called exit", line=line, printed=printed)
    told = (str(data["told"][0]), str(data["told"][1])) if data["told"] else None
    return Answer(failure=failure, message=message, line=line, printed=printed, told=told)


def _died(process: subprocess.Popen[bytes]) -> Answer:
    code = process.wait()
    if code == -getattr(signal, "SIGXCPU", 0):
        return Answer(failure="timeout", message="it used up its time")
    if code == -signal.SIGKILL:
        return Answer(failure="memory", message="the system ended it: most likely it took too much memory")
    if code < 0:
        return Answer(failure="crash", message=f"its process crashed ({signal.Signals(-code).name})")
    return Answer(failure="exit", message=f"it ended its own process (exit code {code})")


def _end(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)  # also what the function may have started
        else:
            process.kill()
    assert process.stdin is not None
    with contextlib.suppress(BrokenPipeError):
        process.stdin.close()
    process.wait()
