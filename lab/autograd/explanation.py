"""`lab.why`: one entry of a gradient, explained by the paths that contribute most, with numbers that add up to it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.asked import Index, called, entry_of, found_in, no_gradient, opened
from lab.autograd.paths import EXPANSIONS, HOOK, Found, Search, searched, walked
from lab.autograd.recorded import BY_HAND, Events, NotKept, Operation, Recorded
from lab.autograd.reread import Rules
from lab.autograd.spread import Layer, spread
from lab.autograd.tensor import Tensor
from lab.errors import GradientError, RecordingError

SMALL = 0.5
"""Of a gradient: paths that are less than this say little about it."""
FEW = 100
"""So few paths are told as paths, however small each of them is."""
BEFORE = "stored before the recording began"
GIVEN = "set by hand"


class Place(NamedTuple):
    """An entry of a node on a path, and where in the code it was made."""

    node: int
    entry: Index
    op: str
    """"" for a leaf."""
    name: str
    file: str = ""
    line: int = 0
    module: str = ""

    def __str__(self) -> str:
        entry = f"[{', '.join(map(str, self.entry))}]" if self.entry else ""
        return f"{self.op or self.name or f'leaf {self.node}'}{entry}"


class Path(NamedTuple):
    """One way from an entry to the result: the product of `factors` is `share`."""

    places: tuple[Place, ...]
    """From the entry to the result at which the walk began."""
    operands: tuple[int, ...]
    """For each place but the first: which operand of it the place before was."""
    factors: tuple[float, ...]
    """The local derivative of each step, then, last, the gradient that the walk began with there."""
    share: float
    walk: int
    """Number of the backward walk in the recording."""

    def __str__(self) -> str:
        text = str(self.places[0])
        for place, factor in zip(self.places[1:], self.factors, strict=False):
            text += f" -({factor:.4g})-> {place}"
        return text + (f", times {self.factors[-1]:.4g}" if self.factors[-1] != 1 else "")


class Other(NamedTuple):
    """A part that is known and cannot be followed: where it arises, how much it is, and why."""

    place: str
    node: int
    share: float
    why: str


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why an entry of a gradient is what it is.

    Attributes:
        node, name, index: the entry.
        gradient: as the run computed it; of a leaf the sum over all walks since it was cleared.
        paths: the largest that were found, largest first.
        rest: all other paths together.
        n_open: how many beginnings of paths `rest` is made of.
        others: parts that are no paths, or cannot be followed: each says why.
        total: shares of the paths + rest + shares of the others.
        certain: no beginning that is left is, as a whole, larger than the smallest of `paths`. What cancels within one
            beginning is not seen: only its sum is.
        notes: what else a reader must know.
        n_all: how many paths there are in all; 0 where they were not counted.
        layers: where `paths` are a small part of very many: how all of the gradient goes through one layer after the
            other.
    """

    node: int
    name: str
    index: Index
    gradient: float
    paths: tuple[Path, ...]
    rest: float
    n_open: int
    others: tuple[Other, ...]
    certain: bool
    notes: tuple[str, ...] = ()
    n_all: int = 0
    layers: tuple[Layer, ...] = ()

    @property
    def total(self) -> float:
        """What all of it adds up to."""
        return math.fsum([*(p.share for p in self.paths), self.rest, *(o.share for o in self.others)])

    @property
    def error(self) -> float:
        """Distance of `total` from the gradient: rounding, nothing else."""
        return abs(self.total - self.gradient)

    @property
    def entry(self) -> str:
        """The entry as one writes it."""
        return str(Place(self.node, self.index, "", self.name))

    def sum(self) -> str:
        """The sum in one line, "0.31 + 0.12 - 0.02 + rest 0.003 = 0.413"."""
        words = [f"{path.share:.4g}" for path in self.paths]
        words += [f"{other.place} {other.share:.4g}" for other in self.others]
        words += [f"rest {self.rest:.4g}"] if self.n_open else []
        return f"{' + '.join(words) or '0'} = {self.total:.6g}".replace("+ -", "- ")

    def __repr__(self) -> str:
        lines = [f"gradient of {self.entry}: {self.gradient:.6g}"]
        lines += [f"  {path.share:+.4g}  {path}" for path in self.paths]
        lines += [f"  {other.share:+.4g}  {other.place}: {other.why}" for other in self.others]
        lines += [f"  {self.rest:+.4g}  other paths" if self.n_open else "  no other paths"]
        error = f", the run's number within {self.error:.1g}" if self.error else ""
        return "\n".join([*lines, f"  sum {self.total:.6g}{error}", *(f"  {note}" for note in self.notes)])


