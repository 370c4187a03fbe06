"""The words of the verbs that read and write files. Nothing of the lab is imported before one of them runs.

So the doctor can say what is missing where hardly anything works.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lab.cli.parser import program
from lab.words import nearest

DATA = ("digits",)
SCHEDULES = ("naive", "gpipe", "1f1b")
ON_LOSS = ("replace", "shrink", "stop")
"""Named here too, for the help: a test holds them equal."""
Verb = Callable[[argparse.Namespace], int]


TRAIN = """{lab} train --report report.html
{lab} train --workers 4 --record run.rec --report report.html
{lab} train --workers 4 --parallel pipeline --paced --report page.html"""


def _examples(lines: str) -> str:
    """Commands that can be typed, as the last paragraph of a help."""
    return "examples:\n" + "\n".join(f"  {line.format(lab=program())}" for line in lines.splitlines())


def add_to(verbs: Any) -> None:
    """Add these verbs to the command line."""
    _train(verbs)
    _replay(verbs)
    _diff(verbs)
    _gallery(verbs)
    _trace(verbs)
    _export(verbs)


def _train(verbs: Any) -> None:
    verb = verbs.add_parser("train", help="train the digits network, on workers too, and write a report",
                            description="Train the network of lesson 00. Ctrl-C stops all ranks; what was recorded "
                            "until then is still written.", epilog=_examples(TRAIN))  # fmt: skip
    verb.add_argument("--data", choices=DATA, default=DATA[0], help="what it learns (default: %(default)s)")
    verb.add_argument("--workers", type=count(0), metavar="N",
                      help="ranks, each in a worker process of its own; 0 or 1 trains in this process (default: 0, "
                      "or all workers of --scheduler)")  # fmt: skip
    verb.add_argument(
        "--parallel",
        choices=("data", "pipeline"),
        default="data",
        help="what the ranks share: the examples of a batch, or the layers (default: %(default)s)",
    )
    verb.add_argument("--on-loss", choices=ON_LOSS, help="when a worker of --parallel data dies: wait for another, go "
                      f"on with fewer, or end (default: {ON_LOSS[0]})")
    verb.add_argument("--epochs", type=count(1), default=10, metavar="N", help="times through the data (default: 10)")
    verb.add_argument("--batch-size", type=count(1), default=64, metavar="N", help="examples of a step (default: 64)")
    verb.add_argument("--learning-rate", type=positive, default=1e-3, metavar="X",
                      help="size of the steps of Adam, above 0 (default: 0.001)")
    verb.add_argument("--scheduler", metavar="ADDRESS", help="use a Dask cluster that is there, as "
                      "tcp://127.0.0.1:8786 (default: workers are started here, and end with the training)")
    verb.add_argument("--report", type=page_path, metavar="FILE.html",
                      help="write a page that plays it (default: none)")  # fmt: skip
    verb.add_argument("--record", type=Path, metavar="FILE", help="write the recording, again and again while it "
                      "trains, so that a kill leaves it (default: none); replay makes the page from it")  # fmt: skip
    pipeline = verb.add_argument_group("with --parallel pipeline")
    pipeline.add_argument("--schedule", metavar="NAME", help="order of the micro-batches: "
                          f"{', '.join(SCHEDULES[:-1])} or {SCHEDULES[-1]} (default: 1f1b)")
    pipeline.add_argument("--micro", type=count(1), metavar="N", help="parts into which each batch is cut (default: 8)")
    pipeline.add_argument("--paced", type=positive, nargs="?", const=20.0, metavar="MS",
                          help="forwards last at least so many milliseconds, backwards twice that: true pictures with "
                          "more ranks than cores (default: not paced; 20 if MS is not said)")  # fmt: skip

    def load(arguments: argparse.Namespace) -> Verb:
        _complete(arguments, verb)
        from lab.cli.train import train

        return train

    verb.set_defaults(load=load)


def _replay(verbs: Any) -> None:
    verb = verbs.add_parser("replay", help="make the report of a recording",
                            description="Make a page from a recording that `train --record` wrote: the same page that "
                            "`train --report` wrote then. Nothing is trained, nothing in the file is run.",
                            epilog=_examples("{lab} replay run.rec --report page.html"))  # fmt: skip
    verb.add_argument("recording", type=Path, metavar="RECORDING", help="what `train --record` or rec.save wrote")
    verb.add_argument("--report", type=page_path, required=True, metavar="FILE.html",
                      help="where the page goes (must be said)")  # fmt: skip
    verb.add_argument("--salvage", action="store_true", help="of a damaged or cut file, make the page of what stands "
                      "whole before the damage")  # fmt: skip

    def load(_: argparse.Namespace) -> Verb:
        from lab.cli.replay import replay

        return replay

    verb.set_defaults(load=load)


def _gallery(verbs: Any) -> None:
    verb = verbs.add_parser("gallery", help="make a page of every view, from small runs of everything",
                            description="Build a graph, train on digits, start four workers that sum, train and form a "
                            "pipeline, and write one page that plays every view. It takes about a minute.",
                            epilog=_examples("{lab} gallery --out gallery.html"))  # fmt: skip
    verb.add_argument("--out", type=page_path, default=Path("gallery.html"), metavar="FILE.html",
                      help="where the page goes (default: %(default)s)")  # fmt: skip

    def load(_: argparse.Namespace) -> Verb:
        from lab.cli.gallery import gallery

        return gallery

    verb.set_defaults(load=load)


def _trace(verbs: Any) -> None:
    verb = verbs.add_parser("trace", help="write a recording for Perfetto or chrome://tracing",
                            description="Write a recording as a trace: ranks as processes, steps, collectives with "
                            "their hops, pipeline actions and backward walks as slices, on one clock. Open the file at "
                            "https://ui.perfetto.dev or in chrome://tracing; nothing is sent anywhere by "
                            "writing it.", epilog=_examples("{lab} trace run.rec --out trace.json.gz"))  # fmt: skip
    verb.add_argument("recording", type=Path, metavar="RECORDING", help="what `train --record` or rec.save wrote")
    verb.add_argument("--out", type=trace_path, required=True, metavar="FILE.json",
                      help="where the trace goes (must be said); FILE.json.gz is a tenth as large")  # fmt: skip
    verb.add_argument("--salvage", action="store_true", help="of a damaged or cut file, write the trace of what stands "
                      "whole before the damage")  # fmt: skip

    def load(_: argparse.Namespace) -> Verb:
        from lab.cli.trace import trace

        return trace

    verb.set_defaults(load=load)


def _export(verbs: Any) -> None:
    verb = verbs.add_parser("export", help="write a saved graph as plain NumPy or as ONNX",
                            description="Write a graph that lab.graph.save wrote as one Python file that needs NumPy "
                            "alone, or as an ONNX model (extra onnx), which is run beside the lab first. What cannot "
                            "be written is refused by name.",
                            epilog=_examples("{lab} export model.graph --to numpy --out model.py"))  # fmt: skip
    verb.add_argument("graph", type=Path, metavar="MODEL.graph", help="what lab.graph.save wrote")
    verb.add_argument("--to", choices=("numpy", "onnx"), default="numpy", help="the form (default: %(default)s)")
    verb.add_argument("--out", type=Path, required=True, metavar="FILE", help="where it goes (must be said)")

    def load(_: argparse.Namespace) -> Verb:
        from lab.cli.export import export

        return export

    verb.set_defaults(load=load)


def _diff(verbs: Any) -> None:
    verb = verbs.add_parser("diff", help="find the first event in which two recorded runs differ",
                            description="Compare two recordings rank by rank, event by event, and say in three lines "
                            "where they differ first: operation, rank, source line, and both values. Times, names of "
                            "runs, processes and addresses are left out. The exit code is 0 if they do not differ, 1 "
                            "if they do, 2 if one cannot be read.",
                            epilog=_examples("{lab} diff run.rec other.rec --html page.html"))  # fmt: skip
    verb.add_argument("a", type=Path, metavar="A", help="what `train --record` or rec.save wrote")
    verb.add_argument("b", type=Path, metavar="B", help="another, to be compared with it")
    verb.add_argument("--tolerance", type=share, default=0.0, metavar="X",
                      help="how far numbers may lie apart, as a share of the larger one, 0 to 1 "
                      "(default: 0, every bit has to agree)")  # fmt: skip
    verb.add_argument("--html", type=page_path, metavar="FILE.html",
                      help="write a page that shows the place (default: none)")  # fmt: skip
    verb.add_argument("--salvage", action="store_true", help="of a damaged or cut file, compare what stands whole "
                      "before the damage")  # fmt: skip

    def load(_: argparse.Namespace) -> Verb:
        from lab.cli.diff import diff

        return diff

    verb.set_defaults(load=load)


def on_workers(arguments: argparse.Namespace) -> bool:
    """Whether it trains on a cluster."""
    return bool(arguments.scheduler) or arguments.workers > 1


def _complete(arguments: argparse.Namespace, verb: argparse.ArgumentParser) -> None:
    """Leave with 2 where arguments contradict each other; fill in what depends on others."""
    if arguments.workers is None and not arguments.scheduler:
        arguments.workers = 0
    if arguments.parallel == "pipeline":
        if not on_workers(arguments):
            verb.error("--parallel pipeline needs --workers 2 or more")
        arguments.schedule, arguments.micro = arguments.schedule or "1f1b", arguments.micro or 8
        if arguments.schedule not in SCHEDULES:
            hint = f": did you mean {meant}?" if (meant := nearest(arguments.schedule, SCHEDULES)) else ""
            verb.error(f"--schedule is one of {', '.join(SCHEDULES)}, not {arguments.schedule!r}{hint}")
        if arguments.on_loss:
            verb.error("--on-loss needs --parallel data: without a worker a pipeline has no stage")
    else:
        for name in ("schedule", "micro", "paced"):
            if getattr(arguments, name) is not None:
                verb.error(f"--{name} needs --parallel pipeline")
        if arguments.on_loss and not on_workers(arguments):
            verb.error("--on-loss needs --workers 2 or more")
    if arguments.report and arguments.record and arguments.report.resolve() == arguments.record.resolve():
        verb.error("--report and --record need a file each")


def count(least: int) -> Callable[[str], int]:
    """The type of an argument that is a whole number of at least so much."""

    def parse(text: str) -> int:
        if not text.isascii() or not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"a whole number of at least {least}, not {text!r}")
        return int(text)

    return parse


def positive(text: str) -> float:
    """The type of an argument that is a positive number.

    Example:
        >>> positive("1e-3")
        0.001
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError(f"a positive number, not {text!r}")
    return value


def share(text: str) -> float:
    """The type of an argument that is a share, 0 to 1.

    Example:
        >>> share("1e-6")
        1e-06
    """
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value < 1:
        raise argparse.ArgumentTypeError(f"a share from 0 to 1, as 1e-6, not {text!r}")
    return value


def page_path(text: str) -> Path:
    """The type of an argument that names a page to be written.

    Example:
        >>> page_path("report.html").name
        'report.html'
    """
    if not text.lower().endswith(".html"):
        raise argparse.ArgumentTypeError(f"a page has a name that ends in .html, not {text!r}")
    return Path(text)


def trace_path(text: str) -> Path:
    """The type of an argument that names a trace to be written.

    Example:
        >>> trace_path("trace.json.gz").name
        'trace.json.gz'
    """
    if not text.lower().endswith((".json", ".json.gz")):
        raise argparse.ArgumentTypeError(f"a trace has a name that ends in .json or .json.gz, not {text!r}")
    return Path(text)
