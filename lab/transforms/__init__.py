"""Functions of functions: differentiate, map, compile; nestable in any order."""

from lab.transforms.batching import vmap
from lab.transforms.compilation import jit
from lab.transforms.gradients import grad, jvp, value_and_grad, vjp

__all__ = ["grad", "jit", "jvp", "value_and_grad", "vjp", "vmap"]
