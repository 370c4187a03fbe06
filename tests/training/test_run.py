import contextvars
import logging
import subprocess
import sys
import threading
import traceback
from pathlib import Path

import numpy as np
import pytest

from lab.errors import ArgumentError, MeshError, RunError
from lab.events import HyperparameterChanged, RunFinished, RunStarted, RunStateChanged, StepFinished, bus
from lab.training import Countdown, Result, Run, last_run, runs
from lab.training.registry import N_KEPT

SOON = 100.0  # seconds; never waited for when all is well
ENDLESS = 10**12


def paused(run):
    assert run.wait_until("paused", timeout=SOON)
    return run


def test_a_run_ends_by_itself_and_leaves_a_result():
    run = Run(Countdown(5), name="five")
    result = run.wait(SOON)
    assert (result.name, result.state, result.n_steps, result.loss) == ("five", "finished", 5, 0)
    assert run.result is result
    assert (run.state, run.ended, run.progress, run.reason) == ("finished", True, (5, 5), "")
    assert repr(run) == "Run 'five': finished, step 5 of 5"


def test_making_a_run_returns_before_it_ends():
    run = Run(Countdown(ENDLESS))
    assert run.state == "running"
    run.stop()
    assert run.wait(SOON).state == "stopped"


def test_a_paused_run_does_steps_only_when_asked():
    run = paused(Run(Countdown(10), paused=True))
    assert run.progress == (0, 10)
    run.step()
    assert paused(run).progress == (1, 10)
    run.step(3)
    run.step(2)
    assert paused(run).progress == (6, 10)
    run.resume()
    assert run.wait(SOON).n_steps == 10


def test_a_run_says_that_it_is_pausing_until_its_step_is_over():
    at, go = threading.Event(), threading.Event()

    class Long(Countdown):
        def advance(self):
            at.set()
            assert go.wait(SOON)
            return super().advance()

    run = Run(Long(3))
    assert at.wait(SOON)
    assert not run.is_pausing
    run.pause()
    assert run.is_pausing
    go.set()
    assert not paused(run).is_pausing
    run.stop()


def test_pause_holds_a_running_run():
    run = Run(Countdown(ENDLESS))
    run.pause()
    held = paused(run).progress
    run.step()
    assert paused(run).progress == (held[0] + 1, ENDLESS)


def test_a_step_asked_of_a_running_run_is_its_last_until_resumed():
    run = Run(Countdown(ENDLESS))
    run.step()
    before = paused(run).progress[0]
    run.step()
    assert paused(run).progress[0] == before + 1


def test_granted_steps_may_end_the_run():
    run = Run(Countdown(3), paused=True)
    run.step(10)
    assert run.wait(SOON).state == "finished"


def test_a_pause_takes_granted_steps_back():
    run = Run(Countdown(ENDLESS), paused=True)
    run.step(ENDLESS)
    run.pause()
    assert paused(run).progress[0] < ENDLESS


@pytest.mark.parametrize("start_paused", [False, True])
def test_stop_gives_the_result_so_far(start_paused):
    run = Run(Countdown(ENDLESS), paused=start_paused)
    run.stop()
    result = run.wait(SOON)
    assert (result.state, run.state) == ("stopped", "stopped")
    assert result.n_steps == run.progress[0] == ENDLESS - result.loss


def test_a_stopping_run_says_so_until_its_step_ends():
    class Slow(Countdown):
        def advance(self):
            entered.set()
            assert leave.wait(SOON)
            return super().advance()

    entered, leave = threading.Event(), threading.Event()
    run = Run(Slow(ENDLESS))
    assert entered.wait(SOON)
    run.stop()
    assert run.state == "stopping"
    with pytest.raises(RunError, match="cannot resume\ngiven: it is stopping"):
        run.resume()
    leave.set()
    assert run.wait(SOON).n_steps == 1


def test_a_stop_cannot_be_undone():
    run = paused(Run(Countdown(10), paused=True, name="leaving"))
    with run._changed:  # the thread has not yet seen that it shall stop
        run.stop()
        run.pause()
        run.set("by", 2)
        for verb, act in (("rewind", run.rewind), ("resume", run.resume), ("step", run.step)):
            with pytest.raises(RunError, match=f"leaving cannot {verb}\ngiven: it is stopping\nhint: "):
                act()
        assert run.state == "stopping"
    assert run.wait(SOON).state == "stopped"


def test_a_rewind_that_was_asked_before_a_stop_does_not_undo_it():
    run = paused(Run(Countdown(10), paused=True))
    run.step(3)
    paused(run)
    with run._changed:
        run._requests.append(lambda: run._rewind(threading.Event()))
        run.stop()
    assert run.wait(SOON).state == "stopped"
    assert run.progress == (0, 10)


