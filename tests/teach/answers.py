"""What learners type: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

import textwrap
from typing import Any

import numpy as np

from lab.parallel import Action, Recv, Send
from lab.teach import SOLUTIONS


def typed(source: str, name: str) -> Any:
    """A function as if typed into a notebook: its module is __main__, and its globals are the notebook's."""
    scope: dict[str, Any] = {"__name__": "__main__", "np": np, "Send": Send, "Recv": Recv, "Action": Action}
    exec(compile(textwrap.dedent(source), "<cell>", "exec"), scope)
    return scope[name]


def multiply(body: str) -> str:
    return f"def multiply_rule(ct, x, y):\n    {body}\n"


def loop(*body: str, rounds: str = "range(n_steps)", before: str = "") -> str:
    inner = "".join(f"        {line}\n" for line in body)
    first = f"    {before}\n" if before else ""
    return f"def training_loop(loss, optimizer, n_steps):\n{first}    for _ in {rounds}:\n{inner}"


def first_plan(body: str) -> str:
    return f"def my_first_plan(rank, world_size, n_chunks):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def plan(body: str) -> str:
    return f"def my_all_reduce(rank, world_size, n_chunks):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def ring(
    first: str = "world_size - 1", second: str = "world_size - 1", mine: str = "rank - step",
    theirs: str = "rank - step - 1", then: str = "rank + 1 - step", thence: str = "rank - step", adds: str = "True",
    stores: str = "False", right: str = "(rank + 1) % world_size", left: str = "(rank - 1) % world_size",
) -> str:  # fmt: skip
    """The ring as the lesson leads to it, with one expression typed otherwise."""
    halves = [(first, mine, theirs, adds), (second, then, thence, stores)]
    lines = [f"right, left = {right}, {left}"]
    for rounds, send, recv, reduce in halves:
        lines.append(f"for step in range({rounds}):")
        lines.append(f"    mine, theirs = ({send}) % n_chunks, ({recv}) % n_chunks")
        lines.append(f"    yield Send(right, mine, mine + 1), Recv(left, theirs, theirs + 1, reduce={reduce})")
    return plan("\n".join(lines))


def order(body: str) -> str:
    return f"def my_schedule(rank, n_ranks, n_micro):\n{textwrap.indent(textwrap.dedent(body).strip(), '    ')}\n"


def one_f_one_b(warmup: str = "min(n_ranks - rank - 1, n_micro)", cool: str = "n_micro - warmup",
                pair: str = '"F", rank, warmup + m', back: str = '"B", rank, m') -> str:  # fmt: skip
    """1F1B as the lesson leads to it, with one expression typed otherwise."""
    return order(f"""
        warmup = {warmup}
        for m in range(warmup):
            yield Action("F", rank, m)
        for m in range(n_micro - warmup):
            yield Action({pair})
            yield Action({back})
        for m in range({cool}, n_micro):
            yield Action("B", rank, m)
    """)


def share(body: str) -> str:
    return f"def bubble(n_ranks, n_micro):\n    {body}\n"


ZERO, BACK, STEP = "optimizer.zero_grad()", "loss().backward()", "optimizer.step()"

