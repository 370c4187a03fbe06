"""What the order of additions does to a sum: the same arrays summed as each plan would, beside the exact sum.

Floating-point numbers round after each addition, so (a + b) + c is not a + (b + c). No order is wrong; but another one
gives other bits, and a training that goes on from them goes its own way.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from lab.errors import ArgumentError, MeshError
from lab.events import OrderMeasured, bus
from lab.parallel.paper.calling import name_of
from lab.parallel.paper.lockstep import require_arrays, simulate_arrays
from lab.parallel.paper.plans import Plan, plan_of
from lab.words import counted, shown

Floats = npt.NDArray[Any]

PAIRWISE = "pairwise"
"""No plan: halves are added in one place, half by half."""
ORDERS = ("naive", "ring", "tree", "halving", PAIRWISE)


class SumOrder(NamedTuple):
    """How the sum in one order differs from the exact one, which is rounded once, at the end.

    Attributes:
        algorithm: name of the plan, or "pairwise".
        n_entries: how many entries a sum has.
        n_inexact: of these, so many are not the exact sum's.
        n_other: of these, so many are not those of the first order that was measured.
        mean_ulp: mean distance from the exact sum, in units in the last place of that.
        max_ulp: the largest such distance; where numbers cancel, it is large.
    """

    algorithm: str
    n_entries: int
    n_inexact: int
    n_other: int
    mean_ulp: float
    max_ulp: float

    def __str__(self) -> str:
        return (f"{self.algorithm:>10}: {self.n_inexact:,} of {counted(self.n_entries, 'entry', 'entries')} inexact, "
                f"{self.mean_ulp:.3g} ulp on average, {self.max_ulp:.3g} at most; "
                f"{self.n_other:,} unlike the first")  # fmt: skip


def measure_orders(arrays: Sequence[Floats], algorithms: Sequence[str | Plan] = ORDERS) -> list[SumOrder]:
    """Sum the arrays, one from each rank, in the order of each plan, and compare the sums with the exact one.

    Shapes:
        arrays: any shape of float32 or float64, the same on all ranks.
    Args:
        algorithms: with "all_reduce" keys of COLLECTIVES, plans of your own, and "pairwise".
    Raises:
        ArgumentError: nothing to sum, or no floating-point numbers.
        PlanError, MeshError: as `simulate_arrays`.
    Example:
        >>> big = [np.float32([x]) for x in (1e8, 1.0, -1e8, 1.0)]
        >>> for order in measure_orders(big, ["naive", "pairwise"]):
        ...     print(order.algorithm, order.n_inexact, f"{order.max_ulp:.3g}")
        naive 1 4.19e+06
        pairwise 1 8.39e+06
    """
    arrays = [np.asarray(array) for array in arrays]
    if not arrays or not algorithms:
        raise ArgumentError("there is nothing to sum", given=f"{counted(len(arrays), 'array')}, "
                            f"{counted(len(algorithms), 'algorithm')}", hint="one array for each rank")  # fmt: skip
    require_arrays(arrays)
    if len(kinds := {(array.shape, str(array.dtype)) for array in arrays}) > 1:
        raise MeshError("ranks disagree on what they sum", given=shown(sorted(kinds)), hint="one shape and one dtype")
    if arrays[0].dtype not in (np.float32, np.float64):
        raise ArgumentError("only sums of floating-point numbers hang on their order", given=str(arrays[0].dtype),
                            hint="float32 or float64 arrays")  # fmt: skip
    if not all(np.isfinite(array).all() for array in arrays):
        raise ArgumentError("a sum with nan or inf has no exact value", given="arrays that are not all finite",
                            hint="gradients of a step that went well")  # fmt: skip
    exact, found = exact_sum(arrays), list[SumOrder]()
    first: Floats | None = None
    for algorithm in algorithms:
        total = summed(arrays, algorithm)
        first = total if first is None else first
        found.append(_compared(named(algorithm), total, exact, first))
        if bus.listeners:
            bus.emit(OrderMeasured(*found[-1], n_ranks=len(arrays), dtype=str(exact.dtype)))
    return found


def named(algorithm: str | Plan) -> str:
    """What an order is called."""
    return algorithm if isinstance(algorithm, str) else name_of(algorithm)


def summed(arrays: Sequence[Floats], algorithm: str | Plan) -> Floats:
    """The sum in the order of an algorithm, as rank 0 has it."""
    if algorithm == PAIRWISE:
        return pairwise_sum(arrays)
    found: Floats = simulate_arrays(plan_of("all_reduce", algorithm), arrays)[0]
    return found


def pairwise_sum(arrays: Sequence[Floats]) -> Floats:
    """Half of the arrays, and the other half, each added in the same way.

    Example:
        >>> pairwise_sum([np.array([1.0]), np.array([2.0]), np.array([4.0])]).tolist()
        [7.0]
    """
    half = len(arrays) // 2
    found: Floats = pairwise_sum(arrays[:half]) + pairwise_sum(arrays[half:]) if half else arrays[0]
    return found


def exact_sum(arrays: Sequence[Floats]) -> Floats:
    """The sum as if nothing were rounded but the result.

    Example:
        >>> exact_sum([np.array([1e16]), np.array([1.0]), np.array([-1e16])]).tolist()
        [1.0]
    """
    columns = np.stack([np.asarray(array, np.float64).reshape(-1) for array in arrays], axis=1).tolist()
    total = np.array([fsum(column) for column in columns], np.float64)
    found: Floats = total.astype(arrays[0].dtype).reshape(arrays[0].shape)
    return found


def _compared(name: str, total: Floats, exact: Floats, first: Floats) -> SumOrder:
    ulp = np.abs(total.astype(np.longdouble) - exact) / np.spacing(np.abs(exact))
    return SumOrder(name, total.size, int((total != exact).sum()), int((total != first).sum()),
                 float(ulp.mean()) if ulp.size else 0.0, float(ulp.max(initial=0)))  # fmt: skip
