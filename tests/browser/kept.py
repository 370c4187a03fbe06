"""The gallery as its command makes it, with the recordings behind the page kept beside it.

`python -m tests.browser.kept PAGE` makes both; `Kept` reads the recordings.
"""

from __future__ import annotations

import sys
from functools import cached_property
from pathlib import Path
from typing import Any

from lab.__main__ import main
from lab.events import Recording
from widgets.gallery import runs


class Kept:
    """Recordings that were kept, by the names of `Runs`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    @cached_property
    def nothing(self) -> Recording:
        return Recording()

    def __getattr__(self, name: str) -> Recording:
        found = Recording.load(self._folder / f"{name}.rec")
        setattr(self, name, found)
        return found


def keep(page: Path) -> int:
    """Make the gallery, then write every recording that was made for it."""
    made: list[runs.Runs] = []

    class Noted(runs.Runs):
        def __init__(self, say: Any) -> None:
            super().__init__(say)
            made.append(self)

    runs.Runs = Noted  # type: ignore[misc]  # the command looks it up when it runs
    code = main(["gallery", "--out", str(page)])
    for name, found in vars(made[0]).items():
        if isinstance(found, Recording):
            found.save(page.parent / f"{name}.rec")
    return code


if __name__ == "__main__":
    sys.exit(keep(Path(sys.argv[1])))
