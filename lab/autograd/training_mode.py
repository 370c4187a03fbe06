"""What a trace fixes without a word: the mode of a module, training or use, that Python looked at while it ran."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

MODES: ContextVar[Callable[[Any], object] | None] = ContextVar("lab_modes", default=None)
"""Told of each module whose `training` is read in this context; None: nobody wants to know."""
