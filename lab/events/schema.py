"""Schema: how a file names what the lab knows, and which class its kinds of events get when they come back.

The lab's own kinds come back as such, also when fields were added or left out since; of others the schema in the file
makes a class. Names in a file are learned from it only after they proved to be plain names.
"""

from __future__ import annotations

import dataclasses
import keyword
import logging
import re
from typing import NamedTuple

from lab.errors import RecordingError
from lab.events.columns import Damaged
from lab.events.event import ENVELOPE, EVENTS, Array, Event, fields_of

log = logging.getLogger("lab.events")

FORMAT = "autodiff-lab recording"
SCHEMA = 1
"""Grows when an older lab could not read the file."""
TYPES: dict[str, object] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "ints": tuple[int, ...],
    "floats": tuple[float, ...],
    "strs": tuple[str, ...],
    "array": Array | None,
}
"""Name of each field type in the file."""
_NAME = re.compile(r"[A-Za-z]\w{0,63}", re.ASCII)


class Head(NamedTuple):
    """What a recording says of itself beside its events."""

    detail: str
    sources: bool
    run: str
    dropped: int
    dropped_values: int
    meta: dict[str, str]
    takes: list[str] | None = None
    """Names of the kinds that it took; None: all."""


def fields_from(kind: str, listed: list[object]) -> dict[str, object]:
    """The fields of a kind as a file lists them; their names become names in a class, so they must be plain.

    Raises:
        Damaged: they are none.
    """
    fields: dict[str, object] = {}
    for entry in listed:
        match entry:
            case [str(name), str(of_type)] if of_type in TYPES and name not in fields and name not in ENVELOPE:
                fields[name] = TYPES[of_type]
            case _:
                raise Damaged("a field of a kind is not a name and a type")
    for name in (kind, *fields):
        if not _NAME.fullmatch(name) or keyword.iskeyword(name):
            raise Damaged("a kind or a field has a name that is none")
    return fields


def kind_for(name: str, stored: dict[str, object]) -> type[Event]:
    """The class for a kind in a file: the lab's own if there is one, else one made for it.

    A field that the lab's kind has no more is left out; one that is new since then has its default, or a neutral value.

    Raises:
        RecordingError: a field has another type here.
    """
    known = EVENTS.get(name)
    if known is None:
        return generic_kind(name, tuple(stored.items()))
    fields = fields_of(known)
    clashing = [f for f in stored if f in fields and stored[f] != fields[f]]
    if clashing:
        raise RecordingError(
            f"the recording's kind {name} has fields of other types than this lab's",
            given=", ".join(clashing),
            hint="open it with the version of the lab that wrote it",
        )
    if stored.keys() != fields.keys():
        log.warning(
            "fields of %s differ from the recording's: %s", name, ", ".join(sorted(stored.keys() ^ fields.keys()))
        )
    return known


_MADE: dict[tuple[str, tuple[tuple[str, object], ...]], type[Event]] = {}


def generic_kind(name: str, fields: tuple[tuple[str, object], ...]) -> type[Event]:
    """A class for events of a kind that this lab does not know; one class for each name and fields. Not in `EVENTS`.

    Example:
        >>> generic_kind("Sneezed", (("volume", float),))(volume=1.5)
        Sneezed(volume=1.5)
    """
    key = name, fields
    if key not in _MADE:
        if len(_MADE) >= 1024:
            _MADE.clear()  # bounded: files are many
        body = {"__doc__": "Made from the schema in a recording.", "__module__": __name__}
        bare = dataclasses.make_dataclass(name, list(fields), bases=(Event,), namespace=body, eq=False, slots=True)
        _MADE[key] = bare
    return _MADE[key]