WRONG = [
    ("multiply_rule", multiply("return ct * x, ct * y"), "swapped"),
    ("multiply_rule", multiply("return y, x"), "ct is left out"),
    ("multiply_rule", multiply("return ct, ct"), "rule is that of addition"),
    ("multiply_rule", multiply("return ct + y, ct + x"), "added where it has to be multiplied"),
    ("multiply_rule", multiply("return ct * x * y, ct * x * y"), "the product itself"),
    ("multiply_rule", multiply("return ct * y"), "only one gradient"),
    ("multiply_rule", multiply("return -(ct * y), -(ct * x)"), "the sign is turned"),
    ("multiply_rule", multiply("return ct / y, ct / x"), "divides"),
    ("multiply_rule", multiply("ct * y, ct * x"), "It returned nothing"),
    ("multiply_rule", multiply("return ct * z, ct * x"), "name 'z' is not defined"),
    ("multiply_rule", "def multiply_rule(ct, x):\n    return ct, ct\n", "takes 2 positional arguments"),
    ("multiply_rule", multiply("return 'ct * y', 'ct * x'"), "gradient of x is wrong"),
    ("multiply_rule", multiply("return ct * y, ct * x, 0"), "number of results is wrong"),
    ("multiply_rule", multiply("return ct * y, float(np.sum(ct * x))"), "shape of the gradient of y is wrong"),
    ("multiply_rule", multiply("yield ct * y\n    yield ct * x"), "It has `yield`: it must `return`."),
    ("training_loop", loop(BACK, STEP), "never cleared"),
    ("training_loop", loop(BACK, STEP, before=ZERO), "never cleared"),
    ("training_loop", loop(BACK, ZERO, STEP), "step finds no gradient"),
    ("training_loop", loop(ZERO, BACK), "weights never move"),
    ("training_loop", loop(STEP, ZERO, BACK), "step finds no gradient"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="range(1, n_steps)"), "one step too few"),
    ("training_loop", loop(ZERO, BACK, STEP, "return"), "stops after the first step"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="[0]"), "exactly one step"),
    ("training_loop", loop(ZERO, BACK, BACK, STEP), "counts twice"),
    ("training_loop", loop(ZERO, BACK, STEP, STEP), "counts twice"),
    ("training_loop", loop(ZERO, "value.backward()", STEP, before="value = loss()"), "one graph is used for all"),
    ("training_loop", loop(ZERO, BACK, STEP, rounds="range(n_steps + 1)"), "one step too many"),
    ("training_loop", loop(ZERO, "loss.backward()", STEP), "has no attribute 'backward'"),
    # --- lesson 10
    ("my_first_plan", first_plan("if rank: yield Send(0, 0, n_chunks)\nelse: yield tuple(Recv(p, 0, n_chunks, True)"
                                 " for p in range(1, world_size))"), "does not come back"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("reduce=True", "reduce=False"), "stored where it has to be"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("reduce=False", "reduce=True"), "added once more"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("range(1,", "range("), "sends to itself"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("world_size)", "world_size - 1)"), "left out"),
    ("my_first_plan", SOLUTIONS["my_first_plan"].replace("n_chunks)", "1)").replace("n_chunks,", "1,")
        .replace("world_size, 1)", "world_size, n_chunks)"), "never travels"),
    ("my_first_plan", first_plan("yield Send(rank + 1, 0, n_chunks)\nyield Recv(rank - 1, 0, n_chunks, True)"),
     "not there"),
    ("my_first_plan", first_plan("for p in range(1, world_size):\n    if rank == 0: yield Recv(p, 0, n_chunks, True)"),
     "one side of the hops"),
    ("my_first_plan", first_plan("for p in range(world_size):\n    if p != rank: yield Recv(p, 0, n_chunks, True)\n"
                                 "for p in range(world_size):\n    if p != rank: yield Send(p, 0, n_chunks)"),
     "waits before it sends"),
    ("my_first_plan", first_plan("return Send(0, 0, n_chunks)"), "a step is made of Send and Recv"),
    ("my_first_plan", first_plan("pass"), "gave no steps"),
    ("my_first_plan", first_plan("yield 0, n_chunks"), "a step is made of Send and Recv"),
    ("my_first_plan", first_plan("if rank: yield Send(0, 0, n_chunks + 1)"), "which do not exist"),
    ("my_first_plan", first_plan("while True: yield ()"), "does not come to an end"),
    ("my_first_plan", first_plan("yield Send(1 / rank, 0, n_chunks)"), "division by zero (on rank 0)"),
    ("my_all_reduce", ring(right="rank + 1", left="rank - 1"), "modulo world_size"),
    ("my_all_reduce", ring().replace(" % n_chunks", ""), "runs out of its range"),
    ("my_all_reduce", ring().replace("mine + 1", "(mine + 1) % n_chunks"), "runs out of its range"),
    ("my_all_reduce", ring(second="0"), "all-gather is missing"),
    ("my_all_reduce", ring(adds="False"), "stored where it has to be added"),
    ("my_all_reduce", ring(stores="True"), "added once more"),
    ("my_all_reduce", ring(theirs="rank - step", thence="rank + 1 - step"), "one off"),
    ("my_all_reduce", ring(thence="rank - step - 1"), "one off"),
    ("my_all_reduce", ring(left="(rank + 1) % world_size"), "wrong direction"),
    ("my_all_reduce", ring(first="world_size", then="rank - step", thence="rank - step - 1"), "one step too many"),
    ("my_all_reduce", ring(second="world_size"), "a chunk travels for nothing"),
    ("my_all_reduce", ring(second="world_size - 2"), "a step too early"),
    ("my_all_reduce", ring(first="world_size - 2", second="world_size - 2"), "a step too early"),
    ("my_all_reduce", ring(mine="rank", theirs="rank - 1"), "same chunk is sent in every step"),
    ("my_all_reduce", ring(then="rank - step", thence="rank - step - 1"), "begins with a chunk that is not finished"),
    ("my_all_reduce", SOLUTIONS["my_first_plan"].replace("my_first_plan", "my_all_reduce"), "through one rank"),
    ("my_all_reduce", plan("right, left = (rank + 1) % world_size, (rank - 1) % world_size\n"
                           "for step in range(world_size - 1):\n"
                           "    yield Send(right, 0, n_chunks), Recv(left, 0, n_chunks, True)"), "whole buffers"),
    ("my_all_reduce", ring().replace("), Recv", ")\n        yield Recv").replace("    yield Send", "    yield Send")
        .replace("yield Send(right, mine, mine + 1)\n        yield Recv(left, theirs, theirs + 1, reduce=True)",
                 "yield Recv(left, theirs, theirs + 1, reduce=True)\n        yield Send(right, mine, mine + 1)"),
     "waits before it sends"),
    ("my_all_reduce", ring().replace(", Recv(left, theirs, theirs + 1, reduce=True)", "")
        .replace(", Recv(left, theirs, theirs + 1, reduce=False)", ""), "one side of the hops"),
    ("my_all_reduce", ring(right="(rank + 1) / world_size"), "with a number that is not whole"),
    ("my_all_reduce", plan("if rank == 2: raise ValueError('no')\nyield ()"), "no (on rank 2)"),
    ("my_all_reduce", plan("while rank: pass\nyield ()"), "did not come to an end"),
    ("my_first_plan", first_plan("if rank == 0: yield Recv(1, 0, n_chunks)"), "reduce=True or reduce=False?"),
    ("my_first_plan", first_plan("yield Send(1, 0)"), "a Send does not say all: stop is missing"),
    ("my_all_reduce", plan("yield Send((rank + 1) % world_size, 0, 1)"),
     "not yet. On 4 ranks: rank 0, step 0: sent chunk 0 to rank 1, which never takes it."),
    # --- lesson 15
    ("bubble", share("return 'a lot'"), "the share of time is no number"),
    ("bubble", share("return n_ranks / n_micro"), "ranks over pieces"),
    ("bubble", share("return (n_ranks - 1) / n_micro"), "compared with the work"),
    ("bubble", share("return n_ranks / (n_micro + n_ranks)"), "one wait too many"),
    ("bubble", share("return (n_ranks - 1) / (n_micro + n_ranks)"), "a piece too long"),
    ("bubble", share("return n_micro / (n_micro + n_ranks - 1)"), "share of work"),
    ("bubble", share("return 100 * (n_ranks - 1) / (n_micro + n_ranks - 1)"), "percentage"),
    ("bubble", share("return (n_micro - 1) / (n_micro + n_ranks - 1)"), "changed places"),
    ("bubble", share("return 1 - 1 / n_ranks"), "naive pipeline"),
    ("bubble", share("return (n_ranks - 1) // (n_micro + n_ranks - 1)"), "share of time is wrong"),
    ("bubble", share("(n_ranks - 1) / (n_micro + n_ranks - 1)"), "It returned nothing"),
    ("bubble", share("return (n_ranks - 1) / (n_micro - n_ranks + 3)"), "share of time is wrong"),
    ("my_schedule", order("for m in range(n_micro): yield Action('F', rank, m)\n"
                          "for m in reversed(range(n_micro)): yield Action('B', rank, m)"), "GPipe"),
    ("my_schedule", order("for m in range(n_micro):\n    yield Action('F', rank, m)\n    yield Action('B', rank, m)"),
     "one micro-batch at a time"),
    ("my_schedule", order("for m in range(n_micro):\n    yield Action('B', rank, m)\n    yield Action('F', rank, m)"),
     "before its own forward"),
    ("my_schedule", one_f_one_b(pair='"B", rank, m', back='"F", rank, warmup + m'), "before its own forward"),
    ("my_schedule", one_f_one_b(warmup="min(n_ranks - rank, n_micro)"), "one too long"),
    ("my_schedule", one_f_one_b(warmup="min(max(n_ranks - rank - 2, 0), n_micro)"), "one too short"),
    ("my_schedule", one_f_one_b(warmup="min(rank, n_micro)"), "warm-up grows"),
    ("my_schedule", one_f_one_b(warmup="min(n_ranks - 1, n_micro)"), "warm up equally"),
    ("my_schedule", one_f_one_b(cool="n_micro"), "no cool-down"),
    ("my_schedule", one_f_one_b(cool="n_micro - warmup - 1"), "goes through twice"),
    ("my_schedule", one_f_one_b().replace("range(warmup)", "range(1, warmup)"), "left out"),
    ("my_schedule", one_f_one_b(pair='"F", 0, warmup + m', back='"B", 0, m'), "stage of another"),
    ("my_schedule", one_f_one_b().replace(", m)", ", m + 1)").replace("+ m)", "+ m + 1)"), "counted from 1"),
    ("my_schedule", one_f_one_b(warmup="0 if rank == 0 else n_micro"), "wait for each other"),
    ("my_schedule", order("for m in range(n_micro):\n    yield 'F', rank, m"), "a schedule is made of actions"),
    ("my_schedule", order("while True: yield Action('F', rank, 0)"), "does not come to an end"),
    ("my_schedule", one_f_one_b(warmup="n_ranks - rank - 1"), "no more micro-batches"),
]  # fmt: skip
"""(exercise, what is typed, words of the answer)"""

