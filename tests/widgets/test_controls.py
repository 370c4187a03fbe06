"""RunControls: clicks set flags on the run, what is shown is what the run says, a failure is a sentence."""

from __future__ import annotations

import io
import threading

import pytest
from PIL import Image

from lab.errors import RunError, ViewError
from tests.widgets.golden import falling, training
from widgets.board import Dashboard, dashboard
from widgets.controls import RunControls
from widgets.live.buttons import free_of_blocked_cell
from widgets.live.pacer import PACER


class FakeRun:
    """The surface of a Run that the controls may use, with every call written down."""

    def __init__(self) -> None:
        self.state, self.progress, self.reason = "running", (3, 10), ""
        self.hyperparameters = {"learning_rate": 0.01}
        self.calls: list[object] = []
        self.recording = training(falling(10))
        self.rewound = threading.Event()
        self.units, self.breakpoints, self.graph = ("step", "op", "node"), (), None
        self.is_inside, self.unmet_breakpoints = False, ()

    def break_on(self, **condition):
        self.calls.append(condition)
        if condition.get("at") == "nowhere":
            raise RunError("fake knows no such place", given="nowhere", hint="elsewhere")
        if "loss_above" in condition:
            self.breakpoints = tuple(known for known in self.breakpoints if "loss_above" not in known)
        self.breakpoints += (str(condition),)
        return str(condition)

    def clear_breakpoint(self, name):
        self.breakpoints = tuple(known for known in self.breakpoints if known != name)

    def pause(self):
        self.calls.append("pause")
        self.state = "paused"

    def resume(self):
        self.calls.append("resume")
        self.state = "running"

    def step(self, of="step"):
        self.calls.append("step" if of == "step" else f"step {of}")

    def stop(self):
        self.calls.append("stop")
        self.state = "stopped"

    def set(self, name, value):
        if value > 0.5:
            raise RunError("fake cannot change learning_rate", given=str(value), hint="smaller")
        self.calls.append((name, value))
        self.hyperparameters[name] = value

    def rewind(self):
        self.calls.append("rewind")
        self.reason, self.trouble = "", None
        self.rewound.set()


@pytest.fixture
def run():
    return FakeRun()


@pytest.fixture
def controls(run):
    made = RunControls(run)
    assert made.widget is not None
    yield made
    made.dispose()


def test_clicks_set_flags_on_the_run_and_the_names_follow(run, controls):
    parts = controls._parts
    parts["Pause"].click()
    assert parts["Pause"].description == "Resume"
    parts["Pause"].click()
    assert parts["Pause"].description == "Pause"
    parts["Step"].click()
    parts["Stop"].click()
    assert run.calls == ["pause", "resume", "step", "stop"]


def test_progress_and_state_are_shown(run, controls):
    run.progress = (7, 10)
    controls.refresh()
    assert controls._parts["bar"].value == 0.7
    assert controls._parts["where"].value == "step 7 of 10"
    assert "running" in controls._parts["text"].text


def test_an_unknown_number_of_steps_is_shown_as_such(run, controls):
    run.progress = (7, 0)
    controls.refresh()
    assert controls._parts["where"].value == "step 7"


def test_the_slider_sets_the_learning_rate_once(run, controls):
    slider = controls._sliders["learning_rate"]
    slider.value = 0.1
    assert run.calls == [("learning_rate", pytest.approx(0.1))]
    controls.refresh()
    assert len(run.calls) == 1


def test_only_the_hyperparameters_asked_for_get_a_slider(run):
    run.hyperparameters |= {"beta1": 0.9, "weight_decay": 0.0}
    few, more = RunControls(run), RunControls(run, hyperparameters=("learning_rate", "weight_decay", "unknown"))
    assert few.widget is not more.widget
    assert list(few._sliders) == ["learning_rate"]
    assert list(more._sliders) == ["learning_rate", "weight_decay"]
    few.dispose()
    more.dispose()


@pytest.mark.parametrize(("rate", "shown"), [(0.002, 0.002), (1e-9, 1e-4), (0.0, 1e-4)])
def test_a_learning_rate_set_by_code_moves_the_slider_as_far_as_it_goes_and_nothing_else(run, controls, rate, shown):
    run.hyperparameters["learning_rate"] = rate
    controls.refresh()
    controls.refresh()
    assert controls._sliders["learning_rate"].value == pytest.approx(shown)
    assert run.calls == []


def test_what_the_run_refuses_is_shown_with_its_hint(run, controls):
    controls._sliders["learning_rate"].value = 1.0
    assert "fake cannot change learning_rate" in controls._parts["text"].text
    assert "hint:  smaller" in controls._parts["text"].text


