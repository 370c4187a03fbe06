"""What the tests of training on ranks share: networks, data, a reference in one process, and programs that tell all."""

import math
import os
import signal

import numpy as np

import lab
from lab import ops
from lab.autograd import wrap
from lab.data import Dataset, Loader, digits
from lab.events import ReplicaAdvanced, record
from lab.nn import mlp
from lab.optim import SGD, Adam
from lab.parallel import COLLECTIVES, simulate_arrays
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.training.data_parallel import train_replica
from lab.parallel.training.shards import shard_of
from lab.parallel.training.steering import Order

SOON = 100.0
OPTIMIZERS = {
    "sgd": lambda p: SGD(p, 0.1),
    "momentum": lambda p: SGD(p, 0.05, momentum=0.9),
    "adam": lambda p: Adam(p, 2e-3),
}


def network(dtype="float32"):
    """The digits network, made alike each time."""
    with lab.settings(dtype=dtype):
        return mlp(64, 32, 10, rng=0)


def some_digits(n, dtype="float32"):
    train = digits("train")
    return Dataset(train.inputs[:n].astype(dtype), train.targets[:n])


def parameters(module):
    return np.concatenate([value.ravel() for value in module.state_dict().values()])


def reference(module, optimizer, data, *, batch_size, n_steps, world_size, algorithm):
    """Train as ranks do, in one process: shard after shard, summed in the order of the plan. By hand, on purpose."""
    loader, plan = Loader(data, batch_size, rng=0), COLLECTIVES["all_reduce", algorithm]
    batches = (batch for epoch in range(n_steps) for batch in loader.epoch(epoch))
    [group] = optimizer.groups
    for _, batch in zip(range(n_steps), batches, strict=False):
        gradients, n = [], len(batch.inputs)
        for rank in range(world_size):
            shard = shard_of(rank, world_size, n)
            part = shard.of(batch)
            if len(shard):
                optimizer.zero_grad()
                ops.cross_entropy(module(wrap(part.inputs)), part.targets).backward()
                optimizer.gather()
                gradients.append(group.gradients * group.gradients.dtype.type(len(shard) / n))
            else:
                gradients.append(np.zeros_like(group.gradients))
        group.gradients[...] = simulate_arrays(plan, gradients)[0]
        optimizer.apply()


def tells_all(comm, payload, run, algorithm):
    """Train to the end without a launcher; what each rank holds then, and what it said of itself."""
    comm.mailbox = Mailbox()
    comm.mailbox.put(Order(1, "go", math.inf))
    with record(kinds=[ReplicaAdvanced]) as rec:
        standing = train_replica(comm, payload, run, algorithm)
    return standing.optimizer, [event for event in rec if event.rank == comm.rank]


def kill(cluster, worker):
    """kill -9 the process of a worker, from outside."""
    [pid] = cluster.client.run(os.getpid, workers=[worker]).values()
    os.kill(pid, signal.SIGKILL)
