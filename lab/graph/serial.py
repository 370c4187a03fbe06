"""Graphs in files: the text of the graph and its arrays in one zip, without pickle and without any code.

Whoever loads it needs the lab and not the model's Python. A file is believed no further than it can be checked: sizes
before they are allocated, the text by `parse`, the graph by `verify`.
"""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.tensor import Tensor
from lab.errors import GraphError
from lab.files import replacing
from lab.graph.ir import Graph
from lab.graph.parsing import parse
from lab.graph.printing import text_of
from lab.graph.values import Constants
from lab.graph.verify import op_named, verify

FORMAT, VERSION = "lab-graph", 1
MAX_BYTES = 4 * 2**30
"""By default no file is read that would need more memory than this."""
MAX_TEXT = 64 * 2**20
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
        GraphError: the graph holds what a file cannot: a function of its own, a value inside a transform.
        OSError: the file cannot be written.

    Example:
        >>> import lab, numpy as np, tempfile
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(graph, f"{folder}/f.graph")
        ...     load(f"{folder}/f.graph").graph == graph
        True
    """
    _require_savable(graph)
    constants = Constants()
    text = text_of(graph, origins=True, constants=constants)
    names = sorted(weights or {})
    about = {"format": FORMAT, "version": VERSION, "constants": len(constants.arrays),
             "captured": len(graph.captured), "weights": names}  # fmt: skip
    arrays = [*constants.arrays, *graph.captured, *((weights or {})[n] for n in names)]
    with replacing(path) as file, zipfile.ZipFile(file, "w") as archive:
        _write(archive, "about.json", json.dumps(about, indent=1).encode())
        _write(archive, "graph.txt", text.encode())
        for i, array in enumerate(arrays):
            buffer = io.BytesIO()
            np.save(buffer, array.numpy() if isinstance(array, Tensor) else np.asarray(array), allow_pickle=False)
            _write(archive, f"array{i}.npy", buffer.getvalue())


def _write(archive: zipfile.ZipFile, name: str, content: bytes) -> None:
    archive.writestr(zipfile.ZipInfo(name, _DATE), content, zipfile.ZIP_DEFLATED, 1)


def _require_savable(graph: Graph) -> None:
    for inner in graph.walk():
        for e in inner.equations:
            if op_named(e.op.name) is not e.op:
                raise GraphError(
                    "a graph with an op of its own cannot be saved",
                    given=f"{e.op.name}, from {e.origin or 'nowhere known'}",
                    hint="custom_vjp and custom_jvp are Python functions: write them in ops, or save the gradient",
                )
    for value in graph.captured:
        if type(value) not in (Tensor, np.ndarray):
            raise GraphError(
                "a graph with a value inside a transform cannot be saved",
                given=repr(value)[:60],
                hint="make the graph outside of it",
            )


def load(path: str | os.PathLike[str], *, max_bytes: int = MAX_BYTES) -> Saved:
    """Read a graph from a file; nothing in the file is run.

    Args:
        max_bytes: no file is read that says of itself that it needs more memory.

    Raises:
        GraphError: the file is foreign, damaged, of a newer version, too large, or holds no legal graph.
        OSError: it cannot be read.
    """
    name = Path(path).name
    with Path(path).open("rb") as file:  # what goes wrong after this is the fault of what is in the file
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise _too_large(name, f"more than {max_bytes:,} bytes")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return _read(archive, name, max_bytes)
    except GraphError:
        raise
    except (*_BROKEN, ValueError, OSError, RuntimeError) as why:
        raise _damaged(name, str(why)) from None


_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, EOFError)
"""What `zipfile` says of a file that is no zip, or no whole one."""


def _too_large(name: str, given: str) -> GraphError:
    return GraphError(
        "the graph file would need more memory than the limit",
        given=f"{name}: {given}",
        hint="if you trust it, give load a larger max_bytes",
    )


def _damaged(name: str, why: str) -> GraphError:
    return GraphError(
        "this is no graph file, or a damaged one",
        given=f"{name}: {why}"[:160],
        hint="graphs are written by lab.graph.save",
    )


def _read(archive: zipfile.ZipFile, name: str, max_bytes: int) -> Saved:
    members = {info.filename: info for info in archive.infolist()}
    total = sum(info.file_size for info in members.values())
    if total > max_bytes:
        raise _too_large(name, f"{total:,} bytes of {max_bytes:,}")
    if "about.json" not in members or members["about.json"].file_size > MAX_TEXT:
        raise _damaged(name, "it does not say what it is")
    about = _about(archive.read("about.json"), name)
    n_arrays = about["constants"] + about["captured"] + len(about["weights"])
    wanted = ["about.json", "graph.txt", *(f"array{i}.npy" for i in range(n_arrays))]
    if sorted(members) != sorted(wanted) or members["graph.txt"].file_size > MAX_TEXT:
        raise _damaged(name, "its parts are not those that it announces")
    arrays = [_array(archive.read(f"array{i}.npy"), name) for i in range(n_arrays)]
    try:
        text = archive.read("graph.txt").decode()
    except UnicodeDecodeError as why:
        raise _damaged(name, str(why)) from None
    graph = parse(text, arrays[: about["constants"]])
    ends = about["constants"], about["constants"] + about["captured"]
    graph = Graph(graph.inputs, graph.equations, graph.outputs, tuple(arrays[ends[0] : ends[1]]))
    verify(graph)
    return Saved(graph, dict(zip(about["weights"], arrays[ends[1] :], strict=True)))


def _about(content: bytes, name: str) -> dict[str, Any]:
    try:
        about = json.loads(content)
    except ValueError as why:
        raise _damaged(name, str(why)) from None
    if not isinstance(about, dict) or about.get("format") != FORMAT:
        raise _damaged(name, "it is something else")
    if about.get("version") != VERSION:
        raise GraphError(
            "the graph file is of another version",
            given=f"{name}: version {about.get('version')!r}, this lab reads {VERSION}",
            hint="load it with a newer lab",
        )
    counts = [about.get("constants"), about.get("captured")]
    names: Any = about.get("weights")
    fits = all(type(n) is int and 0 <= n < 10**6 for n in counts) and isinstance(names, list)
    if not fits or not all(isinstance(n, str) for n in names) or len(set(names)) != len(names):
        raise _damaged(name, "it announces parts that cannot be")
    return about


def _array(content: bytes, name: str) -> Any:
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, EOFError, OSError, SyntaxError, TypeError) as why:
        raise _damaged(name, str(why)) from None
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
        raise _damaged(name, "an array of something else than numbers")
    array.flags.writeable = False
    return array
