"""Where the cluster uses TLS, what ranks send each other over TCP does too; others are kept out."""

import os
import signal
import socket
import ssl
import sys
import threading
from contextlib import ExitStack

import numpy as np
import pytest
import trustme
from distributed import Client, Security

from lab.errors import LostRankError, MeshError
from lab.events import CollectiveStarted, record
from lab.parallel.cluster.cluster import Cluster
from lab.parallel.transport.tunnel import Contexts, Secured, secured
from tests.parallel import programs
from tests.parallel.processes import Program


def contexts(authority, trusted=None):
    found = []
    for purpose in (ssl.Purpose.SERVER_AUTH, ssl.Purpose.CLIENT_AUTH):
        context = ssl.create_default_context(purpose)
        context.check_hostname, context.verify_mode = False, ssl.CERT_REQUIRED
        (trusted or authority).configure_trust(context)
        authority.issue_cert("rank.test").configure_cert(context)
        found.append(context)
    return Contexts(*found)


def connected():
    with socket.create_server(("127.0.0.1", 0)) as door:
        caller = socket.create_connection(door.getsockname())
        return caller, door.accept()[0]


def both(work, *arguments):
    """What `work` gives, or raises, for each of the arguments, in threads side by side."""
    found = [None] * len(arguments)

    def run(i):
        try:
            found[i] = work(*arguments[i])
        except Exception as error:  # noqa: BLE001 -- it is looked at
            found[i] = error

    threads = [threading.Thread(target=run, args=(i,)) for i in range(len(arguments))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    return found


def tunnel(ours, theirs):
    caller, called = connected()
    return both(lambda sock, how, answers: secured(sock, 1 - answers, how, answers=answers, timeout=10),
                (caller, ours, False), (called, theirs, True))  # fmt: skip


def exchanged(sock, data):
    """Send all of it while as much is received."""
    sock.setblocking(True)
    sock.settimeout(30)
    sender = threading.Thread(target=sock.sendall, args=(data,))
    sender.start()
    got = bytearray()
    while len(got) < len(data):
        got += sock.recv(1 << 20)
    sender.join(30)
    return bytes(got)


def test_what_goes_in_on_one_side_comes_out_on_the_other_both_ways_at_once_and_a_hang_up_too():
    how = contexts(trustme.CA())
    a, b = tunnel(how, how)
    assert isinstance(a, Secured)
    data = [np.random.default_rng(i).bytes(5_000_003) for i in range(2)]
    assert both(exchanged, (a, data[0]), (b, data[1])) == data[::-1]
    a.sendall(b"the last words")
    a.close()
    assert b.recv(100) == b"the last words"
    assert b.recv(100) == b""
    b.close()


def test_nothing_of_it_can_be_read_on_the_wire():
    how, word = contexts(trustme.CA()), b"a gradient that is nobody's business" * 100
    (caller, near), (far, called), seen = connected(), connected(), bytearray()

    def listening(source, target):
        while got := source.recv(1 << 16):
            seen.extend(got)
            target.sendall(got)

    for pair in ((near, far), (far, near)):
        threading.Thread(target=listening, args=pair, daemon=True).start()
    a, b = both(lambda sock, answers: secured(sock, 0, how, answers=answers, timeout=10),
                (caller, False), (called, True))  # fmt: skip
    assert both(exchanged, (a, word), (b, word)) == [word, word]
    assert len(seen) > 2 * len(word)
    assert word[:36] not in seen
    for sock in (a, b, near, far):
        sock.close()


def test_who_has_another_authority_is_refused():
    ours, theirs = trustme.CA(), trustme.CA()
    found = tunnel(contexts(ours), contexts(theirs, trusted=ours))
    assert isinstance(found[0], MeshError)
    assert "cannot be made secure" in found[0].problem
    assert "CERTIFICATE_VERIFY_FAILED" in found[0].given
    for end in found:
        if isinstance(end, Secured):
            assert end.recv(1) == b""  # the other has gone
            end.close()


def test_silence_instead_of_a_handshake_is_told():
    caller, called = connected()
    with pytest.raises(MeshError, match="the connection to rank 3 cannot be made secure"):
        secured(caller, 3, contexts(trustme.CA()), answers=False, timeout=0.2)
    called.close()


@pytest.mark.slow
def test_ranks_of_a_cluster_with_tls_meet_over_tls_and_a_killed_one_is_named(tmp_path):
    authority = trustme.CA()
    leaf = authority.issue_cert("rank.test", "127.0.0.1")
    paths = [tmp_path / name for name in ("ca.pem", "cert.pem", "key.pem")]
    for path, text in zip(paths, (authority.cert_pem, leaf.cert_chain_pems[0], leaf.private_key_pem), strict=True):
        text.write_to_path(path)
    ca, cert, key = map(str, paths)
    options = ("--tls-ca-file", ca, "--tls-cert", cert, "--tls-key", key, "--host", "127.0.0.1", "--no-dashboard")
    trust = Security(require_encryption=True, tls_ca_file=ca, tls_client_cert=cert, tls_client_key=key)
    with ExitStack() as stack:
        start = (sys.executable, "-m", "dask")
        scheduler = stack.enter_context(Program(*start, "scheduler", "--protocol", "tls", "--port", "0", *options))
        address = scheduler.until(r"Scheduler at:\s+(tls://\S+)")[1]
        for _ in range(3):
            worker = Program(*start, "worker", address, "--nthreads", "1", "--protocol", "tls", *options)
            stack.enter_context(worker).until(r"Registered to:")
        client = stack.enter_context(Client(address, security=trust))
        cluster = stack.enter_context(Cluster(client=client))
        want = sum(programs.data(rank, (100_003,), "f4") for rank in range(3))
        for transport, told in (("tcp", "tls"), ("unix", "unix")):
            with record() as rec:
                for got in cluster.launch(programs.reduces, (100_003,), "f4", "naive", transport=transport):
                    np.testing.assert_array_equal(got, want)
            assert {e.transport for e in rec if isinstance(e, CollectiveStarted)} == {told}
        with pytest.raises(LostRankError, match="rank 1 was lost"):
            cluster.launch(lambda comm: os.kill(os.getpid(), signal.SIGKILL) if comm.rank == 1 else comm.barrier(),
                           transport="tcp")  # fmt: skip
