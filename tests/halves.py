"""Two halves of the tests at once: those that drive a browser wait most of their time, and the rest fills it.

    python -m tests.halves "not soak" [arguments of pytest]

What the browser's half says is printed when it has ended, behind the other's; the last line counts both.
"""

import re
import subprocess
import sys
import tempfile

NOTHING_CHOSEN = 5
"""How pytest ends where a selection (`-k`) takes no test of a half."""


def counts(text: str) -> dict[str, int]:
    """What the last line of a pytest run counts.

    Example:
        >>> counts("...\\n=== 1 failed, 12 passed, 4 deselected, 2 errors in 4.18s ===\\n")
        {'failed': 1, 'passed': 12, 'deselected': 4, 'errors': 2}
    """
    last = (text.strip().splitlines() or [""])[-1]
    return {word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last.partition(" in ")[0])}


def verdict(statuses: set[int]) -> int:
    """How both ended, in one: a half that a signal ended has a negative status, and has not passed.

    Example:
        >>> verdict({0}), verdict({0, NOTHING_CHOSEN}), verdict({0, -9}), verdict({NOTHING_CHOSEN})
        (0, 0, 1, 5)
    """
    if statuses == {NOTHING_CHOSEN}:
        return NOTHING_CHOSEN
    return int(bool(statuses - {0, NOTHING_CHOSEN}))


def main(select: str, *rest: str) -> int:
    """Run both; 0 if neither failed and at least one test ran."""
    command = (sys.executable, "-m", "pytest", *rest, "-m")
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        # its own basetemp comes from pytest; the cache of failures is the other half's
        browser = subprocess.Popen((*command, f"({select}) and browser", "-p", "no:cacheprovider"),
                                   stdout=said, stderr=subprocess.STDOUT)  # fmt: skip
        try:
            other = subprocess.Popen((*command, f"({select}) and not browser"), stdout=subprocess.PIPE, text=True)
            assert other.stdout is not None
            lines = []
            for line in other.stdout:
                print(line, end="", flush=True)
                lines.append(line)
            statuses = {other.wait(), browser.wait()}
        finally:
            browser.terminate()
        said.seek(0)
        shown = said.read()
    print("\n" + " the browser's half ".center(80, "="), shown, sep="\n")
    found = [counts(text) for text in ("".join(lines), shown)]
    n_passed, n_failed = (sum(c.get(w, 0) for c in found for w in words)
                          for words in (("passed",), ("failed", "error", "errors")))  # fmt: skip
    print(f"{n_passed} passed, {n_failed} failed")
    return verdict(statuses)


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
