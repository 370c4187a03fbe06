"""Programs that tests start beside themselves: schedulers, workers, scripts; they end with a block."""

import os
import re
import signal
import subprocess
import sys
from contextlib import contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Program:
    """A child process in a session of its own, its output line by line; it and its children are ended at the end."""

    def __init__(self, *command, **environment):
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"} | environment,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip

    def until(self, pattern):
        """Read up to a line that matches."""
        seen = []
        for line in self.process.stdout:
            seen.append(line)
            if found := re.search(pattern, line):
                return found
        raise AssertionError(f"no {pattern!r} in:\n{''.join(seen)}")

    def rest(self):
        return self.process.stdout.read()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.stdout.close()
        self.process.wait()


@contextmanager
def scheduler(host="127.0.0.1", **environment):
    """The address of a scheduler in a process of its own."""
    command = (sys.executable, "-m", "dask", "scheduler", "--host", host, "--port", "0", "--no-dashboard")
    with Program(*command, **environment) as program:
        yield program.until(r"Scheduler at:\s+(tcp://\S+)")[1]


@contextmanager
def worker(address, *options, host="127.0.0.1", **environment):
    """A worker with its nanny, registered."""
    command = (sys.executable, "-m", "dask", "worker", address, "--host", host, "--nthreads", "1", "--no-dashboard")
    with Program(*command, *options, **environment) as program:
        program.until(r"Registered to:")
        yield program
