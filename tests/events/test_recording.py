"""Recording: what it takes, what it gives, and that it stays within its bounds."""

from __future__ import annotations

import copy
import logging
import pickle
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from lab.errors import ArgumentError
from lab.events import (
    EVENTS,
    ORIGIN,
    Batch,
    Bus,
    Detail,
    Event,
    GradientStored,
    LeafUsed,
    OpRecorded,
    Origin,
    Ragged,
    Recording,
    StepFinished,
    ValueSeen,
    bus,
    event,
    record,
)
from lab.events.bus import BATCH, Row
from lab.events.columns import MAX_TEXT, Growing
from lab.events.table import Table

Make = Callable[..., Recording]


def op(node: int, *, dtype: object = "float64", file: str = "", line: int = 0) -> tuple[object, ...]:
    return node, "mul", (node - 1, node - 2), (2, 3), dtype, 0, (), "", file, line


def batch_of(kind: type[Event], rows: list[tuple[object, ...]], first_seq: int = 0) -> Batch:
    return Batch([Row(kind, i, Origin(), row) for i, row in enumerate(rows)], range(first_seq, first_seq + len(rows)))


def value(array: object) -> ValueSeen:
    return ValueSeen(1, "value", -1, -1, (), 0.0, 0.0, 0.0, 0.0, 0, array)  # type: ignore[arg-type]


def test_what_is_recorded_comes_back_equal(some_events: list[Event], recorded: Make) -> None:
    rec = recorded(some_events)
    assert len(rec) == len(some_events)
    assert list(rec) == some_events
    assert [rec[i] for i in range(len(rec))] == some_events
    assert rec[-1] == some_events[-1]
    assert rec[1:3] == some_events[1:3]
    assert [e.seq for e in rec] == list(range(len(rec)))
    assert rec.kinds == list(dict.fromkeys(map(type, some_events)))
    with pytest.raises(IndexError, match="event 6 of a recording of 6"):
        rec[6]


def test_minus_zero_and_nan_keep_their_bits(everything: type[Event], recorded: Make) -> None:
    numbers = (-0.0, 0.0, float("nan"))
    rec = recorded([everything(0, x, False, "", (), (x, -x), (), None) for x in numbers])
    columns = rec.columns(everything)
    assert columns["real"].tobytes() == np.array(numbers).tobytes()
    assert columns["reals"].values.tobytes() == np.array([y for x in numbers for y in (x, -x)]).tobytes()


def test_columns_are_restricted_to_positions(recorded: Make) -> None:
    events: list[Event] = []
    for i in range(10):
        events += [GradientStored(i, i % 2 == 0), LeafUsed(i, f"w{i}", (i,), "float32")]
    rec = recorded(events)
    leaves = rec.columns(LeafUsed, 3, 8)
    assert leaves["position"].tolist() == [3, 5, 7]
    assert leaves["node"].tolist() == [1, 2, 3]
    assert leaves["name"].tolist() == ["w1", "w2", "w3"]
    assert leaves["seq"].tolist() == [3, 5, 7]
    assert leaves["rank"].tolist() == [0, 0, 0]
    assert leaves["run"].tolist() == ["", "", ""]
    assert leaves["time_ns"].dtype == np.int64
    assert isinstance(leaves["shape"], Ragged)
    assert list(leaves["shape"]) == [(1,), (2,), (3,)]
    assert leaves["shape"][-1] == (3,)
    assert leaves["shape"][:2] == [(1,), (2,)]
    assert leaves.n_rows == 3
    assert set(leaves) == {"node", "name", "shape", "dtype", "position", "seq", "time_ns", "rank", "run"}
    assert len(leaves) == 9
    assert "3 LeafUsed" in repr(leaves)
    assert rec.columns(LeafUsed, 8, 3).n_rows == 0
    assert rec.columns(LeafUsed, 0, 10**9).n_rows == 10
    assert rec.positions(GradientStored).tolist() == list(range(0, 20, 2))
    with pytest.raises(KeyError):
        leaves["nothing"]


def test_a_kind_of_which_there_is_none_gives_empty_columns() -> None:
    columns = Recording().columns(ValueSeen)
    assert columns["node"].dtype == np.int64
    assert [len(columns[name]) for name in columns] == [0] * len(columns)
    assert Recording().positions(ValueSeen).tolist() == []
    assert list(Recording()) == Recording().kinds == []


