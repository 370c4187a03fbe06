"""The door: members get in, strangers do not, and it is closed when all are in."""

import contextlib
import socket
import threading

import pytest

from lab.errors import LabError, LostRankError, MeshError
from lab.parallel.transport import door as doors
from lab.parallel.transport import listen
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.door import ANSWER, NONCE, Doorkeeper
from lab.parallel.transport.listen import Listener
from tests.parallel.strangers import (
    SECRET,
    garbage,
    http,
    huge_length,
    one_byte,
    other_generation,
    other_rank_wanted,
    replay,
    silence,
    visit,
    wrong_secret,
)


class Meeting:
    """Ranks that meet in threads; `meshes` has what each got, an exception too."""

    def __init__(self, world_size, transport, *, timeout=20.0, secrets_of=None, absent=()):
        self.alarm = Alarm()
        self.world_size, self.timeout = world_size, timeout
        self.secrets_of = secrets_of or {}
        self.listeners = [Listener(transport) for _ in range(world_size)]
        self.addresses = {rank: listener.address for rank, listener in enumerate(self.listeners)}
        self.keepers = [Doorkeeper(r, world_size, self.secrets_of.get(r, SECRET), 1) for r in range(world_size)]
        self.meshes = [None] * world_size
        self.threads = [threading.Thread(target=self._go, args=(r,)) for r in range(world_size) if r not in absent]

    def _go(self, rank):
        try:
            self.meshes[rank] = self.keepers[rank].gather(
                self.listeners[rank], self.addresses, self.alarm, self.timeout
            )
        except LabError as error:
            self.meshes[rank] = error
            self.alarm.ring("raised", f"rank {rank} raised", rank=rank)

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def join(self):
        for thread in self.threads:
            thread.join()
        return self.meshes

    def __exit__(self, *_):
        self.join()
        self.alarm.close()
        for mesh in self.meshes:
            if isinstance(mesh, dict):
                for sock in mesh.values():
                    sock.close()
        for listener in self.listeners:
            listener.close()


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize("world_size", [1, 2, 3, 8])
def test_all_peers_meet_and_then_nobody_can_knock(transport, world_size):
    with Meeting(world_size, transport) as meeting:
        meshes = meeting.join()
        assert [sorted(mesh) for mesh in meshes] == [
            [peer for peer in range(world_size) if peer != rank] for rank in range(world_size)
        ]
        for rank, mesh in enumerate(meshes):
            for peer, sock in mesh.items():
                sock.setblocking(True)
                sock.sendall(bytes([rank, peer]))
        for rank, mesh in enumerate(meshes):
            assert all(sock.recv(2) == bytes([peer, rank]) for peer, sock in mesh.items())
        for address in meeting.addresses.values():
            with pytest.raises(ConnectionRefusedError), visit(address) as sock:
                sock.recv(1)  # a TCP socket learns it here


@pytest.mark.parametrize("transport", ["unix", "tcp"])
@pytest.mark.parametrize(
    "stranger",
    [silence, one_byte, garbage, http, huge_length, wrong_secret, replay, other_generation, other_rank_wanted],
)
def test_a_stranger_in_the_door_is_sent_away_and_the_peers_meet(stranger, transport, monkeypatch):
    monkeypatch.setattr(doors, "PATIENCE", 0.05)
    with Meeting(2, transport, absent=(0,)) as meeting:  # rank 1 waits at its door, and only a stranger comes
        sock = visit(meeting.addresses[1])
        with contextlib.suppress(ConnectionError):
            stranger(sock)
        with contextlib.suppress(ConnectionError):
            while sock.recv(1000):  # the nonce, then the end: it is sent away while the door is still open
                pass
        sock.close()
        assert meeting.meshes == [None, None]
        late = threading.Thread(target=meeting._go, args=(0,))
        late.start()
        late.join()
        assert [sorted(mesh) for mesh in meeting.join()] == [[1], [0]]
        assert meeting.keepers[1].strangers == 1


