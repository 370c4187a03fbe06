"""What a learner may give by mistake where the paper wants a plan, a schedule, a table, a size or a time: three lines.

A right call is spoilt in one argument at a time by values of every kind. It may pass, where the value serves as well,
and else an error of the lab says which argument it was, in three lines; nothing of Python's own comes out.
"""

import math

import numpy as np
import pytest

from lab.errors import LabError, PlanError, ScheduleError
from lab.parallel import (
    COLLECTIVES,
    SCHEDULES,
    Action,
    DataParallel,
    Link,
    Network,
    Paced,
    Pipeline,
    Recv,
    Send,
    block,
    check_plan,
    check_schedule,
    chunks_of,
    collective,
    compile_plan,
    elements,
    format_table,
    hierarchical,
    parse_table,
    plan_of,
    run_local,
    run_ranks,
    schedule,
    simulate_arrays,
    table_of,
)
from lab.parallel.paper.plans import steps_of

RING = COLLECTIVES["all_reduce", "ring"]
REPORT = check_plan("all_reduce", "ring", 2)


class Sour:
    """Neither hashable nor printable."""

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no")


class SourPlan(Sour):
    def __call__(self, rank, world_size, n_chunks):
        return ()


WRONG = [
    None, -1, 0, 10**30, 2.5, math.nan, math.inf, -math.inf, True, False, "x", "", "a\nb", b"x", [], [[]], [1], (), {},
    {1}, 3j, print, int, lambda: 0, np.int64(-1), np.int8(2), np.float32(1), np.float64("nan"), np.True_, np.array(2),
    np.eye(3), Sour(), SourPlan(), (step for step in ()), [[("F", 0, 0)]], [[Action("F", 0.0, 0)]],
    [[Action([], 0, 0)]],
]  # fmt: skip
CALLS = {
    check_plan: (("all_reduce", RING, 2), {"n_chunks": 2, "reference": "ring"}),
    plan_of: (("all_reduce", "ring"), {}),
    compile_plan: ((RING, 0, 2), {"n_chunks": 2, "root": 0}),
    steps_of: ((RING, 0, 2, 2), {}),
    chunks_of: ((RING, 2), {}),
    hierarchical: ((2,), {}),
    Link: ((1e-6, 1e9), {}),
    Network: ((Link(1e-6, 1e9),), {"n_cores": 2, "reduce_bytes_per_s": 1e9}),
    block: ((0, 2, 2), {}),
    elements: ((0, 1, 2, 10), {}),
    simulate_arrays: ((RING, [np.ones(2), np.ones(2)]), {"n_chunks": 2}),
    REPORT.bytes_sent: ((10, 8), {}),
    REPORT.bytes_by_link: ((10, 8), {}),
    check_schedule: (("gpipe", 2, 2), {"chunks_per_rank": 1, "forward": 1.0, "backward": 2.0}),
    table_of: (("gpipe", 2, 2), {"chunks_per_rank": 1}),
    format_table: ((table_of("gpipe", 2, 2),), {}),
    parse_table: (("F0 B0",), {}),
    Paced: ((20, 40), {}),
    run_ranks: ((), {"program": lambda comm: 1, "world_size": 2, "timeout": 60, "mailboxes": None}),
    run_local: (("all_reduce", "ring", [np.ones(2), np.ones(2)]), {"root": 0}),
    DataParallel: ((), {"algorithm": "ring", "world_size": 2, "told": "steps", "timeout": 60, "wait": 30,
                        "transport": "auto", "cluster": None}),
    Pipeline: ((), {"schedule": "1f1b", "n_stages": 2, "n_micro": 4, "paced": None, "timeout": 60, "wait": 30,
                    "transport": "auto", "cluster": None}),
    Pipeline().check: ((2,), {}),
}  # fmt: skip
FOR_NONE = """a plan is a name or a generator function
given: plan=None
hint:  'direct', 'double_tree', 'doubling', 'halving', 'hierarchical', 'naive', 'ring', 'tree'; your own: def plan"""
SPOILT = [
    pytest.param(function, at, id=f"{function.__qualname__}-{at}")
    for function, (given, named) in CALLS.items()
    for at in (*range(len(given)), *named)
]


def spoilt(function, at, value):
    given, named = CALLS[function]
    if isinstance(at, int):
        return (*given[:at], value, *given[at + 1 :]), named
    return given, named | {at: value}


@pytest.mark.parametrize(("function", "at"), SPOILT)
def test_a_wrong_argument_passes_or_is_refused_in_three_lines(function, at):
    n_refused = 0
    for value in WRONG:
        given, named = spoilt(function, at, value)
        try:
            function(*given, **named)
        except LabError as why:
            n_refused += 1
            lines = str(why).splitlines()
            assert [line[:6] for line in lines[1:]] == ["given:", "hint: "], lines
            assert max(map(len, lines)) < 300, lines
    assert n_refused > 10


