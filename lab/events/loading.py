"""Loading: a recording's file is read as a stranger's letter: nothing in it is run or believed before it was checked.

Every size is compared with a limit before memory is taken for it, every number that points somewhere with what is
there. What is wrong is told in three lines, and on request the whole chunks before the damage are kept.
"""

from __future__ import annotations

import io
import logging
import os
import re
import stat
import sys
from typing import BinaryIO, TypeAlias, TypeVar

import numpy as np

from lab.errors import RecordingError
from lab.events.columns import MAX_TEXT, Damaged, Flat, Parts, check_codes
from lab.events.event import Origin
from lab.events.members import FIRST, Memory, Reader
from lab.events.saving import MAX_CHUNK, require_path, shown
from lab.events.schema import FORMAT, SCHEMA, Head, fields_from, kind_for
from lab.events.store import Store

log = logging.getLogger("lab.events")

MAX_BYTES = 2**31
"""Memory that loading may take, unless told otherwise; and 256 MiB or 500 times the file's size, whichever is more."""
MAX_RATIO, SMALL = 500, 2**28  # a million ValueSeen, all nan, come to 230 times the size of their file
SALVAGE_HINT = "Recording.load(path, salvage=True) loads the part before the damage"
_COLUMN = re.compile(r"[\w.]{1,200}", re.ASCII)
Loaded: TypeAlias = tuple[Store, Head]
T = TypeVar("T")


def load(path: str | os.PathLike[str], *, salvage: bool, max_bytes: int) -> Loaded:
    """Read a recording from a file.

    Raises:
        RecordingError: no such file, not a recording, of a newer schema, damaged, larger than `max_bytes` or hostile.
    """
    require_path(path, "lab.Recording.load")
    try:
        # Without waiting: a pipe of that name would wait for a writer for ever.
        with os.fdopen(
            os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)), "rb"
        ) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise RecordingError(
                    "this is not a file", given=shown(path), hint="give the path that rec.save(path) was given"
                )
            return read(file, status.st_size, shown(path), salvage=salvage, max_bytes=max_bytes)
    except (OSError, ValueError) as why:
        if isinstance(why, RecordingError):
            raise
        given = f"{shown(path)}: {getattr(why, 'strerror', None) or why}"
        raise RecordingError(
            "the recording could not be opened", given=given, hint="look at the path, and at who may read the file"
        ) from why


def read(file: BinaryIO, size: int, name: str, *, salvage: bool, max_bytes: int) -> Loaded:
    """Read a recording from an open file of this size."""
    begins = file.read(30 + len(FIRST))
    file.seek(0)
    whole_head = b"PK\x03\x04", FIRST.encode()
    if (begins[:4], begins[30:]) != whole_head:
        cut = size < 30 + len(FIRST) and whole_head[0].startswith(begins[:4])
        raise RecordingError(
            "this is no recording of the lab" if not cut else "the recording is cut to almost nothing",
            given=f"{name} ({size:,} bytes)",
            hint="recordings are written by rec.save(path), and by train --record on the command line",
        )
    reader = Reader(file, size, Memory(min(max_bytes, max(SMALL, MAX_RATIO * size))))
    try:
        store, head, n_events = _read_head(reader)
    except Damaged as why:
        raise RecordingError(
            "the recording is damaged",
            given=f"{name}: {why}",
            hint="its head cannot be read, so nothing can be salvaged",
        ) from why
    try:
        _read_chunks(store, reader, n_events)
        reader.finish()
    except (Damaged, RecordingError) as why:
        if not salvage:
            if isinstance(why, RecordingError):
                raise
            raise RecordingError("the recording is damaged", given=f"{name}: {why}", hint=SALVAGE_HINT) from why
        store.roll_back()
        store.n_dropped += n_events - store.n
        head.meta["note"] = f"salvaged: {store.n:,} of {n_events:,} events. {head.meta.get('note', '')}".strip()
        log.warning("%s was damaged: %d of %d events could be read", name, store.n, n_events)
    return store, head


def _get(where: object, name: str, of_type: type[T]) -> T:
    value = where.get(name) if isinstance(where, dict) else None
    if type(value) is not of_type:
        raise Damaged(f"{name!r} is missing or of another type")
    return value


def _count(where: object, name: str, most: int = 2**40) -> int:
    n = _get(where, name, int)
    if not 0 <= n <= most:
        raise Damaged(f"{name!r} is {n:,}" if abs(n) < 2**63 else f"{name!r} is absurd")
    return n


