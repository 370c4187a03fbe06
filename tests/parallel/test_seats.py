"""Seats of ranks on a worker: late comers, alarms, and interrupts that hit the program and nothing else."""

import cProfile
import threading

import pytest

from lab.parallel.cluster.seats import REMEMBERED, Interrupted, Seat, Seats


def test_a_run_that_is_over_gives_no_seat_and_so_does_a_second_rank():
    seats = Seats()
    first = seats.take("a", 0)
    assert first is not None
    assert seats.take("a", 1) is None
    assert seats.ring("a", "stopped", "Stop")
    assert first.alarm.kind == "stopped"
    seats.leave("a")
    assert seats.take("a", 0) is None
    assert not seats.ring("b", "stopped", "before it began")
    assert seats.take("b", 0) is None


def test_memory_of_runs_is_bounded():
    seats = Seats()
    for run in range(2 * REMEMBERED):
        seats.ring(str(run), "stopped", "")
    assert len(seats._over) == REMEMBERED


def turn(n_calls=1000):
    for _ in range(n_calls):
        pass
    return "turned"


def test_a_program_that_was_not_interrupted_leaves_the_thread_fit_for_a_profiler():
    """Taking an interrupt back, even none, made a profiled call wait for ever in CPython 3.11."""
    said = []

    def rank():
        for _ in range(3):
            seat = Seat(0)
            seat.program_begins(threading.get_ident())
            said.append(cProfile.Profile().runcall(turn))
            seat.program_ends()
            seat.alarm.close()

    thread = threading.Thread(target=rank, daemon=True)
    thread.start()
    thread.join(30)
    assert said == ["turned"] * 3


def test_an_interrupt_ends_a_loop():
    seat = Seat(0)
    running, said = threading.Event(), []

    def rank():
        seat.program_begins(threading.get_ident())
        try:
            running.set()
            while True:
                pass
        except Interrupted:
            said.append("interrupted")
        finally:
            seat.program_ends()
        said.append(turn())

    thread = threading.Thread(target=rank)
    thread.start()
    running.wait()
    seat.interrupt()
    seat.interrupt()
    thread.join()
    assert said == ["interrupted", "turned"]
    seat.alarm.close()


@pytest.mark.parametrize("at_the_end", [True, False])
def test_an_interrupt_at_the_very_end_of_a_program_does_not_outlive_it(at_the_end):
    seat = Seat(0)
    seat.program_begins(threading.get_ident())
    try:
        if at_the_end:
            seat.interrupt()
    except Interrupted:
        pass
    finally:
        seat.program_ends()
    seat.interrupt()  # no program, no interrupt
    assert turn() == "turned"
    seat.alarm.close()
