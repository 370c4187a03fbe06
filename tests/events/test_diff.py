"""The first difference of two runs: found at the right operation, rank and line; nothing found where there is none."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import lab
from lab.errors import ArgumentError, RecordingError
from lab.events import (
    Bus,
    Event,
    OpRecorded,
    Origin,
    Recording,
    RuleApplied,
    RunStateChanged,
    StepFinished,
    ValueSeen,
    bus,
    compare,
    event,
    fields_of,
    first_difference,
)
from lab.events.alike import MACHINE_FIELDS, MACHINE_KINDS, RUN_FIELDS
from lab.events.bus import Batch, Row
from lab.nn import mlp
from lab.optim import Adam

HERE = Path(__file__).name


SCALE = np.arange(4.0)


def product(weight=3.0, scale=SCALE, function=lab.tanh, detail="value", **options):
    """A small graph and its backward walk."""
    x, w = lab.tensor(scale, requires_grad=True, name="x"), lab.tensor(weight, name="w")
    with lab.record(detail=detail, **options) as rec:
        y = x * w
        z = function(y)
        lab.sum(z).backward()
    return rec


def trained(seed=0, rate=1e-3, epochs=1, detail="statistics", shuffle=0, **options):
    """A real training of the digits, all of its operations recorded."""
    rec = Recording(run="*", detail=detail, **options)
    train, test = lab.data.digits()
    small = lab.data.Dataset(train.inputs[:200], train.targets[:200])
    model = mlp(64, 8, 10, rng=seed)
    bus.attach(rec)
    try:
        optimizer = Adam(model.parameters(), rate)
        lab.fit(model, small, validation=test, optimizer=optimizer, epochs=epochs, batch_size=50, rng=shuffle).wait()
    finally:
        rec.close()
    return rec


def recorded(events: Iterable[tuple[int, Event]], **options) -> Recording:
    """A recording of these events, each of a rank."""
    own, rec = Bus(), Recording(run="*", **options)
    own.attach(rec)
    own.detach(rec)
    rows = [
        Row(type(e), k, Origin(rank), tuple(getattr(e, f) for f in fields_of(type(e))))
        for k, (rank, e) in enumerate(events)
    ]
    if rows:
        rec.receive(Batch(rows, range(len(rows))))
    return rec


def line_of(text: str) -> int:
    """The line of this file that begins so, inside `product`."""
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.strip().startswith(text))


def test_two_runs_of_the_same_do_not_differ():
    assert first_difference(product(), product()) is None
    found = compare(trained(), trained())
    assert found.difference is None
    assert found.n_events > 200
    assert "agree, numbers bit for bit" in found.text
    assert len(found.text.splitlines()) == 3


def test_a_recording_does_not_differ_from_its_file(tmp_path: Path):
    rec = product()
    rec.save(tmp_path / "a.rec")
    assert first_difference(rec, Recording.load(tmp_path / "a.rec")) is None


def test_numbers_of_nodes_do_not_count():
    first, second = product(), product()
    ids = [rec.columns(OpRecorded)["node"].tolist() for rec in (first, second)]
    assert ids[0] != ids[1]
    assert first_difference(first, second) is None


def test_one_changed_entry_is_found_at_the_value_that_it_changed_first():
    scale = np.arange(4.0)
    scale[2] = np.nextafter(2.0, 3.0)
    found = first_difference(product(), product(scale=scale))
    assert found is not None
    assert (found.rank, found.agreed, found.field, found.a.place.called) == (0, 1, "value", "x")
    assert found.a.value[2] == 2.0
    assert "1 of 4 entries differ, first [2]: 2.0 in a, 2.0000000000000004 in b." in found.text


def test_a_changed_weight_is_found_at_its_operation_and_line():
    found = first_difference(product(), product(weight=4.0))
    assert found is not None
    assert (found.op, found.line, found.field) == ("multiply", line_of("y = x * w"), "constants")
    assert f"the constants of multiply (line {found.line} of {HERE}: y = x * w)" in found.text


def test_another_operation_is_found_where_it_runs():
    found = first_difference(product(), product(function=lab.sinh))
    assert found is not None
    assert (found.field, found.a.value, found.b.value) == ("op", "tanh", "sinh")
    assert found.line == line_of("z = function(y)")


def test_operations_in_another_order_are_found():
    def run(swapped):
        x = lab.tensor(2.0, requires_grad=True, name="x")
        with lab.record() as rec:
            for op in (lab.exp, lab.sin)[:: -1 if swapped else 1]:
                op(x)
        return rec

    found = first_difference(run(False), run(True))
    assert found is not None
    assert found.a.event is not None
    assert (found.op, found.a.value, found.b.value) == ("exp", "exp", "sin")


def test_an_operand_that_is_another_node_is_found():
    def run(first):
        x, y = (lab.tensor(2.0, requires_grad=True, name=name) for name in "xy")
        with lab.record() as rec:
            p, q = lab.exp(x), lab.exp(y)
            lab.tanh(p if first else q)
        return rec

    found = first_difference(run(True), run(False))
    assert found is not None
    assert (found.op, found.field) == ("tanh", "parents")


def test_a_seed_and_a_learning_rate_are_found():
    found = first_difference(trained(), trained(seed=1))
    assert found is not None
    assert found.field in ("loss", "minimum")
    found = first_difference(trained(), trained(rate=2e-3))
    assert found is not None
    assert found.field == "optimizer"
    assert "learning_rate=0.001" in found.text
    found = first_difference(trained(), trained(rate=2e-3), tolerance=1e-9)
    assert found is not None
    assert found.text.startswith("First difference on rank 0: the learning_rate at step 0.\n0.001 in a, 0.002 in b.")


def test_another_order_of_the_examples_is_found_in_the_first_step():
    found = first_difference(trained(), trained(shuffle=1))
    assert found is not None
    assert isinstance(found.a.event, ValueSeen)
    assert found.op


def test_a_tolerance_is_a_share():
    near = product(scale=np.arange(4.0) * (1 + 1e-12))
    assert first_difference(product(), near) is not None
    assert first_difference(product(), near, tolerance=1e-9) is None
    assert first_difference(product(), near, tolerance=1e-13) is not None
    for wrong in (-1.0, 1.0, float("nan"), "much", True):
        with pytest.raises(ArgumentError, match="a tolerance is a share") as caught:
            first_difference(product(), near, tolerance=wrong)
        assert len(str(caught.value).splitlines()) == 3


def test_no_number_is_like_no_number_and_minus_zero_is_not_zero():
    nan, zero = product(scale=np.full(4, np.nan)), product(scale=np.zeros(4))
    assert first_difference(nan, product(scale=np.full(4, np.nan))) is None
    found = first_difference(zero, product(scale=-np.zeros(4)))
    assert found is not None
    assert "4 of 4 entries differ" not in found.text  # equal to the eye, told with their signs
    assert "-0.0" in found.text
    assert first_difference(zero, product(scale=-np.zeros(4)), tolerance=1e-9) is None


def test_one_that_ran_on_is_told_in_words():
    found = first_difference(trained(), trained(epochs=2))
    assert found is not None
    assert found.ran_on == "b"
    first, second, third = found.text.splitlines()
    assert first == "a has ended where b goes on, on rank 0; until there they agree."
    assert second.startswith("b goes on with: ")
    assert third == f"{found.agreed:,} events of rank 0 agreed before."
    other = first_difference(trained(epochs=2), trained())
    assert other is not None
    assert other.ran_on == "a"


def test_a_recording_that_was_full_or_cut_is_told_as_such(tmp_path: Path):
    found = first_difference(trained(limit=100), trained())
    assert found is not None
    assert found.ran_on == "b"
    assert "of its events were lost or found no room" in found.text
    rec = trained(epochs=20)
    rec.save(tmp_path / "whole.rec")
    data = (tmp_path / "whole.rec").read_bytes()
    (tmp_path / "cut.rec").write_bytes(data[: len(data) // 2])
    cut = Recording.load(tmp_path / "cut.rec", salvage=True)
    found = first_difference(rec, cut)
    assert found is not None
    assert (found.ran_on, found.a.position) == ("a", len(cut))


def test_what_only_one_of_them_recorded_is_left_out_and_said():
    found = compare(product(), product(weight=3.0, detail="shape"))
    assert found.difference is None
    assert 'a with detail "value" and b with detail "shape": values were not compared.' in found.text
    found = compare(product(detail="statistics"), product())
    assert found.difference is None
    assert "entries of arrays were not compared" in found.text
    found = compare(product(), product(kinds=[OpRecorded, RuleApplied]))
    assert found.difference is None
    assert "b did not record BackwardFinished, BackwardStarted, GradientStored, LeafUsed, " in found.text
    found = compare(product(sources=False), product())
    assert found.difference is None
    assert "Only b has sources" in found.text


def test_kinds_that_were_recorded_are_known_of_a_loaded_recording(tmp_path: Path):
    product(kinds=[OpRecorded]).save(tmp_path / "a.rec")
    loaded = Recording.load(tmp_path / "a.rec")
    assert loaded.takes == {"OpRecorded"}
    assert compare(loaded, product()).difference is None
    with pytest.raises(RecordingError, match="no kind of events in common"):
        first_difference(loaded, product(kinds=[RuleApplied]))


def test_each_rank_is_compared_with_its_own_however_they_interleave():
    steps = [StepFinished(k, 0, 0.5 / k, 64, 1.0) for k in range(1, 6)]
    turns = [(rank, e) for e in steps for rank in range(3)]
    one_by_one = [(rank, e) for rank in range(3) for e in steps]
    assert first_difference(recorded(turns), recorded(one_by_one)) is None
    changed = [(rank, replace(e, loss=7.0) if (rank, e.step) in {(1, 4), (2, 3)} else e) for rank, e in turns]
    found = first_difference(recorded(turns), recorded(changed))
    assert found is not None
    assert (found.rank, found.agreed, found.later) == (2, 2, (1,))
    assert "Rank 1 differs later." in found.text


def test_a_rank_that_only_one_has_is_told():
    steps = [StepFinished(k, 0, 0.5, 64, 1.0) for k in range(3)]
    both = [(rank, e) for e in steps for rank in range(2)]
    found = first_difference(recorded(both), recorded([(0, e) for e in steps]))
    assert found is not None
    assert (found.rank, found.ran_on, found.agreed) == (1, "a", 0)


def test_what_is_of_the_machine_does_not_count():
    events = [StepFinished(1, 0, 0.5, 64, 1.0), RunStateChanged(1, "paused")]
    others = [StepFinished(1, 0, 0.5, 64, 99.0)]
    assert first_difference(recorded((0, e) for e in events), recorded((0, e) for e in others)) is None


def test_a_kind_of_ones_own_is_compared_and_told():
    @event
    class Sneezed(Event):
        volume: float
        letters: tuple[str, ...] = ()

    found = first_difference(recorded([(0, Sneezed(1.0, ("a",)))]), recorded([(0, Sneezed(1.0, ("b",)))]))
    assert found is not None
    assert found.field == "letters"
    del lab.events.EVENTS["Sneezed"]


def test_nothing_is_like_nothing_and_a_stranger_is_refused():
    assert first_difference(recorded([]), recorded([])) is None
    with pytest.raises(ArgumentError, match="between two recordings") as caught:
        first_difference(recorded([]), io.StringIO())
    assert "b is StringIO" in str(caught.value)


REAL = trained(detail="value")


def perturbed(e: Event, field: str) -> Event:
    """The event with another value in a field."""
    value = getattr(e, field)
    if isinstance(value, str):
        changed = value + "x"
    elif isinstance(value, tuple):
        changed = (*value, value[0] if value else 0) if field != "constants" else (*value, "x")
    elif isinstance(value, np.ndarray):
        changed = value.copy()
        changed.reshape(-1)[-1] = 77
    else:
        changed = (
            not value if isinstance(value, bool) else 0.0 if isinstance(value, float) and np.isnan(value) else value + 1
        )
    return replace(e, **{field: changed})


@given(st.data())
def test_a_random_change_of_a_random_event_is_found_at_its_place(data):
    events = list(REAL)
    k = data.draw(st.integers(0, len(events) - 1))
    name = type(events[k]).__name__
    fields = [
        f
        for f in fields_of(type(events[k]))
        if f not in {*MACHINE_FIELDS, *RUN_FIELDS.get(name, ()), "node", "root", "source"}
        and not f.endswith("_ms")
        and not (isinstance(v := getattr(events[k], f), np.ndarray) and not v.size)
        and getattr(events[k], f) is not None
    ]
    if name in MACHINE_KINDS or not fields:
        assert name in MACHINE_KINDS or set(fields_of(type(events[k]))) <= {"node"}
        return
    field = data.draw(st.sampled_from(fields))
    changed = [*events[:k], perturbed(events[k], field), *events[k + 1 :]]
    a, b = (recorded(((0, e) for e in x), detail="value") for x in (events, changed))
    found = first_difference(a, b)
    assert found is not None
    assert (found.a.position, found.b.position, found.field) == (k, k, field)
    counted = sum(type(e).__name__ not in MACHINE_KINDS for e in events[:k])
    assert found.agreed == counted
    assert len(found.text.splitlines()) == 3


@given(st.data())
def test_a_random_event_that_is_missing_is_found_at_its_place(data):
    events = [e for e in REAL if type(e).__name__ not in MACHINE_KINDS]
    k = data.draw(st.integers(0, len(events) - 1))
    a = recorded(((0, e) for e in events), detail="value")
    b = recorded(((0, e) for e in [*events[:k], *events[k + 1 :]]), detail="value")
    found = first_difference(a, b)
    assert found is not None
    assert found.a.position >= k
    assert all(type(events[p]) is not None for p in range(k, found.a.position + 1))
    assert first_difference(b, a) is not None


def test_many_events_are_compared_by_columns(monkeypatch):
    def many(base, changed=-1):
        rec, here = Recording(run="*", detail="statistics"), Origin()
        for start in range(0, 100_000, 20_000):
            rows = [
                Row(OpRecorded, k, here, (base + k, "tanh", (base + k - 1,), (3, 4), "float64", 0))
                if k % 2
                else Row(
                    ValueSeen,
                    k,
                    here,
                    (base + k - 1, "value", -1, -1, (3, 4), 0.0, 1.0, k + 1e-6 * (k == changed), 1.0, 0, None),
                )
                for k in range(start, start + 20_000)
            ]
            rec.receive(Batch(rows, range(start, start + 20_000)))
        return rec

    a, b = many(10), many(7777, changed=99_998)
    opened = []
    monkeypatch.setattr(Recording, "__iter__", lambda _: opened.append(1))
    found = first_difference(a, b)
    assert found is not None
    assert (found.a.position, found.field) == (99_998, "mean")
    assert opened == []


def test_numbers_of_float32_are_told_with_the_digits_that_tell_them_apart():
    def run(weight):
        x = lab.tensor(np.float32([0.1, 0.3]), requires_grad=True, name="x")
        with lab.record() as rec:
            x * np.float32(weight)
        return rec

    told = compare(run(0.7), run(np.nextafter(np.float32(0.7), np.float32(1.0)))).text
    assert not re.search(r"\d\.\d{12}", told), told