def test_controls_of_an_ended_run_do_nothing_or_say_why():
    run = Run(Countdown(1), name="over")
    run.wait(SOON)
    run.stop()
    run.pause()
    assert run.state == "finished"
    for refused in (run.resume, run.step, lambda: run.set("by", 2)):
        with pytest.raises(RunError, match=r"over.* cannot .*\ngiven: it is finished"):
            refused()


@pytest.mark.parametrize("n", [0, -1, 1.5, "a", None, True])
def test_steps_are_counted_in_whole_numbers_and_go_forward_only(n):
    run = paused(Run(Countdown(5), paused=True))
    with pytest.raises(ArgumentError) as caught:
        run.step(n)
    assert str(caught.value) == (
        f"n is a whole number of at least 1\ngiven: n={n!r}\nhint:  run.step(3) does three; run.rewind() goes back"
    )
    assert (run.state, run.progress[0]) == ("paused", 0)
    run.step(np.int64(2))
    assert paused(run).progress[0] == 2


def test_the_result_of_an_unfinished_run_is_refused_with_the_way_to_get_it():
    run = paused(Run(Countdown(7), name="early", paused=True))
    for look in (lambda: run.result, lambda: run.wait(0.0)):
        with pytest.raises(RunError) as caught:
            look()
        assert str(caught.value) == (
            "early has not ended yet\ngiven: paused after 0 of 7 steps\n"
            "hint:  `await run` gives the result; in a script, run.wait()"
        )


def test_a_failure_is_raised_where_one_waits_with_the_traceback_of_the_step():
    run = Run(Countdown(5, fails_at=2), name="bad")
    depths = []
    for _ in range(3):
        with pytest.raises(ZeroDivisionError, match="the countdown failed at 2") as caught:
            run.wait(SOON)
        frames = [f.name for f in traceback.extract_tb(caught.value.__traceback__)]
        assert frames[-1] == "advance"
        depths.append(len(frames))
    assert len(set(depths)) == 1  # waiting again does not pile up frames
    assert (run.state, run.reason, run.progress) == ("failed", "the countdown failed at 2", (3, 5))
    with pytest.raises(RunError, match="bad failed\ngiven: the countdown failed at 2\nhint:  `await run`") as refused:
        _ = run.result
    assert isinstance(refused.value.__cause__, ZeroDivisionError)


def test_a_failure_that_nobody_waits_for_is_logged(caplog):
    with caplog.at_level(logging.ERROR, logger="lab.training"):
        run = Run(Countdown(5, fails_at=5), name="unseen")
        assert run.join(SOON)
    assert run.state == "failed"
    assert "run unseen failed" in caplog.text
    assert "ZeroDivisionError" in caplog.text


def test_a_failure_that_nobody_waits_for_says_so_in_one_line(capsys):
    run = Run(Countdown(5, fails_at=5), name="unseen aloud")
    assert run.join(SOON)
    assert capsys.readouterr().err == (
        "Run 'unseen aloud' failed at step 0: ZeroDivisionError: the countdown failed at 5. "
        "`await run` shows where; in a script, run.wait().\n"
    )


def test_a_run_that_pauses_by_itself_says_so_when_nobody_waits(capsys):
    run = paused(Run(Countdown(5, troubled_at=3), name="stuck aloud"))
    assert capsys.readouterr().err == (
        "Run 'stuck aloud' paused at step 2: the countdown stalled at 3. "
        "`await run` shows more; in a script, run.wait().\n"
    )
    run.stop()


def test_trouble_that_lasts_is_said_once_and_answered_when_it_is_over(capsys):
    run = paused(Run(Countdown(5, troubled_at=3), name="stuck again"))
    for _ in range(3):
        run.resume()
        paused(run)
    assert capsys.readouterr().err.count("paused at step 2") == 1
    run.rewind()
    assert capsys.readouterr().out == "Run 'stuck again' is back at step 0, where it was sound.\n"
    run.resume()
    assert run.join(SOON)
    said = capsys.readouterr()
    assert said.out == said.err == ""


@pytest.mark.parametrize("job", [Countdown(5, fails_at=3), Countdown(5, troubled_at=3)])
def test_who_waits_hears_of_a_failure_by_the_exception_alone(job, capsys):
    run = paused(Run(job, paused=True))

    def wait():
        with pytest.raises((ZeroDivisionError, RunError)):
            run.wait(SOON)

    waiting = threading.Thread(target=wait)
    waiting.start()
    with run._changed:
        assert run._changed.wait_for(lambda: run._watchers, SOON)
    run.resume()
    waiting.join(SOON)
    assert capsys.readouterr().err == ""


