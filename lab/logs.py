"""The lab's log: silent as a library's should be, unless LAB_LOG names a level when the lab is imported.

Other programs find the logger "lab" and decide for themselves; the variable is for who has only a notebook.
"""

from __future__ import annotations

import logging
import os

LEVELS: tuple[str, ...] = ("debug", "info", "warning", "error")


def start() -> None:
    """Give the logger "lab" its handler; called once, by `import lab`.

    Example:
        >>> logging.getLogger("lab").handlers[0]
        <NullHandler (NOTSET)>
    """
    log, wanted = logging.getLogger("lab"), os.environ.get("LAB_LOG", "").lower()
    log.addHandler(logging.NullHandler())
    if not wanted:
        return
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(levelname)s %(name)s: %(message)s"))
    log.addHandler(handler)
    if wanted in LEVELS:
        log.setLevel(wanted.upper())
    else:
        log.warning("LAB_LOG=%s is not a level: it can be %s", wanted, ", ".join(LEVELS))
