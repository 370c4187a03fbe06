"""`await run`, as a notebook's cell does it, without a notebook."""

import asyncio
import signal
import threading

import pytest

from lab.errors import RunError
from lab.training import Countdown, Run
from lab.training import run as run_module

SOON = 100.0
ENDLESS = 10**12


async def soon(awaitable):
    async with asyncio.timeout(SOON):
        return await awaitable


def test_await_gives_the_result():
    async def cell():
        return await Run(Countdown(5))

    assert asyncio.run(soon(cell())).n_steps == 5


def test_await_of_an_ended_run_returns_at_once():
    run = Run(Countdown(2))
    run.wait(SOON)

    async def cell():
        return await run

    assert asyncio.run(soon(cell())) is run.result


def test_controls_work_while_a_cell_awaits():
    async def notebook():
        run = Run(Countdown(ENDLESS))
        cell = asyncio.ensure_future(soon(run))
        await asyncio.sleep(0)  # the cell begins to wait
        run.pause()
        await asyncio.to_thread(run.wait_until, "paused", timeout=SOON)
        assert not cell.done()
        run.stop()
        return await cell

    assert asyncio.run(notebook()).state == "stopped"


def test_several_cells_may_await_one_run():
    async def notebook():
        run = Run(Countdown(ENDLESS))
        cells = [asyncio.ensure_future(soon(run)) for _ in range(3)]
        await asyncio.sleep(0)
        run.stop()
        return await asyncio.gather(*cells)

    first, second, third = asyncio.run(notebook())
    assert first is second is third


def test_several_runs_may_be_awaited_together():
    async def cell():
        return await asyncio.gather(*(soon(Run(Countdown(n))) for n in (3, 1, 2)))

    assert [r.n_steps for r in asyncio.run(cell())] == [3, 1, 2]


def test_await_raises_the_failure_with_its_traceback():
    async def cell():
        await Run(Countdown(5, fails_at=4))

    with pytest.raises(ZeroDivisionError, match="failed at 4") as caught:
        asyncio.run(soon(cell()))
    assert caught.traceback[-1].name == "advance"


def test_await_raises_trouble_and_may_be_tried_again():
    async def cells():
        run = Run(Countdown(5, troubled_at=2))
        with pytest.raises(RunError, match="stalled at 2"):
            await run
        run.rewind()
        run.resume()
        return await run

    assert asyncio.run(soon(cells())).n_steps == 5


def interrupted(run, seen):
    async def cell():
        try:
            await run
        except BaseException as why:  # noqa: BLE001 - to look at what the learner would see
            seen.append(why)

    async def notebook():
        task = asyncio.ensure_future(cell())
        await asyncio.sleep(0)
        task.cancel()  # what ipykernel does on an interrupt
        await soon(task)

    asyncio.run(notebook())


def test_cancelling_an_await_stops_the_run():
    run, seen = Run(Countdown(ENDLESS)), []
    interrupted(run, seen)
    assert isinstance(seen[0], asyncio.CancelledError)
    assert run.wait(SOON).state == "stopped"


def test_in_a_kernel_an_interrupted_await_looks_like_an_interrupt(monkeypatch):
    monkeypatch.setattr(run_module, "_in_kernel", lambda: True)
    run, seen = Run(Countdown(ENDLESS)), []
    interrupted(run, seen)
    assert isinstance(seen[0], KeyboardInterrupt)
    assert seen[0].__suppress_context__
    assert run.wait(SOON).state == "stopped"


class InterruptsMain(Countdown):
    """Counts on until the run is awaited, then sends what the kernel gets when the learner presses Interrupt."""

    run, done = None, False

    def advance(self):
        if self.run is not None and self.run._watchers and not self.done:
            self.done = True
            signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        return super().advance()


def test_a_signal_reaches_a_cell_that_awaits_although_nothing_else_wakes_the_loop():
    job = InterruptsMain(ENDLESS)
    job.run = run = Run(job)

    async def cell():
        task = asyncio.ensure_future(_awaited(run))
        before = signal.signal(signal.SIGINT, lambda *_: task.cancel())  # so does ipykernel
        try:
            await soon(task)
        finally:
            signal.signal(signal.SIGINT, before)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cell())
    assert run.wait(SOON).state == "stopped"


async def _awaited(run):
    return await run


def test_a_kernel_is_known_by_its_shell(monkeypatch):
    import sys
    from types import SimpleNamespace

    for shell, expected in [(SimpleNamespace(kernel=1), True), (SimpleNamespace(), False), (None, False)]:
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda shell=shell: shell))
        assert run_module._in_kernel() is expected
    monkeypatch.setitem(sys.modules, "IPython", None)
    assert run_module._in_kernel() is False


def test_a_run_outlives_the_loop_that_awaited_it():
    run = Run(Countdown(ENDLESS))

    async def left_behind():
        waiting = run.__await__()
        next(waiting)
        return waiting

    waiting = asyncio.run(left_behind())  # the loop is closed now
    run.stop()
    assert run.join(SOON)
    assert run.state == "stopped"
    waiting.close()
