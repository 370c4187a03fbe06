"""A training that was written to disk goes on from there to the same bits; what does not fit is refused by name."""

import json
import zipfile

import numpy as np
import pytest

import lab
from lab.errors import ArgumentError, DataError, UnsupportedError
from lab.events import SnapshotWritten, StepFinished
from lab.nn import Dropout, Linear, ReLU, Sequential
from lab.optim import SGD, Adam, Cosine
from lab.parallel import Pipeline

SOON = 60.0


def network():
    return Sequential(Linear(6, 8, rng=0), ReLU(), Dropout(0.3, rng=3), Linear(8, 3, rng=1))


def data(seed=0):
    drawing = np.random.default_rng(seed)
    return drawing.normal(size=(40, 6)).astype("float32"), drawing.integers(0, 3, 40)


OPTIMIZERS = {
    "adam": lambda p: Adam(p, Cosine(1e-2, 20)),
    "momentum": lambda p: SGD(p, 0.05, momentum=0.9),
}


def begun(module, *, optimizer="adam", epochs=4, **more):
    more.setdefault("train", data())
    return lab.fit(module, more.pop("train"), validation=data(1), batch_size=8, epochs=epochs, measure_every=0,
                   optimizer=OPTIMIZERS[optimizer](module.parameters()), **more)  # fmt: skip


def state(module):
    return np.concatenate([np.ravel(value) for value in module.state_dict().values()])


def told(run):
    return [(event.step, event.loss) for event in run.recording if isinstance(event, StepFinished)]


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
@pytest.mark.parametrize("every", [5, 7])
def test_it_goes_on_to_the_same_bits_also_from_the_end_of_an_epoch(tmp_path, optimizer, every):
    path = tmp_path / "state"
    whole = network()
    all_of_it = begun(whole, optimizer=optimizer)
    all_of_it.wait(SOON)
    first = network()
    run = begun(first, optimizer=optimizer, snapshot=path, snapshot_every=every, paused=True)
    run.step(every + 1)
    assert run.wait_until("paused", timeout=SOON)
    run.set("momentum" if optimizer == "momentum" else "beta1", 0.9)
    run.stop()
    run.wait(SOON)
    [written] = [event for event in run.recording if isinstance(event, SnapshotWritten)]
    assert (written.step, written.path) == (every, str(path))
    second = network()
    again = begun(second, optimizer=optimizer, resume=path)
    assert again.wait(SOON).n_steps == 20
    np.testing.assert_array_equal(state(second), state(whole))
    assert told(again) == told(all_of_it)[every:]
    again.rewind()
    assert again.progress[0] == 20 - 20 % 5


def test_the_state_to_rewind_to_is_written_too(tmp_path):
    run = begun(network(), snapshot=tmp_path / "state", snapshot_every=7, paused=True)
    run.step(8)
    assert run.wait_until("paused", timeout=SOON)
    run.rewind()
    sound = state(run._job.model)
    run.stop()
    module = network()
    again = begun(module, resume=tmp_path / "state", paused=True)
    assert again.wait_until("paused", timeout=SOON)
    assert again.progress[0] == 7
    again.rewind()
    assert again.progress[0] == 5
    np.testing.assert_array_equal(state(module), sound)
    again.stop()


def test_the_end_is_written_and_more_epochs_go_on_from_it(tmp_path):
    whole, first = network(), network()
    begun(whole, optimizer="momentum", epochs=4).wait(SOON)
    begun(first, optimizer="momentum", epochs=2, snapshot=tmp_path / "state", snapshot_every=999).wait(SOON)
    second = network()
    assert begun(second, optimizer="momentum", epochs=4, resume=tmp_path / "state").wait(SOON).n_steps == 20
    np.testing.assert_array_equal(state(second), state(whole))


def written(tmp_path):
    begun(network(), epochs=1, snapshot=tmp_path / "state").wait(SOON)
    return tmp_path / "state"


@pytest.mark.parametrize(
    ("more", "given"),
    [({"optimizer": "momentum"}, "optimizer: 'Adam' there, 'SGD' here"),
     ({"train": data(5)}, "checksum of the data: "),
     ({"rng": 7}, "seed: 0 there, 7 here")],
)  # fmt: skip
def test_a_snapshot_of_another_training_is_refused_with_the_difference(tmp_path, more, given):
    path, module = written(tmp_path), network()
    before = state(module)
    with pytest.raises(ArgumentError, match=f"the snapshot is of another training\ngiven: {given}"):
        begun(module, resume=path, **more)
    np.testing.assert_array_equal(state(module), before)


@pytest.mark.parametrize("n_bytes", [0, 10, 2000])
def test_a_file_that_is_cut_off_is_refused(tmp_path, n_bytes):
    path = written(tmp_path)
    path.write_bytes(path.read_bytes()[:n_bytes])
    with pytest.raises(DataError, match=r"the snapshot cannot be read\ngiven: .*state: "):
        begun(network(), resume=path)


@pytest.mark.parametrize("spoil", [lambda about: about.update(format="else"), lambda about: about.update(version=2),
                                   lambda about: about.pop("sound"), lambda about: about.update(step="many"),
                                   lambda about: about.update(fit=None)])  # fmt: skip
def test_a_file_that_says_something_else_of_itself_is_refused(tmp_path, spoil):
    path = written(tmp_path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    about = json.loads(parts["about.json"])
    spoil(about)
    parts["about.json"] = json.dumps(about).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    with pytest.raises(DataError):
        begun(network(), resume=path)


def test_a_missing_file_and_a_folder_that_is_not_there_are_told_at_the_call(tmp_path):
    with pytest.raises(DataError, match="the snapshot cannot be read"):
        begun(network(), resume=tmp_path / "none")
    with pytest.raises(ArgumentError, match="the snapshot cannot be written"):
        begun(network(), snapshot=tmp_path / "none" / "state")
    with pytest.raises(ArgumentError, match="snapshot_every"):
        begun(network(), snapshot=tmp_path / "state", snapshot_every=0)


def test_a_pipeline_says_that_it_is_not_written(tmp_path):
    with pytest.raises(UnsupportedError, match="a pipeline is not written to disk"):
        begun(network(), snapshot=tmp_path / "state", on=Pipeline())
