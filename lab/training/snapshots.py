"""Snapshots of a training on disk: written whole or not at all, and read back by the same training on another day.

A file is a zip of arrays and one page of JSON, without pickle and without code. It is believed no further than it fits
the training that is to go on from it: the same parameters, optimiser, data and order.
"""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from lab.checks import whole
from lab.errors import ArgumentError, DataError
from lab.events import SnapshotWritten, bus
from lab.events.gate import clock
from lab.files import replacing, require_room
from lab.optim.optimizer import Snapshot
from lab.precision.scaling import UNSCALED, Scaler
from lab.training.footing import Footing, arrays_of, footing_of, stand_on
from lab.training.standing import Sound, named_buffers
from lab.words import shown

if TYPE_CHECKING:
    from lab.training.trainer import Training

FORMAT, VERSION = "lab-training", 1
HEADER = 4096
"""Bytes that the head of an array may take in a file."""
UNREADABLE = (
    OSError, zipfile.BadZipFile, zlib.error, KeyError, EOFError, ValueError, TypeError, RecursionError,
)  # fmt: skip
MAX_ABOUT = 1 << 20
"""Bytes of the page of JSON."""


class Snapshots:
    """Where and how often a training is written.

    Args:
        path: of the file, which the next one replaces. Where ranks train, the first writes: on its own machine.
        every: steps from one to the next; the end of the training is written, too.

    Raises:
        ArgumentError: the file cannot be written, or the number is none.
    """

    def __init__(self, path: str | os.PathLike[str], every: int) -> None:
        self.every = whole("snapshot_every", every, least=1, hint="100 writes the state after every hundredth step")
        if not isinstance(path, str | os.PathLike):
            raise ArgumentError("snapshot= is the path of a file", given=f"snapshot={shown(path)}",
                                hint='snapshot="training.snap"')  # fmt: skip
        self.path = str(Path(path).absolute())  # ranks may have another working directory
        try:
            require_room(self.path, 1)
        except OSError as error:
            raise ArgumentError("the snapshot cannot be written", given=error,
                                hint="another folder, which is there and may be written to") from error  # fmt: skip
        self._fit: dict[str, Any] | None = None

    def is_due(self, training: Training) -> bool:
        """Whether the state that it has now is one of those that are written."""
        step = training.step
        return bool(step) and (not step % self.every or training.finished)

    def write_if_due(self, training: Training, more: Mapping[str, Any] | None = None) -> None:
        """Write the state after a step, if it is one of those; `more` is kept beside it."""
        if not self.is_due(training):
            return
        start = clock()
        self._fit = self._fit or _fingerprint(training)
        n_bytes = write(training, self.path, self._fit, more or {})
        if bus.listeners:
            bus.emit(SnapshotWritten(training.step, self.path, n_bytes, 1000 * (clock() - start)))


def write(training: Training, path: str, fit: dict[str, Any], more: Mapping[str, Any]) -> int:
    """Write where a training stands; the bytes of the file."""
    footing, arrays = footing_of(training), arrays_of(training)
    sound = footing.sound
    kept = [a for values, slots in zip(sound.optimizer.values, sound.optimizer.slots, strict=True)
            for a in (values, *slots.values())] + list(sound.buffers.values())  # fmt: skip
    about = footing._asdict() | {"format": FORMAT, "version": VERSION, "fit": fit, "more": dict(more)}
    about["schedule"] = footing.schedule is not None
    about["sound"] = {"step": sound.step, "accuracy": sound.accuracy, "n_updates": sound.optimizer.n_steps,
                      "scaler": sound.scaler}  # fmt: skip
    # A name of its own: what a writer who was killed left is written over by the next, and nothing stays beside.
    beside = f".{Path(path).name}.part"
    with replacing(path, beside=beside) as file, zipfile.ZipFile(file, "w") as archive:
        archive.writestr("about.json", json.dumps(about, default=np.ndarray.tolist))
        for i, array in enumerate([*arrays, *kept]):
            buffer = io.BytesIO()
            np.save(buffer, array, allow_pickle=False)
            archive.writestr(f"array{i}.npy", buffer.getbuffer())
    return sum(array.nbytes for array in (*arrays, *kept))


