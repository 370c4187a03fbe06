"""What ends with a notebook and what does not: a closed tab leaves the training, a closed kernel leaves no worker."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import urllib.request
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from tests.browser.harness import VIEWPORT, LabPage, LabServer

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

SOON = 120.0
"""Seconds within which workers of a kernel that ended are gone, on any machine; on a quiet one it is about 2."""
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
        threading.Event().wait(0.05)  # the machine has better things to do than to look again at once
    return left


def trained_in(browser: Browser, server: LabServer, name: str) -> tuple[LabPage, dict[int, str], dict[int, str]]:
    """A notebook whose workers train; the workers, and all processes of its kernel, each with when it started."""
    lab = LabPage(browser.new_page(viewport=VIEWPORT), server, name)
    lab.write(TRAINING)
    lab.open()
    lab.run_all()
    assert lab.cell_errors() == []
    lab.page.wait_for_function("() => document.querySelectorAll('.lab-plot .main-svg .xtick').length > 2")
    kernel = int(lab.kernel("print(os.getpid())"))
    workers = eval(lab.kernel("print(sorted(cluster.client.run(os.getpid).values()))"))
    processes = {pid: started(pid) for pid in family(kernel)}
    assert {kernel, *workers} <= processes.keys()
    return lab, {pid: processes[pid] for pid in workers}, processes


def ask(server: LabServer, method: str, path: str) -> bytes:
    request = urllib.request.Request(f"http://127.0.0.1:{server.port}/api/{path}", method=method)
    request.add_header("Authorization", f"token {server.token}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        body: bytes = answer.read()
        return body


def kernel_of(server: LabServer, name: str) -> str:
    sessions = json.loads(ask(server, "GET", "sessions"))
    return str(next(s["kernel"]["id"] for s in sessions if s["path"] == name))


def test_a_closed_tab_ends_nothing_another_one_finds_the_training_and_a_kernel_that_is_shut_down_takes_its_workers(
    browser: Browser, server: LabServer
):
    lab, workers, processes = trained_in(browser, server, "closed-tab.ipynb")
    lab.command("docmanager:save")
    kernel, before = lab.kernel("print(os.getpid())"), int(lab.kernel("print(len(run.recording))"))
    lab.page.close()
    assert {pid: started(pid) for pid in workers} == workers
    again = LabPage(browser.new_page(viewport=VIEWPORT), server, "closed-tab.ipynb")
    again.open()
    assert again.kernel("print(os.getpid())") == kernel
    assert again.kernel("print(lab.last_run is run, run.ended)") == "True False"
    again.until(f"print(len(run.recording) > {before})", "True")
    again.page.wait_for_function("() => document.querySelectorAll('.lab-plot .main-svg .xtick').length > 2")
    step = again.page.evaluate(LAST_STEP)
    again.page.wait_for_function(f"step => ({LAST_STEP})() > step", arg=step)
    assert again.errors == []
    again.page.close()
    ask(server, "DELETE", f"kernels/{kernel_of(server, 'closed-tab.ipynb')}")
    assert wait_until_gone(processes) == set()


def test_a_kernel_that_is_killed_leaves_no_worker_behind(browser: Browser, server: LabServer):
    lab, _, processes = trained_in(browser, server, "killed.ipynb")
    kernel = int(lab.kernel("print(os.getpid())"))
    lab.page.close()
    os.kill(kernel, signal.SIGKILL)
    below = {pid: start for pid, start in processes.items() if pid != kernel}  # the server starts another kernel
    assert wait_until_gone(below) == set()
    with contextlib.suppress(OSError):
        ask(server, "DELETE", f"kernels/{kernel_of(server, 'killed.ipynb')}")


def test_a_kernel_that_is_shut_down_in_the_middle_of_a_run_leaves_no_error_in_the_page(
    browser: Browser, server: LabServer
):
    lab = LabPage(browser.new_page(viewport=VIEWPORT), server, "shut-down.ipynb")
    lab.write(
        "import lab; from widgets import dashboard\ntrain, _ = lab.data.digits()\n"
        "run = lab.fit(lab.nn.Linear(64, 10, rng=0), train, epochs=10**6)\ndashboard(run)"
    )
    lab.open()
    lab.run_all()
    lab.page.wait_for_function(f"() => ({LAST_STEP})() > 5")
    lab.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
    lab.page.wait_for_function("() => !window.jupyterapp.shell.currentWidget.sessionContext.session?.kernel")
    lab.page.evaluate(  # what had come is drawn meanwhile, and nobody is there to be told
        "async () => { for (let k = 0; k < 30; k += 1) await new Promise(requestAnimationFrame); }"
    )
    assert lab.errors == []
    lab.page.close()
