"""Imports point down: the table of the rooms, and what `import lab` may cost."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# A room may import rooms of the lines above it, and of its own line those to its left.
LAYERS = """
    errors words checks files logs memory events config shapes tree
    kernels
    ops
    autograd
    graph
    transforms
    experiments
    nn optim precision data
    training parallel
    teach interop
"""
ROOMS = LAYERS.split()
ROOF = ("__init__", "__main__", "cli", "doctor", "opener", "starting")  # may import all of lab; nothing imports them
COMMAND_LINE = ("cli",)  # and this one even pictures: it writes reports
NUMBA_SIDE = ("lab.kernels.backend", "lab.kernels.atomics_backend")
"""What the others of that room import when a kernel is called."""
DASK_SIDE = tuple(f"lab.parallel.cluster.dask_side.{name}" for name in ("scheduler", "worker", "client", "ends"))
"""What the others of that room import when a cluster is used, and nobody imports before."""
HEAVY = ("IPython", "anywidget", "dask", "distributed", "ipywidgets", "jupyterlab", "numba", "plotly", "sympy")

FILES = sorted(path.relative_to(ROOT) for room in ("lab", "widgets") for path in (ROOT / room).rglob("*.py"))


def room_of(module: str) -> str:
    """`lab.ops.shape` lives in "ops"; `lab` itself in "__init__"; everything of widgets in "widgets"."""
    first, *rest = module.split(".")
    if first == "widgets":
        return "widgets"
    return rest[0] if rest else "__init__"


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def imports(tree: ast.AST, package: str) -> Iterator[str]:
    """Every module imported anywhere in the file, absolute; what only the type checker sees is not imported."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.rsplit(".", node.level - 1)[0] if node.level else ""
            module = ".".join(filter(None, [above, node.module]))
            if module == "lab":  # `from lab import kernels` imports a room, `from lab import __version__` the roof
                yield from (f"lab.{a.name}" if a.name in (*ROOMS, *ROOF) else "lab" for a in node.names)
            else:
                yield module
        elif is_type_checking(node):
            yield from (name for branch in node.orelse for name in imports(branch, package))
        else:
            yield from imports(node, package)


def imported_by(path: Path) -> set[str]:
    package = ".".join(path.parent.parts)
    return set(imports(ast.parse((ROOT / path).read_text("utf-8")), package))


def allowed(importer: str) -> set[str]:
    if importer in COMMAND_LINE:
        return {*ROOMS, *ROOF, "widgets"}
    if importer in ROOF:
        return {*ROOMS, *ROOF}
    if importer == "widgets":
        return {*ROOMS, "widgets"}
    return set(ROOMS[: ROOMS.index(importer) + 1])


def offences(path: Path, imported: set[str]) -> list[str]:
    """The imports of our own that point up, or at the roof."""
    importer = room_of(".".join(path.with_suffix("").parts).removesuffix(".__init__"))
    ours = {module for module in imported if module.split(".")[0] in {"lab", "widgets"}}
    return sorted(module for module in ours if room_of(module) not in allowed(importer))


@pytest.mark.parametrize("path", FILES, ids=str)
def test_imports_point_down(path):
    assert offences(path, imported_by(path)) == []


FLOORS_OF_WIDGETS = (
    {"pictures", "layout"},  # values in, coordinates and text out
    {"live"},  # the browser
    {"fold", "landmarks", "explosion", "provenance", "asking", "tape"},
    {"view"},
    {"views"},
    {"export"},
)
"""From the ground up; what is not named stands on top. A view reaches for the player only when asked to export."""


def floor_of(module: str) -> int:
    place = module.split(".")[1] if "." in module else ""
    return next((i for i, floor in enumerate(FLOORS_OF_WIDGETS) if place in floor), len(FLOORS_OF_WIDGETS))


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[0] == "widgets" and len(p.parts) > 2], ids=str)
def test_the_rooms_of_widgets_import_downwards(path):
    own = floor_of(".".join(path.with_suffix("").parts))
    ours = {module for module in imported_by(path) if module.startswith("widgets.")}
    assert sorted(module for module in ours if floor_of(module) > own) == []


