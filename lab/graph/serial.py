"""Graphs in files: the text of the graph and its arrays in one zip, without pickle and without any code.

Whoever loads it needs the lab and not the model's Python. A file is believed no further than it can be checked: sizes
before they are allocated, the text by `parse`, the graph by `verify`.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.tensor import Tensor
from lab.errors import GraphError
from lab.events.cells import told_place
from lab.files import path_of, read_whole, replacing, telling
from lab.graph.ir import Graph
from lab.graph.keys import require_no_draws
from lab.graph.parsing import parse
from lab.graph.printing import text_of
from lab.graph.unpacking import MAX_PARTS, TooLargeError, UnreadableError, array_of, parts_of, unpacked
from lab.graph.values import Constants
from lab.graph.verify import op_named, verify
from lab.words import shown

FORMAT, VERSION = "lab-graph", 1
MAX_BYTES = 4 * 2**30
"""By default no file is read that would need more memory than this; and no more than 256 MiB or 500 times its size."""
MAX_RATIO, SMALL = 500, 2**28
MAX_TEXT, MAX_ABOUT = 64 * 2**20, 16 * 2**20
_DATE = (1980, 1, 1, 0, 0, 0)  # equal graphs give equal bytes


class Saved(NamedTuple):
    """What a file holds.

    Attributes:
        graph: with its captured values, as arrays.
        weights: named arrays that were saved with it.
    """

    graph: Graph
    weights: dict[str, Any]


def save(graph: Graph, path: str | os.PathLike[str], weights: Mapping[str, Any] | None = None) -> None:
    """Write a graph, its captured values and named arrays into one file, whole or not at all.

    Args:
        weights: names and arrays or tensors, for example a module's state dict.

    Raises:
        GraphError: the graph holds what a file cannot: a function of its own, a value inside a transform, a generator.
        FileError: the file cannot be written.
        ArgumentError: what is no path.

    Example:
        >>> import lab, numpy as np, tempfile
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(graph, f"{folder}/f.graph")
        ...     load(f"{folder}/f.graph").graph == graph
        True
    """
    target = path_of(path, hint='lab.graph.save(graph, "model.graph")')
    _require_savable(graph, weights or {})
    constants = Constants()
    text = text_of(graph, origins=True, constants=constants)
    names = sorted(weights or {})
    about = {"format": FORMAT, "version": VERSION, "constants": len(constants.arrays),
             "captured": len(graph.captured), "weights": names}  # fmt: skip
    arrays = [*constants.arrays, *graph.captured, *((weights or {})[n] for n in names)]
    _require_few(len(arrays))
    hint = "make the folder, make room, or name another place"
    with (
        telling("the graph cannot be written", target, hint),
        replacing(target) as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        _write(archive, "about.json", json.dumps(about, indent=1).encode())
        _write(archive, "graph.txt", text.encode())
        for i, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.save(buffer, array.numpy() if isinstance(array, Tensor) else np.asarray(array), allow_pickle=False)
            _write(archive, f"array{i}.npy", buffer.getvalue())


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED, 1)


def _require_few(n_arrays: int) -> None:
    if n_arrays + 2 > MAX_PARTS:
        raise GraphError("a graph with so many arrays cannot be saved", given=f"{n_arrays:,} of {MAX_PARTS - 2:,}",
                         hint="stack small arrays into larger ones")  # fmt: skip


def _require_savable(graph: Graph, weights: Mapping[str, Any]) -> None:
    if not isinstance(graph, Graph):
        raise GraphError("what is saved is a Graph", given=shown(graph), hint="lab.make_graph(f)(x)")
    for name, weight in weights.items():
        if not isinstance(weight, Tensor) and np.asarray(weight).dtype.kind not in "fiub":
            raise GraphError("weights are arrays of numbers", given=f"{name}={shown(weight)}",
                             hint="names and arrays, as of model.state_dict()")  # fmt: skip
    for inner in graph.walk():
        for e in inner.equations:
            if op_named(e.op.name) is not e.op:
                raise GraphError(
                    "a graph with an op of its own cannot be saved",
                    given=f"{e.op.name}, from {told_place(e.origin) or 'nowhere known'}",
                    hint="custom_vjp and custom_jvp are Python functions: write them in ops, or save the gradient",
                )
    require_no_draws(graph, "saved")
    for value in graph.captured:
        if type(value) not in (Tensor, np.ndarray):
            raise GraphError(
                "a graph with a value inside a transform cannot be saved",
                given=repr(value)[:60],
                hint="make the graph outside of it",
            )


def load(path: str | os.PathLike[str], *, max_bytes: int | None = None) -> Saved:
    """Read a graph from a file; nothing in the file is run.

    Args:
        max_bytes: no file is read that would need more memory; by default 4 GiB, and 256 MiB or 500 times the file's
            size, whichever is more.

    Raises:
        GraphError: the file is foreign, damaged, of a newer version, too large, or holds no legal graph.
        FileError: it is missing, or cannot be read.
        ArgumentError: what is no path.
    """
    place = path_of(path, hint='lab.graph.load("model.graph")')
    limit = MAX_BYTES if max_bytes is None else max_bytes
    with telling("the graph cannot be read", place, "a file that lab.graph.save wrote"):
        content = read_whole(place, limit)
    if content is None:
        raise _too_large(place.name, f"more than {limit:,} bytes")
    if max_bytes is None:
        limit = min(limit, max(SMALL, MAX_RATIO * len(content)))
    try:
        return _read(content, limit, place.name)
    except TooLargeError as why:
        raise _too_large(place.name, str(why)) from None
    except (UnreadableError, RecursionError) as why:
        raise _damaged(place.name, str(why)) from None


def _too_large(name: str, given: str) -> GraphError:
    return GraphError(
        "the graph file would need more memory than the limit",
        given=f"{name}: {given}"[:160],
        hint="if you trust it, give load a larger max_bytes",
    )


def _damaged(name: str, why: str) -> GraphError:
    return GraphError(
        "this is no graph file, or a damaged one",
        given=f"{name}: {why}"[:160],
        hint="graphs are written by lab.graph.save",
    )


def _read(content: bytes, limit: int, name: str) -> Saved:
    parts = parts_of(content, limit)
    if "about.json" not in parts or parts["about.json"].file_size > MAX_ABOUT:
        raise UnreadableError("it does not say what it is")
    about = _about(unpacked(content, [parts["about.json"]])["about.json"], name)
    n_arrays = about["constants"] + about["captured"] + len(about["weights"])
    wanted = ["graph.txt", *(f"array{i}.npy" for i in range(n_arrays))]
    if len(parts) != len(wanted) + 1 or not all(part in parts for part in wanted):
        raise UnreadableError("its parts are not those that it announces")
    if parts["graph.txt"].file_size > MAX_TEXT:
        raise TooLargeError(f"{parts['graph.txt'].file_size:,} letters of {MAX_TEXT:,}")
    held = unpacked(content, [parts[part] for part in wanted])
    arrays = [array_of(held[part], part) for part in wanted[1:]]
    try:
        text = held["graph.txt"].decode()
    except UnicodeDecodeError as why:
        raise UnreadableError(str(why)) from None
    graph = parse(text, arrays[: about["constants"]])
    ends = about["constants"], about["constants"] + about["captured"]
    graph = Graph(graph.inputs, graph.equations, graph.outputs, tuple(arrays[ends[0] : ends[1]]))
    verify(graph)
    return Saved(graph, dict(zip(about["weights"], arrays[ends[1] :], strict=True)))


def _about(content: bytes, name: str) -> dict[str, Any]:
    try:
        about = json.loads(content)
    except ValueError as why:
        raise UnreadableError(str(why)) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise UnreadableError("it is something else")
    if about.get("version") != VERSION:
        raise GraphError(
            "the graph file is of another version",
            given=f"{name}: version {about.get('version')!r}, this lab reads {VERSION}"[:160],
            hint="load it with a newer lab",
        )
    counts = [about.get("constants"), about.get("captured")]
    names: Any = about.get("weights")
    fits = all(type(n) is int and 0 <= n < MAX_PARTS for n in counts) and isinstance(names, list)
    if not fits or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise UnreadableError("it announces parts that cannot be")
    return about
