"""Every error that the lab raises on purpose: the problem, what was given, a hint.

The whole tree stands here, so that a reader sees at a glance what can go wrong and what to catch.
"""

from __future__ import annotations


class LabError(Exception):
    """Base of the tree; its text is three short lines in the learner's words.

    Args:
        problem: what is wrong, one sentence.
        given: what was found, values or shapes.
        hint: what to try next.

    Example:
        >>> print(LabError("add cannot broadcast its operands", given="(3, 4) and (3, 2)",
        ...                hint="trailing dimensions must be equal or 1"))
        add cannot broadcast its operands
        given: (3, 4) and (3, 2)
        hint:  trailing dimensions must be equal or 1
    """

    def __init__(self, problem: str, *, given: object = "", hint: str = "") -> None:
        super().__init__(problem)
        self.problem, self.given, self.hint = problem, str(given), hint

    def __str__(self) -> str:
        lines = [self.problem]
        if self.given:
            lines.append(f"given: {self.given}")
        if self.hint:
            lines.append(f"hint:  {self.hint}")
        return "\n".join(lines)

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.problem, self.given, self.hint), vars(self)


def _rebuild(kind: type[LabError], problem: str, given: str, hint: str) -> LabError:
    return kind(problem, given=given, hint=hint)


# Numbers and arrays
class ShapeError(LabError, ValueError):
    """Shapes do not fit each other or the operation."""


class DTypeError(LabError, TypeError):
    """A dtype that the operation cannot take."""


class UnsupportedError(LabError, TypeError):
    """A function or an argument that the lab does not support; never answered by a silently lost gradient."""


class ArgumentError(LabError, ValueError):
    """An argument outside its allowed values."""


class FileError(LabError, OSError):
    """A file that cannot be read or written: missing, a folder, without permission, no room."""


# Differentiation
class GradientError(LabError, RuntimeError):
    """A gradient that cannot be computed: freed graph, mutated array, no path, not a scalar."""


class TransformError(LabError, RuntimeError):
    """grad, vmap, jit and their kin were asked for something that they cannot do."""


class TracerLeakError(TransformError):
    """A value of a finished transform was used after its end."""


class ConcretizationError(TransformError):
    """A trace needed the value of something that is only known when the graph runs."""


# Graphs and kernels
class FormulaError(LabError, ValueError):
    """A formula in the op table that cannot be read."""


class GraphError(LabError, ValueError):
    """A graph that is not legal, cannot be read, or cannot hold what it was asked to hold."""


class ScriptError(LabError, ValueError):
    """The source of a function that `lab.script` cannot read, or cannot make a graph of; it names the line."""


class KernelError(LabError, RuntimeError):
    """A kernel that cannot be compiled, cached or called."""


# Events and recordings
class RecordingError(LabError, ValueError):
    """A recording that is truncated, foreign, hostile or of a newer version."""


# Training and data
class DataError(LabError, ValueError):
    """Data that is missing, damaged or does not fit."""


class RunError(LabError, RuntimeError):
    """A training run asked for something that its state does not allow."""


# Parallel
class PlanError(LabError, ValueError):
    """A plan of sends and receives that cannot work, or does not do what it promises.

    Args:
        rank: whose hop is wrong, -1 if it is nobody's alone.
        step: in which step of that rank, -1 if in none.
    """

    def __init__(self, problem: str, *, given: object = "", hint: str = "", rank: int = -1, step: int = -1) -> None:
        super().__init__(problem, given=given, hint=hint)
        self.rank, self.step = rank, step


class ScheduleError(LabError, ValueError):
    """An order of forwards and backwards that hangs, leaves one out or does one twice."""


class MeshError(LabError, ValueError):
    """Ranks that do not fit together: other shapes, other calls, too many for the workers."""


class LostRankError(LabError, ConnectionError):
    """A rank that others needed died, was stopped or was cut off.

    Args:
        rank: which one, -1 if unknown.
    """

    def __init__(self, problem: str, *, given: object = "", hint: str = "", rank: int = -1) -> None:
        super().__init__(problem, given=given, hint=hint)
        self.rank = rank


class RankMemoryError(LostRankError, MemoryError):
    """A rank whose worker was ended because it took more memory than it may."""


class RankError(LabError, RuntimeError):
    """The program of a rank raised an error; its traceback is shown below the three lines.

    Args:
        rank: which one, -1 if unknown.
        traceback: as text, from the worker.
    """

    def __init__(
        self, problem: str, *, given: object = "", hint: str = "", rank: int = -1, traceback: str = ""
    ) -> None:
        super().__init__(problem, given=given, hint=hint)
        self.rank, self.traceback = rank, traceback
        if traceback:
            self.add_note(traceback)


# Pictures
class ViewError(LabError, ValueError):
    """A view, a scene or a chart that cannot be drawn."""


# Teaching
class PredictionError(LabError, RuntimeError):
    """A prediction asked for out of its order: revealed before committed, or changed afterwards."""


class ExerciseError(LabError, AssertionError):
    """An exercise that is not right yet: the first wrong thing and one hint."""
