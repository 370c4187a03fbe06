"""What ends with a notebook and what does not: a closed tab leaves the training, a closed kernel leaves no worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.harness import KERNEL, VIEWPORT, LabPage, LabServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SOON = 20.0
"""Seconds within which workers of a kernel that ended are gone, on a busy machine; on a quiet one it is about 2."""
TRAINING = """
import lab, os
from widgets import LossView, dashboard
train, test = lab.data.digits()
model = lab.nn.Sequential(lab.nn.Linear(64, 16, rng=0), lab.nn.Tanh(), lab.nn.Linear(16, 10, rng=1))
cluster = lab.parallel.Cluster(2)
run = lab.fit(model, train, validation=test, epochs=100_000, on=lab.parallel.DataParallel(cluster))
dashboard(run)
"""
LAST_STEP = """() => Math.max(...[...document.querySelectorAll(".lab-plot")]
    .flatMap(plot => (plot._fullData ?? []).map(trace => trace.x?.at(-1) ?? 0)))"""


def family(pid: int) -> set[int]:
    """A process and all that descend from it."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(entry.parent.name)] = int(entry.read_text().rpartition(")")[2].split()[1])
    found = {pid}
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def started(pid: int) -> str:
    """When a process started, in the kernel's ticks: a number that is used again is another process; "" if it ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] == "Z" else fields[19]


def wait_until_gone(processes: dict[int, str]) -> set[int]:
    """Those that still are there after a while."""
    deadline = time.monotonic() + SOON
    left = set(processes)
    while left and time.monotonic() < deadline:
        left = {pid for pid in left if started(pid) == processes[pid]}
    return left


def trained_in(browser: Browser, server: LabServer, name: str) -> tuple[LabPage, int, dict[int, str]]:
    """A notebook whose workers train, its kernel's process, and the processes below it."""
    lab = LabPage(browser.new_page(viewport=VIEWPORT), server, name)
    lab.write(TRAINING)
    lab.open()
    lab.run_all()
    assert lab.cell_errors() == []
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-plot .main-svg .xtick').length > 2")
    kernel = int(lab.kernel("print(os.getpid())"))
    workers = eval(lab.kernel("print(sorted(cluster.client.run(os.getpid).values()))"))
    below = {pid: started(pid) for pid in family(kernel) - {kernel}}
    assert set(workers) <= set(below)
    return lab, kernel, below


def ask(server: LabServer, method: str, path: str) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/{path}", method=method)
    request.add_header("Authorization", f"token {server.token}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def kernel_of(server: LabServer, name: str) -> str:
    sessions = json.loads(ask(server, "GET", "sessions"))
    return str(next(s["kernel"]["id"] for s in sessions if s["path"] == name))


def test_a_kernel_that_is_shut_down_takes_its_workers_with_it(browser: Browser, server: LabServer):
    lab, kernel, below = trained_in(browser, server, "shut-down.ipynb")
    lab.page.close()
    assert [pid for pid in below if not started(pid)] == [], "a closed tab ends nothing"
    ask(server, "DELETE", f"kernels/{kernel_of(server, 'shut-down.ipynb')}")
    assert wait_until_gone(below) == set()
    assert started(kernel) == ""


def test_a_kernel_that_is_killed_leaves_no_worker_behind(browser: Browser, server: LabServer):
    lab, kernel, below = trained_in(browser, server, "killed.ipynb")
    lab.page.close()
    os.kill(kernel, signal.SIGKILL)
    assert wait_until_gone(below) == set()
    with contextlib.suppress(OSError):
        ask(server, "DELETE", f"kernels/{kernel_of(server, 'killed.ipynb')}")


def test_a_closed_tab_leaves_the_training_and_another_one_finds_it(browser: Browser, server: LabServer):
    lab, kernel, below = trained_in(browser, server, "closed-tab.ipynb")
    lab.command("docmanager:save")
    before = int(lab.kernel("print(len(run.recording))"))
    lab.page.close()
    again = LabPage(browser.new_page(viewport=VIEWPORT), server, "closed-tab.ipynb")
    again.page.goto(server.url("closed-tab.ipynb"), wait_until="domcontentloaded")
    again.page.wait_for_selector(".jp-Notebook .jp-Cell")
    again.page.wait_for_function(
        f"() => window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady && {KERNEL}?.status === 'idle'"
    )
    assert int(again.kernel("print(os.getpid())")) == kernel
    assert again.kernel("print(lab.last_run is run, run.ended)") == "True False"
    assert int(again.kernel("print(len(run.recording))")) > before
    again.page.wait_for_function("() => document.querySelectorAll('.lab-plot .main-svg .xtick').length > 2")
    step = again.page.evaluate(LAST_STEP)
    again.page.wait_for_function(f"step => ({LAST_STEP})() > step", arg=step)
    again.kernel("run.stop(); run.join(30)")
    assert again.errors == []
    again.close()
    assert wait_until_gone(below) == set()
