"""AccumulationView and MeansView: what they draw and say of experiments with micro-batches."""

import pytest

from lab.events import AccumulationBegun, AccumulationMeasured, MeansBegun, MeansStepped
from tests.widgets.golden import recorded
from widgets import AccumulationView, MeansView
from widgets.pictures.twin import svg_of

MIB = 2**20


def sizes(limit=3 * MIB, *, told=False):
    return recorded([
        AccumulationBegun(256, limit, 9, told), AccumulationMeasured(256, 1, 8 * MIB, 5.0, 4.0, 6.0, 0.0),
        AccumulationMeasured(64, 4, 2 * MIB, 7.0, 6.0, 9.0, 2e-7),
    ])  # fmt: skip


def traces(view, at):
    return {trace.name: trace for trace in view.picture_at(at).figure.data}


def test_memory_stands_above_time_and_what_passes_the_limit_is_marked():
    drawn = traces(AccumulationView(sizes()), 3)
    assert list(drawn["held at most"].y) == [8.0, 2.0]
    assert (list(drawn["above the limit"].x), list(drawn["above the limit"].y)) == ([256], [8.0])
    assert list(drawn["limit"].y) == [3.0, 3.0]
    assert (list(drawn["median step"].y), list(drawn["fastest step"].y)) == ([5.0, 7.0], [4.0, 6.0])


def test_without_a_limit_none_is_drawn():
    view = AccumulationView(sizes(0))
    assert list(traces(view, 3)) == ["held at most", "median step", "fastest step"]
    assert "limit" not in view.picture_at(3).caption


def test_words_say_size_memory_time_and_gradient():
    view = AccumulationView(sizes())
    assert view.text_at(3).splitlines() == [
        "4 micro-batches of 64: at most 2 MiB; 7 ms a step, 6 ms to 9 ms; gradient 2e−7 from the whole batch's.",
        "1 micro-batch of 256: at most 8 MiB, above the limit; 5 ms a step, 4 ms to 6 ms; the whole batch's gradient.",
    ]
    assert view.text_at(1) == "Nothing is measured yet."
    caption = view.picture_at(3).caption
    assert "a limit of 3 MiB, marked, not enforced: micro-batches of 64 fit" in caption
    assert "medians of 9 steps" in caption
    assert "Somebody recorded" in AccumulationView(sizes(told=True)).picture_at(3).caption
    assert "none fits" in AccumulationView(sizes(1)).picture_at(3).caption


def ways():
    yield MeansBegun(4, 64, 2, 0.1)
    for way, losses in {"whole batch": (2.0, 1.0), "mean of means": (2.0, 1.5), "no division": (2.0, 1e31)}.items():
        for step, loss in enumerate(losses, 1):
            yield MeansStepped(way, step, loss)
    yield MeansStepped("learning rate x 4", 1, 2.0)


def test_each_way_has_a_curve_and_below_how_far_it_is_from_whole_batches():
    rec = recorded(ways())
    lines = MeansView(rec).picture_at(len(rec)).figure.data
    assert [line.name for line in lines[:4]] == ["whole batch", "mean of means", "no division", "learning rate x 4"]
    assert [list(line.y) for line in lines[:4]] == [[2.0, 1.0], [2.0, 1.5], [2.0, None], [2.0]]
    assert [(line.name, list(line.y)) for line in lines[4:]] == [
        ("mean of means", [1e-9, 0.5]), ("no division", [1e-9, None]), ("learning rate x 4", [1e-9]),
    ]  # fmt: skip


def test_the_caption_says_how_far_the_curves_part_and_which_leave_or_end():
    rec = recorded(ways())
    caption = MeansView(rec).picture_at(len(rec)).caption
    assert "in 4 micro-batches" in caption
    assert "Mean of means: at most 0.5 apart." in caption
    assert "No division: at most 1e31 apart, and leaves the frame." in caption
    assert "Learning rate x 4: at most 0.0 apart, ended after 1 step: no finite number." in caption


def test_the_words_are_the_last_step_of_each_way():
    rec = recorded(ways())
    assert MeansView(rec).text_at(5).splitlines() == [
        "Step 2, mean of means: loss 1.5.", "Step 2, whole batch: loss 1.0.",
    ]  # fmt: skip
    assert MeansView(rec).text_at(1) == "Nothing is measured yet."


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_still_twins_have_axes_and_names(theme):
    still = svg_of(AccumulationView(sizes()).picture_at(3), theme)
    for words in ("MiB held at most", "ms of a step", "examples of a micro-batch", "above the limit"):
        assert words in still
    rec = recorded(ways())
    still = svg_of(MeansView(rec).picture_at(len(rec)), theme)
    for words in ("loss of the batch", "from whole batches", "mean of means"):
        assert words in still


def test_a_recording_of_something_else_says_what_to_write():
    assert "measure_accumulation" in AccumulationView(recorded([])).text_at(0)
    assert "compare_means" in MeansView(recorded([])).text_at(0)
