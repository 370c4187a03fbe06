"""What learners type in lesson 09: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

import textwrap

from lab.teach import EXERCISES, SOLUTIONS
from tests.teach.generations import other


def path(expression: str, before: str = "") -> str:
    """An answer on top of the chains to all equations."""
    chains = SOLUTIONS["critical_path"].rpartition("    return ")[0]
    return f"{chains}{textwrap.indent(before, '    ')}    return {expression}\n"


def step(expression: str) -> str:
    return f"def step_ms(a, b, c, depth):\n    return {expression}\n"


def schedule(*changes: tuple[str, str]) -> str:
    return other("list_schedule", *changes)


LAST = "return [places[k] for k in range(len(needs))]"
CHECKED = "done.issuperset(needs[k])"
EACH = "for k in range(len(needs)) if k"
TAKEN = "places[k] = thread, now"

RECURSIVE = """
def critical_path(needs, costs):
    @functools.cache
    def to(k):
        cost, chain = max((to(j) for j in needs[k]), default=(0, ()))
        return cost + costs[k], (*chain, k)
    return max(map(to, range(len(needs))))[1]
"""
BACKWARD = """
def critical_path(needs, costs):
    left, then = list(costs), {}
    for k in reversed(range(len(needs))):
        for j in needs[k]:
            if costs[j] + left[k] > left[j]:
                left[j], then[j] = costs[j] + left[k], k
    path = [max(range(len(needs)), key=left.__getitem__)]
    while path[-1] in then:
        path.append(then[path[-1]])
    return np.array(path)
"""
BY_EVENTS = """
def list_schedule(needs, costs, priority, n_threads):
    missing = [len(waits) for waits in needs]
    ready = [(-priority[k], k) for k in range(len(needs)) if not needs[k]]
    heapq.heapify(ready)
    free, running, places, now = list(range(n_threads)), [], [None] * len(needs), 0
    while ready or running:
        while ready and free:
            k, thread = heapq.heappop(ready)[1], free.pop()
            places[k] = (thread, now)
            heapq.heappush(running, (now + costs[k], k, thread))
        now, k, thread = heapq.heappop(running)
        free.append(thread)
        ended = [k]
        while running and running[0][0] == now:
            _, k, thread = heapq.heappop(running)
            free.append(thread)
            ended.append(k)
        for f in range(len(needs)):
            before, missing[f] = missing[f], missing[f] - sum(k in needs[f] for k in ended)
            if before and not missing[f]:
                heapq.heappush(ready, (-priority[f], f))
    return places
"""

WRONG = [
    ("critical_path", EXERCISES["critical_path"].stub, "all equations are taken"),
    ("critical_path", path("max(map(cost, chains))"), "its cost is given"),
    ("critical_path", path("max(chains, key=cost)[::-1]"), "from its end to its beginning"),
    ("critical_path", path("[k + 1 for k in max(chains, key=cost)]"), "counted from 1"),
    ("critical_path", other("critical_path", ("sum(costs[k] for k in chain)", "len(chain)")), "the most equations"),
    ("critical_path", path("[costs.index(max(costs))]"), "only the dearest equation"),
    ("critical_path", path("chains[-1]"), "always ends with the last equation"),
    ("critical_path", path("max(chains, key=cost)[:-1]"), "the last equation of the path is missing"),
    ("critical_path", path("max(chains, key=cost)[1:]"), "the first equation of the path is missing"),
    ("critical_path", path("[len(needs)]"), "there is no equation 4"),
    ("critical_path", path("[0, 3]"), "3 does not wait for 0"),
    ("critical_path", path("'0, 1, 3'"), "no list of equations"),
    ("critical_path", path("[]"), "there is a longer chain"),
    ("critical_path", path("None"), "no list of equations"),
    ("list_schedule", EXERCISES["list_schedule"].stub, "one thread does it all"),
    ("list_schedule", schedule((TAKEN, "places[k] = now, thread")), "changed places"),
    ("list_schedule", schedule((TAKEN, "places[k] = thread + 1, now")), "counted from 1"),
    ("list_schedule", schedule((TAKEN, "places[k] = thread, now + costs[k]")), "the end is given"),
    ("list_schedule", schedule((TAKEN, "places[k] = 0, now")), "a thread is taken that is still busy"),
    ("list_schedule", schedule((f" and {CHECKED}", "")), "nothing is waited for"),
    ("list_schedule", schedule((CHECKED, "done.issuperset(needs[k][:1])")), "waits for one of them only"),
    ("list_schedule", schedule((CHECKED, "(not needs[k] or done & {*needs[k]})")), "waits for one of them only"),
    ("list_schedule", schedule((CHECKED, "(not needs[k] or needs[k][-1] in done)")), "waits for one of them only"),
    ("list_schedule", schedule((EACH, "for k in [len(places)] if k")), "holds up the others"),
    ("list_schedule", schedule((LAST, "return places")), "no schedule"),
    ("list_schedule", schedule((LAST, "return list(places.values())[:-1]")), "no schedule"),
    ("list_schedule", schedule((LAST, "return [[*places[k], k] for k in places]")), "no schedule"),
    ("list_schedule", schedule(("free = [0] * n_threads", "free = [0] * (n_threads + 1)")), "a thread from 0 to"),
    ("list_schedule", schedule((TAKEN, "places[k] = thread, now - 1")), "0 or later"),
    ("list_schedule", schedule(("free[thread] = ends[k] =", "ends[k] =")), "end"),
    ("step_ms", EXERCISES["step_ms"].stub, "nothing runs beside anything"),
    ("step_ms", step("max(a, b, c) if depth else a + b + c"), "a thread of its own"),
    ("step_ms", step("max(a + b, c)"), "depth 0 is ahead, too"),
    ("step_ms", step("(a + b + c) / (depth + 1)"), "divided by depth + 1"),
    ("step_ms", step("(a + b + c) / (1 + (depth > 0))"), "divided by the threads"),
    ("step_ms", step("max(a + b, c) / depth if depth else a + b + c"), "twice as fast"),
    ("step_ms", step("max(a, b + c) if depth else a + b + c"), "only loading"),
    ("step_ms", step("max(a + b, c) if depth > 1 else a + b + c"), "depth 1 is taken"),
    ("step_ms", step("min(a + b, c) if depth else a + b + c"), "the faster thread"),
    ("step_ms", step("c if depth else a + b + c"), "loading ahead is thought to be free"),
    ("step_ms", step("a + b + c * (depth == 0)"), "computing is thought to be free"),
    ("step_ms", step("str(a)"), "is no number"),
    ("step_ms", step("c / depth"), "ZeroDivisionError"),
]  # fmt: skip
"""(exercise, what is typed, words that the feedback must have)"""

RIGHT = [
    ("critical_path", "import functools\n" + RECURSIVE),
    ("critical_path", BACKWARD),
    ("list_schedule", "import heapq\n" + BY_EVENTS),
    ("list_schedule", schedule(("max(ready, key=lambda k: priority[k])", "ready[0]"))),
    ("list_schedule", schedule(("max(ready, key=lambda k: priority[k])", "min(ready, key=lambda k: priority[k])"))),
    ("list_schedule", schedule((LAST, "return np.array([places[k] for k in range(len(needs))])"))),
    ("step_ms", step("max(a + b, c) + (depth == 0) * min(a + b, c)")),
    ("step_ms", step("(a + b + c, max(a + b, c))[depth > 0]")),
]
"""(exercise, what is typed)"""
