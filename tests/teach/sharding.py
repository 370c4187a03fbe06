"""What learners type in lesson 11: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

from lab.teach import EXERCISES
from tests.teach.generations import other


def shard(body: str) -> str:
    return f"def shard(n_examples, rank, world_size):\n    size, rest = divmod(n_examples, world_size)\n    {body}\n"


def mean(expression: str) -> str:
    return f"def weighted_mean(means, counts):\n    return {expression}\n"


WRONG = [
    ("shard", EXERCISES["shard"].stub, "the rest is left out"),
    ("shard", shard("return rank * size, n_examples if rank == world_size - 1 else rank * size + size"),
     "the last rank takes all of the rest"),
    ("shard", shard("size += rest > 0\n    return min(rank * size, n_examples), min((rank + 1) * size, n_examples)"),
     "sizes are rounded up"),
    ("shard", other("shard", (" + min(rank, rest)", "")), "do not begin later"),
    ("shard", other("shard", ("(rank < rest)", "(rank < rest) - 1")), "stop is the last example"),
    ("shard", other("shard", ("return start, start + ", "return start, ")), "number of examples is given"),
    ("shard", other("shard", ("start = rank", "rank -= 1\n    start = rank")), "counted from 1"),
    ("shard", shard("return 0, n_examples"), "takes the whole batch"),
    ("shard", shard("return rank * n_examples / world_size"), "no start and stop"),
    ("shard", shard("pass"), "no start and stop"),
    ("shard", shard("return size // rank, 0"), "ZeroDivisionError"),
    ("weighted_mean", EXERCISES["weighted_mean"].stub, "every rank counts alike"),
    ("weighted_mean", mean("sum(m for m, c in zip(means, counts) if c) / sum(c > 0 for c in counts)"),
     "every rank that has examples counts alike"),
    ("weighted_mean", mean("sum(m * c for m, c in zip(means, counts)) / sum(counts)"), "makes the whole no number"),
    ("weighted_mean", mean("sum(m * c for m, c in zip(means, counts) if c)"), "the sum is given"),
    ("weighted_mean", mean("sum(m * c for m, c in zip(means, counts) if c) / len(counts)"), "divided by the ranks"),
    ("weighted_mean", mean("means[np.argmax(counts)]"), "the largest shard decides"),
    ("weighted_mean", mean("sum(m / c for m, c in zip(means, counts) if c) / sum(c > 0 for c in counts)"),
     "a mean is divided by its number"),
    ("weighted_mean", mean("sum(m for m, c in zip(means, counts) if c) / sum(counts)"), "divided by all examples"),
    ("weighted_mean", mean("str(means)"), "is no number"),
    ("weighted_mean", mean("None"), "It returned nothing"),
    ("weighted_mean", mean("means / counts"), "unsupported operand"),
]  # fmt: skip
"""(exercise, what is typed, words that the feedback must have)"""

RIGHT = [
    ("shard", shard("return n_examples * rank // world_size, n_examples * (rank + 1) // world_size")),
    ("shard", shard("mine = np.array_split(np.arange(n_examples), world_size)\n"
                    "    ends = np.cumsum([0, *map(len, mine)])\n    return ends[rank], ends[rank + 1]")),
    ("weighted_mean", mean("float(np.nansum(np.array(means) * counts) / np.sum(counts))")),
]  # fmt: skip
"""(exercise, what is typed)"""
