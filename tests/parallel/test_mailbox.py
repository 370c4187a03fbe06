"""What the launch says to a rank arrives once, in order, while it runs, and whenever it was said."""

import threading

import numpy as np
import pytest

from lab.errors import ArgumentError, RankError, RunError
from lab.parallel.cluster.seats import REMEMBERED, Seats
from lab.parallel.ranks.mailbox import Mailbox
from lab.parallel.ranks.threads import run_ranks
from tests.parallel import programs


def test_messages_are_taken_once_in_their_order():
    box = Mailbox()
    assert box.take() == []
    for i in range(5):
        box.put(i)
    assert box.take() == [0, 1, 2, 3, 4]
    assert box.take() == []
    assert not box.wait(0.0)


def test_who_waits_is_woken_by_a_message():
    box, heard = Mailbox(), []
    thread = threading.Thread(target=lambda: heard.append((box.wait(60.0), box.take())))
    thread.start()
    box.put("now")
    thread.join()
    assert heard == [(True, ["now"])]


def test_ranks_that_are_threads_have_the_mailboxes_that_they_are_given():
    boxes = [Mailbox() for _ in range(3)]
    for rank, box in enumerate(boxes):
        box.put(rank * 10)
    assert run_ranks(lambda comm: comm.mailbox.take(), world_size=3, mailboxes=boxes) == [[0], [10], [20]]
    with pytest.raises(ArgumentError, match="each rank has one mailbox\ngiven: 3 for 2 ranks"):
        run_ranks(lambda comm: None, world_size=2, mailboxes=boxes)


def test_what_is_said_before_a_rank_has_its_seat_is_kept_and_after_its_end_it_is_not():
    import pickle

    seats = Seats()
    seats.say("a", pickle.dumps("early"))
    seat = seats.take("a", 0)
    seats.say("a", pickle.dumps("later"))
    assert seat.mailbox.take() == ["early", "later"]
    seats.leave("a")
    for run in ("a", *map(str, range(2 * REMEMBERED))):
        seats.say(run, pickle.dumps("late"))
    assert "a" not in seats._mail
    assert len(seats._mail) == REMEMBERED


@pytest.mark.slow
def test_messages_reach_the_rank_that_they_are_for_in_order_while_it_runs(cluster):
    running = cluster.start(programs.listens_until_told, timeout=60.0)
    for i in range(300):
        running.say(i, rank=i % 4)
    for rank in range(4):
        running.say({"stop": np.arange(3)}, rank)
    assert running.result() == [list(range(rank, 300, 4)) for rank in range(4)]


@pytest.mark.slow
def test_a_conversation_goes_on_while_the_program_runs(cluster, tmp_path):
    running = cluster.start(programs.echoes, str(tmp_path), world_size=2)
    for i in range(5):
        running.say(f"word-{i}", rank=1)
        while not (tmp_path / f"word-{i}").exists():
            assert running.state in {"waiting", "running"}
    running.say("end", rank=1)
    assert running.result() == [None, 6]


@pytest.mark.slow
def test_what_is_said_while_the_launch_waits_for_workers_is_kept(cluster, tmp_path):
    first = cluster.start(programs.waits_for_ever, str(tmp_path / "at"), world_size=4)
    while first.state == "waiting":
        pass
    second = cluster.start(programs.listens_until_told, world_size=2)
    while not second.waits_for:
        assert first.state == "running"
    for rank in range(2):
        second.say("early", rank)
        second.say({"stop": 0}, rank)
    first.stop()
    assert second.result() == [["early"]] * 2


@pytest.mark.slow
def test_who_speaks_to_nobody_is_told(cluster):
    running = cluster.start(programs.where, world_size=2)
    with pytest.raises(ArgumentError, match="there is no such rank\ngiven: rank=2 of 2"):
        running.say("hello", rank=2)
    with pytest.raises(ArgumentError, match="there is no such rank"):
        running.say("hello", rank=-1)
    with pytest.raises(ArgumentError, match="the message cannot be sent\ngiven: TypeError"):
        running.say(threading.Lock())
    with pytest.raises(ArgumentError, match=r"the message is too large\ngiven: 2\.0 MiB of at most 1"):
        running.say(bytes(2 << 20))
    running.result()
    with pytest.raises(RunError, match="the launch has ended, and nobody listens"):
        running.say("hello")


@pytest.mark.slow
def test_a_message_that_cannot_be_read_is_an_error_of_the_rank_that_takes_it(cluster):
    running = cluster.start(programs.listens_until_told, world_size=2)
    running.say(programs.CannotBeRead(), rank=1)
    with pytest.raises(RankError, match="unreadable") as caught:
        running.result()
    assert caught.value.rank == 1