def test_a_failed_run_says_why_and_takes_no_more_clicks(run, controls):
    run.state, run.reason = "failed", "matmul needs the inner dimensions to agree"
    controls._tick()
    assert "failed: matmul needs the inner dimensions to agree" in controls._parts["text"].text
    assert all(controls._parts[name].disabled for name in ("Pause", "Step", "Stop"))
    assert controls._sliders["learning_rate"].disabled


def test_after_nan_one_click_goes_back(run, controls):
    back = controls._parts["Back to sound state"]
    assert back.layout.display == "none"
    run.state, run.reason = "paused", "the loss is nan since step 3"
    run.trouble = RunError(run.reason)
    controls.refresh()
    assert back.layout.display == ""
    back.click()
    assert run.rewound.wait(30)
    assert "rewind" in run.calls


def test_nan_is_named_with_the_operation_in_which_it_began(run, controls):
    run.state, run.reason = "paused", "the loss became nan at step 3"
    run.trouble = RunError(run.reason, given="first nan or inf in log (cell In [3], line 2)")
    controls.refresh()
    assert "the loss became nan at step 3: first nan or inf in log (cell In [3]" in controls._parts["text"].text


def test_the_way_back_of_a_run_that_has_ended_does_not_say_that_it_can_go_on(run, controls):
    run.state, run.progress, run.reason = "failed", (7, 10), "rank 0 was lost"
    controls.refresh()
    controls._parts["Back to sound state"].click()
    assert run.rewound.wait(30)
    for thread in threading.enumerate():
        if thread.name == "lab-rewind":
            thread.join(30)
    assert "This run has ended: another one, of the same model, goes on from here." in controls._parts["text"].text
    assert "lower it" not in controls._parts["text"].text


def test_an_explosion_without_nan_is_named_and_the_way_back_says_what_to_do(run, controls):
    back = controls._parts["Back to sound state"]
    run.recording, run.progress = training([2.0, 1.0, 40.0, 50.0, 60.0, 55.0, 70.0]), (7, 10)
    controls.refresh()
    assert "the loss exploded: since step 3 it is over 3 times" in controls._parts["text"].text
    assert back.layout.display == ""
    run.progress = (2, 10)
    back.click()
    assert run.rewound.wait(30)
    for thread in threading.enumerate():
        if thread.name == "lab-rewind":
            thread.join(30)
    assert "Back at step 2" in controls._parts["text"].text
    assert "learning rate is still 0.01" in controls._parts["text"].text
    assert back.layout.display == "none"


def test_one_bad_batch_is_no_explosion(run, controls):
    run.recording, run.progress = training([2.0, 1.0, 40.0, 1.0, 1.0, 1.0, 70.0]), (7, 10)
    controls.refresh()
    assert "exploded" not in controls._parts["text"].text


def test_a_pause_is_answered_while_its_step_lasts(controls, run):
    run.is_pausing = True
    controls.refresh()
    assert controls._parts["text"].text == "‖ pausing after this step"
    run.state, run.is_pausing = "paused", False
    controls.refresh()
    assert controls._parts["text"].text == "‖ paused"


def test_step_lets_pass_what_is_chosen(controls, run):
    by = controls._parts["by"]
    assert [label for label, _ in by.options] == ["training step", "operation", "backward node"]
    for unit in ("op", "node", "step"):
        by.value = unit
        controls._parts["Step"].click()
    assert run.calls == ["step op", "step node", "step"]


def asked(controls, **message):
    """What the page says, in one message."""
    row = controls._breakpoints.widget
    row._handle_custom_msg(message, [])
    return row.listed


@pytest.mark.parametrize(
    ("kind", "given", "wanted"),
    [
        ("loss above", "2,5", {"loss_above": 2.5}),
        ("loss above", "−1", {"loss_above": -1.0}),
        ("gradient norm above", " 1e3 ", {"gradient_above": 1000.0}),
        ("first nan or inf", "", {"nonfinite": True}),
        ("operation or module", "matmul", {"at": "matmul"}),
        ("backward through", "0", {"at": "0", "backward": True}),
    ],
)
def test_breakpoints_are_set_shown_and_taken_away(controls, run, kind, given, wanted):
    ((name, _),) = asked(controls, add=[kind, given])
    assert run.calls == [wanted]
    assert name == str(wanted)
    assert asked(controls, remove=name) == []
    assert run.breakpoints == ()
    assert asked(controls, remove=name) == [], "a second click on what has gone"


@pytest.mark.parametrize(("kind", "given", "problem"), [("loss above", "much", "a bound is a number"),
                                                        ("operation or module", "nowhere", "fake knows no such place"),
                                                        ("loss above", " ", "needs a bound or a place")])  # fmt: skip
def test_a_breakpoint_that_is_refused_is_explained_until_one_is_right(controls, run, kind, given, problem):
    assert asked(controls, add=[kind, given]) == []
    assert problem in controls._parts["text"].text
    asked(controls, add=["operation or module", "relu"])
    assert run.breakpoints == ("{'at': 'relu'}",)
    assert controls._parts["text"].text == "▶ running"


