"""All tests in two lanes at once, as most of them wait: for a browser, for workers, for a process that starts.

    python -m tests.lanes "not soak" [arguments of pytest]

They come in five parts, and whichever lane is free takes the next. What the first lane does is printed while it
runs, what the other did when a part has ended; the last line counts all.

A page or a worker that shares two cores with another lane may be too slow once. So where few tests of the parts that
wait for such have failed, these run once more, with the machine to themselves, and the last lines name those that
passed only then. What fails alone, too, has failed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Lock

from tests import slices

ROOT = Path(__file__).resolve().parents[1]
CACHES = ".pytest_cache"
FOLDERS = {
    "browser": ("browser",), "ranks": ("parallel", "training"), "whole": (), "surface": ("widgets", "teach"),
    "engine": (),
}  # fmt: skip
"""The parts, the longest first, and their folders of tests. Tests in no folder are of the whole: lessons, commands,
what is installed; all else, with the examples in docstrings, is the engine's."""
WAITING = ("browser", "ranks", "whole")
"""Parts whose tests wait for pages, workers and processes; a test of the others that fails once has failed."""
FEW = 4
"""So many failed tests are run once more; where more fail, it is no accident."""
NOTHING_CHOSEN = 5
"""How pytest ends where a selection (`-k`) takes no test of a part."""


def part_of(path: str) -> str:
    """The part that a place belongs to.

    Example:
        >>> [part_of(p) for p in ("tests/parallel/test_ring.py", "tests/test_readme.py", "tests/ops", "lab")]
        ['ranks', 'whole', 'engine', 'engine']
    """
    top, *below = Path(path).parts
    if top != "tests" or not below:
        return "engine"
    named = [part for part, folders in FOLDERS.items() if below[0] in folders]
    return named[0] if named else "whole" if below[0].endswith(".py") else "engine"


def arguments(part: str, rest: Sequence[str]) -> list[str] | None:
    """What pytest is called with for one part: its places, or those of them that were named; None if others were.

    Example:
        >>> arguments("ranks", ["-x", "tests/ops"]) is None, arguments("engine", ["-x", "tests/ops"])
        (True, ['-x', 'tests/ops'])
        >>> arguments("ranks", ["-x"])
        ['-x', 'tests/parallel', 'tests/training']
    """
    named = {a: part_of(a.partition("::")[0]) for a in rest if "/" in a and (ROOT / a.partition("::")[0]).exists()}
    if named:
        own = [a for a in rest if named.get(a, part) == part]
        return own if any(a in named for a in own) else None
    inside = [p for p in (ROOT / "tests").iterdir() if p.is_dir() or p.suffix == ".py"]
    places = ["lab", "widgets", *sorted(p.relative_to(ROOT).as_posix() for p in inside if p.name != "__pycache__")]
    left_out = {"tests/benchmarks", "tests/conftest.py"}
    return [*rest, *(p for p in places if part_of(p) == part and p not in left_out)]


def counts(text: str) -> dict[str, int]:
    """What the last line of a pytest run counts.

    Example:
        >>> counts("...\\n=== 1 failed, 12 passed, 4 deselected, 2 errors in 4.18s ===\\n")
        {'failed': 1, 'passed': 12, 'deselected': 4, 'errors': 2}
    """
    last = (text.strip().splitlines() or [""])[-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last.partition(" in ")[0])}


def failures(count: dict[str, int]) -> int:
    """How many tests failed, or had an error before or after.

    Example:
        >>> failures({"passed": 3, "failed": 1, "errors": 2}), failures({})
        (3, 0)
    """
    return sum(count.get(word, 0) for word in ("failed", "error", "errors"))


def failed_tests(part: str) -> list[str]:
    """The names of a part's tests that failed when it ran last."""
    kept = ROOT / CACHES / part / "v" / "cache" / "lastfailed"
    return list(json.loads(kept.read_text("utf-8"))) if kept.exists() else []


def verdict(statuses: set[int]) -> int:
    """How all ended, in one: a part that a signal ended has a negative status, and has not passed.

    Example:
        >>> verdict({0}), verdict({0, NOTHING_CHOSEN}), verdict({0, -9}), verdict({NOTHING_CHOSEN})
        (0, 0, 1, 5)
    """
    if statuses == {NOTHING_CHOSEN}:
        return NOTHING_CHOSEN
    return int(bool(statuses - {0, NOTHING_CHOSEN}))


class Runner:
    """Takes parts from a queue, one after the other in each lane, and keeps what they said."""

    def __init__(self, select: str, rest: Sequence[str]) -> None:
        self.statuses: dict[str, int] = {}
        self.found: dict[str, dict[str, int]] = {}
        self.only_alone: list[str] = []
        """Tests that failed beside others, and passed alone."""
        self._processes: list[subprocess.Popen[str]] = []
        self._command = (sys.executable, "-m", "pytest", "-m", select)
        self._parts: SimpleQueue[tuple[str, list[str]]] = SimpleQueue()
        self._printing = Lock()
        for part in FOLDERS:
            if (given := arguments(part, rest)) is not None:
                self._parts.put((part, given))

    def lane(self, *, live: bool) -> None:
        """Run parts until none is left."""
        while True:
            try:
                part, given = self._parts.get_nowait()
            except Empty:
                return
            self._run(part, given, live=live)

    def once_more(self) -> None:
        """Run what failed of the parts that wait, if that is little, with nothing beside it."""
        failed = {part: failures(self.found[part]) for part, status in self.statuses.items() if status == 1}
        if not failed or sum(failed.values()) > FEW or set(failed) - set(WAITING):
            return
        for part, n in failed.items():
            names, before = failed_tests(part), self.found[part]
            self._run(part, ["--last-failed", "--last-failed-no-failures=none"], live=True)
            if self.statuses[part] == 0:
                self.only_alone += names
            n_failed = failures(self.found[part]) or n * (self.statuses[part] != 0)
            n_passed = before.get("passed", 0) + self.found[part].get("passed", 0)
            self.found[part] = {"passed": n_passed, "failed": n_failed}

    def _run(self, part: str, given: list[str], *, live: bool) -> None:
        command = (*self._command, *given, f"--override-ini=cache_dir={CACHES}/{part}")
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
        self._processes.append(process)
        assert process.stdout is not None
        title = f" {part} ".center(80, "=")
        said = []
        if live:
            self._print(title)
        for line in process.stdout:
            said.append(line)
            if live:
                self._print(line, end="")
        self.statuses[part] = process.wait()
        self.found[part] = counts("".join(said))
        if not live:
            self._print("\n" + title + "\n" + "".join(said))

    def _print(self, text: str, end: str = "\n") -> None:
        with self._printing:
            print(text, end=end, flush=True)

    def end(self) -> None:
        """Whatever still runs is told to stop."""
        while not self._parts.empty():
            self._parts.get()
        for process in self._processes:
            process.terminate()


def main(select: str, *rest: str) -> int:
    """Run all parts; 0 if none failed and at least one test ran."""
    os.environ[slices.VARIABLE] = str(slices.seed())  # one slice for all parts, also where midnight comes between
    runner = Runner(select, rest)
    with ThreadPoolExecutor(1) as other:
        try:
            quiet = other.submit(runner.lane, live=False)
            runner.lane(live=True)
            quiet.result()
            runner.once_more()
        finally:
            runner.end()
    for name in runner.only_alone:
        print(f"failed beside other tests, passed alone: {name}")
    n_passed = sum(count.get("passed", 0) for count in runner.found.values())
    print(f"{n_passed} passed, {sum(map(failures, runner.found.values()))} failed")
    return verdict(set(runner.statuses.values()))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
