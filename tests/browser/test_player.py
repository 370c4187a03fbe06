"""Marks, loop and bookmarks by hand and by key: in a page opened from disk, and in a live player in JupyterLab."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import lab
from tests.browser.harness import PATIENCE_MS, LabPage
from tests.browser.shots import Shots
from tests.browser.test_page import Opened
from tests.browser.waiting import faults, no_rest, says
from tests.slices import sliced
from tests.widgets.test_player_places import steps_recorded
from widgets import DifferenceView, GraphView, Player, SideBySide
from widgets.live.library import bundle

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("opened")]

Open = Callable[..., LabPage]
REC = steps_recorded(2)


@pytest.fixture(scope="module")
def player() -> Player:
    made = Player(GraphView(REC))
    for stop, note in ((2, "forward only"), (8, "the walk back begins soon & it is short")):
        made.seek(stop)
        made.bookmark(note)
    return made


@pytest.fixture(scope="module")
def path(player: Player, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return player.export(tmp_path_factory.mktemp("player") / "page.html")


@pytest.fixture(params=["light", "dark"])
def opened(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    context = browser.new_context(color_scheme=request.param, offline=True, viewport={"width": 1100, "height": 900})
    yield Opened(context, path)
    context.close()


def ready(opened: Opened) -> Page:
    opened.page.wait_for_selector("body[data-lab-ready]")
    return opened.page


def at(page: Page, stop: int) -> None:
    """Wait until this stop is shown, counted from 0."""
    expect(page.locator(".lab-step")).to_contain_text(f"{stop + 1} of ")


def test_marks_loop_and_bookmarks_of_an_exported_page(opened: Opened, player: Player, shots: Shots):
    page = ready(opened)
    marks = list(player.marks)
    ticks = page.locator(".lab-tick")
    expect(ticks).to_have_count(len(marks))
    assert ticks.evaluate_all("all => all.map(e => e.title)") == list(player.marks.values())
    page.get_by_role("button", name="next mark").click()
    at(page, marks[0])
    expect(page.locator(".lab-step")).to_contain_text("backward walk 1")
    page.evaluate("document.activeElement.blur()")
    for key, stop in (("]", marks[1]), ("]", marks[2]), ("[", marks[1]), ("Home", 0)):
        page.keyboard.press(key)
        at(page, stop)

    summary = page.locator("summary")
    expect(summary).to_have_text("Bookmarks (2)")
    summary.click()
    page.get_by_role("button", name="9: the walk back begins soon & it is short").click()
    at(page, 8)
    expect(page.get_by_role("note")).to_have_text("the walk back begins soon & it is short")
    page.locator(".lab-flag").first.click()
    at(page, 2)
    assert page.get_by_role("button", name="Rename").count() == 0, "a page is read only"

    page.get_by_role("button", name="loop from here").click()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    at(page, 4)
    page.get_by_role("button", name="loop to here").click()
    expect(page.locator(".lab-loop-span")).to_have_attribute("title", "Repeats 3 to 5")
    shots(page, f"player-{page.evaluate('document.body.dataset.labTheme')}")
    seen = page.evaluate(
        """() => new Promise((done) => {
             const seen = [];
             const label = document.querySelector(".lab-step");
             new MutationObserver(() => {
               seen.push(parseInt(label.textContent));
               if (seen.length === 7) done(seen);
             }).observe(label, { childList: true, characterData: true, subtree: true });
             document.querySelector("select").value = "4";
             document.querySelector("button[aria-label=play]").click();
           })"""
    )
    assert seen[:1] == [3], "from the last of the loop it begins again"
    assert seen == [3, 4, 5, 3, 4, 5, 3]
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")
    page.keyboard.press("l")
    expect(page.locator(".lab-loop-span")).to_be_hidden()
    assert opened.trouble == []


def test_the_page_has_no_fault_that_axe_finds(opened: Opened):
    page = ready(opened)
    page.locator("summary").click()
    page.get_by_role("button", name="3: forward only").click()
    at(page, 2)
    assert faults(page) == []


def test_two_recordings_and_their_difference_as_pages(browser: Browser, tmp_path: Path, shots: Shots):
    def run(op):
        x = lab.tensor(2.0, requires_grad=True, name="x")
        with lab.record() as rec:
            op(x * 3.0).backward()
        return rec

    a, b = run(lab.tanh), run(lab.sin)
    both = SideBySide(a, b, view=GraphView, names=("tanh", "sine"))
    pages = {
        "pair": both.export(tmp_path / "pair.html"),
        "difference": DifferenceView(a, b).export(tmp_path / "d.html"),
    }
    for mode in ("light", "dark"):
        for name, path in pages.items():
            context = browser.new_context(color_scheme=mode, offline=True, viewport={"width": 1300, "height": 800})
            opened = Opened(context, path)
            page = ready(opened)
            if name == "pair":
                page.get_by_role("button", name="next mark").click()
                expect(page.locator(".lab-step")).to_contain_text("first difference")
                boxes = [box.bounding_box() for box in page.locator(".lab-panels > *").all()]
                assert boxes[0] is not None
                assert boxes[1] is not None
                assert boxes[0]["x"] + boxes[0]["width"] <= boxes[1]["x"], "beside each other"
                labels = page.locator(".lab-label").all_text_contents()
                assert {"v₂ = tanh(v₁)", "v₂ = sin(v₁)"} <= set(labels)
            else:
                odd = page.locator('.lab-node[data-state="trouble"] .lab-label').all_text_contents()
                assert odd == ["tanh, float64", "sin, float64"]
            assert faults(page) == []
            shots(page, f"{name}-{mode}")
            assert opened.trouble == []
            context.close()


LIVE = """
import lab
from widgets import GraphView, Player
x, y = lab.tensor(2.0, requires_grad=True, name="x"), lab.tensor(3.0, requires_grad=True, name="y")
with lab.record(detail="value") as rec:
    z = x * y + x
    z.backward()
