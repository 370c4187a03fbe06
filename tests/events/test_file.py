"""The file of a recording: comes back equal, whole or not at all, or on request as far as it goes."""

from __future__ import annotations

import dataclasses
import io
import json
import os
import pickle
import stat
import subprocess
import sys
import textwrap
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from lab.errors import RecordingError
from lab.events import EVENTS, ORIGIN, Event, GradientStored, LeafUsed, OpRecorded, Origin, Recording, fields_of, record
from lab.events import bus as the_bus
from lab.events.event import values_of

Make = Callable[..., Recording]
Save = Callable[[Recording], bytes]
Load = Callable[..., Recording]
Alter = Callable[..., bytes]


FEW: list[Event] = [GradientStored(3, True), LeafUsed(1, "w", (2, 3), "float32"), GradientStored(4, False)]


@pytest.fixture
def small(some_events: list[Event], recorded: Make, saved: Save) -> bytes:
    """A small file."""
    return saved(recorded(some_events, detail="value"))


def refusal(load: Load, data: bytes, **options: object) -> list[str]:
    """The lines of the error that refuses a file; a RecordingError, and no other."""
    with pytest.raises(RecordingError) as caught:
        load(data, **options)
    lines = str(caught.value).splitlines()
    assert 2 <= len(lines) <= 3
    assert lines[1].startswith("given: ")
    return lines


def same(a: Recording, b: Recording) -> bool:
    envelopes = [[(e.seq, e.time_ns, e.rank, e.run) for e in rec] for rec in (a, b)]
    return list(a) == list(b) and envelopes[0] == envelopes[1] and a.meta == b.meta


def test_a_recording_comes_back_equal(some_events: list[Event], recorded: Make, tmp_path: Path) -> None:
    rec = recorded(some_events, detail="statistics")
    rec.meta["title"] = "first"
    rec.save(tmp_path / "a.lab")
    made = Recording.load(str(tmp_path / "a.lab"))
    assert same(rec, made)
    assert made.kinds == rec.kinds
    assert (made.detail, made.sources, made.run, made.dropped) == (rec.detail, rec.sources, rec.run, 0)
    assert not made.live
    assert [p.name for p in tmp_path.iterdir()] == ["a.lab"]


def test_equal_recordings_give_equal_bytes_also_after_loading(small: bytes, load: Load, saved: Save) -> None:
    assert saved(load(small)) == small


def test_many_events_come_back_through_many_chunks(recorded: Make, saved: Save, load: Load) -> None:
    events: list[Event] = []
    for i in range(20_000):
        events.append(GradientStored(i * i, i % 3 == 0))
        if i % 7 == 0:
            events.append(LeafUsed(i, f"w{i}", (i % 5, 2), "float32"))
    rec = recorded(events)
    data = saved(rec)
    made = load(data)
    assert same(rec, made)
    assert made.columns(LeafUsed, 100, 5000)["name"].tolist() == rec.columns(LeafUsed, 100, 5000)["name"].tolist()
    assert sum(name.endswith("chunk.json") for name in zipfile.ZipFile(io.BytesIO(data)).namelist()) > 3
    assert len(data) < 10 * len(rec)


