"""A laboratory for seeing how deep-learning frameworks work inside.

The names below are loaded when they are first used (PEP 562), so that `import lab` costs little more than NumPy.
"""

from __future__ import annotations

from lab import starting

if starting.is_command():
    starting.begin()  # before anything else is imported

import importlib
from importlib.util import find_spec
from typing import Any

from lab import logs

__version__ = "0.1.0"

logs.start()

_ROOMS: dict[str, str] = {
    "lab.autograd": "Tensor anomaly_mode concatenate no_grad tensor",
    "lab.autograd.explanation": "why",
    "lab.autograd.visits": "count_visits",
    "lab.config": "settings",
    "lab.errors": "LabError",
    "lab.experiments.building": "measure_build",
    "lab.experiments.calls": "measure_calls",
    "lab.experiments.captures": "compare_captures",
    "lab.experiments.cost": "measure_cost",
    "lab.experiments.errors": "measure_errors",
    "lab.experiments.memory": "measure_memory",
    "lab.experiments.passes": "measure_passes",
    "lab.experiments.plan": "measure_plan",
    "lab.experiments.rule": "measure_rule",
    "lab.experiments.saved": "saved_values",
    "lab.experiments.schedule": "measure_schedule",
    "lab.experiments.slopes": "measure_slopes",
    "lab.experiments.swell": "measure_swell",
    "lab.data.overlap": "measure_prefetch",
    "lab.parallel.bucketing": "measure_buckets",
    "lab.parallel.mapped": "pmap",
    "lab.parallel.timing": "measure_collectives measure_root_link",
    "lab.parallel.spread": "measure_spread",
    "lab.events": "Recording first_difference first_nonfinite listen record",
    "lab.graph": "Graph Session assign gradients make_graph placeholder script variable",
    "lab.memory": "gc_threshold",
    "lab.ops": "PRIMITIVES random_key",
    "lab.ops.members": "axis_size",
    "lab.ops.pairing": "axis_index",
    "lab.precision": "autocast",
    "lab.training": "Accumulation Counted evaluate fit last_run runs step_through",
    "lab.training.means": "compare_means",
    "lab.training.micro_batches": "measure_accumulation",
    "lab.transforms": "check_grads checkpoint cond custom_jvp custom_vjp fori_loop grad hessian hvp jacfwd jacrev jit "
    "jvp linearize numeric_gradient numeric_jacobian scan symbolic value_and_grad vjp vmap while_loop",
}
_MODULES = (
    "autograd",
    "data",
    "events",
    "experiments",
    "graph",
    "interop",
    "kernels",
    "nn",
    "ops",
    "optim",
    "parallel",
    "precision",
    "teach",
    "training",
    "transforms",
)

_HOMES = {name: room for room, names in _ROOMS.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name == "__all__":  # what help(lab) lists; without it only what is made here
        return [known for known in __dir__() if known not in {"__doc__", "last_run"}]
    if name in _MODULES:
        return importlib.import_module(f"lab.{name}")
    if name == "last_run":  # changes with every run, so it is never kept here
        return importlib.import_module("lab.training").last_run()
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif name.startswith("_") or find_spec(f"lab.{name}"):  # a room that its importer will load: no op is asked for
        raise AttributeError(f"module 'lab' has no attribute {name!r}")
    elif name in (ops := importlib.import_module("lab.ops")).NAMES:
        describe = importlib.import_module("lab.autograd.describe").describe  # which also tells ops about tensors
        value = ops.record(name).apply
        value.__doc__, value.__module__ = describe(ops.record(name)), "lab"
    else:
        raise AttributeError(f"module 'lab' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    own = {name for name in globals() if not name.startswith("_") or name in {"__doc__", "__version__"}}
    ops = importlib.import_module("lab.ops").NAMES
    absent = {"Any", "annotations", "find_spec", "importlib"}
    if not importlib.import_module("lab.training").runs():  # help(lab) asks for all that is listed
        absent.add("last_run")
    return sorted({*own, *_HOMES, *ops, *_MODULES} - absent)
