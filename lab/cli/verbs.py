"""The verbs of the command line, and how one of them is run; each is a function that returns an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import __version__, doctor, opener, starting
from lab.cli import arguments as verb_arguments
from lab.cli.parser import Parser, program
from lab.errors import LabError

MAX_PORT = 65_535
PORT = 8888

EXAMPLES = """examples:
  {lab} open                        begin with the first lesson
  {lab} train --report page.html    train, and write a page of it
  {lab} train --help                what a verb can be told"""


def run(argv: Sequence[str]) -> int:
    """Run the verb that these words name; the errors of the lab are their three lines."""
    for stream in (sys.stdout, sys.stderr):
        # A folder's name may have letters that this terminal (LANG=C) cannot show: show an escape, do not fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        arguments = parser().parse_args(argv)
        load: Callable[[argparse.Namespace], Callable[[argparse.Namespace], int]] = arguments.load
        verb = load(arguments)
        starting.over()
        return verb(arguments)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `autodiff-lab doctor | head`: the reader has seen enough, and so must the interpreter
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def parser() -> argparse.ArgumentParser:
    """The words that can be said. Each verb says in `load` how its function is imported.

    Example:
        >>> parser().parse_args(["open", "--port", "0"]).port
        0
    """
    lab = program()
    made = Parser(
        prog=lab,
        description="An interactive visual lab for automatic differentiation and parallel training.",
        epilog=EXAMPLES.format(lab=lab),
    )
    made.add_argument("--version", action="version", version=f"autodiff-lab {__version__}")
    verbs = made.add_subparsers(title="verbs", metavar="VERB", required=True)

    verb = verbs.add_parser(
        "open",
        help="open the lessons in JupyterLab",
        description="Copy the lessons into a folder of yours and open them in JupyterLab, on this "
        "machine only. A lesson that you changed is never overwritten: a newer version of it is "
        "put beside it as NAME.new.ipynb. In a checkout of the project and without FOLDER, its "
        "own notebooks are opened. Ctrl-C closes it.",
    )
    verb.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help=f"where your copies are (default: {opener.DEFAULT_FOLDER})",
    )
    verb.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    verb.add_argument(
        "--port",
        type=_port,
        default=PORT,
        metavar="N",
        help="first port to try (default: %(default)s); where it is taken the next free one, 0 is any free one",
    )
    verb.set_defaults(load=lambda _: _open)

    verb_arguments.add_to(verbs)

    verb = verbs.add_parser(
        "doctor",
        help="check this machine, and say what to do where something is wrong",
        description="Check in a few seconds whether the lab can work here; each line that failed "
        "has its cure, and the settings are listed with where they come from. The exit code is 1 "
        "when one failed. LAB_LOG=debug tells more.",
    )
    verb.set_defaults(load=lambda _: lambda _: doctor.report())

    verb = verbs.add_parser(
        "warm",
        help="compile the kernels now, so that no lesson waits for them",
        description="Compile every kernel and keep the result on disk; where it is kept is said at "
        "the end. What is there already is not compiled again.",
    )
    verb.set_defaults(load=lambda _: _warm)
    return made


def _port(text: str) -> int:
    """A number that a port can have; Jupyter would count on from 0 behind the last one."""
    if not text.isascii() or not text.isdigit() or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 (any free one) to {MAX_PORT}, not {text!r}")
    return int(text)


def _open(arguments: argparse.Namespace) -> int:
    folder = opener.prepare(arguments.folder)
    return opener.serve(folder, port=arguments.port, browser=not arguments.no_browser)


def _warm(_: argparse.Namespace) -> int:
    from lab import kernels, ops  # noqa: F401 - some ops run in loops of their own

    start, end = ("\r", "") if sys.stdout.isatty() else ("", "\n")  # one line that moves, or a log that grows

    def show(done: int, total: int, name: str) -> None:
        bar = "#" * (20 * done // max(total, 1))
        print(f"{start}Kernels [{bar:<20}] {done}/{total} {name:<40.40}", end=end if done < total else "\n", flush=True)

    kernels.warm(show)
    print(f"The compiled kernels are in {kernels.cache_folder()}")
    return 0
