"""What every test shares: soak, slices, the hypothesis profiles and a quiet environment for child processes."""

import os

import pytest
from hypothesis import settings

from tests import dependencies, slices

# One BLAS thread, here and in every child: two threads on a busy two-core machine make a step many times slower, and
# the order of summation, so the last bit, would depend on the machine.
for variable in ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
# Debuggers and front ends warn about frozen modules on stderr, which tests of the command line read.
os.environ.setdefault("PYDEVD_DISABLE_FILE_VALIDATION", "1")

EXAMPLES = 50
CELLS = pytest.StashKey[dict[str, int]]()
"""How many cells each matrix has of which a slice may be taken."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--soak=20`: twenty times the random examples, and the tests marked soak; `--whole`: every cell."""
    parser.addoption("--soak", type=int, default=0, metavar="FACTOR",
                     help="run the tests marked soak, FACTOR times as long, and FACTOR times the random examples")
    parser.addoption("--whole", action="store_true", help="run every cell of every matrix, not one slice of each")


def pytest_configure(config: pytest.Config) -> None:
    """Choose the hypothesis profile: the same examples every time in CI, fresh ones at a desk and in a soak."""
    factor = config.getoption("--soak")
    # No deadline: a time is never asserted, and the first example of a kernel compiles it.
    settings.register_profile("desk", deadline=None, max_examples=EXAMPLES, print_blob=True)
    settings.register_profile("ci", deadline=None, max_examples=EXAMPLES, derandomize=True, print_blob=True)
    settings.register_profile("soak", deadline=None, max_examples=EXAMPLES * max(factor, 1), print_blob=True)
    slices.seed()  # a wrong one is told before anything is collected
    settings.load_profile("soak" if factor else "ci" if os.environ.get("CI") else "desk")


def pytest_report_header() -> str:
    """Which of the Binder image's pins these tests do not run with: then they say nothing about the image."""
    pins = dependencies.pinned((dependencies.ROOT / "binder" / "environment.yml").read_text("utf-8"))
    return f"binder/environment.yml: {'; '.join(dependencies.differing(pins)) or 'exactly what is installed here'}"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave soak tests and most cells of a matrix out, rather than skip them; browser tests come last."""
    # playwright leaves an event loop running in the main thread, in which asyncio.run refuses to start another.
    items.sort(key=lambda item: item.get_closest_marker("browser") is not None)
    config.stash[CELLS] = {name: len(tests) for name, tests in slices.matrices(items).items()}
    out = set()
    if not is_whole(config):
        out |= slices.left_out(items, slices.seed(), config.args)
    if not config.getoption("--soak"):
        out |= {item.nodeid for item in items if item.get_closest_marker("soak")}
    if out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in out])
        items[:] = [item for item in items if item.nodeid not in out]


def is_whole(config: pytest.Config) -> bool:
    """Whether all cells run: asked for, in a soak, chosen by words, or what failed, on whatever day that was."""
    return any(config.getoption(name, default=False) for name in ("--whole", "--soak", "-k", "--last-failed"))


def pytest_report_collectionfinish(config: pytest.Config, items: list[pytest.Item]) -> list[str]:
    """What of each matrix runs: nothing is left out in silence."""
    lines = slices.account(config.stash.get(CELLS, {}), items)  # nothing was collected of a file that is none
    if not lines:
        return []
    number = slices.seed()
    how = "every cell" if is_whole(config) else f"slice {number} (again: {slices.VARIABLE}={number}; all: --whole)"
    return [f"{how} of {len(lines)} matrices", *lines]


@pytest.fixture
def soak(request: pytest.FixtureRequest) -> int:
    """How many times as long a soak test should loop."""
    return max(int(request.config.getoption("--soak")), 1)