def test_other_tools_open_it(small: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.zip").write_bytes(small)
    with zipfile.ZipFile(tmp_path / "a.zip") as z:
        assert z.testzip() is None
        assert json.loads(z.read("lab-recording.json"))["format"] == "autodiff-lab recording"
        assert json.loads(z.read("000000/chunk.json"))["n"] == 6
    with np.load(tmp_path / "a.zip", allow_pickle=False) as arrays:
        assert arrays["000000/Everything.real"].tolist()[0] == 0.5


def test_runs_and_ranks_come_back(tmp_path: Path) -> None:
    with record(run="*") as rec:
        token = ORIGIN.set(Origin(3, "an\nüother run"))
        the_bus.emit_row(GradientStored, 1, False)
        ORIGIN.reset(token)
        the_bus.emit_row(GradientStored, 2, False)
    rec.save(tmp_path / "a")
    assert [(e.rank, e.run) for e in Recording.load(tmp_path / "a")] == [(3, "an\nüother run"), (0, "")]


LEARNERS_TEXTS = [
    *(
        "🎉👩‍🔬",
        "שלום",
        "e\u0301\u0301\u0301",
        "a\u200bb\ufeff",
        "line\nbreak\r\n\u2028",
        "nul\0nul",
        "x" * 10_000,
        "\ud800 alone",
    ),
    *(
        "</script><script>alert(1)</script>",
        "__proto__",
        "100% %s {x} {{",
        ".",
        "..",
        "/etc/passwd",
        '"\\',
        "",
        " ",
        "nan",
    ),
]


@pytest.mark.parametrize("text", LEARNERS_TEXTS, ids=ascii)
def test_any_text_of_a_learner_comes_back(text: str, tmp_path: Path, recorded: Make, everything: type[Event]) -> None:
    token = ORIGIN.set(Origin(0, text))
    try:
        rec = recorded([LeafUsed(1, text, (), text), everything(0, 0.0, False, text, (), (), (text, "", text), None)])
    finally:
        ORIGIN.reset(token)
    rec.meta.update(title=text, note=text)
    rec.save(tmp_path / "a")
    made = Recording.load(tmp_path / "a")
    assert same(rec, made)
    assert made[0].run == text
    assert "<script" not in made._repr_mimebundle_()["text/html"]


@pytest.mark.parametrize("name", ["ünï 🎉.lab", "two\nlines", "%s{x}", "-rf", "x" * 255])
def test_a_file_may_have_any_name(name: str, tmp_path: Path, small: bytes, load: Load) -> None:
    rec = load(small)
    rec.save(tmp_path / name)
    assert same(rec, Recording.load(tmp_path / name))
    os.truncate(tmp_path / name, 100)
    with pytest.raises(RecordingError) as caught:
        Recording.load(tmp_path / name)
    assert len(str(caught.value).splitlines()) <= 3


@pytest.mark.slow
def test_a_file_cut_at_any_byte_is_refused_and_its_whole_chunks_can_be_had(
    recorded: Make, saved: Save, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("lab.events.saving._CHUNK", 2)  # chunks of 2 and 4 events
    events: list[Event] = [GradientStored(i * i, i % 2 == 0) for i in range(6)]
    rec = recorded(events)
    data = saved(rec)
    found = []
    for size in range(len(data)):
        cut = data[:size]
        lines = refusal(load, cut)
        assert "cut" in lines[0] or "damaged" in lines[0] or "no recording" in lines[0], size
        try:
            part = load(cut, salvage=True)
        except RecordingError:
            assert not found  # within what comes before the events
            continue
        assert list(part) == events[: len(part)]
        assert part.dropped == len(rec) - len(part)
        assert f"salvaged: {len(part)} of 6 events" in part.meta["note"]
        found.append(len(part))
    assert found == sorted(found)
    assert set(found) == {0, 2, 6}
    whole = load(data, salvage=True)
    assert (whole.dropped, whole.meta) == (0, rec.meta)


def test_a_file_with_a_bit_flipped_in_any_byte_is_refused_or_equal(recorded: Make, saved: Save, load: Load) -> None:
    rec = recorded(FEW)
    small = saved(rec)
    n_refused = 0
    for i in range(len(small)):
        flipped = small[:i] + bytes([small[i] ^ 1 << i % 8]) + small[i + 1 :]
        try:
            assert same(load(flipped), rec), i
        except RecordingError:
            n_refused += 1
    assert n_refused > 0.8 * len(small)  # the rest are dates and versions of zip, which say nothing


def npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, a=np.arange(3))
    return file.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\0" * 1000,
        b"P",
        b"PK\x03\x04",
        npz(),
        b"\x93NUMPY" * 100,
        pickle.dumps([1]) * 20,
        b"{}" * 100,
        b"PK\x05\x06" + b"\0" * 18,
    ],
    ids=["empty", "zeros", "one byte", "signature", "npz", "npy", "pickle", "json", "empty zip"],
)
@pytest.mark.parametrize("salvage", [False, True])
def test_a_file_of_another_kind_is_refused(data: bytes, salvage: bool, load: Load) -> None:
    lines = refusal(load, data, salvage=salvage)
    assert lines[0] in ("this is no recording of the lab", "the recording is cut to almost nothing")
    assert lines[2] == "hint:  recordings are written by rec.save(path), and by train --record on the command line"


