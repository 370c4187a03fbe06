"""Arrays that travel in the package: one compressed archive a data set, whose checksum is known.

What is missing or damaged is said in the words of the data set, before anybody trains on it.
"""

from __future__ import annotations

import hashlib
import io
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from lab.errors import DataError


@cache
def unpacked(path: Path, what: str, sha256: str) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an archive by name, read once.

    Args:
        what: the data set's name in messages, a plural.
        sha256: of the file.

    Raises:
        DataError: the file is missing or damaged.
    """
    hint = "install the package again"
    try:
        packed = path.read_bytes()
    except OSError as why:
        raise DataError(f"the {what} cannot be read", given=f"{path.name}: {why.strerror}", hint=hint) from why
    if hashlib.sha256(packed).hexdigest() != sha256:
        given = f"{path.name}, {len(packed)} bytes, wrong checksum"
        raise DataError(f"the {what} are damaged", given=given, hint=hint)
    with np.load(io.BytesIO(packed), allow_pickle=False) as arrays:
        return dict(arrays)
