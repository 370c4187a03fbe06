"""How long a collective would take on a network that need not exist: a plan goes through the alpha-beta model.

Nothing is sent and nothing measured. Who compares it with a run compares a model with one machine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from lab.checks import whole
from lab.errors import PlanError
from lab.parallel.paper.calling import name_of
from lab.parallel.paper.cost import Floats, LinksOf, Network
from lab.parallel.paper.messages import Messages, messages_of, refuse
from lab.parallel.paper.passing import Events, Times, in_waves
from lab.parallel.paper.plans import Plan, chunks_of, plan_of, require_count
from lab.words import shown

MOST_RANKS = 1024
"""Worlds up to this are simulated: a ring of so many is 2.1 million messages."""

LARGEST = 1 << 40
"""Bytes up to which a crossing is looked for."""


class Passed(NamedTuple):
    """A message of a simulation."""

    step: int
    """Of the receiver's plan."""
    src: int
    dst: int
    start: int
    stop: int
    n_bytes: int
    reduces: bool
    start_s: float
    stop_s: float
    done_s: float
    """When it was added, too; of what is stored the same as `stop_s`, or when the receiver came to it."""


@dataclass(frozen=True, eq=False, repr=False)
class Timeline:
    """A simulation of a collective: when each message would start and arrive.

    Attributes:
        name: of the plan.
        world_size: number of ranks.
        n_bytes: of the whole buffer.
        network: what was assumed.
        messages: of the plan.
        sizes: bytes of each message.
        times: seconds at which each starts, has arrived, is added.
    """

    name: str
    world_size: int
    n_bytes: int
    network: Network
    messages: Messages
    sizes: Floats
    times: Times

    @cached_property
    def finish_s(self) -> tuple[float, ...]:
        """Seconds until each rank has received, added and sent all."""
        finish = np.zeros(self.world_size)
        np.maximum.at(finish, self.messages.src, self.times.stop)
        np.maximum.at(finish, self.messages.dst, self.times.done)
        return tuple(finish.tolist())

    @property
    def total_s(self) -> float:
        """Seconds until the last rank is done."""
        return max(self.finish_s)

    @cached_property
    def events(self) -> tuple[Passed, ...]:
        """Every message, in the order in which they start."""
        m, order = self.messages, np.lexsort((self.messages.dst, self.messages.src, self.times.start))
        columns = (m.received_in, m.src, m.dst, m.start, m.stop, self.sizes.astype(np.int64), m.reduces, *self.times)
        return tuple(map(Passed, *(column[order].tolist() for column in columns)))

    @cached_property
    def bytes_by_link(self) -> dict[tuple[int, int], int]:
        """Bytes over each link, by (source, destination)."""
        pairs, which = np.unique(np.stack([self.messages.src, self.messages.dst]), axis=1, return_inverse=True)
        total = np.bincount(which.reshape(-1), weights=self.sizes, minlength=pairs.shape[1])
        return {(int(src), int(dst)): int(n_bytes) for (src, dst), n_bytes in zip(pairs.T, total, strict=True)}

    def __repr__(self) -> str:
        most = max(self.bytes_by_link.values(), default=0)
        return (f"simulation of {self.name} on {self.world_size:,} ranks, {self.n_bytes:,} bytes each: "
                f"{self.total_s:.4g} s, messages {len(self.messages):,}, most on a link {most:,} bytes")  # fmt: skip


