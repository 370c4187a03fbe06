"""Members: the zip file under a recording, read and written front to back.

Only what we write is read back: plain members in a fixed order, no name taken from the file, no size believed before it
was compared with a limit. Reading front to back needs no directory (as `zipfile` does), so the whole members of a file
that was cut can be had.
"""

from __future__ import annotations

import json
import re
import struct
import zlib
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from lab.errors import RecordingError
from lab.events.columns import Damaged, Flat

FIRST = "lab-recording.json"
"""Name of the first member: with the signature before it, it makes the file known by its first 48 bytes."""
MAX_JSON = 64 * 2**20
MAX_DEPTH = 16

_LOCAL, _CENTRAL, _END = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"
_LOCAL_FORM = struct.Struct("<4s5H3I2H")
_CENTRAL_FORM = struct.Struct("<4s6H3I5H2I")
_END_FORM = struct.Struct("<4s4H2IH")
_STORED, _DEFLATED = 0, 8
_MODE = 0o100644 << 16  # a plain file, for tools that unpack; a symlink has another
_DATE = (0, 33)  # 1 January 1980: equal recordings give equal bytes
_LEVEL = 1  # the numbers are narrow already: higher levels take 3 times as long for 10% less
_NPY = re.compile(
    rb"\x93NUMPY\x01\x00[\x00-\xff]{2}"
    rb"\{'descr': '([<|>][biuf]\d)', 'fortran_order': False, 'shape': \((\d{1,15}),\), \} *\n"
)
_DTYPES = {np.dtype(name).str: np.dtype(name) for name in ("i1", "i2", "i4", "i8", "u1", "f8", "?")}


class Memory:
    """How many bytes may still be made from the file; asked before each allocation."""

    def __init__(self, n_bytes: int) -> None:
        self.left = n_bytes

    def take(self, n_bytes: int) -> None:
        """Reserve bytes.

        Raises:
            RecordingError: more than the limit.
        """
        self.left -= n_bytes
        if self.left < 0:
            raise RecordingError(
                "the recording would need more memory than its size and the limit allow",
                given=f"at least {-self.left:,} bytes over",
                hint="if you trust the file, give Recording.load a larger max_bytes",
            )


class _Entry(NamedTuple):
    """What local header and directory both say of a member."""

    name: bytes
    method: int
    flags: int
    crc: int
    packed: int
    size: int
    offset: int


class Reader:
    """Takes the members of a file one by one; the caller knows the name of each.

    Raises from its methods:
        Damaged: the file does not go on as asked.
        RecordingError: a limit is passed.
    """

    def __init__(self, file: BinaryIO, file_size: int, memory: Memory) -> None:
        self._file, self._left, self._memory = file, file_size, memory
        self._seen: list[_Entry] = []

    def _exactly(self, n: int, what: str) -> bytes:
        if n > self._left:
            raise Damaged(f"it ends within {what}")
        data = self._file.read(n)
        self._left -= len(data)
        if len(data) != n:
            raise Damaged(f"it ends within {what}")
        return data

    def take(self, name: str, max_size: int, weight: int = 1) -> bytes:
        """The content of the next member, which must have this name and be no larger than that.

        Args:
            name: the name.
            max_size: the most bytes that it may have.
            weight: bytes of memory that each of its bytes will need.
        """
        offset = self._file.tell()
        head = self._exactly(_LOCAL_FORM.size, f"the head of {name}")
        signature, _, flags, method, _, _, crc, packed, size, n_name, n_extra = _LOCAL_FORM.unpack(head)
        if signature != _LOCAL or n_name != len(name) or n_extra or flags or method not in (_STORED, _DEFLATED):
            raise Damaged(f"another thing stands where {name} should begin")
        if self._exactly(n_name, name) != name.encode():
            raise Damaged(f"another member stands where {name} should")
        if size > max_size:
            raise RecordingError(
                "a part of the recording is too large",
                given=f"{name}: {size:,} bytes of {max_size:,}",
                hint='record fewer kinds, or detail="shape"',
            )
        self._memory.take(weight * size)
        raw = self._exactly(packed, name)
        content = raw if method == _STORED else _inflated(raw, size, name)
        if len(content) != size or zlib.crc32(content) != crc:
            raise Damaged(f"{name} is not what was written (checksum)")
        self._seen.append(_Entry(name.encode(), method, flags, crc, packed, size, offset))
        return content

    def take_json(self, name: str) -> Any:
        """The value in a JSON member: no nan, no duplicate keys, no deep nesting."""
        return _parsed(self.take(name, MAX_JSON, weight=17), name)  # short texts need 16 times their size as objects

    def take_range(self, n: int, first: int, step: int) -> Flat:
        """The array first, first + step ... of n entries, which has no member of its own."""
        self._memory.take(8 * n)
        return np.full(n, first, np.int64) if step == 0 else first + step * np.arange(n, dtype=np.int64)

    def take_npy(self, name: str, n: int) -> Flat:
        """The flat array of n entries in a .npy member; no other dtypes than those we write."""
        content = self.take(name, 8 * n + 256)
        match = _NPY.match(content)
        dtype = _DTYPES.get(match[1].decode()) if match else None
        if match is None or dtype is None or int(match[2]) != n or len(content) - match.end() != n * dtype.itemsize:
            raise Damaged(f"{name} is not the array that was announced")
        if dtype.kind == "i":
            self._memory.take(8 * n)  # columns are wider than members
        is_bool = dtype.kind == "b"
        if is_bool:  # any other byte than 0 and 1 would be neither true nor false
            dtype = np.dtype(np.uint8)
        flat: Flat = np.frombuffer(content, dtype, n, match.end())
        return flat != 0 if is_bool else flat

    def finish(self) -> None:
        """Check that nothing follows but a directory that says the same as the members."""
        start = self._file.tell()
        for seen in self._seen:
            head = self._exactly(_CENTRAL_FORM.size, "its directory")
            (
                signature,
                _,
                _,
                flags,
                method,
                _,
                _,
                crc,
                packed,
                size,
                n_name,
                n_extra,
                n_comment,
                _,
                _,
                mode,
                offset,
            ) = _CENTRAL_FORM.unpack(head)
            name = self._exactly(min(n_name, 255), "its directory")
            listed = _Entry(name, method, flags, crc, packed, size, offset)
            if signature != _CENTRAL or listed != seen or n_extra or n_comment or mode != _MODE:
                raise Damaged("its directory lists other members than it has")
        size_of_directory = self._file.tell() - start
        end = _END_FORM.unpack(self._exactly(_END_FORM.size, "its last bytes"))
        n = len(self._seen)
        if end != (_END, 0, 0, n, n, size_of_directory, start, 0) or self._left:
            raise Damaged("its last bytes are not those of a recording")