RECURSIVE = """
def training_loop(loss, optimizer, n_steps):
    if n_steps > 0:
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
        training_loop(loss, optimizer, n_steps - 1)
"""
DIRECT = """
def my_first_plan(rank, world_size, n_chunks):
    others = [peer for peer in range(world_size) if peer != rank]
    yield [Send(peer, 0, n_chunks) for peer in others] + [Recv(peer, 0, n_chunks, True) for peer in others]
"""
DOUBLING = """
def my_first_plan(rank, world_size, n_chunks):
    distance = 1
    while distance < world_size:
        yield Send(rank ^ distance, 0, n_chunks), Recv(rank ^ distance, 0, n_chunks, reduce=True)
        distance *= 2
"""
TREE = """
def my_first_plan(rank, world_size, n_chunks):
    distances = [d for d in (1, 2, 4, 8) if d < world_size]
    for up, order in ((True, distances), (False, distances[::-1])):
        for d in order:
            if rank % (2 * d) == d:
                yield Send(rank - d, 0, n_chunks) if up else Recv(rank - d, 0, n_chunks, reduce=False)
            elif rank % (2 * d) == 0:
                yield Recv(rank + d, 0, n_chunks, reduce=True) if up else Send(rank + d, 0, n_chunks)
"""
HALVING = """
def my_all_reduce(rank, world_size, n_chunks):
    start, stop, distance, ranges = 0, n_chunks, world_size // 2, []
    while distance:
        middle = (start + stop) // 2
        keep, give = ((start, middle), (middle, stop))[::-1 if rank & distance else 1]
        yield Send(rank ^ distance, *give), Recv(rank ^ distance, *keep, reduce=True)
        ranges.append((rank ^ distance, keep, give))
        (start, stop), distance = keep, distance // 2
    for peer, kept, given in reversed(ranges):
        yield Send(peer, *kept), Recv(peer, *given, reduce=False)
"""
BOTH_WAYS = """
def my_all_reduce(rank, world_size, n_chunks):
    steps = []
    for half in (0, 1):
        for step in range(world_size - 1):
            mine = (rank + step - half) % n_chunks
            theirs = (mine + 1) % n_chunks
            steps.append((Send((rank - 1) % world_size, mine, mine + 1),
                          Recv((rank + 1) % world_size, theirs, theirs + 1, half == 0)))
    return steps
"""
BY_NEED = """
def my_schedule(rank, n_ranks, n_micro, chunks_per_rank=1):
    most, done, order = n_ranks - rank, [0, 0], []
    while done[1] < n_micro:
        forward = done[0] < n_micro and done[0] - done[1] < most
        order.append(Action("F" if forward else "B", rank, done[not forward]))
        done[not forward] += 1
    return order
"""