def test_bytes_after_the_end_are_refused(small: bytes, load: Load) -> None:
    assert refusal(load, small + b"\0")[0] == "the recording is damaged"
    assert len(load(small + b"\0", salvage=True)) == 6


def test_what_cannot_be_opened_is_named(tmp_path: Path) -> None:
    for path, why in [(tmp_path / "no\nfile", "No such file"), (tmp_path, "directory"), ("nul\0", "null")]:
        with pytest.raises(RecordingError, match=why):
            Recording.load(path)
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(RecordingError, match="this is not a file"):
        Recording.load(tmp_path / "pipe")


def change_head(**changes: object) -> Callable[[str, bytes], bytes]:
    def change(name: str, content: bytes) -> bytes:
        if name != "lab-recording.json":
            return content
        return json.dumps(json.loads(content) | changes).encode()

    return change


def test_a_newer_schema_is_named(small: bytes, load: Load, altered: Alter) -> None:
    lines = refusal(load, altered(small, change_head(schema=2, meta={"lab": "9.1"}, news={"x": 1})), salvage=True)
    assert lines == [
        "the recording was written by a newer lab",
        "given: schema 2 of lab '9.1', this lab reads up to 1",
        "hint:  upgrade autodiff-lab to open it",
    ]


def test_an_unknown_kind_comes_back_as_a_class_of_its_own(small: bytes, load: Load, everything: type[Event]) -> None:
    known = load(small)
    del EVENTS["Everything"]
    try:
        made = load(small)
        assert "Everything" not in EVENTS
    finally:
        EVENTS["Everything"] = everything
    kind = made.kinds[0]
    assert (kind.__name__, kind is everything) == ("Everything", False)
    assert list(map(str, map(values_of, made))) == list(map(str, map(values_of, known)))
    assert made.columns(kind)["whole"].tolist() == made.columns(everything)["whole"].tolist()
    assert load(small)[0] != made[0]
    assert len(pickle.loads(pickle.dumps(made))) == len(made)


def test_a_known_kind_with_fewer_or_more_fields_is_read_with_a_notice(
    small: bytes, load: Load, everything: type[Event], caplog: pytest.LogCaptureFixture
) -> None:
    fields = [(name, of_type) for name, of_type in fields_of(everything).items() if name not in ("late", "truth")]
    newer = [
        ("truth2", bool, dataclasses.field(default=True)),
        ("texts2", tuple[str, ...], dataclasses.field(default=("q",))),
    ]
    other = dataclasses.make_dataclass("Everything", [*fields, *newer], bases=(Event,), eq=False, slots=True)
    EVENTS["Everything"] = other
    made = load(small)
    assert made.kinds[0] is other
    assert made.columns(other)["whole"].tolist()[0] == 1
    assert made.columns(other)["truth2"].tolist() == [True] * 4
    assert list(made.columns(other)["texts2"]) == [("q",)] * 4
    assert "fields of Everything differ from the recording's: late, texts2, truth, truth2" in caplog.text


def test_a_known_kind_with_a_field_of_another_type_is_refused(small: bytes, load: Load, altered: Alter) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content.replace(b'["level","int"]', b'["level","str"]') if name == "lab-recording.json" else content

    lines = refusal(load, altered(small, change))
    assert lines[0] == "the recording's kind OpRecorded has fields of other types than this lab's"
    assert lines[1] == "given: level"