def predict(
    plan: Plan | tuple[str, str],
    world_size: int,
    n_bytes: int,
    network: Network | LinksOf,
    *,
    n_chunks: int | None = None,
) -> Timeline:
    """Simulate a collective on a network.

    A message takes latency + bytes / bandwidth, and all that time its sender sends nothing else and its receiver
    receives nothing else; to send and to receive at once is free. Sends do not wait for the receiver to be ready.

    What it costs: to read a plan for the first time some microseconds a hop, next to nothing for a ring or a direct
    plan; then less than one a message, or ten where hops do not pair up in steps and where ranks share cores. On 1,024
    ranks a tree is at once, two trees and a ring take 2 to 4 s; a pipelined broadcast of 4 million messages a minute.

    Args:
        plan: (operation, algorithm), or a plan of your own; it need not be right, but it must end.
        n_bytes: of the buffer of each rank.
        network: or the links of one where nothing else is limited.
        n_chunks: `chunks_of` the plan if not given.

    Raises:
        PlanError: no such plan, more ranks than `MOST_RANKS`, one that cannot run.
        ArgumentError: what is no network, a pair without a link, a size that is not whole.

    Example:
        >>> from lab.parallel import Link
        >>> predict(("all_reduce", "ring"), 4, 4000, Link(latency_s=1e-5, bytes_per_s=1e9))
        simulation of all_reduce ring on 4 ranks, 4,000 bytes each: 6.6e-05 s, messages 24, most on a link 6,000 bytes
    """
    name, found = _named(plan)
    world_size, n_bytes = require_count("world_size", world_size, least=1), whole("n_bytes", n_bytes, least=0)
    if world_size > MOST_RANKS:
        raise PlanError("a world of so many ranks takes too long to simulate", given=f"world_size={world_size:,}",
                        hint=f"at most {MOST_RANKS:,}; of more ranks formulas tell the costs: a ring of n takes "
                        "2 (n - 1) (latency + bytes / n / bandwidth)")  # fmt: skip
    n_cuts = chunks_of(found, world_size) if n_chunks is None else require_count("n_chunks", n_chunks, least=1)
    network = network if isinstance(network, Network) else Network(network)
    messages = messages_of(found, world_size, n_cuts)
    first, last = (n_bytes * cut.astype(object if n_bytes > LARGEST else np.int64) // n_cuts
                   for cut in (messages.start, messages.stop))  # fmt: skip
    sizes = (last - first).astype(np.float64)
    times = _times(messages, world_size, sizes, network)
    if times is None:
        refuse(found, world_size, n_cuts)
        raise AssertionError("refuse raises")
    return Timeline(name, world_size, n_bytes, network, messages, sizes, times)


def _named(plan: object) -> tuple[str, Plan]:
    if isinstance(plan, tuple):
        if len(plan) != 2:
            raise PlanError("a plan is named by its operation and its algorithm", given=f"plan={shown(plan)}",
                            hint='("all_reduce", "ring"), or the generator function itself')  # fmt: skip
        found = plan_of(*plan)
        return f"{plan[0]} {plan[1] if isinstance(plan[1], str) else name_of(found)}", found
    found = plan_of("", plan)  # type: ignore[arg-type]  # whether it is one is looked at there
    return name_of(found), found


def _times(messages: Messages, n_ranks: int, sizes: Floats, network: Network) -> Times | None:
    moving = network.seconds(messages.src, messages.dst, sizes)
    adding = np.where(messages.reduces, network.adding(sizes), 0.0)
    n_cores = n_ranks if network.n_cores is None else min(network.n_cores, n_ranks)
    if n_cores == n_ranks or not adding.any():
        times = in_waves(messages, n_ranks, moving, adding)
        if times is not None:
            return times
    return Events(messages, n_ranks, moving, adding, n_cores).run()


def crossing(
    plan_a: Plan | tuple[str, str], plan_b: Plan | tuple[str, str], world_size: int, network: Network | LinksOf
) -> int | None:
    """The size in bytes from which on the other plan is the faster one, in simulation; None if that is always the same.

    Found by bisection between 1 byte and a tebibyte; where plans change places several times, one of them.

    Raises:
        PlanError, ArgumentError: as `predict`.

    Example:
        >>> from lab.parallel import Link
        >>> crossing(("all_reduce", "tree"), ("all_reduce", "ring"), 8, Link(1e-5, 1e9))
        18824
    """

    def sign(n_bytes: int) -> float:
        a, b = (predict(plan, world_size, n_bytes, network).total_s for plan in (plan_a, plan_b))
        return 0.0 if abs(a - b) <= 1e-12 * max(a, b) else float(np.sign(a - b))

    low, high = 1, LARGEST
    below, above = sign(low), sign(high)
    if below == above or not (below and above):
        return None
    while high - low > 1:
        middle = int((low * high) ** 0.5) if high > 4 * low else (low + high) // 2
        if sign(middle) == below:
            low = middle
        else:
            high = middle
    return high
