"""One step of a backward walk as an account: what came in, times which local derivative, added to which sums.

Pure text and numbers from a Tape; the local derivatives are those of the recorded rules, evaluated on recorded values.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from lab.autograd.local import local_jacobian
from lab.autograd.observe import statistics
from lab.autograd.recorded import NotKept
from lab.autograd.reread import Rules
from widgets.pictures.theme import MINUS, short
from widgets.tape import wording
from widgets.tape.hooks import summed
from widgets.tape.tape import Entry, Seen, Tape

MOST_ROWS = 10
"""Operands of one operation that are drawn: concatenate may have hundreds."""
MOST_TERMS = 4
"""Terms of a sum that are written out."""


class Product(NamedTuple):
    """What the rule of one edge did: local derivative times incoming gradient is the contribution."""

    operand: int
    target: int
    local: str
    """The derivative by name, with its number where it is one: "∂v₁/∂x = 3.0"."""
    rule: str
    """As the op's record has it: "ct * y"."""
    product: str
    """With numbers: "3.0 × 1.0 = 3.0"; of arrays what was sent."""
    sent: str
    why: str
    """Why the local derivative has no numbers; "" where it has."""


class Sum(NamedTuple):
    """The gradient of a value as far as it has been summed."""

    target: int
    name: str
    text: str
    """ "3.0 + 1.0 = 4.0"."""
    n_arrived: int
    n_open: int

    @property
    def progress(self) -> str:
        """How much of it is there."""
        return f"{self.n_open} more to come" if self.n_open else "complete"


class Step(NamedTuple):
    """One rule that ran, or the start of a walk."""

    node: int
    what: str
    """The operation: "v₁ = x * y"."""
    name: str
    gradient: str
    number: int
    """Which of the rules of the walk it is, from 1 on; 0 at the start."""
    n_rules: int
    products: list[Product]
    sums: list[Sum]
    n_left_out: int
    """Operands that are not drawn."""

    @property
    def heading(self) -> str:
        """Where in the walk it is."""
        place = f"Rule {self.number} of {self.n_rules}, {self.what}"
        return place if self.number else f"Backward starts at {self.name}"

    def account(self) -> str:
        """The step in words."""
        told = [f"{self.heading}: the gradient that came in is {self.gradient or 'not recorded'}."]
        if not self.number:
            told = [f"{self.heading}: its gradient is {self.gradient or 'given'}."]
        sums = {s.target: s for s in self.sums}
        for p in self.products:
            s = sums[p.target]
            words = ", ".join(filter(None, [p.local, f"rule {p.rule}" if p.rule else "", p.product]))
            why = f" (The derivative itself: {p.why}.)" if p.why else ""
            told.append(f"To {s.name}: {words}.{why} Gradient of {s.name}: {s.text}, {s.progress}.")
        if self.n_left_out:
            told.append(f"{self.n_left_out:,} more operands got theirs.")
        return "\n".join(told)


class Walk(NamedTuple):
    """The walk that a Tape is in."""

    reach: frozenset[int]
    """The nodes that it goes through."""
    rule: int
    """The node whose rules ran last, -1 before the first."""
    finished: bool

    def is_done(self, node: int) -> bool:
        """Whether the walk has passed a node: it goes from the newest to the oldest."""
        return self.finished or (self.rule >= 0 and node >= self.rule)


def walk_of(tape: Tape, rule: int) -> Walk:
    """The nodes between the root of the latest walk and the leaves, and how far it is."""
    reach, stack = {tape.root}, [tape.root]
    while stack:
        entry = tape.entries.get(stack.pop())
        fresh = [p for p in entry.parents if p >= 0 and p not in reach] if entry is not None else []
        reach.update(fresh)
        stack.extend(fresh)
    return Walk(frozenset(reach), rule, tape.now.kind in ("finish", "stored"))


def n_rules(tape: Tape, walk: Walk) -> tuple[int, int]:
    """How many operations the walk has passed, and how many it goes through."""
    ops = [node for node in walk.reach if node in tape.entries and tape.entries[node].op]
    return sum(walk.rule >= 0 and walk.is_done(node) for node in ops), len(ops)


def products_of(tape: Tape, entry: Entry, rules: Rules, called: Mapping[int, str]) -> list[Product]:
    """What the rules of a node sent, operand by operand; where no gradient was wanted there is no product."""
    made = []
    for i, target in enumerate(tape.targets.get(entry.node, ())):
        if target < 0:
            continue
        seen = tape.contributions.get((entry.node, i))
        record = wording.record(entry.op)
        rule = record.rule_text(i) if record is not None else ""
        name = f"∂{called[entry.node]}/∂{called.get(target, '·')}"
        number, local, why = _local(entry, i, tape.entries.get(target), rules)
        sent, came = wording.short(seen), wording.scalar(entry.gradient)
        product = f"{number} × {_bracketed(came)} = {sent}" if number and came and sent else sent
        made.append(Product(i, target, f"{name}{local}", rule, product, sent, why))
    return made


def _local(entry: Entry, argument: int, operand: Entry | None, rules: Rules) -> tuple[str, str, str]:
    """(the number if it is one, the words after its name, why it has no numbers)."""
    try:
        jacobian = local_jacobian(rules, entry.node, argument)
    except NotKept as why:
        n, m = math.prod(entry.shape), 0 if operand is None else math.prod(operand.shape)
        return "", f": {n:,}×{m:,}" if n * m > 1 else "", str(why)
    if jacobian.size == 1:
        number = short(jacobian.item())
        return number, f" = {number}", ""
    (n, m), (*_, norm, bad) = jacobian.shape, statistics(jacobian)
    words = f"norm {short(norm)}{f', {bad:,} not finite' if bad else ''}"
    if n == m and np.count_nonzero(jacobian) == np.count_nonzero(np.diag(jacobian)):
        diagonal = ", ".join(short(float(v)) for v in np.diag(jacobian))
        return "", f": diagonal {f'[{diagonal}]' if n <= MOST_TERMS else words}", ""
    return "", f": {n}×{m}, {words}", ""


def sum_of(tape: Tape, target: int, walk: Walk, called: Mapping[int, str]) -> Sum:
    """What has come back to a node in this walk, and how much is still to come."""
    arrived: list[Seen | None] = []
    n_open = 0
    for source in reversed(tape.users.get(target, ())):  # newest first, as the walk comes by
        if source not in walk.reach:
            continue
        entry = tape.entries[source]
        record, targets = wording.record(entry.op), tape.targets.get(source, ())
        for i in (i for i, p in enumerate(entry.parents) if p == target):
            if i < len(targets) and targets[i] == target and walk.is_done(source):
                arrived.append(tape.contributions.get((source, i)))
            elif not walk.is_done(source) and (record is None or record.rule(i) is not None):
                n_open += 1
    return Sum(target, called.get(target, "·"), _sum_text(arrived), len(arrived), n_open)


def _sum_text(arrived: list[Seen | None]) -> str:
    total = wording.short(summed(arrived))
    terms = [wording.scalar(seen) for seen in arrived]
    n = len(arrived)
    if not total:
        return f"{n} contribution{'s' * (n != 1)}"
    if n == 1:
        return total
    if not all(terms):
        return f"{total}, sum of {n}"
    shown = terms if n <= MOST_TERMS else ["…", *terms[-2:]]
    return f"{' + '.join([shown[0], *map(_bracketed, shown[1:])])} = {total}"


def _bracketed(number: str) -> str:
    return f"({number})" if number.startswith(MINUS) else number
