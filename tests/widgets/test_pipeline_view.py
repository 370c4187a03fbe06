"""PipelineView: every number on it is one of the run's, each stop is one action, words say what the picture says."""

from __future__ import annotations

import pytest

import lab
from lab.events import ActionFinished, ActionStarted, ActivationMoved, RankFinished, RankStarted, StepFinished, bus
from lab.parallel import check_schedule, table_of
from lab.parallel.paper.ticks import ticks_of
from lab.parallel.pipeline.pacing import Paced
from tests.widgets.golden import recorded
from tests.widgets.golden_pipeline import MS, delayed, pipeline, ran, recorded_by_ranks, told
from widgets import Player
from widgets.fold import Stretch
from widgets.pictures.measure import text_width
from widgets.pictures.scene import SPANS
from widgets.pictures.tree import tree_of
from widgets.pictures.twin import svg_of
from widgets.views.pipeline.view import MOST_STOPS, PipelineView


def scene_at(view, k):
    return view.picture_at(int(Player(view).transport.stops[k]))


def bars(scene):
    return {node.id: node for node in scene.nodes if node.kind in SPANS and node.state != "waiting"}


def marks(scene, kind):
    return {mark.id: mark for mark in scene.marks if mark.kind == kind}


@pytest.fixture(scope="module", params=[("1f1b", 4, 4, 4), ("gpipe", 2, 3, 2), ("naive", 2, 2, 2), ("gpipe", 4, 2, 2)])
def real(request):
    order, n_stages, n_micro, n_ranks = request.param
    return ran(order, n_stages, n_micro, n_ranks=n_ranks, n_steps=2), order, n_stages, n_micro, n_ranks


