"""What `DataParallel` and `Pipeline` refuse where they are written; in the run's thread it is met seconds later."""

from __future__ import annotations

import sys
from typing import Any

from lab.checks import number, whole
from lab.errors import ArgumentError
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.cluster.launching import require_transport
from lab.words import shown


def refuse_what_is_no_option(
    cluster: object, world_size: object, timeout: object, wait: object, transport: object
) -> None:
    """Refuse a cluster that is none, a number of ranks that is none, times that are none, and a transport that is none.

    Raises:
        ArgumentError: so it is.

    Example:
        >>> refuse_what_is_no_option(None, 2, timeout=0, wait=30, transport="auto")
        Traceback (most recent call last):
        lab.errors.ArgumentError: a time-out is a positive number of seconds
        given: timeout=0
        hint:  60 is usual
    """
    distributed: Any = sys.modules.get("distributed")  # who has a Client has imported it
    is_client = distributed is not None and isinstance(cluster, distributed.Client)
    if not (cluster is None or is_client or isinstance(cluster, Cluster | str)):
        raise ArgumentError("cluster= is a Cluster, a Client or a scheduler's address",
                            given=f"cluster={shown(cluster)}",
                            hint="Cluster(4) starts workers; None does so for this run alone")  # fmt: skip
    if world_size is not None:
        whole("world_size", world_size, least=1, hint="one rank per worker; None takes all workers")
    if not number("timeout", timeout, hint="in seconds, 60 is usual") > 0:
        raise ArgumentError("a time-out is a positive number of seconds", given=f"timeout={shown(timeout)}",
                            hint="60 is usual")  # fmt: skip
    if not number("wait", wait, hint="in seconds; 0 does not wait for workers") >= 0:
        raise ArgumentError("wait= is a number of seconds, 0 or more", given=f"wait={shown(wait)}",
                            hint="0 does not wait for workers")  # fmt: skip
    require_transport(transport)
