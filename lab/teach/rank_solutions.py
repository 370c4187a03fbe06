"""Solutions of the lessons of many ranks: plans, shards, micro-batches and schedules."""

from __future__ import annotations

ON_RANKS: dict[str, str] = {
    "my_first_plan": """\
def my_first_plan(rank, world_size, n_chunks):
    for peer in range(1, world_size):
        if rank == peer:
            yield Send(0, 0, n_chunks)
        if rank == 0:
            yield Recv(peer, 0, n_chunks, reduce=True)
    for peer in range(1, world_size):
        if rank == 0:
            yield Send(peer, 0, n_chunks)
        if rank == peer:
            yield Recv(0, 0, n_chunks, reduce=False)
""",
    "my_all_reduce": """\
def my_all_reduce(rank, world_size, n_chunks):
    right, left = (rank + 1) % world_size, (rank - 1) % world_size
    for step in range(world_size - 1):
        mine, theirs = (rank - step) % n_chunks, (rank - step - 1) % n_chunks
        yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce=True)
    for step in range(world_size - 1):
        mine, theirs = (rank + 1 - step) % n_chunks, (rank - step) % n_chunks
        yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce=False)
""",
    "shard": """\
def shard(n_examples, rank, world_size):
    size, rest = divmod(n_examples, world_size)
    start = rank * size + min(rank, rest)
    return start, start + size + (rank < rest)
""",
    "weighted_mean": """\
def weighted_mean(means, counts):
    return sum(mean * count for mean, count in zip(means, counts) if count) / sum(counts)
""",
    "fewest_parts": """\
def fewest_parts(n_examples, fixed, per_example, limit):
    room = (limit - fixed) // per_example
    return -(-n_examples // room)
""",
    "shares": """\
def shares(counts):
    return [count / sum(counts) for count in counts]
""",
    "bubble": """\
def bubble(n_ranks, n_micro):
    return (n_ranks - 1) / (n_micro + n_ranks - 1)
""",
    "my_schedule": """\
def my_schedule(rank, n_ranks, n_micro):
    warmup = min(n_ranks - rank - 1, n_micro)
    for m in range(warmup):
        yield Action("F", rank, m)
    for m in range(n_micro - warmup):
        yield Action("F", rank, warmup + m)
        yield Action("B", rank, m)
    for m in range(n_micro - warmup, n_micro):
        yield Action("B", rank, m)
""",
}
"""Source text, by the name of the exercise."""