def test_each_bar_is_a_measured_span_and_each_thin_one_an_action_of_the_plan(real):
    rec, order, n_stages, n_micro, n_ranks = real
    view = PipelineView(rec)
    history, scene = view.history(), view.picture_at(len(rec))
    assert history.latest() == 1
    assert len(bars(scene)) == 2 * n_stages * n_micro
    moment = view.moment(view.state_at(len(rec)))
    events = [rec[int(p)] for p in rec.positions(ActionFinished)]
    spans = {(e.start_ns, e.end_ns) for e in events}
    assert {(round(d.start), round(d.end)) for step in (0, 1) for d in history.of(step)} == spans
    on_paper = check_schedule(order, n_ranks, n_micro, chunks_per_rank=n_stages // n_ranks)
    assert moment.plan.order == moment.report.order == on_paper.order
    planned = {**marks(scene, "ideal_forward"), **marks(scene, "ideal_backward")}
    assert set(planned) == {f"ideal{slot.action}" for slot in on_paper.slots}
    assert moment.report.ideal_bubble == on_paper.ideal_bubble


def test_the_peak_of_live_activations_is_that_of_the_checker(real):
    rec, order, n_stages, n_micro, n_ranks = real
    scene = PipelineView(rec).picture_at(len(rec))
    peaks = check_schedule(order, n_ranks, n_micro, chunks_per_rank=n_stages // n_ranks).peak_live
    words = {mark.id: mark.text for mark in scene.marks}
    assert [words[f"peak{rank}"] for rank in range(n_ranks)] == [f"peak {n}" for n in peaks]


def test_a_player_stops_once_an_action_in_order_of_time(real):
    rec, _, n_stages, n_micro, _ = real
    view = PipelineView(rec)
    player = Player(view)
    n = 2 * n_stages * n_micro
    assert len(player.transport.stops) == 2 * n
    ends = []
    for stop in player.transport.stops[n:-1]:
        moment = view.moment(view.state_at(int(stop)))
        assert len(moment.done) == len(ends) + 1
        ends.append(moment.last.end)
    assert ends == sorted(ends)
    assert player.views[0].sentence_at(len(rec)).startswith(f"Step 2 is over: {n} actions in ")


def test_folding_many_equals_folding_one_by_one(real):
    rec = real[0]
    view = PipelineView(rec)
    one = view.start()
    for k, event in enumerate(rec, 1):
        one = view.fold(one, event) if isinstance(event, view.listens) else one
        if k % 7 == 0 or k == len(rec):
            assert view.fold_many(view.start(), Stretch(rec, 0, k)) == one


def test_every_message_that_came_moves_once_in_its_direction(real):
    rec = real[0]
    view = PipelineView(rec)
    seen = []
    for stop in Player(view).transport.stops:
        scene = view.picture_at(int(stop))
        for token in scene.tokens:
            edge = next(e for e in scene.edges if e.id == token.edge)
            assert edge.state == ("backward" if token.backward else "forward")
            left, right = int(edge.source[1:]), int(edge.target[1:])
            assert right == left + 1  # a gradient runs from the target to the source
            seen.append((edge.label[0], *((right, left) if token.backward else (left, right)), int(edge.label[1:])))
    events = [rec[int(p)] for p in rec.positions(ActivationMoved)]
    assert sorted(seen) == sorted((e.kind, e.src_stage, e.dst_stage, e.micro) for e in events)


def test_messages_of_a_step_that_was_held_move_although_they_came_after_its_times():
    """Its spans are told without the time in which it was held; when a message came is not."""
    rows, begin = [], 0.0
    for step in (1, 2):
        mine = told(check_schedule("1f1b", 2, 2).slots, begin, n_stages=2)
        late = 500 * MS if step == 1 else 0
        rows += [(time + late * isinstance(e, ActivationMoved), rank, e) for time, rank, e in mine]
        begin += 1000.0
        rows.append((round(begin * MS) - 1, 0, StepFinished(step, 0, 1.0, 8, 50.0)))
    view = PipelineView(recorded_by_ranks(rows))
    moved = [view.picture_at(int(stop)).tokens for stop in Player(view).transport.stops]
    assert sum(map(len, moved)) == 2 * 4


def test_a_view_that_follows_shows_the_step_under_way_also_where_steps_are_quick(monkeypatch):
    first = told(check_schedule("1f1b", 2, 2).slots, 0.0, n_stages=2)
    second = [row for row in told(check_schedule("1f1b", 2, 2).slots, 100.0, n_stages=2) if row[0] < 103 * MS]
    rec = recorded_by_ranks([*first, (50 * MS, 0, StepFinished(1, 0, 1.0, 8, 50.0)), *second])
    monkeypatch.setattr(type(rec), "live", True)
    view = PipelineView(rec)
    assert view.text_at(len(rec)).startswith("Step 1 is over")
    view.follows = True
    assert "step 2: 3 actions so far" in view.text_at(len(rec))
    assert "rank 1: F0; busy for 1 of 2 ticks" in view.text_at(len(rec))
    stages = [node for node in view.picture_at(len(rec)).nodes if node.kind == "device"]
    assert [node.sublabel for node in stages] == ["F1 done", "F0 done"]  # in one tick


@pytest.mark.parametrize(("order", "n_ranks", "n_micro", "chunks"), [("1f1b", 4, 4, 1), ("gpipe", 2, 3, 2)])
def test_a_step_under_way_is_drawn_by_the_ticks_of_its_schedule(order, n_ranks, n_micro, chunks):
    """Whatever its times: a bar stands in the column in which its rank does it when it is held there."""
    slots = delayed(order, n_ranks, n_micro, seed=3, chunks=chunks)
    ticks = ticks_of(table_of(order, n_ranks, n_micro, chunks_per_rank=chunks), n_micro, chunks_per_rank=chunks)
    view = PipelineView(recorded_by_ranks(told(slots, 0.0, n_stages=n_ranks * chunks)))
    view.follows = True
    columns = {str(action): k for k, tick in enumerate(ticks) for action in tick if action}
    whole = view.picture_at(len(view.recording))
    wide = {round(node.width, 3) for node in bars(whole).values()}
    assert len(wide) == 1
    for stop in Player(view).transport.stops:
        scene = view.picture_at(int(stop))
        lines = [mark.x for mark in scene.marks if mark.id.startswith("tick")]
        for name, node in bars(scene).items():
            assert node.x - node.width / 2 == pytest.approx(lines[columns[name]])
    assert len([mark for mark in whole.marks if mark.id.startswith("tick")]) == len(ticks) + 1
    assert not [mark for mark in whole.marks if mark.kind.startswith("ideal") or "ms" in mark.text.split()]


# --- with known times ---


def test_the_bubble_is_that_of_the_spans_beside_paper_and_text_book():
    slots = check_schedule("naive", 2, 2).slots
    rec = recorded_by_ranks(told(slots, 0.0, n_stages=2))
    lines = PipelineView(rec).text_at(len(rec)).splitlines()
    assert lines[0] == "Step 1 is over: 8 actions in 12 ms, bubble 50.0 %."
    assert lines[1] == "bubble of step 1: 50.0 % measured, 50.0 % ideal for this order"
    assert lines[2] == "text book: (p − 1) / (m + p − 1) = 1 / 3 = 33.3 % for p = 2 ranks, m = 2 micro-batches"
    assert lines[3] == "rank 0: F0 B0 F1 B1; busy for 6 ms; holds 0 activations now, 1 at most"


def test_before_a_step_is_over_its_bubble_is_not_given_away():
    rec = recorded_by_ranks(told(check_schedule("naive", 2, 2).slots, 0.0, n_stages=2))
    view = PipelineView(rec)
    early = int(view.stop_positions(rec)[0])
    words = view.text_at(early)
    assert words.splitlines()[1] == "step 1: 1 of 8 actions so far; the bubble is known at its end"
    assert "%" not in words
    assert "holds 1 activation now, 1 at most" in words


def test_bars_stand_where_their_times_say():
    rec = recorded_by_ranks(told(check_schedule("gpipe", 2, 2).slots, 5.0, n_stages=2))
    scene = PipelineView(rec).picture_at(len(rec))
    drawn, ticks = bars(scene), marks(scene, "grid")
    left, unit = ticks["tick0"].x, (ticks["tick1"].x - ticks["tick0"].x) / 2  # a tick each 2 ms
    edges = {key: ((n.x - n.width / 2 - left) / unit, (n.x + n.width / 2 - left) / unit) for key, n in drawn.items()}
    assert edges["0F1"] == pytest.approx((1, 2))
    assert edges["1B1"] == pytest.approx((5, 7))
    assert edges["0B1"] == pytest.approx((7, 9))
    assert drawn["1B1"].kind == "backward_span"
    assert drawn["1B1"].label == "B1"
    assert drawn["1B1"].aria == "rank 1: backward of micro-batch 1, stage 1, 2 ms from 5 ms on"
    assert marks(scene, "now") == {}


def test_in_between_it_is_said_what_ran_what_is_held_and_where_the_message_went():
    rec = recorded_by_ranks(told(check_schedule("1f1b", 2, 3).slots, 0.0, n_stages=2))
    view = PipelineView(rec)
    scene = scene_at(view, 3)  # after 2 ms F0 F1 of stage 0, after 4 ms B0 of stage 1
    assert Player(view).transport.stops[3] == rec.positions(ActionFinished)[3] + 1
    stages = {n.id: n for n in scene.nodes if n.kind == "device"}
    assert (stages["s1"].state, stages["s1"].sublabel) == ("done", "B0 done")
    assert (stages["s0"].state, stages["s0"].sublabel, stages["s0"].gradient) == ("waiting", "waits", "holds 2: 0, 1")
    assert [(t.edge, t.backward) for t in scene.tokens] == [("b0", True)]
    words = "Stage 1 finished the backward of micro-batch 0; its gradient (8.0 KiB) goes left to stage 0."
    assert view.sentence_at(int(Player(view).transport.stops[3])) == words
    assert len(bars(scene)) == 4
    assert len(marks(scene, "ideal_forward")) == 6  # the plan is known, because the step came to its end
    active = [n for n in bars(scene).values() if n.state == "active"]
    assert [n.id for n in active] == ["1B0"]
    legend = dict(scene.legend)
    assert (legend["backward_span:active"], legend["waiting"]) == ("the bar that finished last", "waits")
    assert "active" not in legend


def test_what_other_ranks_were_at_is_open_until_then():
    rec = recorded_by_ranks(told(check_schedule("gpipe", 2, 2).slots, 0.0, n_stages=2))
    scene = scene_at(PipelineView(rec), 0)
    assert [n.id for n in scene.nodes if n.kind in SPANS and n.state == "waiting"] == []
    rec = pipeline("1f1b", 4, 8, n_steps=1)
    scene = scene_at(PipelineView(rec), 20)
    going = {n.id: n for n in scene.nodes if n.kind in SPANS and n.state == "waiting"}
    running = {n.id for n in scene.nodes if n.kind == "device" and n.state == "active"}
    assert {f"s{key[0]}" for key in going} == running
    assert going
    legend = dict(scene.legend)
    assert legend["active"] == "runs now"
    assert "the bar that finished last" in legend.values()
    assert "a bar that is not finished" in legend.values()


def test_nothing_runs_now_in_a_step_that_its_run_did_not_end():
    rec = pipeline("1f1b", 2, 2, n_steps=1)
    with lab.record() as half:
        for event in [e for e in rec if isinstance(e, (ActionStarted, ActionFinished))][:9]:
            bus.emit(event)
    scene = PipelineView(half).picture_at(len(half))
    assert {n.id: n.sublabel for n in scene.nodes if n.state == "stopped"} == {"s1": "was at F1"}
    legend = dict(scene.legend)
    assert "the bar that finished last" in legend.values()
    assert legend["stopped"] == "was at work when the recording ended"


def test_a_rank_that_is_at_the_next_step_already_does_not_disturb_this_one():
    with lab.record() as rec:
        bus.emit(ActionFinished("F", 0, 0, False, 0, 4 * MS, 1))
        bus.emit(ActionStarted("F", 0, 0, False))
        view = PipelineView(rec)
        assert list(bars(view.picture_at(len(rec)))) == ["0F0"]
        svg_of(view.picture_at(len(rec)))


# --- which step ---


@pytest.mark.parametrize("batches", [False, True])
def test_the_order_of_arrival_changes_nothing(batches):
    rec = pipeline("1f1b", 4, 4, batches=batches)
    view = PipelineView(rec)
    moments = [view.moment(view.state_at(int(stop))) for stop in Player(view).transport.stops]
    lasts = [m.last.end + 1000 * m.number for m in moments if m.last]
    assert lasts == sorted(lasts)
    assert [m.number for m in moments if not m.last] == [1, 2]
    assert moments[-1].over


def test_a_step_is_chosen_by_its_number_and_then_only_its_actions_are_stops():
    rec = pipeline("gpipe", 2, 2, n_steps=3)
    view = PipelineView(rec, step=2)
    assert view.text_at(len(rec)).startswith("Step 2 is over")
    assert len(Player(view).transport.stops) == 9
    assert view.text_at(3).startswith("Step 2: 0 of 8 actions are finished.")
    lost = PipelineView(rec, step=7)
    assert lost.text_at(len(rec)) == "There is no step 7 here: choose another."
    assert lost.picture_at(len(rec)).nodes == ()


def test_the_list_of_steps_chooses_one():
    view = PipelineView(pipeline("gpipe", 2, 2, n_steps=3))
    box = view.widget
    assert [label for label, _ in view._choice.options] == ["latest", "1", "2", "3"]
    view._choice.value = 1
    assert view.text_at(view.position).startswith("Step 1 is over")
    assert view._choice.label == "1"
    view._choice.index = 0  # as the page does
    assert (view._choice.label, view.step) == ("latest", None)
    view.dispose()
    assert box.comm is None


def test_of_a_long_training_each_end_is_a_stop_and_each_action_of_the_last_step():
    n_steps = MOST_STOPS // 8 + 1
    view = PipelineView(pipeline("gpipe", 2, 2, n_steps=n_steps))
    stops = Player(view).transport.stops
    numbers = [view.moment(view.state_at(int(stop))).number for stop in stops]
    assert numbers.count(n_steps) == 9
    assert [numbers.count(k) for k in range(1, n_steps)] == [2] * (n_steps - 1)


def test_a_second_launch_begins_its_steps_anew():
    first = told(check_schedule("gpipe", 2, 2).slots, 0.0, n_stages=2)
    again = told(check_schedule("1f1b", 2, 3).slots, 40.0, n_stages=2)
    rows = [(0, r, RankStarted(1, 2, "", 1)) for r in (0, 1)] + first[:-3]
    rows += [(39 * MS, r, RankStarted(2, 2, "", 1)) for r in (0, 1)] + again
    view = PipelineView(recorded_by_ranks(rows))
    assert view.history().steps == [0, 1]
    assert view.text_at(len(view.recording)).startswith("Step 1 is over: 12 actions")


def test_while_it_runs_the_latest_complete_step_is_shown_unless_steps_are_slow():
    def shown(step_ms):
        with lab.record() as rec:
            for slot in check_schedule("gpipe", 2, 2, forward=step_ms / 9, backward=2 * step_ms / 9).slots * 2:
                a, (start, stop) = slot.action, (round(slot.start * MS), round(slot.stop * MS))
                bus.emit(ActionFinished(a.kind, a.stage, a.micro, True, start, stop, 0))
            bus.emit(ActionFinished("F", 0, 0, True, round(100 * step_ms * MS), round(101 * step_ms * MS), 1))
            view = PipelineView(rec)
            return view.moment(view.state_at(len(rec))).number

    assert shown(90.0) == 2
    assert shown(9000.0) == 3


# --- words and marks ---


def test_a_paced_device_is_named_and_a_real_one_says_which_run():
    paced = ran("1f1b", 2, 2, paced=Paced(forward_ms=2, backward_ms=4))
    view = PipelineView(paced)
    note = ": an action lasts at least its nominal time; no measure of this machine"
    assert view.picture_at(len(paced)).made == "paced"
    assert note in view.picture_at(len(paced)).provenance
    assert f"paced{note}" in view.text_at(len(paced))
    rec = pipeline("gpipe", 2, 2)
    picture = PipelineView(rec).picture_at(len(rec))
    assert picture.provenance.startswith("Run digits, recorded ")
    assert picture.made == "run"
    assert "paced" not in picture.caption + picture.provenance


def test_an_interrupted_step_says_how_far_it_came():
    rows = told(check_schedule("1f1b", 2, 3).slots, 0.0, n_stages=2)[:14]
    rec = recorded_by_ranks(rows)
    view = PipelineView(rec)
    n = len(rec.positions(ActionFinished))
    assert view.text_at(len(rec)).splitlines()[1] == f"step 1: {n} actions so far; the bubble is known at its end"
    assert marks(view.picture_at(len(rec)), "ideal_forward") == {}


def test_an_empty_picture_has_room_for_its_words():
    assert "nothing to show" in PipelineView(recorded([])).svg()


def test_before_the_first_action_is_finished_it_says_so():
    rec = pipeline("gpipe", 2, 2)
    view = PipelineView(rec)
    assert view.text_at(3) == "A pipeline has begun; its first action is not finished yet."
    with lab.record() as rec:
        assert PipelineView(rec).text_at(0) == "No action of a pipeline is finished yet: each will be a bar."


def test_the_legend_names_what_is_there_and_no_more():
    rec = pipeline("gpipe", 2, 4)
    view = PipelineView(rec)
    assert {mark for mark, _ in view.picture_at(len(rec)).legend} == {"forward_span", "backward_span", "done"}
    assert "activation" in {words for _, words in scene_at(view, 0).legend}


@pytest.mark.parametrize(("n_ranks", "n_micro"), [(1, 1), (1, 4), (2, 16), (4, 8), (8, 16), (16, 16)])
def test_every_size_draws_inside_its_extent_and_labels_fit_or_are_left_out(n_ranks, n_micro):
    rec = pipeline("gpipe", n_ranks, n_micro, n_steps=1)
    scene = PipelineView(rec).picture_at(len(rec))
    width, height = scene.extent
    assert all(n.x - n.width / 2 >= 0 for n in scene.nodes)
    assert all(n.x + n.width / 2 <= width + 0.1 and n.y + n.height / 2 <= height for n in scene.nodes)
    assert all(0 <= m.y <= height and m.y + m.height <= height + 0.1 for m in scene.marks)
    assert max(n.x + n.width / 2 for n in bars(scene).values()) > 0.7 * width
    assert all(text_width(n.label, 11, bold=True) <= n.width for n in bars(scene).values())
    tree_of(scene)
    svg = svg_of(scene)
    assert all(f">rank {rank}</text>" in svg for rank in range(n_ranks))


def test_in_a_player_at_the_end_the_list_of_steps_says_latest():
    view = PipelineView(pipeline("gpipe", 2, 2, n_steps=3))
    player = Player(view)
    assert player.widget is not None
    player.seek(0)
    player.to_end()
    assert view._choice.label == "latest"
    player.dispose()


@pytest.mark.parametrize("order", ["gpipe", "1f1b"])
def test_held_between_two_ticks_the_picture_by_time_says_of_each_stage_what_the_one_by_ticks_says(order):
    slots = check_schedule(order, 2, 4, forward=1, backward=1).slots
    for tick in range(1, round(max(s.stop for s in slots))):
        rec = recorded_by_ranks(told([s for s in slots if s.stop <= tick], 0.0, n_stages=2))
        by_time, by_ticks = PipelineView(rec), PipelineView(rec)
        by_ticks.follows = True
        said = [
            [(n.id, n.state, n.sublabel) for n in view.picture_at(len(rec)).nodes if n.kind == "device"]
            for view in (by_time, by_ticks)
        ]
        assert said[0] == said[1]
    assert any(words == "F3 done" or words.startswith("B") for _, _, words in said[0])


def test_before_a_step_is_over_no_row_is_called_ideal_and_the_caption_says_when_it_will_be():
    rec = recorded_by_ranks(told(check_schedule("gpipe", 2, 4).slots[:5], 0.0, n_stages=2))
    scene = PipelineView(rec).picture_at(len(rec))
    assert not any(mark.text == "ideal" for mark in scene.marks)
    assert "is drawn when a step is over" in scene.caption
    rec = pipeline("gpipe", 2, 4)
    scene = PipelineView(rec).picture_at(len(rec))
    assert sum(mark.text == "ideal" for mark in scene.marks) == 2
    assert "is drawn when" not in scene.caption


def test_a_bar_that_makes_all_others_thin_is_named():
    slots = [*check_schedule("gpipe", 2, 4).slots]
    assert "load their kernels" not in PipelineView(recorded_by_ranks(told(slots, 0.0))).picture_at(10**6).caption
    slow = [s._replace(start=s.start + 900 * bool(k), stop=s.stop + 900) for k, s in enumerate(slots)]
    rec = recorded_by_ranks(told(slow, 0.0))
    assert "F0 of rank 0 took 901 ms, others" in PipelineView(rec).picture_at(len(rec)).caption


ENDED = [(10**12, rank, RankFinished(1, "finished", 1.0, "")) for rank in range(4)]


@pytest.mark.parametrize(
    ("n_cores", "shared", "waits"),
    [(2, "4 ranks share 2 cores, so at most 2 can compute at once; ", " or a core"), (4, "", ""),
     (0, "", " or a core")],
)  # fmt: skip
def test_a_bubble_far_above_the_ideal_is_explained_by_what_was_recorded(n_cores, shared, waits):
    slots = check_schedule("1f1b", 4, 8, forward=1, backward=1).slots
    spread = [s._replace(start=14 * s.start, stop=14 * s.start + 1) for s in slots]
    began = [(0, rank, RankStarted(1, 4, f"tcp://127.0.0.1:{rank}", 9, n_cores)) for rank in range(4)]
    view = PipelineView(recorded_by_ranks([*began, *told(spread, 0.0), *ENDED]))
    end = len(view.recording)
    took = f"an action takes 1 ms on average, and beside each a rank waits 17.4 ms for a message{waits}."
    words = f"The bubble is far above the ideal: {shared}{took}"
    assert words in view.picture_at(end).caption
    assert words in view.text_at(end)
    assert words not in view.picture_at(end - len(ENDED) - 8).caption


def test_a_bubble_near_the_ideal_needs_no_explanation():
    rec = recorded_by_ranks([*told(check_schedule("1f1b", 4, 8).slots, 0.0), *ENDED])
    assert "above the ideal" not in PipelineView(rec).picture_at(len(rec)).caption

