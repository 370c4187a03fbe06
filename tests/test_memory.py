"""Freed memory is kept for the next array, and cycles are looked for as often as the user says."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

import lab
import lab.memory

FAULTS = """
import resource
import numpy as np
import lab
x = lab.tensor(np.ones(1_000_000, np.float32), requires_grad=True)
def step():
    x.zero_grad()
    (lab.tanh(x * 1.3) * x + lab.exp(-x)).sum().backward()
for _ in range(5):
    step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print((resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before) / 10)
"""


def run(code: str, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"NUMPY_MADVISE_HUGEPAGE": "0"} | variables  # pages of one size: what is counted is told
    return subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)


def test_a_step_on_large_arrays_takes_its_memory_from_the_last_one():
    kept, given_back = (float(run(FAULTS, LAB_KEEP_FREED_MB=mb).stdout) for mb in ("128", "0"))
    if lab.memory.keep_freed():  # glibc
        assert kept < 50
        assert given_back > 1000
    else:
        assert kept == given_back


def test_a_wrong_number_of_megabytes_is_said_and_does_no_harm():
    done = run("import lab; print(lab.tensor(1.0))", LAB_KEEP_FREED_MB="many", LAB_LOG="warning")
    assert done.stdout.strip() == "tensor(1.)"
    assert "LAB_KEEP_FREED_MB is a number of megabytes, not 'many'" in done.stderr


def test_the_search_for_cycles_comes_after_as_many_objects_as_the_widest_open_context_says():
    before = gc.get_threshold()
    with lab.gc_threshold(60_000):
        outer = lab.gc_threshold(70_000)
        with outer:
            assert gc.get_threshold() == (70_000, *before[1:])
            with lab.gc_threshold(10):
                assert gc.get_threshold()[0] == 70_000
        assert gc.get_threshold()[0] == 60_000
        with pytest.raises(KeyError), lab.gc_threshold(80_000):
            raise KeyError
        assert gc.get_threshold()[0] == 60_000
    assert gc.get_threshold() == before


def test_a_graph_recorded_under_a_raised_threshold_is_not_searched_and_is_freed_all_the_same():
    searches = []

    def note(phase: str, _: dict[str, int]) -> None:
        searches.append(phase)

    gc.callbacks.append(note)
    try:
        with lab.gc_threshold(1_000_000):
            x = y = lab.tensor(1.0, requires_grad=True)
            searches.clear()
            for _ in range(20_000):
                y = y * 1.0
            y.backward()
            assert searches == []
    finally:
        gc.callbacks.remove(note)
    assert x.grad is not None
    assert x.grad.item() == 1.0


@pytest.mark.parametrize("wrong", [0, 2.5, True, "many"])
def test_a_threshold_that_is_no_count_is_refused_and_changes_nothing(wrong):
    before = gc.get_threshold()
    with pytest.raises(lab.errors.ArgumentError, match="n_objects is a whole number"), lab.gc_threshold(wrong):
        pass
    assert gc.get_threshold() == before
