"""The Python source of the loop of a program over rows, phase by phase: a sum of a row is there when it has passed."""

from __future__ import annotations

from collections.abc import Iterator

from lab.kernels.chain import TAKEN, Step, local
from lab.kernels.rowwise import LAST, Cast, Match, Pick, Program, Reduce
from lab.kernels.stretches import ENTRIES, is_cheap, operands, stretches_of

BLOCK = 4096
"""Entries whose sum is taken in their own dtype before it goes on in float64."""
LONG = 256
"""Entries of a row from which on the next row is asked for while this one is worked on (`ahead.py`)."""
ROWS = 64
"""Rows whose sums are taken in their own dtype before they go on in float64."""


def source_of(program: Program) -> str:
    """The Python source of `fused(inputs..., outputs..., rows of its own..., n_rows, n_columns)`.

    A full operand is an array of two axes; the others have one, a single one entry. Rows of its own are given to it:
    what it made itself LLVM would take for something that may overlap all else, and go one entry at a time. Where
    labels are compared with the columns it returns a row whose label names none, -1 if there is no such row.

    Example:
        >>> from lab.kernels.formula import Formula
        >>> print(source_of(Program((("x", "float32", "full"), ("b", "float32", "row")),
        ...     (Step("y", Formula("x + b"), ("x", "b"), ("x", "b")),), ("y",))))
        def fused(in_x, in_b, out_y, n_rows, n_columns):
            for row in range(n_rows):
                if n_columns >= 256:
                    ask_for_row(in_x, row + 1)
                row_x = in_x[row]
                to_y = out_y[row]
                for column in range(n_columns):
                    x = row_x[column]
                    b = in_b[column]
                    y = (x + b)
                    to_y[column] = y
    """
    return "\n".join(_Source(program).lines())


def scratch_of(program: Program) -> tuple[tuple[str, ...], int, int]:
    """The dtypes of the rows that its loop needs for itself; the first so many for a stretch, the last for a cycle."""
    source = _Source(program)
    return tuple(dtype for _, dtype in source.scratch()), len(source.held), len(source.turns)