def test_five_hundred_silent_strangers_are_no_burden():
    with Meeting(2, "tcp", absent=(0,)) as meeting, contextlib.ExitStack() as crowd:
        for _ in range(500):
            crowd.enter_context(visit(meeting.addresses[1]))
        late = threading.Thread(target=meeting._go, args=(0,))
        late.start()
        late.join()
        assert [sorted(mesh) for mesh in meeting.join()] == [[1], [0]]
        assert meeting.keepers[1].strangers > 0  # more came than may stand in the door


def test_whom_a_rank_calls_must_prove_itself_too():
    with Listener("tcp") as impostor, Listener("tcp") as mine:
        answers = []

        def pretend():
            impostor.socket.setblocking(True)
            sock, _ = impostor.socket.accept()
            sock.sendall(bytes(NONCE))
            while len(b"".join(answers)) < ANSWER:
                answers.append(sock.recv(ANSWER))
            sock.sendall(bytes(32))
            sock.close()

        thread = threading.Thread(target=pretend)
        thread.start()
        alarm = Alarm()
        with pytest.raises(MeshError, match="rank 1 did not prove that it belongs to this run"):
            Doorkeeper(0, 2, SECRET, 1).gather(mine, {0: mine.address, 1: impostor.address}, alarm, 20)
        thread.join()
        alarm.close()
        assert SECRET not in b"".join(answers)


def test_a_peer_with_another_secret_does_not_get_in():
    with Meeting(2, "unix", secrets_of={1: b"t" * 32}) as meeting:
        first, second = meeting.join()
        assert isinstance(first, MeshError)
        assert isinstance(second, MeshError)


def test_a_peer_that_does_not_come_is_named():
    with Meeting(3, "unix", absent=(2,), timeout=0.1) as meeting:
        assert any(isinstance(mesh, LostRankError) and mesh.rank == 2 for mesh in meeting.join())


def test_the_alarm_ends_a_meeting():
    with Meeting(2, "unix", absent=(0,)) as meeting:
        meeting.alarm.ring("lost", "rank 0 was lost", rank=0)
        _, error = meeting.join()
        assert str(error).startswith("rank 0 was lost")


def test_a_secret_is_in_no_text():
    assert "ssss" not in repr(Doorkeeper(0, 2, SECRET, 1))


@pytest.mark.parametrize("depth", [1, 60])
def test_without_abstract_names_the_path_is_short_and_gone_afterwards(depth, monkeypatch, tmp_path):
    folder = tmp_path.joinpath(*["deep"] * depth)
    folder.mkdir(parents=True)
    monkeypatch.setattr(listen, "ABSTRACT", False)
    monkeypatch.setattr(listen.tempfile, "gettempdir", lambda: str(folder))
    with Listener("unix") as door:
        assert door.address.startswith("unix:/")
        assert len(door.address) < 108
        with visit(door.address) as sock:
            assert sock.family == socket.AF_UNIX
        path = listen.Path(door.address.removeprefix("unix:"))
        assert path.exists()
        assert path.parent.stat().st_mode & 0o77 == 0
    assert not path.parent.exists()


def test_without_any_folder_for_a_socket_it_is_tcp(monkeypatch):
    monkeypatch.setattr(listen, "ABSTRACT", False)
    monkeypatch.setattr(listen.os, "access", lambda *_: False)
    with Listener("unix") as door:
        assert door.address.startswith("tcp:127.0.0.1:")


def test_a_door_listens_on_this_machine_alone():
    with Listener("tcp") as door:
        assert door.socket.getsockname()[0] == "127.0.0.1"


@pytest.mark.parametrize("transport", ["unix", "tcp"])
def test_a_rank_that_was_stopped_while_it_stood_in_the_door_calls_again(transport, monkeypatch):
    monkeypatch.setattr(doors, "PATIENCE", 0.1)
    sent_away, answer = threading.Event(), Doorkeeper._answer

    def answers_late(keeper, visitor):
        assert sent_away.wait(20)
        answer(keeper, visitor)

    monkeypatch.setattr(Doorkeeper, "_answer", answers_late)
    meeting = Meeting(2, transport)
    meeting.keepers[1].on_stranger = lambda reason: sent_away.set()
    with meeting:
        assert [sorted(mesh) for mesh in meeting.join()] == [[1], [0]]
    assert meeting.keepers[1].strangers == 1
