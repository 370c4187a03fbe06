"""Nodes of ONNX as they are made: names, constants and casts, and the scopes of branches and loops."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from lab.errors import UnsupportedError
from lab.graph.ir import Atom, Equation, Literal
from lab.shapes import Spec

OPSET = 18
DTYPES = ("bool", "float32", "float64", "int32", "int64")
"""What the operators of ONNX that are used here take."""


def package(name: str) -> Any:
    """A package of the extra `onnx`.

    Raises:
        UnsupportedError: it is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as why:
        raise UnsupportedError(
            f"ONNX needs the package {name.partition('.')[0]}", given=str(why),
            hint='pip install "autodiff-lab[onnx]"',
        ) from None  # fmt: skip


class Nodes:
    """The nodes of a model, and of the branches and turns inside it.

    Attributes:
        here: the nodes of the innermost scope.
        initializers: the constants of the model, which every scope sees.
        origin: what nodes that are made now come from.
    """

    def __init__(self, taken: Sequence[str] = ()) -> None:
        self.onnx, self.helper = package("onnx"), package("onnx.helper")
        self.here: list[Any] = []
        self.initializers: list[Any] = []
        self.origin = ""
        self._taken, self._n = set(taken), 0
        self._constants: dict[Any, str] = {}

    def fresh(self, prefix: str = "v") -> str:
        """A name that nothing has."""
        while True:
            self._n += 1
            if (name := f"{prefix}{self._n}") not in self._taken:
                return name

    def node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Add a node with one result; its name."""
        return self.several(kind, 1, *inputs, **attributes)[0]

    def several(self, kind: str, n_outs: int, *inputs: str, **attributes: Any) -> list[str]:
        """Add a node; the names of its results."""
        outs = [self.fresh() for _ in range(n_outs)]
        made = self.helper.make_node(kind, list(inputs), outs, name=self.fresh(f"{kind}_"), **attributes)
        made.doc_string = self.origin
        self.here.append(made)
        return outs

    def constant(self, value: Any, dtype: Any = None) -> str:
        """The name of a constant; equal ones are one."""
        array = np.asarray(value, dtype)
        require_dtype(Spec(array.shape, array.dtype), "a constant")
        key = array.dtype.str, array.shape, array.tobytes()
        if key not in self._constants:
            name = self._constants[key] = self.fresh("c")
            tensor = self.onnx.numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
            self.initializers.append(tensor)
        return self._constants[key]

    def cast(self, name: str, dtype: Any) -> str:
        """The same values in another dtype."""
        return self.node("Cast", name, to=self.type(dtype))

    def type(self, dtype: Any) -> Any:
        """ONNX's number of a dtype."""
        return self.helper.np_dtype_to_tensor_dtype(np.dtype(dtype).newbyteorder("="))

    def info(self, name: str, spec: Spec) -> Any:
        """What is said of an input or a result."""
        return self.helper.make_tensor_value_info(name, self.type(spec.dtype), list(spec.shape))

    @contextlib.contextmanager
    def scope(self) -> Iterator[list[Any]]:
        """What is added meanwhile goes into a list of its own."""
        before, self.here = self.here, []
        try:
            yield self.here
        finally:
            self.here = before

    # --- what many ops need ---

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        """The same entries in another shape."""
        return self.node("Reshape", name, self.constant(np.array(shape, np.int64).reshape(-1)), allowzero=1)

    def transpose(self, name: str, axes: Sequence[int]) -> str:
        """The axes in another order."""
        return name if list(axes) == list(range(len(axes))) else self.node("Transpose", name, perm=list(axes))

    def expand(self, name: str, shape: Sequence[int]) -> str:
        """Entries repeated to a shape."""
        return self.node("Expand", name, self.constant(np.array(shape, np.int64).reshape(-1)))

    def reduce(self, kind: str, name: str, axes: Sequence[int], keepdims: bool = True) -> str:
        """A reduction over axes; over none it is the value."""
        if not axes:
            return self.node("Identity", name)
        return self.node(f"Reduce{kind}", name, self.constant(np.array(axes, np.int64)), keepdims=int(keepdims))


class Call:
    """One equation that is to become nodes.

    Attributes:
        nodes: where they go.
        e: the equation.
    """

    def __init__(self, nodes: Nodes, e: Equation, name: Callable[[Atom], str]) -> None:
        self.nodes, self.e, self._name = nodes, e, name

    @property
    def out(self) -> Spec:
        """Shape and dtype of its result."""
        return self.e.out.spec

    def spec(self, i: int = 0) -> Spec:
        """Shape and dtype of an operand."""
        return self.e.inputs[i].spec

    def x(self, i: int = 0, dtype: Any = None) -> str:
        """The name of an operand, cast if it has another dtype."""
        a = self.e.inputs[i]
        if dtype is None or np.dtype(dtype) == a.spec.dtype:
            return self._name(a)
        if isinstance(a, Literal):
            return self.nodes.constant(a.value, dtype)
        return self.nodes.cast(self._name(a), dtype)

    def xs(self, dtype: Any) -> list[str]:
        """All operands in one dtype."""
        return [self.x(i, dtype) for i in range(len(self.e.inputs))]


def require_dtype(spec: Spec, name: str) -> None:
    """Refuse a dtype that the operators do not take.

    Raises:
        UnsupportedError: the dtype, and which there are.
    """
    if spec.dtype.name not in DTYPES:
        raise UnsupportedError(f"{name} has a dtype that ONNX export does not know", given=spec.dtype.name,
                               hint=", ".join(DTYPES))  # fmt: skip


def only_single(dtype: Any, name: str) -> None:
    """Refuse float64 where onnxruntime has float32 alone.

    Raises:
        UnsupportedError: it is float64.
    """
    if np.dtype(dtype) == np.float64:
        raise UnsupportedError(
            f"{name} in float64 cannot be written in ONNX",
            given="onnxruntime has it in float32 only",
            hint='x.astype("float32") before the graph is made',
        )