class _Source:
    """What the writing of one source needs to know: which values are needed again in a later phase."""

    def __init__(self, program: Program) -> None:
        self.p = program
        self.full_inputs = [name for name, _, layout in program.inputs if layout == "full"]
        steps = [x for x in program.lines if not isinstance(x, Reduce | Pick)]
        self.picks = [x for x in program.lines if isinstance(x, Pick)]
        self.steps = steps
        labels = [x.of for x in steps if isinstance(x, Match)] + [x.at for x in self.picks]
        self.labels = list(dict.fromkeys(labels))
        self.reduces = [x for x in program.lines if isinstance(x, Reduce)]
        self.along = [r for r in self.reduces if r.over == "columns"]
        self.compared = [r for r in self.along if r.kind != "sum"]
        self.down = [r for r in self.reduces if r.over == "rows" and program.layout(r.of) == "full"]
        self.turns = [r for r in self.reduces if r.over == "cycle"]
        self.cycles = [f"in_{name}" for name, _, layout in program.inputs if layout == "cycle"]
        self.totals = [r for r in self.reduces if program.layout(r.name) == "single"]
        self.ends = [x for x in steps if program.phase(x.name) == LAST]
        self.steps = steps = [x for x in steps if program.phase(x.name) != LAST]
        self.last = max((program.phase(x.name) for x in steps), default=0)
        self.last = max([self.last, *(program.phase(r.of) for r in self.reduces)])
        self.by_name = {x.name: x for x in steps}
        self.kept = self._kept()
        asked = [x.name for x in steps if x.name in program.outputs or x.name in self.kept]
        self.stretches = stretches_of(program, self.by_name, [*asked, *(r.of for r in self.reduces)])
        self.held = sorted(self.stretches.held - self.kept - set(program.outputs))

    def _uses(self) -> Iterator[tuple[str, int]]:
        """Every full value, and a phase in which it is read."""
        for line in self.steps:
            phase = self.p.phase(line.name)
            yield from ((name, phase) for name in operands(line))
        yield from ((r.of, self.p.phase(r.of)) for r in self.reduces)

    def _kept(self) -> set[str]:
        """Full values of steps that a later phase, or a comparison of a whole row, reads again."""
        made = {x.name for x in self.steps if self.p.layout(x.name) == "full" and not is_cheap(x)}
        later = {name for name, phase in self._uses() if name in made and phase > self.p.phase(name)}
        return later | {r.of for r in self.compared if r.of in self.by_name}

    def scratch(self) -> list[tuple[str, str]]:
        """Name and dtype of each row that the loop needs for itself; those of a cycle come last."""
        rows = [(f"held_{name}", self.p.about(name).dtype) for name in self.held]
        rows += [(f"kept_{name}", self.p.about(name).dtype) for name in sorted(self.kept - set(self.p.outputs))]
        for r in self.down:
            rows += [(f"parts_{r.name}", self.p.about(r.of).dtype), (f"sums_{r.name}", "float64")]
        return rows + [(f"sums_{r.name}", "float64") for r in self.turns]

    def place(self, name: str) -> str:
        """The row in which a kept value stands."""
        return f"to_{name}" if name in self.p.outputs else f"kept_{name}"

    def entry(self, name: str) -> str:
        """Where the entry of a column stands, of a value that is kept, or held until the end of a stretch."""
        return f"held_{name}[column - uint64(start)]" if name in self.held else f"{self.place(name)}[column]"

    def lines(self) -> Iterator[str]:
        p = self.p
        arrays = [*(f"in_{n}" for n, _, _ in p.inputs), *(f"out_{n}" for n in p.outputs)]
        arrays += [word for word, _ in self.scratch()]
        yield f"def fused({', '.join(arrays)}, n_rows, n_columns):"
        for name, _, layout in p.inputs:
            if layout == "single":
                yield f"    {local(name)} = in_{name}[0]"
        yield from (f"    {line}" for line in self._columns_of(-1, "single"))
        for r in self.down:
            yield f"    parts_{r.name}[:] = 0"
            yield f"    sums_{r.name}[:] = 0"
        yield from (f"    sums_{r.name}[:] = 0" for r in self.turns)
        yield from (f"    total_{r.name} = 0.0" for r in self.totals)
        if self.labels:
            yield "    wrong = -1"
        pad = "    "
        if self.down:
            yield f"    for first in range(0, n_rows, {ROWS}):"
            yield f"        for row in range(first, min(first + {ROWS}, n_rows)):"
            pad = " " * 8
        else:
            yield "    for row in range(n_rows):"
        yield from (f"{pad}    {line}" for line in self._row())
        for r in self.down:
            yield f"{pad}add_to(parts_{r.name}, sums_{r.name})"
        for r in self.down:
            if r.name in p.outputs:
                yield "    for column in range(n_columns):"
                yield f"        out_{r.name}[column] = sums_{r.name}[column]"
        for r in self.turns:
            if r.name in p.outputs:
                yield f"    for turn in range(sums_{r.name}.size):"
                yield f"        out_{r.name}[turn] = sums_{r.name}[turn]"
        yield from (f"    {local(r.name)} = {p.about(r.name).dtype}(total_{r.name})" for r in self.totals)
        yield from (f"    {local(x.name)} = {p.about(x.name).text}" for x in self.ends)
        singles = [x.name for x in (*self.totals, *self.steps, *self.ends) if p.layout(x.name) == "single"]
        yield from (f"    out_{name}[0] = {local(name)}" for name in singles if name in p.outputs)
        if self.labels:
            yield "    return wrong"

    def _row(self) -> Iterator[str]:
        """The body of the loop over rows."""
        p = self.p
        if self.full_inputs:
            yield f"if n_columns >= {LONG}:"
            yield from (f"    ask_for_row(in_{name}, row + 1)" for name in self.full_inputs)
        yield from (f"row_{name} = in_{name}[row]" for name in self.full_inputs)
        yield from (f"to_{name} = out_{name}[row]" for name in p.outputs if p.layout(name) == "full")
        yield from (f"{local(name)} = in_{name}[row]" for name, _, layout in p.inputs if layout == "column")
        if self.cycles or self.turns:
            yield f"turn = row % {[*self.cycles, *(f'sums_{r.name}' for r in self.turns)][0]}.size"
        yield from (f"{local(name)} = in_{name}[turn]" for name, _, layout in p.inputs if layout == "cycle")
        for of in self.labels:
            yield f"if {local(of)} < 0 or {local(of)} >= n_columns:"
            yield "    wrong = row"
        for phase in range(self.last + 1):
            yield from self._between(phase)
            yield from self._columns_of(phase, "column")
            yield from self._phase(phase)
        yield from self._between(self.last + 1)

    def _between(self, phase: int) -> Iterator[str]:
        """What is known of a row when it has been passed over as often."""
        p = self.p
        lines: list[Reduce | Pick] = [*self.along, *self.picks]
        for r in lines:
            if p.phase(r.name) == phase:
                if isinstance(r, Pick):
                    yield from self._pick(r)
                else:
                    yield f"{local(r.name)} = {self._along(r)}"
                if r.name in p.outputs:
                    yield f"out_{r.name}[row] = {local(r.name)}"

    def _pick(self, k: Pick) -> Iterator[str]:
        """One entry, computed for itself; of a label that names no column the first, which nobody will look at."""
        at = local(k.at)
        yield f"picked = uint64({at} if 0 <= {at} < n_columns else 0)"
        for line in self._need(k.of, self.stretches.held, set()):  # what a stretch held is gone
            yield line.replace("[column]", "[picked]").replace("int32(column)", "int32(picked)")
        yield f"{local(k.name)} = {local(k.of)}"

    def _along(self, r: Reduce) -> str:
        """A row's sum or largest entry, once the row has been passed over."""
        if r.kind == "sum":
            return f"{self.p.about(r.of).dtype}(total_{r.name})"
        row = f"row_{r.of}" if r.of in self.full_inputs else self.place(r.of)
        return f"{'largest' if r.kind == 'max' else 'smallest'}({row})"

    def _columns_of(self, phase: int, layout: str) -> Iterator[str]:
        """Steps of one value for each row (or in all) that stand before the pass of that phase."""
        for line in self.steps:
            about = self.p.about(line.name)
            if about.layout == layout and phase in (about.phase, -1):
                yield f"{local(line.name)} = {about.text}"
                if layout == "column" and line.name in self.p.outputs:
                    yield f"out_{line.name}[row] = {local(line.name)}"
        for r in self.reduces:
            of = self.p.about(r.of)
            if layout == "column" and of.layout == "column" and of.phase == phase:
                yield f"total_{r.name} += {local(r.of)}"

    def _phase(self, phase: int) -> Iterator[str]:
        """One pass over a row."""
        p = self.p
        steps = [x for x in self.steps if p.layout(x.name) == "full" and p.phase(x.name) == phase]
        steps = [x for x in steps if x.name in p.outputs or x.name in self.kept or x.name in self.held]
        down = [r for r in self.down if p.phase(r.of) == phase]
        sums = [r for r in self.along if r.kind == "sum" and p.phase(r.of) == phase]
        totals = [r for r in self.totals if p.layout(r.of) == "full" and p.phase(r.of) == phase]
        turns = [r for r in self.turns if p.phase(r.of) == phase]
        reduces = [*down, *sums, *totals, *turns]
        if not (steps or reduces):
            return
        numbers = sorted({*(self.stretches.of(x.name) for x in steps), *(self.stretches.of(r.of) for r in reduces)})
        yield from (f"total_{r.name} = 0.0" for r in sums)
        pad, n = "", BLOCK if len(numbers) == 1 else ENTRIES
        if sums or totals or turns or len(numbers) > 1:
            yield f"for start in range(0, n_columns, {n}):"
            pad = "    "
            yield from (f"    part_{r.name} = {p.about(r.of).dtype}(0.0)" for r in (*sums, *totals, *turns))
        for number in numbers:
            # Numba looks whether a signed number is negative before it takes it as an index, in every turn.
            span = f"uint64(start), uint64(min(start + {n}, n_columns))" if pad else "n_columns"
            yield f"{pad}for column in range({span}):"
            here = [x for x in steps if self.stretches.of(x.name) == number]
            summed = [r for r in reduces if self.stretches.of(r.of) == number]
            yield from (f"{pad}    {line}" for line in self._entry(phase, here, summed))
        yield from (f"{pad}total_{r.name} += part_{r.name}" for r in (*sums, *totals))
        yield from (f"{pad}sums_{r.name}[turn] += part_{r.name}" for r in turns)

    def _entry(self, phase: int, steps: list[Step | Match | Cast], reduces: list[Reduce]) -> Iterator[str]:
        """What is done with one entry: what is written or summed, and whatever that is made of."""
        there: set[str] = set()
        mine = {x.name for x in steps} | {name for name in self.stretches.held if self.p.phase(name) != phase}
        for x in steps:
            yield from self._need(x.name, mine, there)
            yield f"{self.entry(x.name)} = {local(x.name)}"
        for r in reduces:
            yield from self._need(r.of, mine, there)
            if r.over == "rows":
                yield f"parts_{r.name}[column] += {local(r.of)}"
            else:
                yield f"part_{r.name} = plus(part_{r.name}, {local(r.of)})"

    def _need(self, name: str, mine: set[str], there: set[str]) -> Iterator[str]:
        """The source of a value of this entry, after that of what it is made of; a chain may be thousands long."""
        todo = [(name, False)]
        while todo:
            name, is_ready = todo.pop()
            if is_ready:
                yield f"{local(name)} = {self.p.about(name).text}"
            elif name not in there and self.p.layout(name) not in ("column", "single"):
                there.add(name)
                if name in self.full_inputs:
                    yield f"{local(name)} = row_{name}[column]"
                elif name not in self.by_name:
                    yield f"{local(name)} = in_{name}[column]"
                elif name not in mine and (name in self.kept or name in self.stretches.held):
                    yield f"{local(name)} = {self.entry(name)}"
                else:
                    todo.append((name, True))
                    todo += [(a, False) for a in reversed(operands(self.by_name[name]))]


TAKEN.update({
    "row", "turn", "picked", "wrong", "n_rows", "n_columns", "first", "start", "plus", "largest", "smallest", "add_to",
    "ask_for_row", "int32", "uint64", "float32", "float64", "min",
})  # fmt: skip
