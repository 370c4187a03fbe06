"""MemoryPlanView: a bar for each value in its buffer, the level of what is alive, and the peak in words."""

from lab.events import MemoryPlanBegun, MemoryPlanMade, RunHeld, ValuePlaced
from tests.widgets.golden import recorded
from widgets import MemoryPlanView

K = 1024


def experiment():
    def placed(plan, value, op, start, stop, n, buffer, offset, again=False):
        return ValuePlaced(plan, value, op, "net.py:3", start, stop, n * K, buffer, offset * K, again)

    return recorded([
        MemoryPlanBegun("net", ("a place for each value", "within 99 bytes"), 40 * K, 4, False),
        placed("a place for each value", "b", "matmul", 0, 2, 20, 0, 0),
        placed("a place for each value", "c", "exp", 1, 1, 10, 1, 20),
        placed("a place for each value", "d", "sum", 2, 3, 10, -1, 30),
        MemoryPlanMade("a place for each value", -1, 3, 0, 3, 40 * K, 30 * K, 1, (20 * K, 30 * K, 30 * K)),
        placed("within 99 bytes", "b", "matmul", 0, 1, 20, 0, 0),
        placed("within 99 bytes", "e", "matmul", 2, 3, 20, 0, 0, again=True),
        MemoryPlanMade("within 99 bytes", 99, 4, 1, 2, 20 * K, 20 * K, 0, (20 * K,) * 4),
        RunHeld("equation by equation", 41 * K, 40 * K),
        RunHeld("within 99 bytes", 20 * K, 20 * K),
    ])  # fmt: skip


def boxes(position):
    return {n.id: n for n in MemoryPlanView(experiment()).picture_at(position).nodes}


def test_a_bar_is_as_high_as_its_bytes_and_as_long_as_its_life():
    drawn = boxes(5)
    assert list(drawn) == ["b", "c", "d"]
    assert (drawn["b"].height + 1) == 2 * (drawn["c"].height + 1)
    assert drawn["b"].width + 1 == 3 * (drawn["c"].width + 1)
    assert drawn["b"].y > drawn["c"].y > drawn["d"].y  # stacked
    assert [n.kind for n in drawn.values()] == ["forward_span", "forward_span", "backward_span"]
    assert [n.state for n in drawn.values()] == ["active", "active", "idle"]  # alive at the peak, equation 2


def test_a_plan_keeps_the_scale_of_the_largest_and_marks_what_is_made_again():
    drawn = boxes(8)
    assert drawn["b"].height == boxes(5)["b"].height
    assert drawn["e"].state == "new"
    assert drawn["e"].y == drawn["b"].y


def test_a_bar_says_value_op_bytes_and_line():
    assert boxes(5)["b"].aria == "b = matmul: 20 KiB in buffer 0, equations 1 to 3, net.py:3"
    assert boxes(5)["d"].aria == "d = sum: 10 KiB in no buffer, from equation 3 to the end, net.py:3"
    assert boxes(8)["e"].aria.endswith("made again, net.py:3")


def test_the_peak_is_marked_and_said():
    marks = {m.id: m for m in MemoryPlanView(experiment()).picture_at(5).marks}
    assert marks["peak words"].text == "peak: 30 KiB alive"
    assert marks["alive1"].kind == "peak"
    assert marks["alive0"].kind == "level"
    assert marks["alive1"].x == marks["peak"].x
    assert marks["says0"].text == "A place for each value: 40 KiB; at most 30 KiB alive, at equation 2 of 3."


def test_the_words_tell_what_came_last_first_and_the_caption_all_plans_and_runs():
    view = MemoryPlanView(experiment())
    plan = "Within 99 bytes: 20 KiB; at most 20 KiB alive, at equation 1 of 4. 1 equation runs again."
    assert view.sentence_at(8) == plan
    assert view.sentence_at(9) == "Run equation by equation: held 41 KiB, measured; 40 KiB were expected."
    caption = view.picture_at(10).caption
    assert "a place for each value 40 KiB; within 99 bytes 20 KiB" in caption
    assert "Measured with tracemalloc: equation by equation 41 KiB; within 99 bytes 20 KiB" in caption
    assert view.text_at(1) == "No plan is made yet."


def test_a_plan_of_very_many_values_shows_the_largest_and_says_so():
    values = [ValuePlaced("p", f"v{k}", "exp", "", k, k + 1, 8 * (k + 1), k, 0, False) for k in range(400)]
    made = MemoryPlanMade("p", -1, 401, 0, 400, 10**6, 8, 0, (8,) * 401)
    picture = MemoryPlanView(recorded([MemoryPlanBegun("f", ("p",), 10**6, 401, False), *values, made])).picture_at(402)
    assert len(picture.nodes) == 300
    assert "The 300 largest of 400 values are drawn." in picture.caption
    assert picture.nodes[0].id == "v399"


def test_a_plan_of_no_equations_has_no_equation_for_its_peak():
    plan = "a place for each value"
    empty = recorded([
        MemoryPlanBegun("net", (plan,), 0, 0, False),
        MemoryPlanMade(plan, -1, 0, 0, 0, 24, 0, 0, ()),
    ])  # fmt: skip
    view = MemoryPlanView(empty)
    assert view.text_at(2).splitlines()[0] == "A place for each value: 24 B; no equation."
    assert view.picture_at(2).nodes == ()