player = Player(GraphView(rec))
player
"""


def test_a_live_player_keeps_bookmarks_and_its_keys_never_reach_the_notebook(lab_page: Open, shots: Shots):
    live = lab_page(LIVE, "untouched = 1")
    page = live.page
    assert live.cell_errors() == []
    live.theme("JupyterLab Light")
    says(page, "1 of 7")
    n_cells = page.locator(".jp-Cell").count()
    slider = page.get_by_role("slider", name="Moment")
    slider.focus()
    page.keyboard.press("]")
    says(page, "3 of 7: Backward starts at")
    field = page.get_by_label("note of a new bookmark")
    page.get_by_role("button", name="Bookmark this moment…", exact=True).click()
    expect(field).to_be_focused()
    slider.focus()
    page.keyboard.press("b")
    expect(field).to_be_focused()
    page.keyboard.type("backward: x dd b [l]")
    page.keyboard.press("Enter")
    expect(page.locator("summary", has_text="Bookmarks (1)")).to_be_visible()
    live.until("print([b.note for b in player.bookmarks])", "['backward: x dd b [l]']")
    slider.focus()
    for key in ("x", "d", "d", "a", "m", "Enter", "c", "v"):
        page.keyboard.press(key)
    assert page.locator(".jp-Cell").count() == n_cells, "no command of the notebook ran"
    for key, said in (("End", "7 of 7"), ("ArrowLeft", "6 of 7"), ("[", "3 of 7"), ("Home", "1 of 7")):
        page.keyboard.press(key)
        says(page, said)
    button = page.get_by_role("button", name="Step", exact=True)
    button.click()
    says(page, "2 of 7")
    page.keyboard.press("ArrowRight")
    says(page, "3 of 7")
    page.keyboard.press("x")
    assert page.locator(".jp-Cell").count() == n_cells
    page.keyboard.press("l")
    page.keyboard.press("ArrowRight")
    says(page, "4 of 7")
    page.keyboard.press("l")
    live.until("print(player.transport.loop)", "(2, 3)")
    expect(page.locator(".lab-loop-span")).to_have_attribute("title", "Repeats 3 to 4")

    page.get_by_role("button", name="rename bookmark 1").click()
    page.get_by_label("note of bookmark 1").fill("where the gradient begins")
    page.keyboard.press("Enter")
    live.until("print(player.bookmarks[0].note)", "where the gradient begins")
    page.keyboard.press("Escape")
    page.get_by_role("button", name="3: where the gradient begins").click()
    says(page, "3 of 7")
    expect(page.get_by_role("note")).to_have_text("where the gradient begins")
    shots(live.page.locator(".jp-OutputArea").first, "live-player-light")
    live.theme("JupyterLab Dark")
    shots(live.page.locator(".jp-OutputArea").first, "live-player-dark")
    slider.focus()
    for key, note in (("ArrowRight", "four"), ("ArrowRight", "five")):
        page.keyboard.press(key)
        page.keyboard.press("b")
        page.keyboard.type(note)
        page.keyboard.press("Enter")
        page.get_by_role("button", name=note, exact=False).first.wait_for()
        slider.focus()
    expect(page.get_by_role("button", name="Change its note")).to_be_attached()
    page.get_by_role("button", name="rename bookmark 2").click()
    page.get_by_label("note of bookmark 2").fill("the fourth")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="4: the fourth", exact=True).wait_for()
    expect(page.get_by_role("button", name="rename bookmark 2")).to_be_focused()
    page.get_by_role("button", name="remove bookmark 1").dblclick()
    expect(page.locator("summary", has_text="Bookmarks (2)")).to_be_visible()
    live.until("print([b.note for b in player.bookmarks])", "['the fourth', 'five']")
    expect(page.get_by_role("button", name="Undo: put back 3: where the gradient begins")).to_be_focused()
    shots(live.page.locator(".jp-OutputArea").first, "live-player-undo")
    page.keyboard.press("Enter")
    live.until("print([b.note for b in player.bookmarks])", "['where the gradient begins', 'the fourth', 'five']")
    expect(page.get_by_role("button", name="rename bookmark 1")).to_be_focused()
    for left in (2, 1, 0):
        page.get_by_role("button", name="remove bookmark 1").click()
        expect(page.locator(".lab-book li")).to_have_count(left)  # until then the button is that of the removed one
    live.until("print(len(player.bookmarks))", "0")
    assert live.errors == []


COMB = """
const root = document.createElement("div");
root.style.width = "516px";
document.body.append(root);
const timeline = createTimeline(root, "Moment", { seek() {}, go() {} });
timeline.draw({ n: 2001, marks: Array.from({ length: 400 }, (_, k) => [5 * k, `step ${5 * k}`]) });
window.done = true;
"""


def test_marks_that_cannot_be_told_apart_are_thinned_out_and_more_are_seen_where_there_is_room(browser: Browser):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.set_content("<main></main>")
    page.add_script_tag(type="module", content=bundle("timeline.js") + COMB)
    page.wait_for_function("() => window.done && document.querySelectorAll('.lab-tick').length === 100")
    assert page.locator(".lab-tick").nth(1).get_attribute("title").endswith("“Next mark” goes to each")
    page.evaluate("() => (document.querySelector('.lab-timeline').style.width = '1016px')")
    page.wait_for_function("() => document.querySelectorAll('.lab-tick').length === 200")
    page.close()


STALE = """
const root = document.createElement("div");
document.body.append(root);
const timeline = createTimeline(root, "Moment", { seek: (at) => (window.sought ??= []).push(at), go() {} });
window.timeline = timeline;
timeline.draw({ n: 7, at: 6 });
timeline.slider.focus();
"""


def test_news_that_are_older_than_what_the_reader_wants_do_not_take_the_thumb_back(browser: Browser):
    page = browser.new_page()
    page.set_default_timeout(PATIENCE_MS)
    page.set_content("<main></main>")
    no_rest(page)  # after 3 seconds the thumb would go back
    page.add_script_tag(type="module", content=bundle("timeline.js") + STALE)
    page.wait_for_function("() => window.timeline")
    for news in (6, 5, 5):  # what a busy kernel tells while the reader is ahead of it
        page.keyboard.press("ArrowLeft")
        page.evaluate("at => window.timeline.draw({ at })", news)
    assert page.evaluate("window.sought") == [5, 4, 3]
    page.evaluate("() => window.timeline.draw({ at: 3 })")
    page.evaluate("() => window.timeline.draw({ at: 1 })")
    assert page.evaluate("window.timeline.slider.value") == "2", "once they agree it follows the player again"
    page.close()
