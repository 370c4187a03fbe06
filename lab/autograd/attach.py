"""Giving Tensor the members that `tensor.py` only declares: they call ops, of which the class knows none."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from lab.autograd.tensor import Tensor


def attach(**members: Any) -> None:
    """Set members of Tensor by name."""
    for name, member in members.items():
        setattr(Tensor, name, member)


def kinds(values: Iterable[Any]) -> str:
    """The types of some values, for an error."""
    return ", ".join(type(v).__name__ for v in values) or "no positional argument"