RIGHT = [
    *SOLUTIONS.items(),
    ("training_loop", RECURSIVE),
    ("multiply_rule", multiply("return [y * ct, x * ct]")),
    ("multiply_rule", multiply("return np.stack([np.multiply(y, ct), np.multiply(x, ct)])")),
    ("multiply_rule", "def multiply_rule(ct, x, y):\n    other = lambda a: ct * a\n    return other(y), other(x)\n"),
    ("training_loop", loop(BACK, STEP, ZERO)),
    ("my_first_plan", DIRECT),
    ("my_first_plan", DOUBLING),
    ("my_first_plan", TREE),
    ("my_first_plan", SOLUTIONS["my_all_reduce"].replace("my_all_reduce", "my_first_plan")),
    ("my_all_reduce", HALVING),
    ("my_all_reduce", BOTH_WAYS),
    ("my_all_reduce", "from lab.parallel import COLLECTIVES\n" + plan("yield from COLLECTIVES['all_reduce', 'ring']"
                                                                     "(rank, world_size, n_chunks)")),
    ("my_schedule", BY_NEED),
    ("bubble", "from fractions import Fraction\n" + share("return Fraction(n_ranks - 1, n_micro + n_ranks - 1)")),
    ("bubble", "from decimal import Decimal\n" + share("return Decimal(n_ranks - 1) / (n_micro + n_ranks - 1)")),
    ("bubble", share("return np.float32((n_ranks - 1) / (n_micro + n_ranks - 1))")),
    ("bubble", "import lab\n" + share("return lab.tensor(n_ranks - 1.0) / (n_micro + n_ranks - 1)")),
    ("bubble", share("p, m = n_ranks, n_micro\n    return 1 - m / (m + p - 1)")),
]  # fmt: skip
"""(exercise, what is typed)"""