def limited(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, timeout=60, check=False
    )


def test_a_full_disk_is_named_and_the_old_file_stays(tmp_path: Path, small: bytes, load: Load) -> None:
    path = tmp_path / "old.lab"
    path.write_bytes(small)
    done = limited(f"""
        import resource
        from lab.events import Bus, GradientStored, Recording
        rec, bus = Recording(), Bus()
        bus.attach(rec)
        for i in range(100_000):
            bus.emit_row(GradientStored, i * i * 7919 % 1_000_003, False)
        bus.detach(rec)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
        try:
            rec.save({str(path)!r})
        except ValueError as why:
            print(why)
        rec.columns(GradientStored)["node"].sum()
    """)
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[0] == "the recording could not be saved"
    assert lines[1] == f"given: {path}: File too large"
    assert lines[2].startswith("hint:  a file that was there before is unchanged")
    assert path.read_bytes() == small
    assert [p.name for p in tmp_path.iterdir() if p.name != "loaded.lab"] == ["saved.lab", "old.lab"] or {
        p.name for p in tmp_path.iterdir()
    } == {"saved.lab", "old.lab"}


@pytest.mark.parametrize("fails", ["fsync", "replace"])
def test_an_error_at_the_last_moment_leaves_the_old_file(
    fails: str, tmp_path: Path, small: bytes, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    rec = load(small)
    (tmp_path / "old.lab").write_bytes(b"old")

    def full(*args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(*((os, "fsync") if fails == "fsync" else (Path, "replace")), full)
    before = set(tmp_path.iterdir())
    with pytest.raises(RecordingError, match=r"old.lab: No space left on device"):
        rec.save(tmp_path / "old.lab")
    assert (tmp_path / "old.lab").read_bytes() == b"old"
    assert set(tmp_path.iterdir()) == before


def test_where_nothing_can_be_written_is_named(tmp_path: Path, small: bytes, load: Load) -> None:
    rec = load(small)
    (tmp_path / "file").write_bytes(b"")
    for path, why in [
        (tmp_path / "no" / "such" / "folder", "No such file or directory"),
        (tmp_path / "file" / "x", "Not a directory"),
        (tmp_path, "directory"),
        (tmp_path / "nul\0", "null"),
    ]:
        with pytest.raises(RecordingError, match=why):
            rec.save(path)
    assert not list(tmp_path.glob(".*"))


def test_saving_follows_a_link_and_keeps_the_mode_of_the_old_file(tmp_path: Path, small: bytes, load: Load) -> None:
    real, link = tmp_path / "real.lab", tmp_path / "link.lab"
    real.write_bytes(b"")
    real.chmod(0o600)
    link.symlink_to(real)
    load(small).save(link)
    assert link.is_symlink()
    assert real.read_bytes() == small
    assert stat.S_IMODE(real.stat().st_mode) == 0o600


def test_a_live_recording_is_saved_as_far_as_it_is(tmp_path: Path) -> None:
    with record() as rec:
        the_bus.emit_row(GradientStored, 1, False)
        the_bus.flush()
        rec.save(tmp_path / "a")
        the_bus.emit_row(GradientStored, 2, False)
    assert len(Recording.load(tmp_path / "a")) == 1
    assert len(rec) == 2


def test_a_loaded_recording_can_go_on(small: bytes, load: Load, recorded: Make) -> None:
    rec = load(small)
    the_bus.attach(rec)
    the_bus.emit_row(OpRecorded, 9, "mul", (5,), (2,), np.dtype("float64"), 0, ("",), "1", "", 0)
    rec.close()
    assert len(rec) == 7
    assert rec[6] == OpRecorded(9, "mul", (5,), (2,), "float64", 0, ("",), "1")
