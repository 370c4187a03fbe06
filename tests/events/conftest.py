"""What the tests of events share: a kind with every type of field, a bus of their own, and ways to alter a file."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from lab.events import EVENTS, Array, Bus, Event, OpRecorded, Recording, ValueSeen, event
from lab.events.members import Writer


@pytest.fixture
def everything() -> Iterator[type[Event]]:
    """A kind of event with a field of each type, known to the lab only during the test."""

    @event
    class Everything(Event):
        whole: int
        real: float
        truth: bool
        text: str
        wholes: tuple[int, ...]
        reals: tuple[float, ...]
        texts: tuple[str, ...]
        array: Array | None
        late: int = 7

    yield Everything
    del EVENTS["Everything"]


@pytest.fixture
def some_events(everything: type[Event]) -> list[Event]:
    """A few events of three kinds, with the corners of each type."""
    big = 2**63 - 1
    return [
        everything(1, 0.5, True, "naïve", (1, 2, 3), (0.1,), ("a", "b"), np.arange(6.0).reshape(2, 3)),
        OpRecorded(5, "mul", (3, 4), (), "float64", 0, ("", "2.0"), "1", __file__, 3),
        everything(big, float("nan"), False, "", (), (), (), None),
        everything(-big, float("inf"), False, "x" * 100, (big, -big), (float("nan"), -0.0), ("",), np.array(True)),
        ValueSeen(5, "value", -1, -1, (2,), 0.0, 1.0, 0.5, 1.0, 0, np.array([0.0, 1.0], np.float16)),
        everything(0, -0.0, True, "x", (0,) * 50, (1.0,) * 3, ("a",), np.zeros((0, 4), np.complex64), 8),
    ]


@pytest.fixture
def recorded() -> Callable[..., Recording]:
    """Make a Recording of given events."""

    def record_of(events: list[Event], **options: object) -> Recording:
        bus, rec = Bus(), Recording(**options)  # type: ignore[arg-type]
        bus.attach(rec)
        for e in events:
            bus.emit(e)
        bus.detach(rec)
        return rec

    return record_of


@pytest.fixture
def saved(tmp_path: Path) -> Callable[[Recording], bytes]:
    """The bytes of a saved Recording."""

    def bytes_of(rec: Recording) -> bytes:
        rec.save(tmp_path / "saved.lab")
        return (tmp_path / "saved.lab").read_bytes()

    return bytes_of


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Recording]:
    """Load a Recording from bytes."""

    def loaded(data: bytes, **options: object) -> Recording:
        (tmp_path / "loaded.lab").write_bytes(data)
        return Recording.load(tmp_path / "loaded.lab", **options)  # type: ignore[arg-type]

    return loaded


@pytest.fixture
def altered() -> Callable[..., bytes]:
    """Write a file anew, correct in form, with some members changed: what an attacker or another version would make."""

    def rewritten(data: bytes, change: Callable[[str, bytes], bytes | None]) -> bytes:
        file = io.BytesIO()
        writer = Writer(file)
        with zipfile.ZipFile(io.BytesIO(data)) as z:
            for name in z.namelist():
                content = change(name, z.read(name))
                if content is not None:
                    writer.put(name, content)
        writer.finish()
        return file.getvalue()

    return rewritten
