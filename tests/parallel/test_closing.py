"""Which workers are said not to end: those that hang, not those that wait for a core of a busy machine."""

from __future__ import annotations

import os
import sys
import threading
from types import SimpleNamespace

from distributed.core import Status

from lab.parallel.cluster import closing
from lab.parallel.cluster.closing import SAYS, are_up, late, queues, told


def test_a_worker_that_waits_for_a_core_is_not_late_and_one_that_is_stopped_is():
    before = {1: {"1": 20.0, "5": 0.5}, 2: {"2": 20.0}, 3: {}}
    busy, stopped, unknown = {"1": 20.1, "5": 3.9}, {"2": 20.0}, dict[str, float]()
    assert late(3.9, before, {1: busy, 2: stopped, 3: unknown}) == [2, 3]
    assert late(SAYS - 0.01, before, {2: stopped}) == []
    assert late(3.9, before, {}) == []


def test_a_thread_that_came_since_counts_from_its_beginning():
    assert late(2.0, {1: {"1": 9.0}}, {1: {"1": 9.0, "4": 1.9}}) == []


def test_of_a_process_that_is_there_the_wait_of_each_thread_is_known_where_the_system_counts_it():
    [threads] = queues([os.getpid()]).values()
    assert (str(threading.get_native_id()) in threads) == (sys.platform == "linux")
    assert all(seconds >= 0 for seconds in threads.values())


def test_a_worker_that_is_only_starting_or_comes_later_is_not_waited_for_with_a_word():
    def nanny(pid, status):
        return SimpleNamespace(pid=pid, process=status and SimpleNamespace(status=status))

    nannies = [nanny(1, Status.running), nanny(2, Status.starting), nanny(None, None), nanny(4, Status.running)]
    left = are_up(nannies)
    assert left() == [1, 4]
    nannies[0].pid, nannies[3].pid = None, 5  # one has ended, one was started anew
    nannies[2].pid = 3
    assert left() == []


def test_what_does_not_end_is_told_once(monkeypatch):
    said = threading.Event()

    class Noted:
        def write(self, text: str) -> None:
            lines.append(text)

        def flush(self) -> None:
            said.set()

    lines: list[str] = []
    monkeypatch.setattr(closing, "SAYS", 0.0)
    monkeypatch.setattr(closing, "LOOK", 0.001)
    monkeypatch.setattr(closing.sys, "stderr", Noted())
    with told(lambda: [-1, -2]):
        assert said.wait(60)
    assert lines == [
        "Closing the cluster: 2 workers (process -1, -2) have not ended yet; what does not answer is killed ...\n"
    ]
