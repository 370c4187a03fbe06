"""What check_grads found, as a value: each comparison with its numbers, worst entries, kinks, the rule at fault."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from lab.autograd.display import mimebundle

Array = np.ndarray[Any, np.dtype[Any]]
_WORDS = {"fwd": "forward mode", "rev": "reverse mode"}


class Entry(NamedTuple):
    """One entry of a Jacobian.

    Attributes:
        argument, result: which entry of what by which entry of what, as "x['w'][0, 1]".
        expected, actual: by differences, and by the mode that was checked.
        left, right: the slopes from the two sides, where they were looked at; else nan.
        note: "at a kink", "at an edge of its domain" or "".
    """

    argument: str
    result: str
    expected: float
    actual: float
    left: float = float("nan")
    right: float = float("nan")
    note: str = ""

    @property
    def words(self) -> str:
        """The entry as a derivative."""
        return f"{self.result} by {self.argument}"


@dataclass(frozen=True, slots=True)
class Check:
    """One comparison.

    Attributes:
        mode: "rev", or of a higher order "fwd of rev": the derivative by the first of the second was wrong or right.
        order: 1 for a first derivative.
        arguments, results: names of the columns and of the rows.
        expected, actual: Jacobians by differences and by the mode, (results, arguments).
        errors: for each entry its error as a multiple of what is allowed; a heat map of this shows what is wrong.
        notes: entries that have no slope.
    """

    mode: str
    order: int
    arguments: tuple[str, ...]
    results: tuple[str, ...]
    expected: Array = field(repr=False)
    actual: Array = field(repr=False)
    errors: Array = field(repr=False)
    notes: tuple[Entry, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every entry is as exact as allowed."""
        return bool(np.all(self.errors <= 1.0))

    @property
    def worst(self) -> Entry:
        """The entry that is furthest from what is allowed."""
        if not self.errors.size:
            return Entry("nothing", "nothing", 0.0, 0.0)
        flat = np.nan_to_num(self.errors, nan=np.inf, posinf=np.inf)
        j, i = np.unravel_index(int(np.argmax(flat)), flat.shape)
        return Entry(self.arguments[i], self.results[j], float(self.expected[j, i]), float(self.actual[j, i]))

    @property
    def words(self) -> str:
        """The mode in words."""
        return " of ".join(_WORDS[m] for m in self.mode.split(" of "))


class Fault(NamedTuple):
    """The first operation whose derivative is wrong by itself.

    Attributes:
        op: its name; of a function with a rule of its own "custom name".
        argument: the entry of the operand whose rule is wrong.
        where: file and line that asked for it.
        check: the comparison of that operation alone.
    """

    op: str
    argument: str
    where: str
    check: Check


@dataclass(frozen=True, slots=True, repr=False)
class GradientReport:
    """What `check_grads` found.

    Attributes:
        name: of the function.
        checks: every comparison.
        fault: the rule at fault, None where all is right or no operation alone is wrong.
        tolerance: what an entry may be off, relative to the larger of itself and a tenth of the largest.
    """

    name: str
    checks: tuple[Check, ...]
    fault: Fault | None = None
    tolerance: float = 1e-6

    @property
    def ok(self) -> bool:
        """Whether every comparison is right."""
        return all(c.ok for c in self.checks)

    @property
    def wrong(self) -> Check:
        """The first comparison that failed; if none did, the one with the largest error."""
        failed = [c for c in self.checks if not c.ok]
        return failed[0] if failed else max(self.checks, key=lambda c: float(np.max(c.errors, initial=0.0)))

    @property
    def worst(self) -> Entry:
        """The worst entry of that comparison."""
        return self.wrong.worst

    @property
    def notes(self) -> tuple[Entry, ...]:
        """Entries without a slope, each once."""
        found = {(e.argument, e.result, e.note): e for c in reversed(self.checks) for e in c.notes}
        return tuple(found.values())

    def __str__(self) -> str:
        n = sum(c.errors.size for c in self.checks)
        words = f"{n} entries compared, to {self.tolerance:.0e}"
        lines = [f"derivatives of {self.name}: {'right' if self.ok else 'WRONG'}, {words}"]
        for c in self.checks:
            share = float(np.max(c.errors, initial=0.0))
            entry = c.worst
            words = f"error {share:.2g} of what is allowed" if c.ok else (
                f"{entry.words} is {entry.actual:.6g}, differences say {entry.expected:.6g}")  # fmt: skip
            lines.append(f"  {'right' if c.ok else 'WRONG'}  {c.words}: {words}")
        lines += [f"  note   {e.words} {e.note}: slopes {e.left:.4g} and {e.right:.4g}, taken {e.actual:.4g}"
                  for e in self.notes]  # fmt: skip
        if self.fault is not None:
            bad = self.fault.check.worst
            where = f" at {self.fault.where}" if self.fault.where else ""
            lines.append(f"  fault  the rule of {self.fault.op} for {self.fault.argument}{where}: "
                         f"{bad.actual:.6g}, differences say {bad.expected:.6g}")  # fmt: skip
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    def _repr_mimebundle_(
        self, include: Collection[str] | None = None, exclude: Collection[str] | None = None
    ) -> dict[str, str]:
        return mimebundle(str(self), f"check_grads · {'right' if self.ok else 'wrong'}", include, exclude)
