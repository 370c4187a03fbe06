"""What several tests need of the machine: ports, pages, and a root that obeys permissions."""

import ctypes
import signal
import socket
import sys
import threading
import urllib.request
from pathlib import Path


def without_root_powers():
    """Runs in the child: root then obeys permissions, as every other user does. No effect for those."""
    ctypes.CDLL(None).prctl(24, 1, 0, 0, 0)  # PR_CAPBSET_DROP, CAP_DAC_OVERRIDE


def fetch(url):
    """The body of a page on this machine, whatever proxy is set."""
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(url) as answer:
        return answer.read()


def interrupt_within(call):
    """Interrupt the main thread as soon as it waits in a call of this function: before, it would end the test."""
    main, patience = threading.main_thread().ident, threading.Event()

    def waits():
        frame = sys._current_frames()[main]
        codes = []
        while frame is not None:
            codes.append(frame.f_code)
            frame = frame.f_back
        return codes[0] is threading.Condition.wait.__code__ and call.__code__ in codes

    while not waits():
        patience.wait(0.01)
    signal.pthread_kill(main, signal.SIGINT)


def free_port():
    """A port that nobody had a moment ago."""
    with socket.socket() as door:
        door.bind(("127.0.0.1", 0))
        return door.getsockname()[1]


def listening_on(port):
    """Addresses on which somebody on this machine listens at `port`, by the kernel's own table."""
    rows = [line.split() for name in ("tcp", "tcp6") for line in Path("/proc/net", name).read_text().splitlines()[1:]]
    found = {row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port}
    return {socket.inet_ntoa(bytes.fromhex(text)[::-1]) if len(text) == 8 else f"ipv6 {text}" for text in found}
