"""What a lesson takes of a small machine's memory: notebook server, kernel and workers together, cell by cell.

"alone" is what a container would hold: each process's own pages, and of each mapped file once as many pages as the one
that reads most of it has. PSS divides shared pages also among strangers, so it flatters where others run Python too;
RSS counts them in each process. Binder promises 1 GB; the aim is 900 MB.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from jupyter_client.blocking.client import BlockingKernelClient

HEAVY = {"IPython", "ipywidgets", "numba", "pandas", "plotly", "scipy", "widgets"}
N_WORKERS = int(os.environ.get("LAB_BENCH_WORKERS", "4"))

CELLS = [
    ("kernel alone", "pass"),
    ("import lab, widgets", "import lab, widgets"),
    ("trained here, a dashboard", """
train, test = lab.data.digits()
run = lab.fit(lab.nn.mlp(64, 128, 128, 10, rng=0), train, validation=test, epochs=3)
run.wait()
display(widgets.dashboard(run))
"""),
    (f"{N_WORKERS} workers", f"from lab.parallel import Cluster\ncluster = Cluster({N_WORKERS})"),
    ("one launch", """
import numpy as np
def program(comm):
    array = np.ones(26_000, np.float32)
    for _ in range(50):
        comm.all_reduce_(array)
with lab.record() as rec:
    cluster.launch(program)
"""),
    ("data-parallel training", """
from lab.parallel import DataParallel
run = lab.fit(lab.nn.mlp(64, 128, 128, 10, rng=0), train, validation=test, epochs=3, on=DataParallel(cluster))
run.wait()
display(widgets.dashboard(run))
"""),
    ("its RingView", "display(widgets.RingView(run.recording))"),
    ("a small one with numbers", """
def small(comm):
    comm.all_reduce_(np.arange(16.0))
with lab.record() as rec:
    cluster.launch(small)
display(widgets.RingView(rec))
"""),
]  # fmt: skip


def main() -> int:
    with served() as server, connected(server) as client:
        print(f"MB {'':<25}{'alone':>7}   (server   kernel  workers){'PSS':>8}{'RSS':>8}")
        for name, code in CELLS:
            if error := run(client, code):
                print(f"{name:<28}    (not run: {error})")
                continue
            parts = measured(server)
            shares = "".join(f"{alone(part):>9.0f}" for part in parts)
            pss, rss = (sum(getattr(size, what) for part in parts for size in part) for what in ("pss", "rss"))
            print(f"{name:<28}{alone([size for part in parts for size in part]):>7.0f} {shares} {pss:>8.0f}{rss:>8.0f}",
                  flush=True)  # fmt: skip
        loaded = answer(client, f"cluster.launch(lambda _: sorted({HEAVY} & {{*__import__('sys').modules}}))[0]")
        print("Of", ", ".join(sorted(HEAVY)), "workers loaded", loaded)
    return 0


class Size(NamedTuple):
    """MB of a process: all pages, its share of them, those that are its own, and the others by mapped file."""

    rss: float
    pss: float
    own: float
    files: dict[str, float]


def alone(sizes: Sequence[Size]) -> float:
    """MB that these processes take where nobody else runs."""
    most: dict[str, float] = {}
    for size in sizes:
        for path, mb in size.files.items():
            most[path] = max(mb, most.get(path, 0.0))
    return sum(size.own for size in sizes) + sum(most.values())


@contextmanager
def served() -> Iterator[psutil.Process]:
    """A JupyterLab, and in `info` where it answers."""
    with tempfile.TemporaryDirectory() as folder:
        token = secrets.token_hex(8)
        environment = os.environ | {"JUPYTER_RUNTIME_DIR": folder, "JUPYTER_TOKEN": token}
        words = [sys.executable, "-m", "jupyterlab", "--no-browser", "--ServerApp.ip=127.0.0.1", "--ServerApp.port=0",
                 "--allow-root", f"--ServerApp.root_dir={folder}", "--ServerApp.log_level=ERROR"]  # fmt: skip
        with subprocess.Popen(words, env=environment, stderr=subprocess.DEVNULL) as process:
            server = psutil.Process(process.pid)
            server.folder, server.token = Path(folder), token
            try:
                yield server
            finally:
                process.terminate()


@contextmanager
def connected(server: psutil.Process) -> Iterator[BlockingKernelClient]:
    """A kernel started by the server, as a notebook has it."""
    while not (files := list(server.folder.glob("jpserver-*.json"))):
        time.sleep(0.1)
    info = json.loads(files[0].read_text())
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def asked(path: str, data: bytes | None = None) -> dict:
        headers = {"Authorization": f"token {server.token}"}
        while True:
            try:
                with opener.open(urllib.request.Request(info["url"] + path, data, headers), timeout=30) as answer:
                    return json.load(answer)
            except urllib.error.URLError:  # it writes the file first and listens a moment later
                time.sleep(0.1)

    kernel = asked("api/kernels", b"{}")
    client = BlockingKernelClient(connection_file=str(server.folder / f"kernel-{kernel['id']}.json"))
    client.load_connection_file()
    client.start_channels()
    client.wait_for_ready(timeout=60)
    try:
        yield client
    finally:
        run(client, "cluster.close()")
        client.stop_channels()


def run(client: BlockingKernelClient, code: str) -> str:
    """Run a cell; what it raised, in one line."""
    reply = client.execute_interactive(code, timeout=300, output_hook=lambda message: None)["content"]
    return f"{reply['ename']}: {reply['evalue'].splitlines()[0]}" if reply["status"] == "error" else ""


def answer(client: BlockingKernelClient, expression: str) -> str:
    """The value of an expression, as text."""
    reply = client.execute_interactive("", user_expressions={"it": expression}, timeout=60)["content"]
    found = reply["user_expressions"]["it"]
    return found["data"]["text/plain"] if found["status"] == "ok" else f"({found['ename']}: {found['evalue']})"


def measured(server: psutil.Process) -> list[list[Size]]:
    """Sizes of the server, of the kernel, and of all that the kernel started."""
    (kernel,) = server.children()
    return [[size(server)], [size(kernel)], [size(process) for process in kernel.children(recursive=True)]]


def size(process: psutil.Process) -> Size:
    """Read from the maps of a process, which only Linux tells."""
    maps = process.memory_maps(grouped=True)
    files = {m.path: (m.rss - m.anonymous) / 1e6 for m in maps if m.rss > m.anonymous}
    sums = (sum(getattr(m, what) for m in maps) / 1e6 for what in ("rss", "pss", "anonymous"))
    return Size(*sums, files)


if __name__ == "__main__":
    sys.exit(main())
