"""The command line: `python -m lab VERB`, also installed as `autodiff-lab`; `python -m lab --help` lists the verbs.

Each verb is one function that returns an exit code: 0 well, 1 not well, 2 a wrong command, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from lab import __version__, doctor, opener
from lab.cli import arguments as verb_arguments
from lab.cli.parser import Parser
from lab.errors import LabError

MAX_PORT = 65_535


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; argparse itself leaves with 2 where the command is wrong.

    Args:
        argv: the words after the program's name; those of the process when None.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        SystemExit: 0
    """
    for stream in (sys.stdout, sys.stderr):
        # A folder's name may have letters that this terminal (LANG=C) cannot show: show an escape, do not fail.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    arguments = _parser().parse_args(sys.argv[1:] if argv is None else argv)
    run: Callable[[argparse.Namespace], int] = arguments.run
    try:
        return run(arguments)
    except LabError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:  # `autodiff-lab doctor | head`: the reader has seen enough, and so must the interpreter
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="autodiff-lab",
        description="An interactive visual lab for automatic differentiation and parallel training.",
    )
    parser.add_argument("--version", action="version", version=f"autodiff-lab {__version__}")
    verbs = parser.add_subparsers(title="verbs", metavar="VERB", required=True)

    verb = verbs.add_parser(
        "open",
        help="open the lessons in JupyterLab",
        description="Copy the lessons into a folder of yours and open them in JupyterLab, on this "
        "machine only. A lesson that you changed is never overwritten: a newer version of it is "
        "put beside it as NAME.new.ipynb. In a checkout of the project and without FOLDER, its "
        "own notebooks are opened.",
    )
    verb.add_argument(
        "folder",
        nargs="?",
        type=Path,
        metavar="FOLDER",
        help=f"where your copies are (default: {opener.DEFAULT_FOLDER})",
    )
    verb.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    verb.add_argument("--port", type=_port, default=8888, help="first port to try; the next free one is taken")
    verb.set_defaults(run=_open)

    verb_arguments.add_to(verbs)

    verb = verbs.add_parser(
        "doctor",
        help="check this machine, and say what to do where something is wrong",
        description="Check in a few seconds whether the lab can work here; each line that failed "
        "has its cure. The exit code is 1 when one failed. LAB_LOG=debug tells more.",
    )
    verb.set_defaults(run=lambda _: doctor.report())

    verb = verbs.add_parser(
        "warm",
        help="compile the kernels now, so that no lesson waits for them",
        description="Compile every kernel and keep the result on disk.",
    )
    verb.set_defaults(run=lambda _: _warm())
    return parser


def _port(text: str) -> int:
    """A number that a port can have; Jupyter would count on from 0 behind the last one."""
    if not text.isascii() or not text.isdigit() or int(text) > MAX_PORT:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 (any free one) to {MAX_PORT}, not {text!r}")
    return int(text)


def _open(arguments: argparse.Namespace) -> int:
    folder = opener.prepare(arguments.folder)
    return opener.serve(folder, port=arguments.port, browser=not arguments.no_browser)


def _warm() -> int:
    from lab import kernels

    start, end = ("\r", "") if sys.stdout.isatty() else ("", "\n")  # one line that moves, or a log that grows

    def show(done: int, total: int, name: str) -> None:
        bar = "#" * (20 * done // max(total, 1))
        print(f"{start}Kernels [{bar:<20}] {done}/{total} {name:<40.40}", end=end if done < total else "\n", flush=True)

    kernels.warm(show)
    print(f"The compiled kernels are in {kernels.cache_folder()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
