"""Files made to harm: refused before memory is taken, nothing written, nothing run."""

from __future__ import annotations

import io
import json
import pickle
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from lab.errors import RecordingError
from lab.events import EVENTS, Event, GradientStored, LeafUsed, Recording, ValueSeen, members

Make = Callable[..., Recording]
Load = Callable[..., Recording]
Alter = Callable[..., bytes]
HEAD, CHUNK = "lab-recording.json", "000000/chunk.json"


@pytest.fixture
def good(recorded: Make, saved: Callable[[Recording], bytes]) -> bytes:
    """A file to spoil."""
    array = np.arange(3.0)
    return saved(
        recorded(
            [
                GradientStored(3, True),
                LeafUsed(1, "w", (2, 3), "float32"),
                GradientStored(40, False),
                ValueSeen(5, "value", -1, -1, (3,), 0.0, 1.0, 0.5, 1.0, 0, array),
                GradientStored(5, False),
            ]
        )
    )


def refused(load: Load, data: bytes, tmp_path: Path, **options: Any) -> str:
    """The text of the refusal, given within 64 MB and without a trace on disk."""
    before = {p.name for p in tmp_path.rglob("*")} | {"loaded.lab"}
    tracemalloc.start()
    try:
        with pytest.raises(RecordingError) as caught:
            load(data, **options)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(data) + 64e6
    assert {p.name for p in tmp_path.rglob("*")} | {"loaded.lab"} == before
    text = str(caught.value)
    assert 2 <= len(text.splitlines()) <= 3
    return text


def replace(member: str, content: bytes) -> Callable[[str, bytes], bytes]:
    return lambda name, old: content if name == member else old


def edit(member: str, change: Callable[[Any], object]) -> Callable[[str, bytes], bytes]:
    def edited(name: str, content: bytes) -> bytes:
        if name != member:
            return content
        value = json.loads(content)
        change(value)
        return json.dumps(value).encode()

    return edited


