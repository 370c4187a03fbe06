"""The command line: `python -m lab VERB`, also installed as `autodiff-lab`; `python -m lab --help` lists the verbs.

It is so short because Ctrl-C shall find it from the first moment; the verbs are in `lab/cli/`. The exit code is 0 for
well, 1 for not well, 2 for a wrong command, 130 after Ctrl-C.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from lab import starting


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb and return the exit code; argparse itself leaves with 2 where the command is wrong.

    Args:
        argv: the words after the program's name; those of the process when None.

    Example:
        >>> main(["--version"])
        Traceback (most recent call last):
        SystemExit: 0
    """
    starting.begin()
    try:
        from lab.cli.verbs import run

        return run(sys.argv[1:] if argv is None else argv)
    except KeyboardInterrupt:
        sys.stderr.write(starting.SAID)
        return starting.STOPPED
    finally:
        starting.over()


if __name__ == "__main__":
    sys.exit(main())