def test_nobody_can_write_into_a_recording(some_events: list[Event], recorded: Make) -> None:
    rec = recorded(some_events)
    with pytest.raises(ValueError, match="read-only"):
        rec.columns(OpRecorded)["node"][0] = 9
    with pytest.raises(ValueError, match="read-only"):
        rec.columns(OpRecorded)["parents"].values[0] = 9
    rec.columns(ValueSeen)["value"][0][:] = 9
    assert list(rec) == some_events


def test_text_may_come_as_any_object_and_is_stored_once(recorded: Make) -> None:
    bus, rec = Bus(), Recording()
    bus.attach(rec)
    for dtype in (np.dtype("float32"), "float32", np.float32, 1, True, ["list"]):
        bus.emit_row(OpRecorded, *op(1, dtype=dtype))
    bus.detach(rec)
    names = ["float32", "float32", "<class 'numpy.float32'>", "1", "True", "['list']"]
    assert rec.columns(OpRecorded)["dtype"].tolist() == names
    assert [e.dtype for e in rec] == names
    assert rec._store.strings.all.count("float32") == 1


def test_fields_that_were_left_out_have_their_defaults_and_others_are_refused(caplog: pytest.LogCaptureFixture) -> None:
    bus, rec = Bus(), Recording()
    bus.attach(rec)
    bus.emit_row(OpRecorded, *op(1))
    bus.emit_row(OpRecorded, *op(2)[:6])
    bus.flush()
    assert list(rec) == [OpRecorded(*op(1)), OpRecorded(*op(2)[:6])]  # type: ignore[arg-type]
    bus.emit_row(OpRecorded, 1, "mul")
    bus.flush()
    assert len(rec) == 2
    assert "an event of kind OpRecorded has other fields than its kind\ngiven: 2 values for 11 fields" in str(
        rec.detached_because
    )
    assert "was detached" in caplog.text
    assert "ended by RecordingError" in repr(rec)


def test_record_takes_the_block_and_ends_when_it_raises() -> None:
    with pytest.raises(ZeroDivisionError), record() as rec:  # noqa: PT012 -- the block is the subject
        assert rec.live
        assert bus.operations
        bus.emit_row(GradientStored, 1, False)
        bus.emit_row(GradientStored, 2, False)
        1 / 0  # noqa: B018
    assert not rec.live
    assert bus.listeners == ()
    bus.emit_row(GradientStored, 3, False)
    bus.flush()
    assert [e.node for e in rec] == [1, 2]
    rec.close()


def test_record_asks_for_values_and_sources_unless_told_otherwise() -> None:
    with record() as rec:
        assert (rec.detail, bus.detail, bus.sources) == (Detail.VALUE, Detail.VALUE, True)
    with record(detail="shape", sources=False):
        assert (bus.detail, bus.sources) == (Detail.SHAPE, False)
    with pytest.raises(ArgumentError, match="no level of detail"), record(detail="all"):
        pass


def test_a_recording_takes_only_the_run_that_it_was_opened_in() -> None:
    with record() as outside, record(run="*") as every, record(run="b") as named:
        token = ORIGIN.set(Origin(2, "b"))
        try:
            with record() as inside:
                bus.emit_row(GradientStored, 1, False)
        finally:
            ORIGIN.reset(token)
        bus.emit_row(GradientStored, 2, False)
    assert [e.node for e in outside] == [2]
    assert [e.node for e in every] == [1, 2]
    assert [e.node for e in named] == [e.node for e in inside] == [1]
    assert (inside[0].run, inside[0].rank) == ("b", 2)
    assert every.columns(GradientStored)["run"].tolist() == ["b", ""]
    assert every.columns(GradientStored)["rank"].tolist() == [2, 0]


def test_a_recording_takes_only_the_kinds_that_it_was_asked_for() -> None:
    with record(kinds=[StepFinished]) as rec:
        assert not bus.operations
        bus.emit_row(GradientStored, 1, False)
        bus.emit(StepFinished(1, 0, 0.5, 64, 2.0))
    assert rec.kinds == [StepFinished]