def why(
    tensor: Tensor | int | str,
    index: int | Index | None = None,
    *,
    recording: Events,
    n_paths: int = 5,
    at: int | None = None,
    rank: int | None = None,
    budget: int = EXPANSIONS,
) -> Explanation:
    """Why this gradient: the paths through the graph that contribute most to one entry, and what is left.

    An entry of a gradient is the sum, over all paths from it to the result, of the product of local derivatives along
    the path (Griewank and Walther 2008, "Evaluating Derivatives", section 3.2). The rules that ran are evaluated
    again on the values that they read, and each edge is checked against what the run sent along it.

    Args:
        tensor: the tensor, its name, or the number of its node in the recording.
        index: the entry; None takes the largest.
        recording: of detail "value" (`lab.record()`), with the forward and the backward in it.
        n_paths: how many paths to give.
        at: as of the first so many events of the recording; None: at its end.
        rank: whose gradient, where a recording has operations of several ranks.
        budget: how many beginnings of paths are looked at, at most.

    Raises:
        RecordingError: values were not recorded.
        GradientError: no gradient, or one that is not finite.
        ArgumentError: no such tensor or entry in it.

    Example:
        >>> import lab
        >>> x = lab.tensor(3.0, requires_grad=True, name="x")
        >>> with lab.record() as rec:
        ...     (x * x + lab.sin(x) * 2.0).backward()
        >>> lab.why(x, recording=rec)
        gradient of x: 4.02002
          +3  x -(3)-> multiply -(1)-> add
          +3  x -(3)-> multiply -(1)-> add
          -1.98  x -(-0.99)-> sin -(2)-> multiply -(1)-> add
          no other paths
          sum 4.02002
        >>> lab.why(x, recording=rec).sum()
        '3 + 3 - 1.98 = 4.02002'
    """
    recorded = opened(recording, at, rank)
    operation = found_in(tensor, recorded)
    numbers, whole, before = _walks(recorded, operation)
    total = _added(whole)
    rules, searches, others = Rules(recorded), [], []
    place = entry_of(index, total, operation)
    entry = int(np.ravel_multi_index(place, operation.shape)) if place else 0
    gradient = float(total.reshape(-1)[entry])
    if not math.isfinite(gradient):
        raise GradientError(
            "a gradient that is not finite is not a sum of shares",
            given=f"{called(operation)}{list(place) or ''} is {gradient}",
            hint="lab.anomaly_mode() names the rule that made it",
        )
    for number, array in zip(numbers, whole, strict=True):
        if number == BY_HAND:
            others.append(Other(GIVEN, operation.node, float(array.reshape(-1)[entry]), "no walk computed it"))
        else:
            searches.append((Search(recorded, recorded.walk(number), rules), operation.node, entry))
    books = searched(searches, max(n_paths, 0), budget)
    others += [_other(recorded, part.node, part.why, part.share) for _, part in books.parts]
    others.sort(key=lambda other: -abs(other.share))
    small = books.n_open > 0 and abs(sum(found.share for found in books.paths)) < SMALL * abs(gradient)
    n_all, layers = (spread(searches) if small else None) or (0, ())
    return Explanation(
        operation.node, called(operation), place, gradient, tuple(_path(recorded, found) for found in books.paths),
        books.rest, books.n_open, tuple(others), books.certain, _notes(numbers, before),
        n_all, layers if n_all >= FEW else (),
    )  # fmt: skip


def gradient_of(
    tensor: Tensor | int | str, *, recording: Events, at: int | None = None, rank: int | None = None
) -> Any:
    """The gradient that `why` explains the entries of, as a float64 array; arguments and errors are the same.

    Example:
        >>> import lab
        >>> x = lab.tensor([1.0, 2.0], requires_grad=True)
        >>> with lab.record() as rec:
        ...     (x * x).sum().backward()
        >>> gradient_of(x, recording=rec)
        array([2., 4.])
    """
    recorded = opened(recording, at, rank)
    _, whole, _ = _walks(recorded, found_in(tensor, recorded))
    return _added(whole)


def _walks(recorded: Recorded, operation: Operation) -> tuple[list[int], list[Any], bool]:
    """The walks that made a gradient, what each of them gave, and whether more was stored before."""
    numbers, before = recorded.walks_of(operation.node)
    if not numbers:
        raise no_gradient(recorded, operation)
    try:
        return numbers, [_gradient(recorded, number, operation) for number in numbers], before
    except NotKept as reason:
        raise RecordingError(
            "the recording does not hold this gradient",
            given=f"{called(operation)}: {reason}",
            hint="record a smaller piece: of arrays of up to 4,096 entries copies are kept",
        ) from None


def _added(gradients: list[Any]) -> Any:
    return np.sum([g.astype(np.float64) for g in gradients], axis=0)


def _gradient(recorded: Recorded, number: int, operation: Operation) -> Any:
    if number == BY_HAND:
        return recorded.by_hand(operation.node, operation.shape)
    return recorded.gradient(recorded.walk(number), operation.node, operation.shape)


def _other(recorded: Recorded, node: int, reason: str, share: float) -> Other:
    operation = recorded.operation(node)
    place = "?" if operation is None else operation.op or called(operation)
    return Other("hook" if reason == HOOK else f"through {place}", node, share, reason)


def _place(recorded: Recorded, node: int, entry: int) -> Place:
    operation = recorded.operation(node)
    assert operation is not None  # a step was made there
    index = tuple(int(i) for i in np.unravel_index(entry, operation.shape)) if operation.shape else ()
    return Place(node, index, operation.op, operation.name, operation.file, operation.line, operation.module)


def _path(recorded: Recorded, found: Found) -> Path:
    steps = list(walked(found.end))
    return Path(
        tuple(_place(recorded, step.node, step.entry) for step in steps),
        tuple(step.argument for step in steps[1:]),
        (*(step.slope for step in steps[1:]), found.seed),
        found.share,
        found.walk,
    )


def _notes(numbers: list[int], before: bool) -> tuple[str, ...]:
    notes = []
    if len(numbers) > 1:
        notes.append(f"the sum of {len(numbers)} walks: gradients add up until they are cleared")
    if before:
        notes.append(f"in .grad it was added to what was {BEFORE}, which is not in this sum")
    return tuple(notes)
