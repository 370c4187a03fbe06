"""A refusal as part of a lesson: what the lab says to something that cannot work, shown without ending the notebook."""

from __future__ import annotations

import html
from types import TracebackType
from typing import Self

from lab.errors import LabError
from lab.teach.boxes import box, definitions


class Refusal:
    """Catches an error that the lab raises on purpose inside of `with`, and shows its three lines and its notes.

    Attributes:
        error: what was caught; None if nothing was refused.

    Example:
        >>> from lab.errors import ShapeError
        >>> with Refusal() as why:
        ...     raise ShapeError("shapes differ", given="(2,) and (3,)", hint="make them alike")
        >>> why
        shapes differ
        given: (2,) and (3,)
        hint:  make them alike
    """

    def __init__(self) -> None:
        self.error: LabError | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> bool:
        self.error = error if isinstance(error, LabError) else None
        return self.error is not None

    def __repr__(self) -> str:
        if self.error is None:
            return "Nothing was refused."
        return "\n".join([str(self.error), *(f"note:  {text}" for text in notes(self.error))])

    def _repr_html_(self) -> str:
        if self.error is None:
            return box("pass", "Nothing was refused.", "")
        head = f"Refused: {html.escape(self.error.problem)}"
        rows = {"given": self.error.given, "hint": self.error.hint, "note": "; ".join(notes(self.error))}
        return box("fail", head, definitions(rows))


def notes(error: BaseException) -> list[str]:
    """What was added to an error on its way up, as the line of a graph that it came from."""
    return list(getattr(error, "__notes__", ()))
