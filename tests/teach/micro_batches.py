"""What learners type in lesson 12: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

from lab.teach import EXERCISES


def parts(expression: str) -> str:
    return f"def fewest_parts(n_examples, fixed, per_example, limit):\n    return {expression}\n"


def shares(expression: str) -> str:
    return f"def shares(counts):\n    return {expression}\n"


WRONG = [
    ("fewest_parts", EXERCISES["fewest_parts"].stub, "the batch is never cut"),
    ("fewest_parts", parts("-(-n_examples // (limit // per_example))"), "takes no room"),
    ("fewest_parts", parts("max(1, n_examples // ((limit - fixed) // per_example))"), "needs no micro-batch"),
    ("fewest_parts", parts("n_examples // ((limit - fixed) // per_example) + 1"), "added in any case"),
    ("fewest_parts", parts("min(n_examples, (limit - fixed) // per_example)"), "the size of a micro-batch is given"),
    ("fewest_parts", parts("int(np.ceil((fixed + n_examples * per_example) / limit))"), "is cut, too"),
    ("fewest_parts", parts("n_examples"), "every micro-batch has one example"),
    ("fewest_parts", parts("int(np.ceil(n_examples * per_example / (limit - fixed)))"), "part of an example"),
    ("fewest_parts", parts("n_examples / ((limit - fixed) // per_example)"), "number of micro-batches is wrong"),
    ("fewest_parts", parts("None"), "It returned nothing"),
    ("fewest_parts", parts("limit // 0"), "ZeroDivisionError"),
    ("shares", EXERCISES["shares"].stub, "every micro-batch counts alike"),
    ("shares", shares("[(c > 0) / sum(k > 0 for k in counts) for c in counts]"), "that has tokens counts alike"),
    ("shares", shares("[1.0] * len(counts)"), "nothing is divided"),
    ("shares", shares("list(map(float, counts))"), "not their share"),
    ("shares", shares("[c / len(counts) for c in counts]"), "not by all tokens"),
    ("shares", shares("[c / max(counts) for c in counts]"), "the tokens of the largest"),
    ("shares", shares("[1 / c / sum(1 / k for k in counts if k) if c else 0.0 for c in counts]"),
     "few tokens weigh much"),
    ("shares", shares("[1 / sum(counts) for _ in counts]"), "taken for its mean"),
    ("shares", shares("[c / sum(counts) for c in counts if c]"), "list of shares"),
    ("shares", shares("counts / sum(counts)"), "unsupported operand"),
    ("shares", shares("None"), "It returned nothing"),
]  # fmt: skip
"""(exercise, what is typed, words that the feedback must have)"""

RIGHT = [
    ("fewest_parts", parts("int(np.ceil(n_examples / ((limit - fixed) // per_example)))")),
    ("fewest_parts", parts("next(n for n in range(1, n_examples + 1)\n"
                           "                if fixed + per_example * -(-n_examples // n) <= limit)")),
    ("shares", shares("(np.array(counts) / np.sum(counts)).tolist()")),
    ("shares", shares("np.array(counts) / np.sum(counts)")),
]  # fmt: skip
"""(exercise, what is typed)"""