@pytest.mark.parametrize(("enter", "given"), [(collective, ("all_reduce",)), (schedule, ())])
@pytest.mark.parametrize("name", [None, "", 3, [], True, Sour()])
def test_nothing_is_entered_by_what_is_no_name(enter, given, name):
    with pytest.raises(LabError, match="entered by"):
        enter(*given, name)


@pytest.mark.parametrize("wrong", [None, 3, "ring", [], iter(())])
def test_nothing_is_entered_that_is_no_function(wrong):
    before = dict(COLLECTIVES), dict(SCHEDULES)
    with pytest.raises(PlanError, match="a plan is a name or a generator function"):
        collective("all_reduce", "mine")(wrong)
    with pytest.raises(ScheduleError, match="a schedule is a name, a generator function or a table"):
        schedule("mine")(wrong)
    assert before == (COLLECTIVES, SCHEDULES)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda: check_plan([], "ring", 2),
            "there is no such operation\ngiven: operation=[]\nhint:  one of all_reduce",
        ),
        (lambda: check_plan("all_reduce", None, 2), FOR_NONE),
        (
            lambda: check_plan("all_reduce", RING(0, 2, 2), 2),
            "a plan is a name or a generator function\ngiven: plan=<gen",
        ),
        (
            lambda: check_plan("all_reduce", "rign", 2),
            "there is no plan 'rign' for 'all_reduce'\ngiven: known: direct, dou",
        ),
        (
            lambda: check_plan("all_reduce", "ring", 0),
            "world_size is a whole number of at least 1\ngiven: world_size=0\n",
        ),
        (
            lambda: check_plan("all_reduce", "ring", 2, 0),
            "n_chunks is a whole number of at least 1\ngiven: n_chunks=0\n",
        ),
        (
            lambda: check_plan("all_reduce", "ring", 2, 10**9),
            "a buffer of so many chunks takes too much memory to prove",
        ),
        (
            lambda: check_plan("all_reduce", "ring", 2, reference=3),
            "a plan is a name or a generator function\ngiven: plan=3",
        ),
        (lambda: check_plan("all_reduce", SourPlan(), 2), "a plan that is no function has to be hashable"),
        (
            lambda: compile_plan("ring", 0, 2),
            "a plan is a name or a generator function\ngiven: plan='ring'\nhint:  plan_of(",
        ),
        (lambda: simulate_arrays(RING, []), "each rank brings an array of its own\ngiven: arrays=[]"),
        (lambda: simulate_arrays(RING, [[1.0], [2.0]]), "all ranks must bring NumPy arrays\ngiven: rank 0: [1.0]"),
        (lambda: simulate_arrays(RING, [np.array(["a"])] * 2), "ranks add numbers\ngiven: dtype <U1"),
        (
            lambda: check_schedule("gpipe", 2, 2, forward="x"),
            "forward is a number\ngiven: forward='x'\nhint:  in any unit",
        ),
        (
            lambda: check_schedule("gpipe", 2, 2, forward=-1),
            "the time of a forward is above 0 and at most 1e+12\ngiven: forw",
        ),
        (lambda: check_schedule("gpipe", 2, 2, backward=0), "the time of a backward is above 0 and at most 1e+12\n"),
        (
            lambda: check_schedule("1f1", 2, 2),
            "there is no such schedule\ngiven: '1f1'\nhint:  did you mean '1f1b'? One of",
        ),
        (
            lambda: check_schedule(None, 2, 2),
            "a schedule is a name, a generator function or a table\ngiven: schedule=None",
        ),
        (lambda: check_schedule([1, 2], 2, 2), "a table has a row of actions for each rank\ngiven: 1 for rank 0"),
        (lambda: check_schedule([["F0"]], 1, 1), "a schedule is made of actions\ngiven: rank 0 yields 'F0'"),
        (
            lambda: check_schedule([[Action("F", 0.0, 0)]], 1, 1),
            "rank 0, action 0: stage and micro-batch are whole num",
        ),
        (lambda: parse_table(3), "a table is read from text\ngiven: text=3\nhint:  parse_table("),
        (lambda: run_local("all_reduce", "ring", []), "each rank brings an array of its own\ngiven: arrays=[]"),
        (lambda: run_ranks(print, world_size=0), "world_size is a whole number of at least 1\ngiven: world_size=0"),
        (lambda: run_ranks(print, world_size=10**9), "so many ranks cannot meet in one process\ngiven: world_size=1"),
        (lambda: run_ranks(print, world_size=2, timeout=0), "a time-out is a positive number of seconds\ngiven: timeo"),
        (lambda: block(0, 0, 2), "world_size is a whole number of at least 1\ngiven: world_size=0"),
        (lambda: block(0.5, 2, 2), "owner is a whole number\ngiven: owner=0.5"),
        (lambda: elements(0, 1, 0, 4), "n_chunks is a whole number of at least 1\ngiven: n_chunks=0"),
        (lambda: REPORT.bytes_sent(2.5, 8), "n_elements is a whole number of at least 0\ngiven: n_elements=2.5"),
        (
            lambda: DataParallel(transport="udp"),
            "there is no such transport\ngiven: transport='udp'\nhint:  one of auto, shared, unix, tcp",
        ),
        (lambda: Pipeline(timeout=True), "timeout is a number\ngiven: timeout=True"),
    ],
)
def test_a_mistake_is_told_by_its_name(wrong, said):
    with pytest.raises(LabError) as caught:
        wrong()
    assert str(caught.value).startswith(said)