def test_a_field_is_emptied_of_what_was_added_and_keeps_what_was_refused(controls, monkeypatch):
    told = []
    monkeypatch.setattr(controls._breakpoints.widget, "send", told.append)
    asked(controls, add=["operation or module", "nowhere"])
    assert told == [], "what was refused stays, to be put right"
    asked(controls, add=["operation or module", " relu"])
    assert told == [{"added": " relu"}]


def test_a_bound_that_takes_the_place_of_another_says_so(controls, run):
    asked(controls, add=["loss above", "2.5"])
    assert "takes the place" not in controls._parts["text"].text
    asked(controls, add=["loss above", "3"])
    assert "{'loss_above': 3.0} takes the place of {'loss_above': 2.5}" in controls._parts["text"].text


def test_a_breakpoint_that_the_last_step_did_not_come_to_says_so(controls, run):
    run.breakpoints, run.unmet_breakpoints = ("loss above -1", "forward through 'tanh'"), ("forward through 'tanh'",)
    controls.refresh()
    assert [words for _, words in controls._breakpoints.widget.listed] == [
        "loss above −1", "forward through 'tanh' (not in the last step)"
    ]  # fmt: skip


@pytest.mark.parametrize("content", [{}, {"add": "loss above"}, {"add": ["of another page", "3"]}, {"remove": 3}, None])
def test_a_message_that_is_not_understood_is_left_alone(controls, run, content):
    controls._breakpoints.widget._received(None, content, [])
    assert run.calls == []


def test_nothing_of_a_run_that_has_ended_can_be_asked_for(controls, run):
    asked(controls, add=["loss above", "2.5"])
    run.state = "stopped"
    controls.refresh()
    assert (controls._breakpoints.widget.ended, controls._breakpoints.widget.listed) == (True, [])
    assert controls._parts["by"].disabled


def test_a_run_whose_operations_run_elsewhere_offers_neither_their_steps_nor_breakpoints_at_them():
    run = FakeRun()
    run.units = ("step",)
    made = RunControls(run)
    assert made.widget is not None
    assert made._parts["by"].layout.display == "none"
    assert [kind for kind, _ in made._breakpoints.widget.kinds] == ["loss above", "gradient norm above"]
    assert made._breakpoints.widget.field == "Bound"
    made.dispose()


def test_the_graph_of_a_step_appears_when_one_looks_into_it_and_is_replaced_by_the_next(digits_run):
    run = digits_run
    made = RunControls(run)
    assert made.widget is not None
    assert made._step_picture.widget.children == ()
    for _ in range(2):
        run.step(3, of="op")
        assert run.wait_until("paused", timeout=30)
        made.refresh()
        assert made._step_picture.view.recording is run.graph
        assert "held after" in made.text
        run.step()
        assert run.wait_until("paused", timeout=30)
    made.dispose()


@pytest.fixture
def digits_run():
    from lab import fit
    from lab.data import digits
    from lab.nn import mlp

    run = fit(mlp(64, 8, 10, rng=0), digits()[0], paused=True)
    yield run
    run.stop()
    run.wait(30)


def test_every_control_has_a_name_and_a_tooltip(controls):
    for name in ("Pause", "Step", "Stop", "Back to sound state"):
        assert controls._parts[name].description
        assert controls._parts[name].tooltip
    for slider in controls._sliders.values():
        assert slider.description == "Learning rate"
        assert slider.tooltip


def test_a_button_is_freed_from_the_cell_that_blocks_and_the_lack_of_it_is_no_error():
    class Comm:
        pass

    class Button:
        comm = Comm()

    button = Button()
    assert not free_of_blocked_cell(button)
    button.comm._reply_subshell_id = "subshell"
    assert free_of_blocked_cell(button)
    assert not hasattr(button.comm, "_reply_subshell_id")
    assert not free_of_blocked_cell(None)


def test_a_dashboard_leaves_the_notebook_with_loss_and_gradients(run, tmp_path):
    made = dashboard(run)
    assert all(view.title in made.export(tmp_path / "run.html").read_text() for view in made.views)
    assert made.export(tmp_path / "run.svg", theme="dark").read_bytes().startswith(b"<svg")
    both, alone = (what.export(tmp_path / "run.png", scale=1).read_bytes() for what in (made, made.loss))
    heights = [Image.open(io.BytesIO(png)).size[1] for png in (both, alone)]
    assert heights[0] > 1.5 * heights[1], "one below the other"
    with pytest.raises(ViewError, match=r"pictures are written as \.html, \.svg or \.png"):
        made.export(tmp_path / "run.pdf")


