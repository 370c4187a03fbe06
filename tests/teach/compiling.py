"""What learners type in lesson 08: wrong answers with the words that tell them, and right ones in several forms."""

from __future__ import annotations

import textwrap

from lab.teach import EXERCISES
from tests.teach.generations import other


def dead(body: str, last: str = "return replace(graph, equations=tuple(kept[::-1]))") -> str:
    """The pass over dead code with another loop."""
    inner = textwrap.indent(textwrap.dedent(body).strip(), "    ")
    return f"def dead_code(graph):\n    read, kept = set(graph.outputs), []\n{inner}\n    {last}\n"


def placed(test: str = "end < made", rest: str = "until[p:p + 1] = [last]", give: str = "chosen") -> str:
    """The places with another test for a free one."""
    return (f"def places(lives):\n    chosen, until = [], []\n    for made, last in lives:\n"
            f"        p = next((p for p, end in enumerate(until) if {test}), len(until))\n"
            f"        {rest}\n        chosen.append(p)\n    return {give}\n")  # fmt: skip


WALK = """
for e in reversed(graph.equations):
    if READ:
        kept.append(e)
        read.update(e.inputs)
"""
ANY = "any(v in read for v in e.outs)"
FORWARDS = WALK.replace("reversed(graph.equations)", "graph.equations").replace("READ", ANY)
NUMBERS = (
    "(e.op, str(e.params), tuple(getattr(a, 'value', a) if not hasattr(getattr(a, 'value', a), 'shape') else a"
    " for a in now.inputs))"
)

WRONG = [
    ("dead_code", EXERCISES["dead_code"].stub, "nothing is left out"),
    ("dead_code", dead(FORWARDS, "return replace(graph, equations=tuple(kept))"), "make what others read"),
    ("dead_code", dead(WALK.replace("READ", ANY), "return replace(graph, equations=tuple(kept))"), "order of the walk"),
    ("dead_code", dead(WALK.replace("READ", "e.outs[0] in read")), "only the first result"),
    ("dead_code", dead("read = set(graph.outputs[:1])\n" + WALK.replace("READ", ANY).strip()), "only the first output"),
    ("dead_code", dead("read = {graph.outputs[-1]}\n" + WALK.replace("READ", ANY).strip()), "only the last output"),
    ("dead_code", dead(WALK.replace("READ", ANY).replace("update(e.inputs)", "add(e.inputs[0])")), "first operands"),
    ("dead_code", dead("for e in graph.equations[::-1]:\n    if any(v in o.inputs for v in e.outs for o in"
                       " graph.equations) or any(v in read for v in e.outs):\n        kept.append(e)"),
     "what only dead equations read"),
    ("dead_code", dead(WALK.replace("READ", ANY), "return replace(graph, equations=tuple(kept[::-1]), inputs="
                       "tuple(v for v in graph.inputs if v in read))"), "inputs are left out"),
    ("dead_code", dead(WALK.replace("READ", ANY), "return kept[::-1]"), "gave no graph"),
    ("dead_code", dead(WALK.replace("READ", ANY), "replace(graph, equations=tuple(kept[::-1]))"), "gave no graph"),
    ("dead_code", dead("pass", "return replace(graph, equations=())"), "is not legal"),
    ("common", EXERCISES["common"].stub, "nothing is merged"),
    ("common", other("common", ("now.key()", "(e.op, now.inputs)")), "parameters are not compared"),
    ("common", other("common", ("now.key()", "e.op.name")), "something else"),
    ("common", other("common", ("now.key()", "now.inputs")), "something else"),
    ("common", other("common", ("now.key()", "(e.op, str(e.params))")), "operands are not compared"),
    ("common", other("common", ("now.key()", "(now.inputs, str(e.params))")), "ops are not compared"),
    ("common", other("common", ("now.key()", "e.key()")), "the names that they had before"),
    ("common", other("common", ("outputs=outputs", "outputs=graph.outputs")), "outputs keep the names"),
    ("common", other("common", ("kept.append(now)", "kept.append(e)")), "readers keep the names"),
    ("common", other("common", ("now.key()", "(e.op, frozenset(now.inputs), str(e.params))")), "the order of operands"),
    ("common", other("common", ("first[now.key()] = e.outs", "first = {now.key(): e.outs}")), "right before"),
    ("common", other("common", ("now.key()", NUMBERS)), "0 and -0"),
    ("common", other("common", ("return replace", "replace")), "gave no graph"),
    ("places", EXERCISES["places"].stub, "a place of its own"),
    ("places", "def places(lives):\n    return [7 + k for k, _ in enumerate(lives)]\n", "a place of its own"),
    ("places", "def places(lives):\n    return [0 for _ in lives]\n", "share one place"),
    ("places", "def places(lives):\n    return [i % 2 for i, _ in enumerate(lives)]\n", "take turns"),
    ("places", placed("end <= made"), "what it is made of"),
    ("places", placed("end + 1 < made"), "too late"),
    ("places", placed("end < made and p == len(until) - 1"), "newest place"),
    ("places", placed("end < made and p == 0"), "only the first place"),
    ("places", placed(rest="until += [last] * (p == len(until))"), "counts as free"),
    ("places", placed(give="len(until)"), "the number of places"),
    ("places", placed(give="None"), "no place for each value"),
    ("places", placed(give="chosen[1:]"), "no place for each value"),
    ("places", placed("end < last"), "is written over"),
]  # fmt: skip

BY_NUMBER = """
def dead_code(graph):
    makers = {v: e for e in graph.equations for v in e.outs}
    needed, todo = set(), list(graph.outputs)
    while todo:
        e = makers.get(todo.pop())
        if e is not None and e.outs not in needed:
            needed.add(e.outs)
            todo.extend(e.inputs)
    return replace(graph, equations=tuple(e for e in graph.equations if e.outs in needed))
"""

UNTIL_NOTHING_CHANGES = """
def dead_code(graph):
    while True:
        read = {a for e in graph.equations for a in e.inputs} | set(graph.outputs)
        kept = tuple(e for e in graph.equations if read & set(e.outs))
        if len(kept) == len(graph.equations):
            return graph
        graph = replace(graph, equations=kept)
"""

BY_THE_LAB = """
def common(graph):
    from lab.graph.passes import sharing
    return sharing.sharing(graph)
"""

BY_TEXT = """
def common(graph):
    known, names, kept = {}, {}, []
    for e in graph.equations:
        e = replace(e, inputs=tuple(names.get(a, a) for a in e.inputs))
        same = known.setdefault(str(e).partition("=")[2], e)
        names.update({old: new for old, new in zip(e.outs, same.outs) if same is not e})
        kept += [e] * (same is e)
    return replace(graph, equations=tuple(kept), outputs=tuple(names.get(a, a) for a in graph.outputs))
"""

BY_HEAP = """
def places(lives):
    import heapq
    busy, free, n, found = [], [], 0, []
    for made, last in lives:
        while busy and busy[0][0] < made:
            free.append(heapq.heappop(busy)[1])
        place = free.pop() if free else n
        n += place == n
        heapq.heappush(busy, (last, place))
        found.append(place)
    return np.array(found)
"""

RIGHT = [
    ("dead_code", BY_NUMBER),
    ("dead_code", UNTIL_NOTHING_CHANGES),
    ("common", BY_THE_LAB),
    ("common", BY_TEXT),
    ("places", BY_HEAP),
]
