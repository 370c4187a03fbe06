"""Into how many chunks the buffers of a plan can be cut: blocks that change places need as many chunks each."""

from collections.abc import Iterable

from lab.parallel.paper.operations import PLACES


def cuts(operation: str, world_size: int, wanted: Iterable[int]) -> set[int]:
    """Those of `wanted` that the operation allows, or one chunk a rank where that is none."""
    allowed = {n for n in wanted if operation not in PLACES or n % world_size == 0}
    return allowed or {world_size}
