"""Saving: the file of a recording is a zip of JSON and flat .npy columns, without pickle, which any zip tool opens.

First what all events share (format, fields of each kind, meta, source lines), then the events in chunks, each complete
in itself: so the whole chunks of a file that was cut can be read.

Layout:
    lab-recording.json          {"format", "schema", "byte_order", "meta", "n_events", "kinds", "origins", ...}
    sources.json                {file: {line: text}}
    000000/chunk.json           {"n", "strings": texts that appear first here, "columns": {name: how it is stored}}
    000000/order.npy            for each event the number of its kind
    000000/OpRecorded.node.npy  a column of one kind; tuples have OpRecorded.shape and OpRecorded.shape.length
    000001/chunk.json           ...

A column of whole numbers that is an arithmetic sequence has no member: {"n", "first", "step"} says it. One whose
differences need fewer bytes is stored as these: {"n", "first", "npy": true}.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from typing import BinaryIO

import numpy as np

from lab import words
from lab.errors import RecordingError
from lab.events.columns import Flat, Ints, Parts
from lab.events.event import fields_of
from lab.events.members import FIRST, Writer
from lab.events.schema import FORMAT, SCHEMA, TYPES, Head
from lab.events.store import Store
from lab.files import replacing

_CHUNK, MAX_CHUNK = 1024, 65_536  # events: they double, so that a short recording loses little when its file is cut


def save(path: str | os.PathLike[str], store: Store, head: Head) -> None:
    """Write a recording to a file: beside it first, then in its place, so that an old file is whole or replaced.

    Raises:
        RecordingError: the disk is full, the folder missing, not writable ...; the old file is as it was.
    """
    require_path(path, "rec.save")
    try:
        with replacing(path) as file:
            write(file, store, head)
    except (OSError, ValueError) as why:
        if isinstance(why, RecordingError):
            raise
        raise RecordingError(
            "the recording could not be saved",
            given=f"{shown(path)}: {getattr(why, 'strerror', None) or why}",
            hint="a file that was there before is unchanged; save to another place, or make room and save again",
        ) from why


def write(file: BinaryIO, store: Store, head: Head) -> None:
    """Write a recording to an open file."""
    n, tables = store.n, list(store.tables)
    names = {of_type: name for name, of_type in TYPES.items()}
    writer = Writer(file)
    first = {
        "format": FORMAT,
        "schema": SCHEMA,
        "byte_order": sys.byteorder,
        **head._asdict(),
        "meta": {str(name): str(text) for name, text in head.meta.items()},
        "n_events": n,
        "kinds": [[t.kind.__name__, [[f, names[x]] for f, x in fields_of(t.kind).items()]] for t in tables],
        "origins": [list(origin) for origin in store.origins],
    }
    writer.put_json(FIRST, first)
    lines: dict[str, dict[str, str]] = {}
    for (name, line), text in list(store.lines.items()):
        lines.setdefault(name, {})[str(line)] = text
    writer.put_json("sources.json", lines)
    n_strings = 0
    for number, (start, stop) in enumerate(_chunks(n)):
        n_strings = _write_chunk(writer, f"{number:06d}", store, slice(start, stop), n_strings)
    writer.finish()


def dumps(store: Store, head: Head) -> bytes:
    """A recording as the bytes of its file: what pickle and copy carry."""
    file = io.BytesIO()
    write(file, store, head)
    return file.getvalue()


def _chunks(n: int) -> Iterator[tuple[int, int]]:
    start, size = 0, _CHUNK
    while start < n:
        yield start, min(start + size, n)
        start, size = start + size, min(size * 2, MAX_CHUNK)


def _write_chunk(writer: Writer, folder: str, store: Store, span: slice, n_strings: int) -> int:
    """Write one chunk with the texts from number n_strings on that it needs; returns how many are written now."""
    start, stop = span.start, span.stop
    columns: Parts = {"order": store.order.view(start, stop)}
    last_string = n_strings
    for table in store.tables:
        first, last = table.rows(start, stop)
        if first < last:
            columns |= {f"{table.kind.__name__}.{part}": flat for part, flat in table.pack(first, last).items()}
            last_string = max(last_string, table.n_strings(first, last))
    stored = {name: _encoded(flat) for name, flat in columns.items()}
    writer.put_json(
        f"{folder}/chunk.json",
        {
            "n": stop - start,
            "strings": store.strings.all[n_strings:last_string],
            "columns": {name: how for name, (how, _) in stored.items()},
        },
    )
    for name, (_, flat) in stored.items():
        if flat is not None:
            writer.put_npy(f"{folder}/{name}.npy", flat)
    return last_string


def _encoded(flat: Flat) -> tuple[dict[str, object], Flat | None]:
    """How a column is stored, and the array to store."""
    how: dict[str, object] = {"n": len(flat)}
    if flat.dtype.kind not in "iu" or flat.dtype == np.uint8 or not len(flat):
        return how | {"npy": True}, flat
    wide = flat.astype(np.int64)
    steps = np.diff(wide)
    if (steps == steps[:1]).all() and not _wraps(wide):
        return how | {"first": int(wide[0]), "step": int(steps[0]) if len(steps) else 0}, None
    whole, differences = _narrow(wide), _narrow(steps)
    if differences.itemsize < whole.itemsize and not _wraps(wide):
        return how | {"first": int(wide[0]), "npy": True}, differences
    return how | {"npy": True}, whole


def _wraps(wide: Ints) -> bool:
    return int(wide.max()) - int(wide.min()) >= 2**62


def _narrow(wide: Ints) -> Flat:
    low, high = int(wide.min()), int(wide.max())
    for dtype in (np.int8, np.int16, np.int32):
        if np.iinfo(dtype).min <= low and high <= np.iinfo(dtype).max:
            return wide.astype(dtype)
    return wide


def require_path(path: object, call: str) -> None:
    """Refuse what is no path.

    Raises:
        RecordingError: it is none.
    """
    if not isinstance(path, str | bytes | os.PathLike):
        hint = f'{call}("run.rec")'
        raise RecordingError("a recording is a file, named by its path", given=words.shown(path), hint=hint)


def shown(path: str | os.PathLike[str]) -> str:
    """A path on one line, whatever its name."""
    text = os.fspath(path)
    return text if text.isprintable() else repr(text)
