"""`gallery`: one page of every view, from runs that take place while it is made."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from pathlib import Path

from lab.cli import outputs
from lab.cli.progress import Progress
from lab.cli.train import hushed
from lab.files import replacing


def gallery(arguments: argparse.Namespace) -> int:
    """Make the page; 1 if it cannot be written."""
    outputs.require_writable(arguments.out, "gallery", outputs.REPORT_ROOM)
    from widgets.gallery.exhibits import gallery_page
    from widgets.gallery.runs import Runs

    with ExitStack() as stack:
        progress = stack.enter_context(Progress())
        stack.enter_context(hushed())
        page = gallery_page(stack.enter_context(Runs(progress.say)))

    def save(path: Path) -> None:
        with replacing(path) as file:
            file.write(page.encode("utf-8"))

    return int(not outputs.tried("gallery", arguments.out, save))