def test_even_an_exit_in_a_step_ends_the_run_and_not_the_process():
    class Exits(Countdown):
        def advance(self):
            raise SystemExit(3)

    with pytest.raises(SystemExit):
        Run(Exits(1)).wait(SOON)


def test_a_result_that_cannot_be_made_is_a_failure():
    class Empty(Countdown):
        def result(self, run, state, elapsed_ms):
            raise ValueError("no result")

    run = Run(Empty(1))
    with pytest.raises(ValueError, match="no result"):
        run.wait(SOON)
    assert (run.state, run.recording[-1].state) == ("failed", "failed")


def test_trouble_pauses_names_itself_and_can_be_undone():
    run = Run(Countdown(5, troubled_at=3), name="stuck")
    for _ in range(2):
        with pytest.raises(RunError) as caught:
            run.wait(SOON)
        assert str(caught.value) == "the countdown stalled at 3\ngiven: as told\nhint:  run.rewind(), then run.resume()"
    assert (run.state, run.reason, run.progress) == ("paused", "the countdown stalled at 3", (2, 5))
    assert repr(run) == "Run 'stuck': paused (the countdown stalled at 3), step 2 of 5"
    run.rewind()
    assert (paused(run).progress, run.reason) == ((0, 5), "")
    run.resume()
    assert run.wait(SOON).n_steps == 5


def test_trouble_that_is_only_resumed_comes_back():
    run = Run(Countdown(5, troubled_at=3))
    for _ in range(2):
        with pytest.raises(RunError, match="stalled at 3"):
            run.wait(SOON)
        run.resume()


def test_who_waits_after_a_stop_gets_the_result_whatever_paused_the_run_before():
    run = paused(Run(Countdown(5, troubled_at=3)))
    with run._changed:  # the thread has not yet seen that it shall stop
        run.stop()
        waits = not run._settled
    assert run.wait(SOON).state == "stopped"
    assert waits


def test_rewinding_a_running_run_pauses_it_at_the_start():
    run = Run(Countdown(ENDLESS))
    run.rewind()
    assert paused(run).progress == (0, ENDLESS)


def test_rewinding_an_ended_run_works_at_once():
    run = Run(Countdown(3))
    run.wait(SOON)
    run.rewind()
    assert run.progress == (0, 3)


def test_a_hyperparameter_is_checked_at_once_and_applied_between_steps():
    run = paused(Run(Countdown(100), paused=True))
    run.set("by", 10)
    assert run.hyperparameters == {"by": 10.0}
    with pytest.raises(ArgumentError, match="larger steps\ngiven: by=0"):
        run.set("by", 0)
    run.resume()
    assert run.wait(SOON).n_steps == 10
    assert run.recording.columns(HyperparameterChanged)["value"].tolist() == [10.0]


def test_the_recording_tells_the_whole_story_and_only_of_its_run():
    run, other = Run(Countdown(4), name="told", paused=True), Run(Countdown(ENDLESS))
    paused(run).step()
    paused(run).resume()
    run.wait(SOON)
    told = run.recording
    assert [type(e) for e in told] == [
        RunStarted,
        RunStateChanged,
        RunStateChanged,
        StepFinished,
        RunStateChanged,
        RunStateChanged,
        *[StepFinished] * 3,
        RunFinished,
    ]
    assert told.columns(RunStateChanged)["state"].tolist() == ["paused", "running", "paused", "running"]
    assert told.columns(StepFinished)["step"].tolist() == [1, 2, 3, 4]
    assert {e.run for e in told} == {"told"}
    assert (told[-1].state, told[-1].n_steps, told[-1].reason) == ("finished", 4, "")
    assert not told.live
    other.stop()
    assert other.wait(SOON).n_steps == len(other.recording.positions(StepFinished))


def test_a_failed_run_says_so_in_its_last_event():
    run = Run(Countdown(2, fails_at=1))
    with pytest.raises(ZeroDivisionError):
        run.wait(SOON)
    assert (run.recording[-1].state, run.recording[-1].reason) == ("failed", "the countdown failed at 1")


class Failing:
    detail, sources = 0, False
    why = None

    def wants(self, kind):
        return True

    def receive(self, batch):
        raise ValueError("this view cannot be drawn")

    def lost(self, n_events):
        pass

    def detached(self, why):
        self.why = why