def take_up(training: Training, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Have a training that has not begun stand where the one stood that was written; what was kept beside it.

    Raises:
        DataError: there is no such file, or it is no snapshot, damaged or newer.
        ArgumentError: it is of another training; says in what they differ.
    """
    mine = arrays_of(training)
    about, arrays = _read(path, training, [*mine, *mine])
    values, buffers = arrays[len(mine) :], {}
    n_flat = sum(1 + len(slots) for slots in training.optimizer.slots)
    for (name, _), array in zip(named_buffers(training.model), values[n_flat:], strict=True):
        buffers[name] = array
    try:
        sound, flat = about["sound"], iter(values[:n_flat])
        optimizer = Snapshot(int(sound["n_updates"]), [], [])
        for slots in training.optimizer.slots:
            optimizer.values.append(next(flat))
            optimizer.slots.append({name: next(flat) for name in slots})
        footing = Footing(
            int(about["step"]), float(about["first_loss"]), float(about["last_loss"]), float(about["accuracy"]),
            int(about["n_updates"]), {str(n): float(v) for n, v in about["hyperparameters"].items()},
            training.optimizer.schedule if about["schedule"] else None,
            {str(n): float(v) for n, v in about["bounds"].items()}, int(about["broke_at"]),
            Sound(int(sound["step"]), float(sound["accuracy"]), optimizer, buffers, _scaler(sound)),
            tuple(about["generators"]), _scaler(about),
        )  # fmt: skip
        more = dict(about["more"])
        stand_on(training, footing, arrays[: len(mine)])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise _damaged(path, error) from error
    return more


def _scaler(kept: Any) -> Scaler:
    """Files from before there was one have none."""
    scale, n_good = kept.get("scaler", UNSCALED)
    return Scaler(float(scale), int(n_good))


def _read(
    path: str | os.PathLike[str], training: Training, like: list[npt.NDArray[Any]]
) -> tuple[dict[str, Any], list[npt.NDArray[Any]]]:
    """What a file holds, if it fits."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("about.json").file_size > MAX_ABOUT:
                raise _damaged(path, "its description is too long")
            about = json.loads(archive.read("about.json"))
            if not isinstance(about, dict) or about.get("format") != FORMAT:
                raise _damaged(path, "it is no snapshot of a training")
            if about.get("version") != VERSION:
                raise DataError("the snapshot is of another version of the lab", given=f"{path}: version "
                                f"{shown(about.get('version'))}, {VERSION} is known", hint="use that one")  # fmt: skip
            _require_alike(about.get("fit"), _fingerprint(training))
            return about, [_array(archive, i, array, path) for i, array in enumerate(like)]
    except UNREADABLE as error:
        if isinstance(error, ArgumentError | DataError):
            raise
        raise _damaged(path, error) from error


def _array(archive: zipfile.ZipFile, i: int, like: npt.NDArray[Any], path: str | os.PathLike[str]) -> Any:
    name = f"array{i}.npy"
    if archive.getinfo(name).file_size > like.nbytes + HEADER:
        raise _damaged(path, f"{name} is too long")
    array: npt.NDArray[Any] = np.load(io.BytesIO(archive.read(name)), allow_pickle=False)
    if array.shape != like.shape or array.dtype != like.dtype:
        raise _damaged(path, f"{name} is {array.dtype}{list(array.shape)}, not {like.dtype}{list(like.shape)}")
    return array


def _damaged(path: str | os.PathLike[str], why: object) -> DataError:
    return DataError("the snapshot cannot be read", given=f"{path}: {why}",
                     hint="lab.fit(..., snapshot=path) writes one; resume= takes the same path")  # fmt: skip


def _fingerprint(training: Training) -> dict[str, Any]:
    """What must be the same for the same bits, in words and numbers."""
    loader, optimizer, data = training.loader, training.optimizer, training.loader.dataset
    checksum = zlib.crc32(np.ascontiguousarray(data.targets).view(np.uint8).reshape(-1).data,
                          zlib.crc32(np.ascontiguousarray(data.inputs).view(np.uint8).reshape(-1).data))  # fmt: skip
    return {
        "parameters": [f"{p.dtype}{list(p.shape)}" for p in optimizer.parameters],
        "optimizer": type(optimizer).__name__,
        "examples": len(data),
        "checksum of the data": checksum,
        "batch_size": loader.batch_size,
        "seed": loader.seed,
        "order": [loader.shuffle, loader.drop_last],
    }


def _require_alike(theirs: object, mine: dict[str, Any]) -> None:
    if not isinstance(theirs, dict):
        raise TypeError("it does not say of what training it is")
    for name, value in mine.items():
        if theirs.get(name) != value:
            raise ArgumentError("the snapshot is of another training", given=f"{name}: {shown(theirs.get(name))} there,"
                                f" {shown(value)} here", hint="resume= goes on with the same model, optimiser, data, "
                                "batch_size and rng")  # fmt: skip
