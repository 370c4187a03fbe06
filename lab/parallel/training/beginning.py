"""How ranks begin alike: all get the parameters and buffers that rank 0 has, in one broadcast before the first step.

Every rank unpacks the same bytes, but a model may draw numbers when it is unpacked, or read them from its machine; what
differs once stays different, since ranks share gradients only.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from lab.autograd import Tensor
from lab.nn.module import Module
from lab.parallel.ranks.runtime import Comm
from lab.training.standing import named_buffers
from lab.training.trainer import Training

ALGORITHM = "pipelined"
"""Of the broadcast: from neighbour to neighbour, so each link carries one copy, and none that a ring does not have."""


def begin_alike(comm: Comm, training: Training) -> None:
    """Take over what rank 0 has; every rank calls it, before anything remembers where the training begins.

    Raises:
        MeshError: models have other shapes on other ranks.

    Example:
        >>> from lab import ops
        >>> from lab.data import Loader
        >>> from lab.nn import mlp
        >>> from lab.optim import SGD
        >>> from lab.parallel import run_ranks
        >>> data = (np.zeros((4, 2), "float32"), np.zeros((4, 1), "float32"))
        >>> def program(comm):
        ...     model = mlp(2, 3, 1, rng=comm.rank)
        ...     begin_alike(comm, Training(model, Loader(data, 2, rng=0), None, ops.mse, SGD(model.parameters()),
        ...                                n_epochs=1, measure_every=0))
        ...     return sum(float(np.abs(p.value).sum()) for p in model.parameters())
        >>> len(set(run_ranks(program, world_size=3)))
        1
    """
    if comm.world_size == 1:
        return
    groups, tensors = training.optimizer.groups, _tensors(training)
    for group in groups:
        group.adopt()
    flat = _joined([tensor.value for tensor in tensors])
    comm.broadcast_(flat, 0, ALGORITHM)
    if comm.rank == 0:
        return
    start, octets, moved = 0, flat.view(np.uint8), {id(p) for p in training.optimizer.parameters}
    for tensor in tensors:
        value, stop = tensor.value, start + tensor.value.nbytes
        came = np.frombuffer(octets[start:stop].tobytes(), value.dtype).reshape(value.shape)
        if id(tensor) in moved:
            value[...] = came  # it is a view of its group's vector
        else:
            tensor.value = np.array(came)
        start = stop
    for group in groups:
        group.changed()


def _tensors(training: Training) -> list[Tensor]:
    """What an optimiser moves, and all else that the model is made of, each once."""
    model = training.model
    others = [*model.parameters(), *(tensor for _, tensor in named_buffers(model))] if isinstance(model, Module) else []
    return list({id(tensor): tensor for tensor in (*training.optimizer.parameters, *others)}.values())


def _joined(arrays: list[npt.NDArray[Any]]) -> npt.NDArray[Any]:
    """One flat array; of bytes where they have not all one dtype."""
    flat = [np.ascontiguousarray(array).reshape(-1) for array in arrays]
    is_one = len({array.dtype for array in flat}) == 1
    return np.concatenate(flat if is_one else [array.view(np.uint8) for array in flat])
