"""Functions of functions: differentiate, map, compile; nestable in any order."""

from lab.transforms.batching import vmap
from lab.transforms.checking import check_grads
from lab.transforms.checkpointing import checkpoint
from lab.transforms.compilation import jit
from lab.transforms.control import cond, fori_loop, scan, while_loop
from lab.transforms.crossing import elsewhere
from lab.transforms.custom import custom_jvp, custom_vjp
from lab.transforms.expressions import symbolic
from lab.transforms.gradients import grad, jvp, value_and_grad, vjp
from lab.transforms.jacobians import hessian, hvp, jacfwd, jacrev
from lab.transforms.linearization import linearize
from lab.transforms.numeric import numeric_gradient, numeric_jacobian

__all__ = [
    "check_grads", "checkpoint", "cond", "custom_jvp", "custom_vjp", "elsewhere", "fori_loop", "grad", "hessian", "hvp",
    "jacfwd", "jacrev", "jit", "jvp", "linearize", "numeric_gradient", "numeric_jacobian", "scan", "symbolic",
    "value_and_grad", "vjp", "vmap", "while_loop",
]  # fmt: skip
