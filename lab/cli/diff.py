"""`diff`: the first event in which two recordings differ, in three lines, and as a page where one is wanted."""

from __future__ import annotations

import argparse
import sys

from lab.cli import outputs
from lab.cli.reading import read
from lab.errors import LabError
from lab.events import compare

SAME, DIFFERENT, UNREADABLE = 0, 1, 2


def diff(arguments: argparse.Namespace) -> int:
    """Compare; 0 for the same, 1 for a difference, 2 for what cannot be read, compared or written."""
    try:
        outputs.require_writable(arguments.html, "page", outputs.REPORT_ROOM)
        a, b = (read(path, salvage=arguments.salvage, does="compares") for path in (arguments.a, arguments.b))
        found = compare(a, b, tolerance=arguments.tolerance)
        print(found.text)
        if arguments.html:
            from widgets.views.difference.view import DifferenceView

            DifferenceView(a, b, tolerance=arguments.tolerance).export(arguments.html)
            print(f"The page is in {arguments.html}")
    except LabError as error:
        print(error, file=sys.stderr)
        return UNREADABLE
    except OSError as error:
        print(f"the page could not be written\ngiven: {arguments.html}: {error.strerror or error}\n"
              "hint:  name another place, or make room", file=sys.stderr)  # fmt: skip
        return UNREADABLE
    return SAME if found.difference is None else DIFFERENT