def test_source_lines_are_kept_as_they_were(tmp_path: Path, recorded: Make) -> None:
    module = tmp_path / "m.py"
    module.write_text("a = 1\n    y = x * 2  # twice\n")
    rec = recorded([OpRecorded(*op(1, file=str(module), line=2)), OpRecorded(*op(2, file="no\0file", line=1))])  # type: ignore[arg-type]
    module.write_text("changed\nchanged\n")
    rec.save(tmp_path / "r")
    for r in (rec, Recording.load(tmp_path / "r")):
        assert r.source(str(module), 2) == "y = x * 2  # twice"
        assert r.source(str(module), 1) == ""  # no event names it
        assert r.source("no\0file", 1) == ""


def test_later_events_than_the_limit_are_counted(recorded: Make) -> None:
    rec = recorded([GradientStored(i, False) for i in range(10)], limit=7)
    assert (len(rec), rec.dropped) == (7, 3)
    assert [e.node for e in rec] == list(range(7))
    assert "3 dropped" in repr(rec)


def test_arrays_stay_within_their_budget(recorded: Make) -> None:
    rec = recorded([value(np.full(4, i, np.float64)) for i in range(5)], value_bytes=100)
    arrays = rec.columns(ValueSeen)["value"]
    assert [None if a is None else a.tolist() for a in arrays] == [[0.0] * 4, [1.0] * 4, [2.0] * 4, None, None]
    assert rec.dropped_values == 2
    assert rec.dropped == 0
    assert len(arrays) == 5
    assert arrays[3:] == [None, None]
    assert "2 values dropped" in repr(rec)


def test_arrays_of_unusual_kinds_come_as_equal_numbers_or_not_at_all(recorded: Make) -> None:
    swapped = np.arange(3, dtype=">f4")
    brain = np.array([1.5, -2.0], ml_dtypes.bfloat16)
    rec = recorded(
        [value(swapped), value(brain), value(np.array([object()])), value(np.array(["x"])), value(np.float32(2))]
    )
    first, second, third, fourth, fifth = rec.columns(ValueSeen)["value"]
    assert (first.dtype, first.tolist()) == (np.float32, [0.0, 1.0, 2.0])
    assert (second.dtype, second.tolist()) == (np.float32, [1.5, -2.0])
    assert third is fourth is None
    assert (fifth.shape, fifth[()]) == ((), 2.0)
    assert rec.dropped_values == 2


def test_a_very_long_text_is_cut(recorded: Make) -> None:
    rec = recorded([LeafUsed(1, "x" * 10**6, (), "float32")])
    assert len(rec[0].name) == MAX_TEXT  # type: ignore[attr-defined]
    assert rec[0].name.endswith("x…")  # type: ignore[attr-defined]


def n_bytes(table: Table) -> int:
    """What the arrays of a table take, room behind their ends included."""
    holders = [table, *table.columns.values()]
    return sum(x.data.nbytes for h in holders for x in vars(h).values() if isinstance(x, Growing))


