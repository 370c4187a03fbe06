"""The parts of a zip that a stranger may have written: no size in it is believed before it was held against a limit.

What `zipfile` and `np.load` take on trust is asked here first: how many parts there are, how they are packed, how much
a part is while it is unpacked, and whether an array's header fits the bytes that follow.
"""

from __future__ import annotations

import io
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Collection
from typing import Any

import numpy as np

MAX_PARTS = 2**16 - 1
"""As many as a plain zip can have. A list of a million takes a gigabyte before the first of them is read."""
_NUMPY = re.compile(
    rb"\x93NUMPY\x01\x00[\x00-\xff]{2}\{'descr': '([<>|][fiub]\d{1,2})', 'fortran_order': (True|False), "
    rb"'shape': \(([\d, ]{0,999})\), \} *\n"
)


class UnreadableError(Exception):
    """What is wrong with a file, in words; whoever knows its name tells it in three lines."""


class TooLargeError(Exception):
    """What would need more memory than the limit, in words."""


def parts_of(content: bytes, most: int) -> dict[str, zipfile.ZipInfo]:
    """The parts of a zip by name; nothing is unpacked.

    Args:
        most: bytes that they may all need.

    Raises:
        UnreadableError: no zip; a part twice, encrypted, or packed in a way that has no bound.
        TooLargeError: more parts than MAX_PARTS, or more bytes than `most`.
    """
    n = content.count(b"PK\x01\x02")  # of each part there is one, whatever the file says
    if n > MAX_PARTS:
        raise TooLargeError(f"{n:,} parts of {MAX_PARTS:,}")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            listed = archive.infolist()
    except (*_BROKEN, ValueError, RuntimeError, OSError) as why:
        raise UnreadableError(str(why)) from None
    parts = {info.filename: info for info in listed}
    if len(parts) != len(listed):
        raise UnreadableError("a part is in it twice")
    if any(i.flag_bits & 1 or i.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for i in listed):
        raise UnreadableError("a part is packed in a way that is none of ours")
    total = sum(info.file_size for info in listed)
    if total > most:
        raise TooLargeError(f"{total:,} bytes of {most:,}")
    return parts


_BROKEN = (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, EOFError)
"""What `zipfile` says of a file that is no zip, or no whole one."""


def unpacked(content: bytes, parts: Collection[zipfile.ZipInfo]) -> dict[str, bytes]:
    """The bytes of some parts, each of the size that it announced.

    Raises:
        UnreadableError: a part is damaged, or of another size.
    """
    found = {}
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            for info in parts:
                with archive.open(info) as packed:
                    # Not read(): it unpacks all that is there, up to 2 GiB, and then cuts it.
                    found[info.filename] = packed.read(info.file_size)
                if len(found[info.filename]) != info.file_size:
                    raise UnreadableError(f"{info.filename} ends too early")
    except (*_BROKEN, ValueError, RuntimeError, OSError) as why:
        raise UnreadableError(str(why)) from None
    return found


def array_of(content: bytes, name: str) -> Any:
    """The array of numbers in the bytes of an .npy file, read-only and without a copy.

    Raises:
        UnreadableError: anything else, or of another size than its header says.

    Example:
        >>> buffer = io.BytesIO()
        >>> np.save(buffer, np.eye(2))
        >>> array_of(buffer.getvalue(), "array0.npy").tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    match = _NUMPY.match(content)
    if match is None:
        raise UnreadableError(f"{name} is no array of numbers")
    try:
        dtype = np.dtype(match[1].decode())
    except TypeError:
        raise UnreadableError(f"{name} is of a dtype that NumPy has not") from None
    shape = tuple(int(n) for n in match[3].replace(b",", b" ").split())
    n = math.prod(shape)
    if n * dtype.itemsize != len(content) - match.end():
        raise UnreadableError(f"{name} is not of the size that it says")
    flat = np.frombuffer(content, dtype, n, match.end())
    if dtype.kind == "b" and (flat.view(np.uint8) > 1).any():
        raise UnreadableError(f"{name} has a truth that is neither true nor false")
    try:
        return flat.reshape(shape, order="F" if match[2] == b"True" else "C")
    except ValueError as why:  # nothing of a shape that no array can have
        raise UnreadableError(f"{name}: {why}") from None
