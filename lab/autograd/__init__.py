"""Automatic differentiation: tensors, the tape, the backward walk, and the interpreters that share one op table."""

from lab import memory
from lab.autograd import mutation, operators, protocols, writing
from lab.autograd.joining import concatenate
from lab.autograd.modes import anomaly_mode, no_grad
from lab.autograd.tape import Leaf, Node
from lab.autograd.tensor import Tensor, tensor, wrap

_ATTACHED = operators, writing, protocols  # what these give to Tensor at import

__all__ = ["Leaf", "Node", "Tensor", "anomaly_mode", "concatenate", "mutation", "no_grad", "tensor", "wrap"]

memory.keep_freed()
