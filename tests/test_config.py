"""The State: switched for a block, restored however the block ends, separate in each thread."""

import threading

import pytest

import lab
from lab.config import STATE, State, using
from lab.errors import ArgumentError


def test_the_default_is_the_written_convention():
    assert STATE.get() == State(
        frozen=-1, transforms=0, axes=(), kinks="zero", dtype="float32", anomaly=False, module=""
    )


def test_settings_nest_and_are_restored_also_after_an_error():
    with lab.settings(kinks="half"):
        with lab.settings(dtype="float64"):
            assert (STATE.get().kinks, STATE.get().dtype) == ("half", "float64")
        assert STATE.get().dtype == "float32"
        with pytest.raises(ZeroDivisionError), lab.settings(kinks="one", anomaly=True):
            raise ZeroDivisionError
        assert (STATE.get().kinks, STATE.get().anomaly) == ("half", False)
    assert STATE.get() == State()


def test_a_setting_can_be_switched_off_inside():
    with lab.anomaly_mode(), lab.settings(anomaly=False):
        assert not STATE.get().anomaly


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ({"kinks": "two"}, "kinks is not a known convention"),
        ({"dtype": "float16"}, "parameters are float32 or float64"),
    ],
)
def test_unknown_choices_are_refused_and_nothing_changes(words, problem):
    with pytest.raises(ArgumentError, match=problem) as caught, lab.settings(**words):
        pass
    assert caught.value.given == repr(next(iter(words.values())))
    assert STATE.get() == State()


def test_a_thread_begins_with_the_defaults_unless_it_gets_the_context():
    import contextvars

    seen = []
    with using(kinks="one"):
        context = contextvars.copy_context()
        plain = threading.Thread(target=lambda: seen.append(STATE.get().kinks))
        copied = threading.Thread(target=lambda: context.run(lambda: seen.append(STATE.get().kinks)))
        for t in (plain, copied):
            t.start()
            t.join()
    assert seen == ["zero", "one"]
