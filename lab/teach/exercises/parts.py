"""Exercises of lesson 12: into how many micro-batches a batch is cut for its memory, and what each of them weighs."""

from __future__ import annotations

from collections.abc import Sequence

from lab.teach.exercise import Check, Exercise, Mutant


def _fewest(n: int, fixed: int, per_example: int, limit: int) -> int:
    return -(-n // ((limit - fixed) // per_example))


FEWEST_PARTS = Exercise(
    name="fewest_parts",
    task="Return the smallest number of micro-batches, cut as evenly as can be, that the limit allows.",
    stub='''\
def fewest_parts(n_examples, fixed, per_example, limit):
    return 1
''',
    arguments=("n_examples", "fixed", "per_example", "limit"),
    results=("number of micro-batches",),
    answer=_fewest,
    checks=(
        Check("room for the whole batch", [(64, 10, 1, 100), (64, 36, 1, 100)]),
        Check("micro-batches that fill the room", [(256, 0, 1, 64), (256, 20, 2, 148), (100, 90, 1, 100)]),
        Check("room that does not divide the batch", [(256, 0, 1, 100), (250, 30, 3, 125), (10, 0, 1, 4)]),
        Check("room for one example", [(7, 5, 3, 8), (7, 5, 3, 10)]),
    ),
    mutants=(
        Mutant("the batch is never cut", lambda n, f, e, m: 1, "how much does the whole batch take?"),
        Mutant("what is there anyway takes no room", lambda n, f, e, m: -(-n // (m // e)),
               "the limit is for everything: what is left of it for examples?"),
        Mutant("what is left over needs no micro-batch", lambda n, f, e, m: max(1, n // ((m - f) // e)),
               "10 examples, room for 4: two micro-batches take 8 of them"),
        Mutant("one micro-batch is added in any case", lambda n, f, e, m: n // ((m - f) // e) + 1,
               "256 examples, room for 64: four micro-batches take all of them"),
        Mutant("the size of a micro-batch is given, not their number", lambda n, f, e, m: min(n, (m - f) // e),
               "that is how many examples fit: how many times must it be done?"),
        Mutant("what is there anyway is cut, too", lambda n, f, e, m: -(-(f + n * e) // m),
               "parameters and gradients are there in every micro-batch"),
        Mutant("every micro-batch has one example", lambda n, f, e, m: n,
               "that fits, but more may: each micro-batch costs time"),
        Mutant("room for a part of an example is used", lambda n, f, e, m: -(-n * e // (m - f)),
               "room for 1.7 examples holds one: round down there, and up at the end"),
    ),
    hints=(
        "what does the limit leave for examples, when all else has its place?",
        "room = (limit - fixed) // per_example is how many examples fit",
        "n_examples / room, rounded up: -(-n_examples // room)",
    ),
)  # fmt: skip


def _shares(counts: Sequence[int]) -> list[float]:
    return [count / sum(counts) for count in counts]


SHARES = Exercise(
    name="shares",
    task="Return what the mean loss of each micro-batch is multiplied by, so that their sum is the mean of all tokens.",
    stub='''\
def shares(counts):
    return [1 / len(counts) for _ in counts]
''',
    arguments=("counts",),
    results=("list of shares",),
    answer=_shares,
    checks=(
        Check("micro-batches with equally many tokens", [([8, 8],), ([5, 5, 5, 5],)]),
        Check("micro-batches with unequally many", [([6, 2],), ([40, 1, 23, 16],)]),
        Check("one micro-batch alone", [([7],)]),
        Check("a micro-batch of padding alone", [([6, 0, 2],)]),
    ),
    mutants=(
        Mutant("every micro-batch counts alike", lambda c: [1 / len(c) for _ in c],
               "a token of a short micro-batch shall not weigh more than one of a long one"),
        Mutant("every micro-batch that has tokens counts alike",
               lambda c: [(k > 0) / sum(k > 0 for k in c) for k in c],
               "a token of a short micro-batch shall not weigh more than one of a long one"),
        Mutant("nothing is divided", lambda c: [1.0 for _ in c],
               "with 4 micro-batches the gradient would be 4 times as large"),
        Mutant("the number of tokens is given, not their share", lambda c: [float(k) for k in c],
               "that makes a sum over all tokens: which number makes it their mean?"),
        Mutant("it is divided by the micro-batches, not by all tokens", lambda c: [k / len(c) for k in c],
               "a mean over tokens is divided by the number of tokens"),
        Mutant("it is divided by the tokens of the largest", lambda c: [k / max(c) for k in c],
               "all shares together are 1"),
        Mutant("few tokens weigh much", lambda c: [1 / k / sum(1 / j for j in c if j) if k else 0.0 for k in c],
               "whose mean stands for more tokens?"),
        Mutant("the sum of a micro-batch is taken for its mean", lambda c: [1 / sum(c) for _ in c],
               "the loss of a micro-batch is divided by its own tokens already"),
    ),
    hints=(
        "from a mean and a number of tokens, which sum can you tell?",
        "mean * count is the sum of a micro-batch; all sums are divided by all tokens",
        "the share of a micro-batch is count / sum(counts)",
    ),
)  # fmt: skip