def test_a_listener_that_fails_is_let_go_and_the_run_goes_on():
    listener = Failing()
    run = Run(Countdown(3), paused=True)
    bus.attach(listener)
    run.resume()
    assert run.wait(SOON).state == "finished"
    bus.flush()
    assert "cannot be drawn" in str(listener.why)
    assert listener not in bus.listeners


def test_the_thread_sees_the_context_of_its_maker():
    setting = contextvars.ContextVar("setting", default="default")

    class Looks(Countdown):
        def begin(self, run):
            self.seen = setting.get()

    job = Looks(1)
    token = setting.set("mine")
    Run(job).wait(SOON)
    setting.reset(token)
    assert job.seen == "mine"


def test_names_are_made_unique():
    names = [Run(Countdown(1), name="twin").name for _ in range(3)]
    assert names == ["twin", "twin-2", "twin-3"]
    assert Run(Countdown(1)).name.startswith("run")


def test_runs_are_found_again_and_old_ended_ones_are_let_go():
    going = Run(Countdown(ENDLESS))
    for _ in range(N_KEPT + 5):
        Run(Countdown(1)).wait(SOON)
    last = Run(Countdown(1))
    assert last_run() is last is runs()[-1]
    assert going in runs()
    assert len([r for r in runs() if r is not going]) == N_KEPT


def test_several_threads_may_wait_for_one_run():
    run, found = Run(Countdown(ENDLESS), paused=True), []
    waiting = [threading.Thread(target=lambda: found.append(run.wait(SOON))) for _ in range(4)]
    for thread in waiting:
        thread.start()
    run.stop()
    for thread in waiting:
        thread.join(SOON)
    assert found == [run.result] * 4


def test_waiting_until_a_state_gives_up_in_time():
    run = Run(Countdown(ENDLESS), paused=True)
    assert not run.wait_until("finished", timeout=0.0)


def test_waiting_for_a_state_that_there_is_not_is_refused():
    with pytest.raises(ArgumentError, match=r"never in such a state\ngiven: \['done'\]\nhint:  one of running, paused"):
        Run(Countdown(1)).wait_until("done")


class InterruptsMain(Countdown):
    """Counts on until somebody waits for the run, then does what the interrupt button does."""

    run, done = None, False

    def advance(self):
        import _thread

        if self.run is not None and self.run._watchers and not self.done:
            self.done = True
            _thread.interrupt_main()
        return super().advance()


def test_an_interrupt_of_wait_stops_the_run_after_a_step_and_comes_through():
    job = InterruptsMain(ENDLESS)
    job.run = run = Run(job)
    with pytest.raises(KeyboardInterrupt):
        run.wait(SOON)
    assert run.ended
    assert run.result.state == "stopped"
    assert run.result.n_steps == len(run.recording.positions(StepFinished))


def test_after_an_interrupt_a_second_run_works():
    test_an_interrupt_of_wait_stops_the_run_after_a_step_and_comes_through()
    assert Run(Countdown(2)).wait(SOON).state == "finished"


def test_a_process_ends_although_a_run_goes_on():
    code = (
        "import atexit; atexit.register(lambda: print(run.state))\n"  # in reverse order: after the lab
        "from lab.training import Countdown, Run\n"
        f"run = Run(Countdown({ENDLESS})); print(run.state)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=SOON, check=False, cwd=Path.cwd()
    )
    assert (done.stdout.split(), done.stderr, done.returncode) == (["running", "stopped"], "", 0)


def test_a_result_describes_itself():
    assert repr(Result("r", "stopped", 0)) == "Result 'r': stopped after 0 steps, 0.0 s"


class NoWorkers(Countdown):
    """A job that gets no workers."""

    def begin(self, run):
        given = "4 ranks wanted, 0 of 4 workers free, others held by run-3"
        raise MeshError("there are not enough workers", given=given, hint="launch with fewer ranks")


def test_a_run_that_got_no_workers_says_who_holds_them_and_what_helps():
    run = Run(NoWorkers(3))
    assert run.wait_until("failed", timeout=60)
    assert run.reason == (
        "there are not enough workers: 4 ranks wanted, 0 of 4 workers free, others held by run-3;"
        " launch with fewer ranks"
    )


def test_a_run_that_is_abandoned_keeps_to_itself_how_it_ended(capsys):
    job, abandoned = Countdown(5), threading.Event()
    job.advance = lambda: abandoned.wait(SOON) and 1 / 0
    run = Run(job)
    run.abandon()
    abandoned.set()
    assert run.join(SOON)
    assert run.state == "failed"
    assert "failed" not in capsys.readouterr().err