@pytest.mark.parametrize(
    "path", [p for p in FILES if p.parts[:2] == ("widgets", "views") and len(p.parts) > 3], ids=str
)
def test_a_view_stands_in_a_room_of_its_own_and_imports_no_other_view(path):
    shared = {"widgets.views.series", "widgets.views.words", "widgets.views.nothing"}
    views = {module for module in imported_by(path) if module.startswith("widgets.views.")}
    assert sorted(m for m in views - shared if m.split(".")[2] != path.parts[2]) == []


FLOORS_OF_PARALLEL = ("paper", "transport", "ranks", "compression", "news", "cluster", "training", "local", "pipeline")
"""From the ground up: values, sockets, what a rank holds, its events' way home, launches, training, pipelines.

`compression` is what a hook does with gradients, `local` is training in rounds."""


@pytest.mark.parametrize("path", [p for p in FILES if p.parts[1] == "parallel" and len(p.parts) > 3], ids=str)
def test_the_rooms_of_parallel_import_downwards(path):
    own = FLOORS_OF_PARALLEL.index(path.parts[2])
    ours = {module.split(".")[2] for module in imported_by(path) if module.startswith("lab.parallel.")}
    assert sorted(room for room in ours if FLOORS_OF_PARALLEL.index(room) > own) == []


def test_an_upward_import_is_an_offence():
    assert offences(Path("lab/ops/shape.py"), {"lab.autograd.tensor", "lab.errors", "numpy"}) == ["lab.autograd.tensor"]
    assert offences(Path("lab/teach/check.py"), {"widgets.view", "lab"}) == ["lab", "widgets.view"]
    assert offences(Path("lab/errors.py"), {"lab.config"}) == ["lab.config"]
    assert offences(Path("lab/nn/__init__.py"), {"lab.optim"}) == ["lab.optim"]
    assert offences(Path("widgets/views/training/loss.py"), {"lab.events", "widgets.view"}) == []
    assert offences(Path("lab/__main__.py"), {"lab", "lab.doctor", "lab.kernels"}) == []
    assert offences(Path("lab/cli/outputs.py"), {"lab.files", "widgets.export.report"}) == []
    assert offences(Path("lab/doctor.py"), {"widgets.export.report"}) == ["widgets.export.report"]


def test_relative_deferred_and_typing_imports_are_told_apart():
    code = """
from . import a
from ..ops import b
from lab import kernels, __version__
if TYPE_CHECKING:
    import lab.teach
def f():
    import numba
"""
    assert set(imports(ast.parse(code), "lab.graph")) == {"lab.graph", "lab.ops", "lab.kernels", "lab", "numba"}


def test_every_file_of_lab_has_its_room_in_the_table():
    rooms = {path.parts[1].removesuffix(".py") for path in FILES if path.parts[0] == "lab"}
    assert rooms - {*ROOMS, *ROOF} == set()


@pytest.mark.parametrize("path", [path for path in FILES if path.parts[0] == "lab"], ids=str)
def test_numba_is_reached_only_through_the_kernels(path):
    wanted = {module.split(".")[0] for module in imported_by(path)} & {"numba", "llvmlite"}
    assert not wanted or path.parts[1] in {"kernels", "doctor.py"}  # the doctor looks whether the compiler works


def loaded_by(code: str) -> set[str]:
    """Top-level packages in `sys.modules` of a fresh interpreter after `code`."""
    program = f"import sys; {code}; print(*{{name.split('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_lab_loads_nothing_heavy():
    assert loaded_by("import lab") & set(HEAVY) == set()


def test_importing_every_room_loads_nothing_heavy():
    names = [".".join(path.with_suffix("").parts).removesuffix(".__init__") for path in FILES if path.parts[0] == "lab"]
    rooms = [name for name in names if room_of(name) in ROOMS and name not in (*NUMBA_SIDE, *DASK_SIDE)]
    loaded = loaded_by("; ".join(f"import {name}" for name in rooms))
    assert loaded & set(HEAVY) == set()
    assert "widgets" not in loaded
