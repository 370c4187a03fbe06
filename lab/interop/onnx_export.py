"""A graph as an ONNX model, for whatever runs those: the extra `onnx`, checked by its checker and by onnxruntime."""

from __future__ import annotations

from collections.abc import Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from lab.errors import ArgumentError, GraphError
from lab.files import path_of, replacing, telling
from lab.graph.execute import run_arrays
from lab.graph.ir import Graph
from lab.interop.nodes.building import OPSET, Nodes, package, require_dtype
from lab.interop.nodes.regions import write
from lab.interop.sources import NO_PLACE, captured_values, graph_of

IR_VERSION = 9
"""Of the file; onnxruntime 1.16 and newer read it."""
LIMIT = 2**31 - 1
"""Bytes that one protobuf message can have."""


def export_onnx(
    graph: Any, path: str | PathLike[str], *, names: Sequence[str] = (), check: bool = False
) -> Path:
    """Write a graph as an ONNX model, with its constants inside; returns its path.

    Captured values become initialisers; numbers of Python that stayed weak become inputs of one float64 or int64.
    Values that are nan may be ordered and compared otherwise than by NumPy.

    Args:
        graph: a Graph, or a jitted function that was called for one kind of arguments.
        path: where; the file is written whole or not at all.
        names: of the inputs and, after them, of the outputs; or of the inputs alone.
        check: run it by onnxruntime beside the lab on random inputs first.

    Raises:
        UnsupportedError: the extra is not installed; an op that cannot be written, by name; a dtype.
        ArgumentError: names that are not one for each, or no one graph.
        GraphError: with `check`, the model gives something else.
        FileError: the file cannot be written.

    Example:
        >>> import lab, tempfile
        >>> graph = lab.make_graph(lambda x: lab.tanh(x) * 2.0)(np.ones(3))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     export_onnx(graph, f"{folder}/model.onnx", names=["x"], check=True).name
        'model.onnx'
    """
    path, graph = path_of(path, hint='export_onnx(graph, "model.onnx")'), graph_of(graph)
    model = onnx_model(graph, names)
    content = model.SerializeToString()
    if check:
        _compare(graph, content)
    with telling("the ONNX model cannot be written", path, NO_PLACE), replacing(path) as file:
        file.write(content)
    return path


def onnx_model(graph: Graph, names: Sequence[str] = ()) -> Any:
    """The model, checked by ONNX's own checker."""
    values = captured_values(graph)
    inputs = graph.inputs[: len(graph.inputs) - len(values)]
    ins, ends = _names(names, len(inputs), len(graph.outputs))
    size = sum(v.nbytes for v in values)
    if size > LIMIT:
        raise GraphError("an ONNX file cannot hold so much", given=f"{size:,} bytes of captured values",
                         hint="lab.graph.save has no such limit")  # fmt: skip
    nodes = Nodes([*ins, *ends])
    outs = write(nodes, graph, [*ins, *(nodes.constant(v) for v in values)])
    for v in (*inputs, *graph.outputs):
        require_dtype(v.spec, "an input or an output")
    final = [nodes.helper.make_node("Identity", [out], [end], name=nodes.fresh("Identity_"))
             for out, end in zip(outs, ends, strict=True)]  # fmt: skip
    body = nodes.helper.make_graph(
        [*nodes.here, *final], "graph", [nodes.info(n, v.spec) for n, v in zip(ins, inputs, strict=True)],
        [nodes.info(n, a.spec) for n, a in zip(ends, graph.outputs, strict=True)], nodes.initializers,
    )  # fmt: skip
    model = nodes.helper.make_model(body, producer_name="autodiff-lab", ir_version=IR_VERSION,
                                    opset_imports=[nodes.helper.make_opsetid("", OPSET)])  # fmt: skip
    nodes.onnx.checker.check_model(model, full_check=True)
    return model


def _names(names: Sequence[str], n_in: int, n_out: int) -> tuple[list[str], list[str]]:
    """Names of inputs and of outputs.

    Raises:
        ArgumentError: not one for each, or one twice.
    """
    own = list(names) or [f"x{i}" for i in range(n_in)]
    if len(own) == n_in:
        own += [f"out{i}" for i in range(n_out)]
    if len(own) != n_in + n_out or len(set(own)) != len(own) or "" in own or not all(isinstance(x, str) for x in own):
        raise ArgumentError("names are one for each input, then one for each output",
                            given=f"{', '.join(map(ascii, names))} for {n_in} inputs and {n_out} outputs",
                            hint="or for the inputs alone; each once")  # fmt: skip
    return own[:n_in], own[n_in:]


def _compare(graph: Graph, content: bytes) -> None:
    """Run the model beside the graph on random inputs.

    Raises:
        GraphError: they differ.
    """
    runtime, values = package("onnxruntime"), captured_values(graph)
    rng, inputs = np.random.default_rng(0), graph.inputs[: len(graph.inputs) - len(values)]
    drawn = [np.asarray(rng.uniform(0.1, 0.9, v.spec.shape) if v.spec.dtype.kind == "f"
                        else rng.integers(0, 2, v.spec.shape)) for v in inputs]  # fmt: skip
    drawn = [x.astype(v.spec.dtype.newbyteorder("=")) for x, v in zip(drawn, inputs, strict=True)]
    session = runtime.InferenceSession(content, providers=["CPUExecutionProvider"])
    given = {i.name: x for i, x in zip(session.get_inputs(), drawn, strict=True)}
    own = [x.item() if v.weak else x for x, v in zip(drawn, inputs, strict=True)]
    with np.errstate(all="ignore"):
        wanted = run_arrays(graph, [*own, *values])
    for k, (a, b) in enumerate(zip(session.run(None, given), wanted, strict=True)):
        near = 1e-4 if b.dtype == np.float32 else 1e-9
        scale = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b))) if b.dtype.kind == "f" else 0.0
        if a.dtype != b.dtype or a.shape != b.shape or not np.allclose(a, b, near, near * scale, equal_nan=True):
            raise GraphError("onnxruntime gives something else than the lab",
                             given=f"output {k}: {np.asarray(a).ravel()[:3]} for {b.ravel()[:3]}",
                             hint="please report this graph")  # fmt: skip