def test_the_dashboard_holds_controls_loss_and_gradients(run):
    made = dashboard(run)
    assert isinstance(made, Dashboard)
    assert len(made.widget.children) == 2
    assert len(made.widget.children[1].children) == 2
    made.dispose()


def test_controls_are_displayed_with_words_beside_the_widget(run, monkeypatch):
    shown = []
    monkeypatch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
    made = RunControls(run)
    made._ipython_display_()
    assert "step 3 of 10" in shown[0]["text/html"]
    assert "application/vnd.jupyter.widget-view+json" in shown[1]
    made.dispose()


def test_disposing_leaves_no_widget_and_no_tick_behind(run):
    from ipywidgets.widgets.widget import _instances

    before = set(_instances)
    for _ in range(3):
        made = RunControls(run)
        assert made.widget is not None
        made.dispose()
    kept = [_instances[k] for k in set(_instances) - before]
    assert [type(w).__name__ for w in kept] == []


def test_a_run_that_failed_before_its_first_step_offers_no_way_back(run, controls):
    run.state, run.progress, run.reason = "failed", (0, 10), "there are not enough workers"
    controls.refresh()
    assert controls._parts["Back to sound state"].layout.display == "none"
    run.progress = 4, 10
    controls.refresh()
    assert controls._parts["Back to sound state"].layout.display == ""


def test_the_graph_of_a_held_step_is_folded_away_while_the_run_goes_on_without_it(digits_run):
    run = digits_run
    made = RunControls(run)
    assert made.widget is not None
    layout = made._step_picture.widget.layout
    run.step(3, of="op")
    assert run.wait_until("paused", timeout=30)
    made.refresh()
    assert (layout.display or "") == ""
    run.step()
    assert run.wait_until("paused", timeout=30)
    made.refresh()
    assert (layout.display or "") == ""  # all of that step, and nothing is under way
    run.resume()
    made.refresh()
    assert layout.display == "none"
    run.pause()
    assert run.wait_until("paused", timeout=30)
    run.step(2, of="op")
    assert run.wait_until("paused", timeout=30)
    made.refresh()
    assert (layout.display or "") == ""
    made.dispose()


def test_the_picture_of_a_step_can_be_closed_and_comes_back_when_the_run_is_held_elsewhere(digits_run):
    run = digits_run
    made = RunControls(run)
    assert made.widget is not None
    picture = made._step_picture
    run.step(3, of="op")
    assert run.wait_until("paused", timeout=30)
    made.refresh()
    close, _ = picture.widget.children
    assert close.description == "Close picture"
    close.click()
    made.refresh()
    assert picture.widget.children == ()
    run.resume()
    made.refresh()
    assert picture.widget.children == (), "a run that goes on has nothing to show"
    run.pause()
    assert run.wait_until("paused", timeout=30)
    run.step(2, of="op")
    assert run.wait_until("paused", timeout=30)
    made.refresh()
    assert len(picture.widget.children) == 2
    made.dispose()


def test_the_words_for_where_a_run_is_held_name_the_box_of_the_picture():
    import lab
    from lab.nn import mlp

    run = lab.fit(mlp(64, 8, 10, rng=0), lab.data.digits()[0], paused=True)
    run.step(4, of="op")
    assert run.wait_until("paused", timeout=30)
    controls = RunControls(run)
    assert controls.widget is not None
    view = controls._step_picture.view
    assert controls._parts["text"].text == "‖ paused: held after matmul of module 2: v₄ of the picture"
    assert "v₄ = v₃ @ 2.weight" in {n.label for n in view.picture_at(len(run.graph)).nodes}
    view.most = 0  # as large as one that is shown by module
    controls.refresh()
    box = controls._parts["text"].text.rpartition(": ")[2]
    assert box == "v₄ in the box “layer 2” of the picture"
    assert "layer 2" in {n.label for n in view.picture_at(len(run.graph)).nodes}
    controls.dispose()
    run.stop()
    assert run.join(30)


def test_a_page_that_shows_the_controls_is_told_again_what_it_may_have_missed(run, controls, monkeypatch):
    run.state, run.breakpoints = "paused", ("loss above 3",)
    controls.refresh()
    sent = {}
    for name, part in controls._parts.items():
        monkeypatch.setattr(part, "send_state", lambda keys, name=name: sent.update({name: set(keys)}))
    text = controls._parts["text"]
    text._handle_custom_msg({"event": "another"}, [])
    controls._tick()
    assert sent == {}
    with PACER._turn:
        text._handle_custom_msg({"shown": True}, [])
        assert sent == {}, "by the pacer, which writes to all of them"
        controls._tick()
    assert sent == {
        "bar": {"value", "bar_style"}, "where": {"value"}, "Pause": {"description", "icon", "disabled"},
        "Step": {"disabled"}, "by": {"disabled"}, "Stop": {"disabled"}, "text": {"text"},
    }  # fmt: skip
