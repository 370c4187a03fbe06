"""Exercise of lesson 09: what a step takes when one thread loads and preprocesses while another computes."""

from __future__ import annotations

from lab.teach.exercise import Check, Exercise, Mutant

STEP_MS = Exercise(
    name="step_ms",
    task="Return what a step takes in the long run, when one thread loads and preprocesses `depth` batches ahead.",
    stub='''\
def step_ms(load, preprocess, compute, depth):
    return load + preprocess + compute
''',
    arguments=("load", "preprocess", "compute", "depth"),
    results=("milliseconds",),
    answer=lambda a, b, c, depth: max(a + b, c) if depth else a + b + c,
    checks=(
        Check("nothing ahead", [(8, 4, 10, 0), (2, 1, 10, 0)]),
        Check("one batch ahead", [(8, 4, 10, 1), (2, 1, 10, 1)]),
        Check("more ahead", [(8, 4, 10, 2), (2, 1, 10, 4)]),
        Check("a stage that takes no time", [(0, 6, 5, 1), (3, 0, 5, 2), (3, 1, 0, 1)]),
    ),
    mutants=(
        Mutant("nothing runs beside anything, whatever the depth", lambda a, b, c, depth: a + b + c,
               "with a batch ahead, two threads work at once: for whom does the other wait?"),
        Mutant("each stage has a thread of its own", lambda a, b, c, depth: max(a, b, c) if depth else a + b + c,
               "loading and preprocessing are in one thread: they come one after the other"),
        Mutant("depth 0 is ahead, too", lambda a, b, c, depth: max(a + b, c),
               "at depth 0 there is no other thread: the loop does it all"),
        Mutant("the sum is divided by the threads", lambda a, b, c, depth: (a + b + c) / (2 if depth else 1),
               "the slower thread has more to do than half: the faster one waits for it"),
        Mutant("the sum is divided by depth + 1", lambda a, b, c, depth: (a + b + c) / (depth + 1),
               "depth is how many finished batches may wait, not how many threads there are"),
        Mutant("twice the depth is twice as fast", lambda a, b, c, depth: max(a + b, c) / depth if depth else a + b + c,
               "more batches may wait, but they are not made any sooner"),
        Mutant("only loading is done ahead", lambda a, b, c, depth: max(a, b + c) if depth else a + b + c,
               "preprocessing is in the other thread, too"),
        Mutant("depth 1 is taken for nothing ahead", lambda a, b, c, depth: max(a + b, c) if depth > 1 else a + b + c,
               "while the loop computes, the other thread makes one batch: that is enough for both to work"),
        Mutant("the faster thread decides", lambda a, b, c, depth: min(a + b, c) if depth else a + b + c,
               "who is done sooner waits: the slower one decides"),
        Mutant("loading ahead is thought to be free", lambda a, b, c, depth: c if depth else a + b + c,
               "what if loading takes longer than computing?"),
        Mutant("computing is thought to be free", lambda a, b, c, depth: a + b if depth else a + b + c,
               "what if computing takes longer than loading?"),
    ),
    hints=(
        "draw two lanes: one loads and preprocesses, one computes. Which is never idle?",
        "at depth 0 there is one lane, and the three follow one another",
        "max(load + preprocess, compute) if something is ahead",
    ),
)  # fmt: skip