def test_numbers_of_numpy_are_numbers_and_become_pythons():
    report = check_plan("all_reduce", "ring", np.int64(2), np.int8(4))
    assert (type(report.world_size), type(report.n_chunks)) == (int, int)
    report = check_schedule([[Action("F", np.int64(0), np.int64(0)), Action("B", 0, 0)]], np.int64(1), np.int32(1))
    assert repr(report.order[0][0]) == "Action(kind='F', stage=0, micro=0)"


def falls(rank, n_ranks, n_third):
    yield ()
    if rank == 1:
        yield [][rank]


def listed(rank, n_ranks, n_third):
    return [()] * (1 // (1 - rank))


def deep(rank, n_ranks, n_third):
    yield from falls(rank, n_ranks, n_third)


class Quiet(Exception):  # noqa: N818 -- a learner's
    def __str__(self):
        raise RuntimeError("no text")


def quiet(rank, n_ranks, n_third):
    raise Quiet


def in_the_lab(rank, n_ranks, n_third):
    yield Send(*block(rank, 0, n_third), 1)


@pytest.mark.parametrize(
    ("plan", "where", "line"),
    [
        (falls, "IndexError on rank 1 of 3 ranks, step 1: list index out of range", "yield [][rank]"),
        (deep, "IndexError on rank 1 of 3 ranks, step 1: list index out of range", "yield [][rank]"),
        (
            listed,
            "ZeroDivisionError on rank 1 of 3 ranks: integer division or modulo by zero",
            "return [()] * (1 // (1 - rank))",
        ),
        (quiet, "Quiet on rank 0 of 3 ranks", "raise Quiet"),
        (
            in_the_lab,
            "PlanError on rank 0 of 3 ranks, step 0: world_size is a whole number of at least 1",
            "yield Send(*block",
        ),
    ],
)
@pytest.mark.parametrize(
    "ask",
    [
        lambda plan: check_plan("all_reduce", plan, 3),
        lambda plan: DataParallel(world_size=3, algorithm=plan).job(None),
        lambda plan: simulate_arrays(plan, [np.ones(3)] * 3),
    ],
)
def test_a_plan_that_raises_is_told_with_rank_step_and_its_own_line(ask, plan, where, line):
    with pytest.raises(PlanError) as caught:
        ask(plan)
    problem, given, hint = str(caught.value).splitlines()
    assert problem == f"plan {plan.__name__!r} raised {where}"
    assert given.startswith("given: test_hostile_paper.py:")
    assert line in given
    assert hint.startswith(f"hint:  list({plan.__name__}(")
    assert type(caught.value.__cause__).__name__ == where.split()[0]
    assert caught.value.rank == int(where.split(" on rank ")[1][0])


def actions_then_falls(rank, n_ranks, n_micro):
    yield Action("F", rank, 0)
    if rank == 1:
        yield Action("B", rank, {}[rank])


@pytest.mark.parametrize(
    "ask",
    [
        lambda order: check_schedule(order, 2, 4),
        lambda order: table_of(order, 2, 4),
        lambda order: Pipeline(schedule=order, n_micro=4).check(2),
    ],
)
def test_a_schedule_that_raises_is_told_with_rank_action_and_its_own_line(ask):
    with pytest.raises(ScheduleError) as caught:
        ask(actions_then_falls)
    line = actions_then_falls.__code__.co_firstlineno + 3
    assert str(caught.value).splitlines() == [
        "schedule 'actions_then_falls' raised KeyError on rank 1 of 2 ranks, action 1: 1",
        f'given: test_hostile_paper.py:{line}: yield Action("B", rank, {{}}[rank])',
        "hint:  list(actions_then_falls(1, 2, 4)) in a cell raises it alone, for %debug",
    ]
    assert isinstance(caught.value.__cause__, KeyError)


def test_a_recv_that_lacks_a_word_is_told_with_plan_rank_and_line():
    def mine(rank, world_size, n_chunks):
        yield (Recv(1, 0, 1),)

    with pytest.raises(PlanError) as caught:
        check_plan("all_reduce", mine, 2)
    line = mine.__code__.co_firstlineno + 1
    where = f"test_hostile_paper.py:{line}: yield (Recv(1, 0, 1),)"
    assert caught.value.given == f"plan 'mine' on rank 0 of 2 ranks, {where}"
