"""Two processes with one region: one waits in a collective to which the other never comes, until its alarm rings.

Prints how long the one took from the ring to the error, each time.
"""

import os
import socket
import sys
import threading
import time

import numpy as np

from lab.errors import LostRankError
from lab.kernels.mover import mover
from lab.parallel.ranks.runtime import Comm
from lab.parallel.transport.alarm import Alarm
from lab.parallel.transport.handing import share
from lab.parallel.transport.sockets import Links


def met(rank, sock):
    """A Comm of two whose ranks have met in shared memory."""
    sock.setblocking(False)
    sockets, alarm = {1 - rank: sock}, Alarm()
    region, why = share(rank, sockets, alarm, 20.0)
    assert region is not None, why
    return Comm(rank, 2, Links(rank, sockets, alarm, generation=1, timeout=60.0, shared=region))


def ring_once_it_waits(comm, rung):
    alarm = comm.links.alarm
    while not comm.links.waits_for():
        alarm.wait(0.001)
    rung.append(time.monotonic())
    alarm.ring("lost", "rank 1 was killed", rank=1)


def seconds_to_the_error(size):
    """From the ring on, in the rank that waits; the other has sent nothing and lives."""
    ours, theirs = socket.socketpair()
    end, hold = os.pipe()
    if (pid := os.fork()) == 0:
        os.close(hold)
        ours.close()
        comm = met(1, theirs)
        comm.all_reduce_(np.ones(size))
        os.read(end, 1)
        os._exit(0)
    os.close(end)
    theirs.close()
    comm, rung = met(0, ours), []
    comm.all_reduce_(np.ones(size))
    ringer = threading.Thread(target=ring_once_it_waits, args=(comm, rung))
    ringer.start()
    try:
        comm.all_reduce_(np.ones(size))
    except LostRankError:
        ended = time.monotonic()
    ringer.join()
    os.close(hold)
    os.waitpid(pid, 0)
    comm.links.close()
    return ended - rung[0]


def main():
    mover()
    for size in [int(word) for word in sys.argv[1:]]:
        print(seconds_to_the_error(size))


if __name__ == "__main__":
    main()
