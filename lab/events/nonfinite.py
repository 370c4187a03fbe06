"""The first value or gradient of a recording that holds nan or infinity: which operation, on which line, and from what.

What comes after is nan as well, mostly; where it began is told by the ranges of what went in.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lab.errors import ArgumentError, RecordingError
from lab.events.bus import Detail
from lab.events.catalogue import OpRecorded, TangentPushed, ValueSeen
from lab.events.event import Event
from lab.events.recording import Recording
from lab.events.telling import Place, digits, place_of_node
from lab.words import kind_of


class Range(NamedTuple):
    """Between which numbers the finite entries of an array lay.

    Example:
        >>> str(Range("x", -1.0, 2.0, 0)), str(Range("y", 3.0, 3.0, 2)), str(Range("c", text="0.5"))
        ('x from -1.0 to 2.0', 'y 3.0 and 2 not finite', 'c 0.5')
    """

    name: str
    minimum: float = math.nan
    maximum: float = math.nan
    n_nonfinite: int = 0
    text: str = ""
    """Of a constant, what is known of it."""

    def __str__(self) -> str:
        low, high = digits(self.minimum), digits(self.maximum)
        known = self.text or ("" if math.isnan(self.minimum) else low if low == high else f"from {low} to {high}")
        bad = f"{self.n_nonfinite} not finite" if self.n_nonfinite else ""
        return f"{self.name} {' and '.join(filter(None, (known, bad))) or 'not recorded'}"


@dataclass(frozen=True, slots=True)
class Nonfinite:
    """Where nan or infinity began.

    Attributes:
        position: of the ValueSeen event that is the first.
        node: the operation that made it, or the leaf that brought it.
        role: "value", "gradient", "contribution" (the rule of `node` made it) or "tangent".
        n_entries: how many entries are not finite.
        what: how many entries are nan, and how many infinite, where that is known.
        place: the operation or leaf, with its source line.
        operands: what went in.
        incoming: the gradient on which the rule ran; None for a value.
    """

    position: int
    node: int
    role: str
    n_entries: int
    what: str
    place: Place
    operands: tuple[Range, ...] = ()
    incoming: Range | None = None

    @property
    def text(self) -> str:
        """Where it began, in up to three lines."""
        name = self.place.name or "a value"
        made = {"contribution": f"the backward rule of {name}", "gradient": f"the gradient of {name}",
                "tangent": f"the tangent of {name}"}.get(self.role, name)  # fmt: skip
        where, came = self.place.where, ", ".join(str(r) for r in (*self.operands, self.incoming) if r is not None)
        lines = f"first nan or infinity: {self.what} in {made}", where and f"at {where}", came and f"with {came}"
        return "\n".join(filter(None, lines))

    def __str__(self) -> str:
        return self.text


def first_nonfinite(source: Any) -> Nonfinite | None:
    """The first value, gradient, contribution or tangent of a recording that holds nan or infinity; None if none does.

    Args:
        source: a Recording of detail "statistics" or "value", or a run that has one. A mask of -inf is found, too.

    Raises:
        RecordingError: operations were recorded without values.
        ArgumentError: no recording.

    Example:
        >>> import lab, numpy as np
        >>> x = lab.tensor([2.0, 1.0, 0.0], requires_grad=True, name="x")
        >>> with lab.record() as rec, np.errstate(all="ignore"):
        ...     (lab.sqrt(x) * 2.0).sum().backward()
        >>> print(lab.first_nonfinite(rec))
        first nan or infinity: 1 infinity of 3 entries in the backward rule of sqrt
        at line 2 of ...
        with x from 0.0 to 2.0, incoming gradient 2.0
    """
    recording = getattr(source, "recording", source)
    if not isinstance(recording, Recording):
        raise ArgumentError(
            "nan or infinity is looked for in a recording", given=kind_of(source),
            hint='with lab.record(detail="statistics") as rec: ..., then first_nonfinite(rec)',
        )  # fmt: skip
    seen = recording.columns(ValueSeen)
    bad = np.flatnonzero(seen["n_nonfinite"])
    if len(bad):
        return _told(recording, seen, int(bad[0]))
    if not len(seen["node"]) and recording.detail is Detail.SHAPE and len(recording.positions(OpRecorded)):
        raise RecordingError(
            "this recording holds no values to look at", given="a recording of detail \"shape\"",
            hint='record again with lab.record(detail="statistics")',
        )  # fmt: skip
    return None


def _told(recording: Recording, seen: Any, row: int) -> Nonfinite:
    event, position, rank = recording[int(seen["position"][row])], int(seen["position"][row]), int(seen["rank"][row])
    assert isinstance(event, ValueSeen)
    node = event.source if event.role == "contribution" else event.node
    before = recording.columns(ValueSeen, 0, position)
    operation = _operation(recording, node, position, rank)
    operands: tuple[Range, ...] = ()
    if operation is not None and event.role != "gradient":
        texts = operation.constants or ("",) * len(operation.parents)
        operands = tuple(
            _range(before, "value", p, rank, place_of_node(recording, p, position, rank).name.removeprefix("leaf "))
            if p >= 0
            else Range("constant", text=text)
            for p, text in zip(operation.parents, texts, strict=True)
        )
    came = event.role == "contribution"
    incoming = _range(before, "gradient", node, rank, "incoming gradient") if came else None
    place = place_of_node(recording, node, position, rank)
    return Nonfinite(position, node, event.role, event.n_nonfinite, _what(event), place, operands, incoming)


def _operation(recording: Recording, node: int, position: int, rank: int) -> OpRecorded | TangentPushed | None:
    kinds: tuple[type[Event], ...] = OpRecorded, TangentPushed
    for kind in kinds:
        columns = recording.columns(kind, 0, position + 1)
        rows = np.flatnonzero((columns["node"] == node) & (columns["rank"] == rank))
        if len(rows):
            found = recording[int(columns["position"][rows[-1]])]
            return found if isinstance(found, OpRecorded | TangentPushed) else None
    return None


def _range(seen: Any, role: str, node: int, rank: int, name: str) -> Range:
    """What was seen last of a node."""
    rows = np.flatnonzero((seen["node"] == node) & (np.asarray(seen["role"]) == role) & (seen["rank"] == rank))
    if not len(rows):
        return Range(name)
    numbers = (seen[field][rows[-1]] for field in ("minimum", "maximum", "n_nonfinite"))
    low, high, n = numbers
    return Range(name, float(low), float(high), int(n))


def _what(event: ValueSeen) -> str:
    """How many entries are what, as far as it is known."""
    size = math.prod(event.shape)
    of = f" of {size} entries" if size > 1 else ""
    if event.value is None:
        return f"{event.n_nonfinite} not finite{of}"
    n_nan = int(np.isnan(event.value).sum())
    kinds = [f"{n} {word}" for n, word in ((n_nan, "nan"), (event.n_nonfinite - n_nan, "infinity")) if n]
    return f"{' and '.join(kinds)}{of}"