def test_a_million_events_take_bounded_memory() -> None:
    rec = Recording(limit=300_000)
    rows = batch_of(OpRecorded, [op(i) for i in range(BATCH)]).rows
    for start in range(0, 1_000_000, BATCH):
        rec.receive(Batch(rows, range(start, start + BATCH)))
    assert len(rec) == 300_000
    assert rec.dropped == -(-1_000_000 // BATCH) * BATCH - 300_000
    assert n_bytes(rec._store.tables[0]) < 300_000 * 250


def test_a_reader_sees_a_consistent_prefix_while_another_thread_writes() -> None:
    n_batches, rec = 40, Recording()
    # Both begin each batch together. A reader that looked as often as it can would starve the writer, which gives the
    # interpreter away in every NumPy call and waits to get it back: 20,000 looks in place of 80, and a minute.
    begins = threading.Barrier(2, timeout=60)

    def write() -> None:
        for start in range(0, n_batches * BATCH, BATCH):
            batch = batch_of(OpRecorded, [op(i) for i in range(start, start + BATCH)], start)
            begins.wait()
            rec.receive(batch)

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        for _ in range(n_batches):
            begins.wait()
            for _ in range(2):
                n = len(rec)
                columns = rec.columns(OpRecorded, max(0, n - 1000))
                assert columns["node"].tolist() == columns["seq"].tolist() == columns["position"].tolist()
                assert [p[0] for p in columns["parents"]] == (columns["node"] - 1).tolist()
                assert len(rec) >= n
                if n:
                    assert rec[n - 1] == OpRecorded(*op(n - 1))  # type: ignore[arg-type]
        writing.result()
    assert len(rec) == n_batches * BATCH


def test_a_cell_that_runs_again_may_define_its_kind_again_but_not_with_other_fields() -> None:
    def define(*fields: str) -> type[Event]:
        return event(type("Waved", (Event,), {"__annotations__": dict.fromkeys(fields, int)}))

    try:
        bus, rec = Bus(), Recording()
        bus.attach(rec)
        first, second, third = define("hands"), define("hands"), define("hands", "feet")
        bus.emit(first(1))
        bus.emit(second(2))
        bus.flush()
        assert rec.columns(first)["hands"].tolist() == rec.columns(second)["hands"].tolist() == [1, 2]
        assert rec.columns(third).n_rows == 0
        bus.emit(third(3, 4))
        bus.flush()
        assert str(rec.detached_because).splitlines() == [
            "the kind Waved changed its fields during the recording",
            "given: hands, feet after hands",
            "hint:  start a new recording",
        ]
    finally:
        del EVENTS["Waved"]


def test_it_shows_itself_shortly_and_escaped(recorded: Make) -> None:
    rec = recorded([GradientStored(1, False), GradientStored(2, False), LeafUsed(1, "w", (), "float32")])
    rec.meta["title"] = "<script>alert(1)</script>\n"
    text = repr(rec)
    assert text == r"<Recording '<script>alert(1)</script>\n': 3 events, 2 GradientStored, 1 LeafUsed>"
    bundle = rec._repr_mimebundle_()
    assert bundle["text/plain"] == text
    assert "<script" not in bundle["text/html"]
    assert "&lt;script&gt;" in bundle["text/html"]


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda rec: pickle.loads(pickle.dumps(rec))])
def test_it_can_be_copied_and_pickled(
    again: Callable[[Recording], Recording], some_events: list[Event], recorded: Make
) -> None:
    rec = recorded(some_events, detail="value", limit=5)
    rec.meta["note"] = "mine"
    made = again(rec)
    assert list(made) == some_events[:5]
    assert (made.meta, made.dropped, made.detail, made.run) == (rec.meta, 1, Detail.VALUE, rec.run)
    assert made.meta is not rec.meta
    assert not made.live


def test_it_says_what_made_it() -> None:
    assert set(Recording().meta) == {"title", "lab", "python", "numpy", "created", "note"}
    assert Recording().meta["numpy"] == np.__version__
    assert Recording().meta["lab"]


def test_losses_before_it_are_counted() -> None:
    rec = Recording()
    rec.lost(5)
    assert rec.dropped == 5


def test_a_recording_that_fails_does_not_disturb_the_block(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), record() as bad, record() as good:
        bus.emit_row(GradientStored, "no number", False)
        bus.flush()
        bus.emit_row(GradientStored, 2, False)
    assert isinstance(bad.detached_because, ValueError)
    assert isinstance(good.detached_because, ValueError)
    assert not bad.live
    assert len(bad) == len(good) == 0


@pytest.mark.parametrize(
    "look",
    [
        len,
        lambda rec: [e.node for e in rec][-1] + 1,
        lambda rec: rec[-1].node + 1,
        lambda rec: rec[2].node + 1,
        lambda rec: len(rec[:]),
        lambda rec: rec.columns(GradientStored).n_rows,
        lambda rec: len(rec.positions(GradientStored)),
        lambda rec: 3 * (rec.kinds == [GradientStored]),
        lambda rec: int(repr(rec).split()[1]),
        lambda rec: len(pickle.loads(pickle.dumps(rec))),
    ],
)
def test_who_looks_inside_the_block_sees_what_happened_so_far(look: Callable[[Recording], int]) -> None:
    with record() as rec:
        for node in range(3):
            bus.emit(GradientStored(node, accumulated=False))
        assert look(rec) == 3


def test_a_file_saved_inside_the_block_has_what_happened_so_far(tmp_path: Path) -> None:
    with record() as rec:
        bus.emit(GradientStored(1, accumulated=False))
        rec.save(tmp_path / "early.lab")
        assert list(Recording.load(tmp_path / "early.lab")) == [GradientStored(1, accumulated=False)]
