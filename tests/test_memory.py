"""Freed memory is kept for the next array, unless the user says otherwise."""

from __future__ import annotations

import os
import subprocess
import sys

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
