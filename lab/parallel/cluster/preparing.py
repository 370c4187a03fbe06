"""What is loaded before a rank begins: its program, what the program says it needs, and all of it on a spare.

A long import in the middle of a launch keeps the other ranks waiting; one that is interrupted leaves a module half
there, which fails in every program that comes later. So it is done before the ranks meet.
"""

from __future__ import annotations

import logging
import pickle
from collections.abc import Callable
from typing import Any, TypeVar

from lab.config import State
from lab.errors import MeshError

log = logging.getLogger("lab.parallel")

_PREPARE, _REHEARSE = "prepare", "rehearse"
"""Attributes of a program: what `prepared_by` was given."""

Program = TypeVar("Program", bound=Callable[..., Any])


def prepared_by(
    prepare: Callable[[], object], *, rehearse: Callable[..., object] | None = None
) -> Callable[[Program], Program]:
    """Have each rank call a function, such as a long import, before it meets the others to run this program.

    Args:
        rehearse: what a spare worker calls besides, with the arguments of the program that it may have to join: it
            loads what they need.

    Example:
        >>> from lab.kernels import have_numba
        >>> @prepared_by(have_numba)
        ... def program(comm): return comm.rank
    """

    def marked(program: Program) -> Program:
        setattr(program, _PREPARE, prepare)
        if rehearse is not None:
            setattr(program, _REHEARSE, rehearse)
        return program

    return marked


def prepare(program: Callable[..., Any]) -> None:
    """Call what a program has said that it is prepared by."""
    made_ready = getattr(program, _PREPARE, None)
    if made_ready is not None:
        made_ready()


def rehearse(payload: bytes) -> None:
    """On a spare: have there what a rank of this launch has loaded, to take the place of one."""
    try:
        program, args, _ = load(payload)
        prepare(program)
        rehearsed = getattr(program, _REHEARSE, None)
        if rehearsed is not None:
            rehearsed(*args)
    except Exception as error:  # noqa: BLE001 -- the ranks meet the same, and it is told of them
        log.info("a spare cannot load what the ranks do: %s", error)


def load(payload: bytes) -> tuple[Callable[..., Any], tuple[Any, ...], State]:
    """The program, its arguments and the launcher's settings.

    Raises:
        MeshError: it cannot be loaded here.
    """
    try:
        program, args, state = pickle.loads(payload)  # noqa: S301 -- it came over the cluster's own connection
    except Exception as error:
        raise MeshError(
            "the program cannot be loaded on a worker",
            given=f"{type(error).__name__}: {error}",
            hint="define it in the notebook, or in a module that the workers have",
        ) from error
    return program, args, state
