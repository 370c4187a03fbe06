"""What a lesson takes of a small machine's memory: notebook server, kernel and workers together, cell by cell.

PSS divides pages that processes share among them (also among strangers, so it flatters on a busy machine; RSS where the
system does not tell it), RSS counts them in each. The truth is between; Binder promises 1 GB, and the aim is 900 MB.
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
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil
from jupyter_client.blocking.client import BlockingKernelClient

MIB = 1 << 20
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
    ("trained on each worker", """
def train_alone(comm):
    train, test = lab.data.digits()
    return lab.fit(lab.nn.mlp(64, 128, 128, 10, rng=0), train, validation=test, epochs=1).wait().loss
cluster.launch(train_alone)
"""),
    ("data-parallel training", """
from lab.parallel import DataParallel
run = lab.fit(lab.nn.mlp(64, 128, 128, 10, rng=0), train, validation=test, epochs=3, on=DataParallel(cluster))
run.wait()
display(widgets.dashboard(run))
"""),
    ("a RingView", """
def small(comm):
    comm.all_reduce_(np.arange(16.0))
with lab.record() as rec:
    cluster.launch(small)
display(widgets.RingView(rec))
"""),
]  # fmt: skip


def main() -> int:
    with served() as server, connected(server) as client:
        print(f"MB {'':<25}{'PSS':>7}    server   kernel  workers{'RSS':>12}")
        for name, code in CELLS:
            if error := run(client, code):
                print(f"{name:<28}    (not run: {error})")
                continue
            parts, rss = zip(*measured(server), strict=True)
            shares = "".join(f"{part:>9.0f}" for part in parts)
            print(f"{name:<28}{sum(parts):>7.0f} {shares}{sum(rss):>12.0f}", flush=True)
        for process in [server, *server.children(recursive=True)]:
            print(f"  {size(process).pss:>5.0f} {size(process).rss:>5.0f}  {' '.join(process.cmdline())[-80:]}")
    return 0


class Size(NamedTuple):
    """MB of a process, or of several."""

    pss: float
    rss: float


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


def measured(server: psutil.Process) -> list[Size]:
    """MB of the server, of the kernel, and of all that the kernel started."""
    (kernel,) = server.children()
    workers = [size(process) for process in kernel.children(recursive=True)]
    return [size(server), size(kernel), Size(sum(w.pss for w in workers), sum(w.rss for w in workers))]


def size(process: psutil.Process) -> Size:
    """MB of a process."""
    info = process.memory_full_info()
    return Size(getattr(info, "pss", info.rss) / 1e6, info.rss / 1e6)


if __name__ == "__main__":
    sys.exit(main())
