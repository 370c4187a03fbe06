"""Which versions an environment is made of: prints constraints for pip.

`python -m tests.dependencies lowest` pins every dependency to the lower bound that pyproject.toml claims, so that the
claim is tested; `pinned` gives what the Binder image has; `newest` and `any` constrain nothing.
"""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent


def lowest(pyproject: str, extra: str = "") -> list[str]:
    """The lower bound of every run-time dependency, or of those of an extra, as pins; an environment marker stays."""
    pins, project = [], tomllib.loads(pyproject)["project"]
    for line in project["optional-dependencies"][extra] if extra else project["dependencies"]:
        requirement, semicolon, marker = line.partition(";")
        name, bound = requirement.split(">=")
        pins.append(f"{name.strip()}=={bound.strip()}{semicolon}{marker}")
    return pins


def pinned(environment: str) -> list[str]:
    """The `name==version` lines of a conda environment file."""
    return re.findall(r"^\s*- ([\w.-]+==[^\s#]+)", environment, flags=re.MULTILINE)


def differing(pins: Iterable[str]) -> list[str]:
    """Of pins those that this environment does not have, each with what it has instead."""
    found = []
    for name, wanted in (re.match(r"([\w.-]+)==([^\s;]+)", pin).groups() for pin in pins):
        try:
            here = metadata.version(name)
        except metadata.PackageNotFoundError:
            here = "none"
        if here != wanted and not here.startswith(f"{wanted}.0"):  # a bound of 2.1 is version 2.1.0
            found.append(f"{name} {wanted} pinned, {here} here")
    return found


def made_from() -> list[str]:
    """The pins that this environment was made from: what stands in its constraints.txt (see the Makefile)."""
    path = Path(sys.prefix, "constraints.txt")
    return [line for line in path.read_text("utf-8").splitlines() if "==" in line] if path.is_file() else []


def main(which: str) -> int:
    """Print the constraints called `which`; 2 when there are none of that name."""
    if which == "lowest":
        text = (ROOT / "pyproject.toml").read_text("utf-8")
        pins = lowest(text) + lowest(text, extra="png")  # the tests install it, too
    elif which == "pinned":
        pins = pinned((ROOT / "binder" / "environment.yml").read_text("utf-8"))
    elif which in {"newest", "any"}:
        pins = []
    else:
        print(f"no dependency set {which!r}: pinned, lowest, newest or any", file=sys.stderr)
        return 2
    print("\n".join(pins))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