def _inflated(raw: bytes, size: int, name: str) -> bytes:
    """At most size + 1 bytes, whatever the file says it holds."""
    try:
        unpacker = zlib.decompressobj(-15)
        content = unpacker.decompress(raw, size + 1)
    except zlib.error as why:
        raise Damaged(f"{name} cannot be unpacked") from why
    if not unpacker.eof or unpacker.unused_data or unpacker.unconsumed_tail:
        raise Damaged(f"{name} holds another number of bytes than it says")
    return content


_ALL_BUT_BRACKETS = re.compile(rb'"(?:[^"\\]|\\.)*"|[^\[\]{}"]+', re.DOTALL)


def _parsed(content: bytes, name: str) -> Any:
    depth = 0
    for bracket in _ALL_BUT_BRACKETS.sub(b"", content):
        depth += 1 if bracket in b"[{" else -1
        if depth > MAX_DEPTH:
            raise Damaged(f"{name} is nested more than {MAX_DEPTH} deep")
    try:
        return json.loads(content, parse_constant=_no_constant, object_pairs_hook=_no_duplicates)
    except (ValueError, RecursionError) as why:
        raise Damaged(f"{name} is no JSON of ours") from why


def _no_constant(name: str) -> None:
    raise ValueError(name)


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a key stands twice")
    return made


class Writer:
    """Writes members in the form that `Reader` takes; equal content gives equal bytes."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._written, self._end = file, list[_Entry](), 0

    def put(self, name: str, content: bytes) -> None:
        """Write one member.

        Raises:
            RecordingError: the file would pass 4 GiB or 65,535 members, the limits of a plain zip.
        """
        raw, method = content, _STORED
        if name != FIRST:
            packer = zlib.compressobj(_LEVEL, zlib.DEFLATED, -15)
            raw, method = packer.compress(content) + packer.flush(), _DEFLATED
        entry = _Entry(name.encode("ascii"), method, 0, zlib.crc32(content), len(raw), len(content), self._end)
        self._written.append(entry)
        self._end += _LOCAL_FORM.size + len(entry.name) + len(raw)
        if self._end >= 2**32 - 2**24 or len(self._written) >= 2**16 - 1:
            given = f"{self._end:,} bytes in {len(self._written):,} parts"
            raise RecordingError(
                "the recording is too large for its file format",
                given=given,
                hint='record fewer kinds, or detail="shape"',
            )
        sizes = entry.crc, entry.packed, entry.size, len(entry.name)
        self._file.write(_LOCAL_FORM.pack(_LOCAL, 20, 0, method, *_DATE, *sizes, 0) + entry.name)
        self._file.write(raw)

    def put_json(self, name: str, value: object) -> None:
        """Write a JSON member; any text survives, lone surrogates too, since all but ASCII is escaped."""
        content = json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
        if len(content) > MAX_JSON:
            raise RecordingError(
                "the recording's texts are too long to be saved",
                given=f"{len(content):,} bytes of JSON",
                hint="shorten the texts in rec.meta",
            )
        self.put(name, content)

    def put_npy(self, name: str, flat: Flat) -> None:
        """Write a flat array as a .npy member, which `numpy.load` opens too."""
        head = f"{{'descr': '{flat.dtype.str}', 'fortran_order': False, 'shape': ({len(flat)},), }}"
        head += " " * (-(len(head) + 11) % 64) + "\n"
        self.put(name, b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + flat.tobytes())

    def finish(self) -> None:
        """Write the directory, by which other tools open the file."""
        directory = b"".join(
            _CENTRAL_FORM.pack(
                *(_CENTRAL, 3 << 8 | 20, 20, 0, e.method, *_DATE, e.crc, e.packed, e.size),
                *(len(e.name), 0, 0, 0, 0, _MODE, e.offset),
            )
            + e.name
            for e in self._written
        )
        n = len(self._written)
        self._file.write(directory + _END_FORM.pack(_END, 0, 0, n, n, len(directory), self._end, 0))
