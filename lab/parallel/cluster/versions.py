"""What must be the same on all workers for ranks to compute the same: found out before the first step, not after."""

from __future__ import annotations

import platform
import sys
from collections.abc import Mapping
from importlib import metadata

Versions = dict[str, str]


def versions() -> Versions:
    """The versions that matter, of this process; "none" for what is not installed.

    Example:
        >>> list(versions())
        ['python', 'lab', 'numpy', 'numba', 'cloudpickle']
    """
    python = ".".join(platform.python_version_tuple()[:2])  # byte code travels between equal minor versions
    lab = str(getattr(sys.modules["lab"], "__version__", ""))
    return {"python": python, "lab": lab} | {name: _installed(name) for name in ("numpy", "numba", "cloudpickle")}


def _installed(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "none"


def differences(ours: Versions, theirs: Mapping[str, Versions]) -> str:
    """What differs, in one line: for each worker and package, with "; " between them; "" if nothing does.

    Example:
        >>> print(differences({"numpy": "2.1"}, {"tcp://a": {"numpy": "2.1"}, "tcp://b": {"numpy": "2.0"}}))
        numpy 2.1 here, 2.0 on tcp://b
        >>> print(differences({"numpy": "2.1", "lab": "1"}, {"a": {"numpy": "2.0", "lab": "0"}}))
        numpy 2.1 here, 2.0 on a; lab 1 here, 0 on a
    """
    return "; ".join(
        f"{name} {version} here, {found.get(name, 'none')} on {worker}"
        for worker, found in theirs.items()
        for name, version in ours.items()
        if found.get(name, "none") != version
    )
