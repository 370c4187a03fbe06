"""Whoever knocks at the door of a rank without being one: what they say, and nothing that they could know."""

import secrets

from lab.parallel.transport.door import NONCE, WHO, proof
from lab.parallel.transport.listen import reach

SECRET = b"s" * 32


def visit(address):
    """A stranger's blocking connection."""
    sock = reach(address)
    sock.setblocking(True)
    sock.settimeout(20)
    return sock


def silence(sock):
    return


def one_byte(sock):
    sock.sendall(b"x")


def garbage(sock):
    sock.sendall(secrets.token_bytes(1000))


def http(sock):
    sock.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: y\r\n" * 20 + b"\r\n")


def huge_length(sock):
    sock.sendall((2**63).to_bytes(8, "little") * 20)


def wrong_secret(sock):
    theirs, ours, who = sock.recv(NONCE), bytes(NONCE), WHO.pack(0, 1)
    sock.sendall(ours + who + proof(b"x" * 32, b"c", theirs + ours, who, 1))


def replay(sock):
    """A whole answer that was right for another nonce."""
    who = WHO.pack(0, 1)
    sock.sendall(bytes(NONCE) + who + proof(SECRET, b"c", bytes(2 * NONCE), who, 1))


def other_generation(sock):
    theirs, ours, who = sock.recv(NONCE), bytes(NONCE), WHO.pack(0, 1)
    sock.sendall(ours + who + proof(SECRET, b"c", theirs + ours, who, 2))


def other_rank_wanted(sock):
    theirs, ours, who = sock.recv(NONCE), bytes(NONCE), WHO.pack(0, 2)
    sock.sendall(ours + who + proof(SECRET, b"c", theirs + ours, who, 1))
