"""What other libraries take for the slope at a kink: facts from their documentation and source. None of them runs here.

Of the kink of one operation by one operand; `HIPS autograd`, which the tests have, is held against its facts there.
"""

from __future__ import annotations

from typing import Final, NamedTuple


class Choice(NamedTuple):
    """What a library takes.

    Attributes:
        library: its name.
        slope: the derivative that it takes.
        source: the page or file that says so.
    """

    library: str
    slope: float
    source: str


_MIN_NORM = "Autograd mechanics, Gradients for non-differentiable functions: subgradient of minimum norm"
_BERTOIN = "Bertoin et al. 2021, Numerical influence of ReLU'(0) on backpropagation"
_TORCH, _JAX, _HIPS = "tools/autograd/derivatives.yaml", "jax/_src/lax/lax.py", "autograd/numpy/numpy_vjps.py"
_TF = "tensorflow/python/ops/math_grad.py: the first of two equals takes all"
_HALVES = [
    Choice("PyTorch", 0.5, f"{_TORCH}, maximum and minimum"), Choice("JAX", 0.5, f"{_JAX}, _balanced_eq"),
    Choice("autograd", 0.5, f"{_HIPS}, balanced_eq"),
]  # fmt: skip

CHOICES: Final[dict[tuple[str, int], list[Choice]]] = {
    ("relu", 0): [
        Choice("PyTorch", 0.0, _MIN_NORM), Choice("JAX", 0.0, "documentation of jax.nn.relu"),
        Choice("TensorFlow", 0.0, _BERTOIN),
    ],
    ("absolute", 0): [
        Choice("PyTorch", 0.0, _MIN_NORM), Choice("JAX", 0.0, f"{_JAX}, abs: the sign, which is 0 at 0"),
        Choice("autograd", 0.0, f"{_HIPS}, absolute"),
    ],
    ("sqrt", 0): [
        Choice("PyTorch", float("inf"), f"{_TORCH}, sqrt: grad / (2 result)"),
        Choice("autograd", float("inf"), f"{_HIPS}, sqrt: 0.5 x^-0.5 of an array; a float raises"),
    ],
    **{(op, i): [*_HALVES, Choice("TensorFlow", 1.0 - i, _TF)] for op in ("maximum", "minimum") for i in (0, 1)},
}  # fmt: skip
"""By operation and operand."""