def _read_head(reader: Reader) -> tuple[Store, Head, int]:
    head = reader.take_json(FIRST)
    if _get(head, "format", str) != FORMAT:
        raise Damaged("it says it is something else")
    meta = {name: text for name, text in _get(head, "meta", dict).items() if isinstance(text, str)}
    schema, byte_order = _count(head, "schema"), _get(head, "byte_order", str)
    if schema > SCHEMA:
        raise RecordingError(
            "the recording was written by a newer lab",
            given=f"schema {schema} of lab {meta.get('lab', '?')!r}, this lab reads up to {SCHEMA}",
            hint="upgrade autodiff-lab to open it",
        )
    if byte_order != sys.byteorder:
        raise RecordingError(
            "the recording was written on a machine of other byte order",
            given=repr(byte_order),
            hint="load and save it again on such a machine",
        )
    if _get(head, "detail", str) not in ("shape", "statistics", "value"):
        raise Damaged("its detail is unknown")
    store = Store(value_bytes=0)
    store.n_dropped, store.budget.n_dropped = _count(head, "dropped"), _count(head, "dropped_values")
    store.used = 0, store.budget.n_dropped
    _read_kinds(store, _get(head, "kinds", list))
    for origin in _get(head, "origins", list):
        if not (isinstance(origin, list) and [type(x) for x in origin] == [int, str] and abs(origin[0]) < 2**31):
            raise Damaged("an origin is not a rank and a run")
        store.origins.append(Origin(*origin))
    _read_sources(store, reader.take_json("sources.json"))
    takes = head.get("takes")  # unknown to files of an older lab
    if takes is not None and not (isinstance(takes, list) and all(isinstance(name, str) for name in takes)):
        raise Damaged("the kinds that it took are no list of names")
    said = Head(
        head["detail"], _get(head, "sources", bool), _get(head, "run", str), store.n_dropped, store.used[1], meta, takes
    )
    return store, said, _count(head, "n_events")


def _read_sources(store: Store, sources: object) -> None:
    for name in sources if isinstance(sources, dict) else ():
        for line, text in _get(sources, name, dict).items():
            if not (re.fullmatch("[0-9]{1,10}", line) and isinstance(text, str)):
                raise Damaged("a source line is not a number and a text")
            store.lines[name, int(line)] = text


def _read_kinds(store: Store, listed: list[object]) -> None:
    names = set()
    for entry in listed:
        match entry:
            case [str(name), list(fields)] if len(fields) <= 256 and len(listed) <= 256 and name not in names:
                names.add(name)
                stored = fields_from(name, fields)
                store.tables.append(store.new_table(kind_for(name, stored)))
                store.tables[-1].stored = stored
            case _:
                raise Damaged("a kind of events is not a name and a list of fields")


def _read_chunks(store: Store, reader: Reader, n_events: int) -> None:
    number = 0
    while store.n < n_events:
        folder = f"{number:06d}"
        chunk = reader.take_json(f"{folder}/chunk.json")
        n = _count(chunk, "n", MAX_CHUNK)
        listed = _get(chunk, "columns", dict)
        if not 0 < n <= n_events - store.n or len(listed) > 65_535:
            raise Damaged(f"chunk {number} has {n:,} events")
        if not all(_COLUMN.fullmatch(name) for name in listed):
            raise Damaged(f"chunk {number} has a column whose name is none")
        parts = {name: _decoded(reader, f"{folder}/{name}.npy", how) for name, how in listed.items()}
        texts = _get(chunk, "strings", list)
        if not all(isinstance(text, str) and len(text) <= MAX_TEXT for text in texts):
            raise Damaged(f"chunk {number} has a text that is none, or too long")
        store.dirty = True
        store.strings.all.extend(texts)
        _take_chunk(store, parts, n)
        number += 1


def _take_chunk(store: Store, parts: Parts, n: int) -> None:
    order = parts.pop("order", np.empty(0, np.uint8))
    if order.dtype.kind not in "iu" or len(order) != n:
        raise Damaged("a chunk has no order")
    check_codes(order, len(store.tables))
    for code in np.unique(order).tolist():
        table = store.tables[code]
        prefix = f"{table.kind.__name__}."
        own = {name.removeprefix(prefix): parts.pop(name) for name in list(parts) if name.startswith(prefix)}
        table.unpack(own, np.flatnonzero(order == code) + store.n)
    if parts:
        raise Damaged(f"a chunk has columns of no kind: {', '.join(sorted(parts))[:200]!r}")
    store.order.extend(order)
    store.publish()


def _decoded(reader: Reader, member: str, how: object) -> Flat:
    n = _count(how, "n")
    form = sorted(how) if isinstance(how, dict) else []
    if form == ["n", "npy"]:
        return reader.take_npy(member, n)
    if form not in (["first", "n", "npy"], ["first", "n", "step"]):
        raise Damaged(f"it is not said how {member} is stored")
    first = _get(how, "first", int)
    if abs(first) >= 2**63:
        raise Damaged(f"{member} begins outside of 64 bits")
    if "step" in form:
        step = _get(how, "step", int)
        if abs(step) >= 2**63 or abs(first + step * n) >= 2**63:
            raise Damaged(f"{member} goes outside of 64 bits")
        return reader.take_range(n, first, step)
    steps = reader.take_npy(member, max(n - 1, 0))
    if steps.dtype.kind != "i" or not n:
        raise Damaged(f"{member} is not of whole numbers")
    return np.cumsum(np.concatenate([np.array([first]), steps]), dtype=np.int64)


def loads(data: bytes) -> Loaded:
    """The recording of bytes from `saving.dumps`."""
    return read(io.BytesIO(data), len(data), "a copied recording", salvage=False, max_bytes=2**40)