def npy(array: np.ndarray[Any, Any], **options: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


def packed(members_: list[tuple[str, bytes]], **attributes: int) -> bytes:
    """A zip of any members, by zipfile."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as z:
        for name, content in members_:
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_STORED if name == HEAD else zipfile.ZIP_DEFLATED
            for key, value in attributes.items():
                setattr(info, key, value)
            z.writestr(info, content)
    return file.getvalue()


def contents(data: bytes) -> list[tuple[str, bytes]]:
    with zipfile.ZipFile(io.BytesIO(data)) as z:
        return [(name, z.read(name)) for name in z.namelist()]


def test_the_good_file_is_good_and_can_be_rewritten(good: bytes, load: Load, altered: Alter) -> None:
    assert len(load(good)) == 5
    assert altered(good, lambda name, content: content) == good


# --- sizes -------------------------------------------------------------------------------------------------------


def test_a_bomb_of_zeros_is_refused_by_its_declared_size(
    good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    bomb = altered(good, replace("000000/GradientStored.node.npy", b"\0" * 300_000_000))
    assert "too large\ngiven: 000000/GradientStored.node.npy: 300,000,000 bytes" in refused(load, bomb, tmp_path)


def test_a_bomb_that_declares_little_is_not_unpacked_further(
    good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    honest = len(dict(contents(good))["000000/GradientStored.node.npy"])
    bomb = altered(good, replace("000000/GradientStored.node.npy", b"\0" * 300_000_000))
    at = bomb.index(b"000000/GradientStored.node.npy") - 30
    lying = bomb[: at + 22] + struct.pack("<I", honest) + bomb[at + 26 :]
    assert "holds another number of bytes than it says" in refused(load, lying, tmp_path)


def test_columns_that_need_no_bytes_are_counted_against_the_limit(
    good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    for n in (10**10, 2**62, 10**30):
        bomb = altered(good, edit(CHUNK, lambda c, n=n: c["columns"].update(order={"n": n, "first": 0, "step": 0})))
        refused(load, bomb, tmp_path)


def test_many_events_in_a_small_file_are_refused_by_the_ratio_and_allowed_by_hand(
    good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    """JSON of many small texts takes 16 times its size, though it packs to nothing."""
    bomb = altered(good, edit(CHUNK, lambda c: c.update(strings=c["strings"] + ["aa"] * 4_000_000)))
    assert "more memory than its size and the limit allow" in refused(load, bomb, tmp_path)


def test_the_limit_is_the_users(good: bytes, load: Load, tmp_path: Path) -> None:
    assert "give Recording.load a larger max_bytes" in refused(load, good, tmp_path, max_bytes=1000)


def test_a_million_members_are_not_even_counted(good: bytes, load: Load, tmp_path: Path) -> None:
    head = dict(contents(good))[HEAD]
    first = good[: 30 + len(HEAD) + len(head)]
    many = first + b"".join(
        struct.pack("<4s5H3I2H", b"PK\x03\x04", 20, 0, 0, 0, 33, 0, 0, 0, 7, 0) + b"%07d" % i for i in range(1_000_000)
    )
    assert "the recording is damaged" in refused(load, many, tmp_path)


@pytest.mark.parametrize("text", ["x" * 100_000_000, "x" * (members.MAX_JSON // 2)])
def test_a_text_of_a_hundred_megabytes_is_refused(
    text: str, good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    bomb = altered(good, edit(CHUNK, lambda c: c["strings"].append(text)))
    refused(load, bomb, tmp_path)


# --- zip ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../evil", "/tmp/evil", "..\\evil", "000000/../../evil.npy", "C:\\evil", "\0"])
@pytest.mark.parametrize("where", [0, 1, 3, 99])
def test_a_member_of_another_name_is_refused_wherever_it_stands(
    name: str, where: int, good: bytes, load: Load, tmp_path: Path
) -> None:
    entries = contents(good)
    entries.insert(where, (name, b"x"))
    refused(load, packed(entries, external_attr=0o100644 << 16), tmp_path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("i", [0, 1, 2, 3, 5])
def test_a_member_that_stands_twice_is_refused(i: int, good: bytes, load: Load, tmp_path: Path) -> None:
    entries = contents(good)
    refused(load, packed([*entries[: i + 1], *entries[i:]], external_attr=0o100644 << 16), tmp_path)
    refused(load, packed([*entries, entries[i]], external_attr=0o100644 << 16), tmp_path)


def test_a_symlink_is_refused(good: bytes, load: Load, tmp_path: Path) -> None:
    assert len(load(packed(contents(good), external_attr=0o100644 << 16))) == 5
    refused(load, packed(contents(good), external_attr=0o120777 << 16), tmp_path)


def test_members_in_another_order_are_refused(good: bytes, load: Load, tmp_path: Path) -> None:
    entries = contents(good)
    entries[-1], entries[-2] = entries[-2], entries[-1]
    refused(load, packed(entries, external_attr=0o100644 << 16), tmp_path)


def test_a_directory_that_says_other_than_the_members_is_refused(good: bytes, load: Load, tmp_path: Path) -> None:
    start = good.index(b"PK\x01\x02")
    name = good.index(b"sources.json", start)
    refused(load, good[:name] + b"sources.jsom" + good[name + 12 :], tmp_path)
    refused(load, good[:start] + good[-22:], tmp_path)


# --- npy ---------------------------------------------------------------------------------------------------------


class Evil:
    """Leaves a file when unpickled."""

    def __reduce__(self) -> tuple[object, ...]:
        return open, ("evil", "w")


NODE = "000000/GradientStored.node.npy"
LYING = npy(np.arange(3, dtype=np.int8)).replace(b"(3,)", b"(1000000000000,)")


@pytest.mark.parametrize(
    "content",
    [
        npy(np.array([Evil(), 1, 2], object), allow_pickle=True),
        pickle.dumps(Evil()),
        LYING,
        npy(np.arange(3, dtype=np.int8)).replace(b"(3,)", b"(4,)"),
        npy(np.arange(3, dtype=np.int8)).replace(b"(3,)", b"(__import__('os').system('x'),)"),
        npy(np.arange(3, dtype=np.int8).reshape(3, 1)),
        npy(np.arange(3, dtype=">i4")),
        npy(np.array(["a", "b", "c"])),
        npy(np.zeros(3, [("a", "i4")])),
        npy(np.zeros(3, "M8[s]")),
        npy(np.arange(3.0)),
        npy(np.arange(2, dtype=np.int8)),
        npy(np.arange(3, dtype=np.int8)) + b"\0",
        b"",
        b"\x93NUMPY\x01\x00",
    ],
)
def test_an_array_of_another_kind_or_size_is_refused(
    content: bytes, good: bytes, load: Load, altered: Alter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert NODE in dict(contents(good))
    refused(load, altered(good, replace(NODE, content)), tmp_path)


@pytest.mark.parametrize(
    ("column", "array"),
    [
        ("order", [0, 1, 0, 2, 9]),
        ("order", [0, 1, 0, 2, 2]),
        ("LeafUsed.name", [77]),
        ("LeafUsed.name", [-1]),
        ("LeafUsed.shape.length", [3]),
        ("LeafUsed.shape.length", [-1]),
        ("LeafUsed.origin", [1]),
        ("GradientStored.origin", [-1, 0, 0]),
        ("ValueSeen.value.dtype", [99]),
        ("ValueSeen.value.dtype", [-1]),
        ("ValueSeen.value.dtype", [-2]),
        ("ValueSeen.value.ndim", [2]),
        ("ValueSeen.value.ndim", [-1]),
        ("ValueSeen.value.shape", [-3]),
        ("ValueSeen.value.shape", [2**62]),
        ("ValueSeen.value.shape", [4]),
    ],
)
def test_numbers_that_point_nowhere_are_refused(
    column: str, array: list[int], good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    how = {"n": len(array), "npy": True}
    entries = dict(contents(good))
    chunk = json.loads(entries[CHUNK])
    assert column in chunk["columns"]
    chunk["columns"][column] = how
    flat = np.array(array, np.int64) if column != "order" else np.array(array, np.uint8)
    entries[f"000000/{column}.npy"] = npy(flat)
    entries[CHUNK] = json.dumps(chunk).encode()
    names = [HEAD, "sources.json", CHUNK, *(f"000000/{c}.npy" for c, h in chunk["columns"].items() if "npy" in h)]
    refused(load, packed([(name, entries[name]) for name in names], external_attr=0o100644 << 16), tmp_path)


def test_a_shape_whose_product_wraps_is_refused(good: bytes, load: Load, tmp_path: Path) -> None:
    entries = dict(contents(good))
    chunk = json.loads(entries[CHUNK])
    for column, array in (
        ("ValueSeen.value.shape", [2**32] * 2),
        ("ValueSeen.value.ndim", [2]),
        ("ValueSeen.value", []),
    ):
        chunk["columns"][column] = {"n": len(array), "npy": True}
        entries[f"000000/{column}.npy"] = npy(np.array(array, np.uint8 if not array else np.int64))
    entries[CHUNK] = json.dumps(chunk).encode()
    names = [HEAD, "sources.json", CHUNK, *(f"000000/{c}.npy" for c, h in chunk["columns"].items() if "npy" in h)]
    text = refused(load, packed([(name, entries[name]) for name in names], external_attr=0o100644 << 16), tmp_path)
    assert "shapes that do not fit" in text


# --- JSON --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", [HEAD, "sources.json", CHUNK])
@pytest.mark.parametrize(
    "content",
    [
        b"[" * 200_000 + b"]" * 200_000,
        b'{"a":' * 200_000 + b"1" + b"}" * 200_000,
        b'{"n": NaN}',
        b'{"n": Infinity}',
        b'{"n": 1, "n": 2}',
        b'{"n": ' + b"9" * 5000 + b"}",
        b"\xff\xfe",
        b"",
        b"null",
        b"[]",
        b'"text"',
        b"{} {}",
        b'{"\\ud800": {"1": 1}}',
    ],
    ids=[
        "deep lists",
        "deep objects",
        "nan",
        "inf",
        "twice",
        "digits",
        "bytes",
        "empty",
        "null",
        "list",
        "text",
        "two",
        "surrogate",
    ],
)
def test_json_that_is_not_ours_is_refused(
    member: str, content: bytes, good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    if member == "sources.json" and content in (b"null", b"[]", b'"text"'):
        content = b'{"a": 1}'
    refused(load, altered(good, replace(member, content)), tmp_path)


def set_(*path: Any) -> Callable[[Any], None]:
    *keys, last, value = path

    def change(where: Any) -> None:
        for key in keys:
            where = where[key]
        where[last] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        set_("format", "other"),
        set_("schema", -1),
        set_("schema", "1"),
        set_("schema", True),
        set_("schema", 10**400),
        set_("byte_order", "big"),
        set_("detail", "everything"),
        set_("detail", []),
        set_("sources", 1),
        set_("run", None),
        set_("meta", []),
        set_("n_events", -1),
        set_("n_events", 2**41),
        set_("n_events", 4),
        set_("n_events", 6),
        set_("dropped", 1.5),
        set_("kinds", {}),
        set_("kinds", 0, []),
        set_("kinds", 0, 0, "class"),
        set_("kinds", 0, 0, "__class__"),
        set_("kinds", 0, 0, "A B"),
        set_("kinds", 0, 0, "x" * 65),
        set_("kinds", 0, 0, "<script>"),
        set_("kinds", 0, 0, "Ünicode"),
        set_("kinds", 1, 0, "GradientStored"),
        set_("kinds", 0, 1, 0, 0, "a=__import__('os')"),
        set_("kinds", 0, 1, 0, 0, "seq"),
        set_("kinds", 0, 1, 0, 1, "object"),
        set_("kinds", 0, 1, 0, 1, []),
        set_("kinds", 0, 1, 0, ["a"]),
        set_("kinds", [["K", []]] * 300),
        set_("origins", [[0]]),
        set_("origins", [["0", ""]]),
        set_("origins", [[2**31, ""]]),
        set_("origins", []),
    ],
)
def test_a_head_that_makes_no_sense_is_refused(
    change: Callable[[Any], None], good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    refused(load, altered(good, edit(HEAD, change)), tmp_path)


@pytest.mark.parametrize(
    "change",
    [
        set_("n", 0),
        set_("n", 4),
        set_("n", 6),
        set_("n", True),
        set_("strings", ["w"]),
        set_("strings", [1, 2, 3]),
        set_("strings", ["x" * 70_000] * 9),
        set_("columns", []),
        set_("columns", {}),
        set_("columns", "order", {"n": 5}),
        set_("columns", "order", {"n": 5, "first": 0}),
        set_("columns", "order", {"n": 5, "first": 0, "step": 0.5}),
        set_("columns", "LeafUsed.node", {"n": 2, "first": 0, "step": 1}),
        set_("columns", "LeafUsed.node", {"n": 1, "first": 2**63, "step": 1}),
        set_("columns", "LeafUsed.node", {"n": 1, "first": 0, "step": 2**64}),
        set_("columns", "LeafUsed.node", {"n": 0, "first": 0, "step": 2**64}),
        set_("columns", "LeafUsed.node", None),
        set_("columns", "Nobody.node", {"n": 1, "first": 0, "step": 0}),
        set_("columns", "../evil", {"n": 1, "first": 0, "step": 0}),
        set_("columns", "\ud800", {"n": 1, "first": 0, "step": 0}),
    ],
)
def test_a_chunk_that_makes_no_sense_is_refused(
    change: Callable[[Any], None], good: bytes, load: Load, altered: Alter, tmp_path: Path
) -> None:
    refused(load, altered(good, edit(CHUNK, change)), tmp_path)


def test_salvage_takes_nothing_from_a_chunk_that_makes_no_sense(good: bytes, load: Load, altered: Alter) -> None:
    spoilt = altered(good, edit(CHUNK, set_("columns", "LeafUsed.node", {"n": 2, "first": 0, "step": 1})))
    rec = load(spoilt, salvage=True)
    assert (len(rec), rec.dropped) == (0, 5)
    assert rec.columns(GradientStored).n_rows == rec.columns(LeafUsed).n_rows == 0


def test_html_in_names_and_texts_stays_text(good: bytes, load: Load, altered: Alter) -> None:
    evil = "<img src=x onerror=alert(1)>"
    data = altered(good, edit(HEAD, set_("meta", {"title": evil, "lab": evil, "numpy": 1})))
    rec = load(data)
    assert rec.meta == {"title": evil, "lab": evil}
    assert "<img" not in rec._repr_mimebundle_()["text/html"]


def test_an_unknown_kind_cannot_replace_one_of_the_labs(good: bytes, load: Load, altered: Alter) -> None:
    def change(name: str, content: bytes) -> bytes:
        return content.replace(b"GradientStored", b"print") if name in (HEAD, CHUNK) else content

    def renamed(name: str) -> str:
        return name.replace("GradientStored", "print")

    before = dict(EVENTS)
    entries = [(renamed(name), change(name, content)) for name, content in contents(good)]
    rec = load(packed(entries, external_attr=0o100644 << 16))
    kind = rec.kinds[0]
    assert kind.__name__ == "print"
    assert issubclass(kind, Event)
    assert before == EVENTS


def test_noise_is_refused(good: bytes, load: Load, tmp_path: Path) -> None:
    rng, n_refused = np.random.default_rng(0), 0
    for _ in range(200):
        data = bytearray(good)
        for at in rng.integers(len(data), size=rng.integers(1, 20)):
            data[at] = rng.integers(256)
        try:
            n = len(load(bytes(data)))
        except RecordingError:
            n_refused += 1
        else:
            assert n == 5
    assert n_refused > 150


def test_noise_with_right_checksums_is_refused_or_harmless(good: bytes, load: Load, altered: Alter) -> None:
    rng, n_refused = np.random.default_rng(1), 0
    names = [name for name, _ in contents(good)]
    for i in range(300):
        chosen = names[i % len(names)]

        def spoil(name: str, content: bytes, chosen: str = chosen) -> bytes:
            if name != chosen:
                return content
            changed = bytearray(content)
            for at in rng.integers(len(changed), size=rng.integers(1, 4)):
                changed[at] = rng.integers(256)
            return bytes(changed)

        try:
            rec = load(altered(good, spoil))
        except RecordingError:
            n_refused += 1
        else:
            assert len(list(rec)) == len(rec)
            for kind in rec.kinds:
                assert all(len(column) == rec.columns(kind).n_rows for column in rec.columns(kind).values())
    assert n_refused > 100


def test_our_own_unpacking_agrees_with_zlib() -> None:
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    raw = packer.compress(b"abc" * 100) + packer.flush()
    assert members._inflated(raw, 300, "m") == b"abc" * 100
    for wrong in (raw[:-1], raw + b"\0", raw[1:], b""):
        with pytest.raises(members.Damaged):
            members._inflated(wrong, 300, "m")
