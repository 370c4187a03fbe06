"""Strangers at the door of a rank that is at work on a real worker: sent away, counted, and no sum is touched."""

import contextlib
import select
import threading
from pathlib import Path

import pytest

from lab.events import RankFinished, StrangerRefused, record
from tests.parallel import programs, strangers

pytestmark = pytest.mark.slow

SUMS = [1003 * sum(4 * loop + 6 for loop in range(20))] * 4
KINDS = [
    strangers.silence, strangers.one_byte, strangers.garbage, strangers.http, strangers.huge_length,
    strangers.wrong_secret, strangers.replay,
]  # fmt: skip


def hold_the_door(folder):
    """On a worker: ranks tell where their doors are, rank 0 comes when it is told, and its proof is overheard."""
    from lab.parallel.cluster import rank
    from lab.parallel.transport import door

    class Slow(door.Doorkeeper):
        def gather(self, listener, addresses, alarm, timeout):
            Path(folder, f"new-{self.rank}").write_text(listener.address)
            Path(folder, f"new-{self.rank}").rename(Path(folder, f"door-{self.rank}"))
            while self.rank == 0 and not Path(folder, "go").exists():
                alarm.wait(0.01)
                alarm.check()
            return super().gather(listener, addresses, alarm, timeout)

        def _say(self, visitor, words):
            if len(words) == door.ANSWER:
                Path(folder, "handshake").write_bytes(words)
            super()._say(visitor, words)

    rank.Doorkeeper = Slow


def let_go_of_the_door():
    from lab.parallel.cluster import rank
    from lab.parallel.transport import door

    rank.Doorkeeper = door.Doorkeeper


@pytest.fixture
def doors(cluster, tmp_path):
    cluster.client.run(hold_the_door, str(tmp_path))
    yield tmp_path
    cluster.client.run(let_go_of_the_door)


def until_sent_away(sock):
    with contextlib.suppress(ConnectionError):
        while sock.recv(1000):
            pass
    sock.close()


def knock(address, stranger):
    sock = strangers.visit(address)
    with contextlib.suppress(ConnectionError):
        stranger(sock)
    until_sent_away(sock)


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_strangers_of_every_kind_are_counted_and_the_sums_are_right(cluster, doors, transport):
    (doors / "go").touch()
    cluster.launch(programs.where, transport=transport)  # an older run, overheard
    old = (doors / "handshake").read_bytes()
    for path in doors.iterdir():
        path.unlink()
    knocks = [*KINDS, lambda sock: sock.sendall(old)]
    with record(kinds=[StrangerRefused, RankFinished]) as rec:
        running = cluster.start(programs.adds_again_and_again, 20, transport=transport, world_size=4)
        while len(list(doors.glob("door-*"))) < 4:
            assert not running.wait(0.01)
        # Rank 3 waits for ranks 0 to 2; rank 1 waits for rank 0 alone.
        addresses = [(doors / f"door-{rank}").read_text() for rank in (1, 3)]
        visits = [threading.Thread(target=knock, args=(where, kind)) for where in addresses for kind in knocks]
        for visit in visits:
            visit.start()
        for visit in visits:
            visit.join()
        (doors / "go").touch()
        assert running.result() == SUMS
    refused = [event for event in rec if isinstance(event, StrangerRefused)]
    assert sorted(event.rank for event in refused) == [1] * len(knocks) + [3] * len(knocks)
    assert {event.reason for event in refused} == {"proved nothing for 2 s", "gave a wrong proof"}
    assert [event.state for event in rec if isinstance(event, RankFinished)] == ["finished"] * 4


def test_five_hundred_silent_strangers_are_all_sent_away_and_the_sums_are_right(cluster, doors):
    with record(kinds=[StrangerRefused]) as rec, contextlib.ExitStack() as crowd:
        running = cluster.start(programs.adds_again_and_again, 20, transport="tcp", world_size=4)
        while len(list(doors.glob("door-*"))) < 4:
            assert not running.wait(0.01)
        address = (doors / "door-1").read_text()
        socks = []
        for _ in range(500):
            socks.append(crowd.enter_context(strangers.visit(address)))
            select.select([], socks[-1:], [], 20)  # it is in
        for sock in socks:
            until_sent_away(sock)
        (doors / "go").touch()
        assert running.result() == SUMS
    reasons = [event.reason for event in rec]
    assert len(reasons) == 500
    assert set(reasons) == {"stood in the door with too many others", "proved nothing for 2 s"}


def test_when_all_are_in_the_door_is_closed_for_good(cluster, doors):
    (doors / "go").touch()
    running = cluster.start(programs.waits_for_ever, str(doors / "at"), transport="tcp", timeout=1000)
    while len(list(doors.glob("at-*"))) < 4:
        assert not running.wait(0.01)
    for rank in range(4):
        with pytest.raises(ConnectionRefusedError), strangers.visit((doors / f"door-{rank}").read_text()) as sock:
            sock.recv(1)
    running.stop()
    assert running.wait(20)
