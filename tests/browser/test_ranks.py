"""Ring and replicas in a real browser: a ring of four ranks is played, and every number on it is one of the run."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

import lab
from lab.parallel import run_local
from tests.browser.harness import PATIENCE_MS, LabPage
from tests.browser.shots import Shots
from tests.browser.waiting import faults, says, still
from tests.slices import sliced
from tests.widgets.golden_ranks import ranks_of, trained
from widgets import DataParallelView, RingView
from widgets.pictures.geometry import edge_shape
from widgets.view import View

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("opened")]

COUNT = "document.querySelector('.lab-step').textContent.split(' · ')[0]"  # behind the dot: the mark that is there
STANDS_AT = f"n => {COUNT} === n"
AT_THE_END = f"() => {COUNT}.split(' of ').every((n, _, both) => n === both[1])"
CELLS = """() => Object.fromEntries([...document.querySelectorAll('.lab-node[data-kind="constant"]')].map(cell =>
    [cell.dataset.key, [...cell.querySelectorAll("text")].map(text => text.textContent)]))"""
MOVING = """() => Object.fromEntries([...document.querySelectorAll(".lab-edge[data-key]")]
    .filter(edge => edge.dataset.state !== "idle").map(edge => [edge.dataset.key, edge.dataset.state]))"""


def ring_of_four() -> RingView:
    with lab.record(detail="value") as rec:
        run_local("all_reduce", "ring", ranks_of(4))
    return RingView(rec)


@pytest.fixture(params=["light", "dark"])
def opened(browser: Browser, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[View], Page]]:
    context = browser.new_context(color_scheme=request.param, offline=True, viewport={"width": 1100, "height": 900})
    trouble: list[str] = []

    def open_page(view: View) -> Page:
        page = context.new_page()
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on("console", lambda message: trouble.append(message.text))
        page.goto(view.export(tmp_path / "page.html").as_uri())
        page.wait_for_selector("body[data-lab-ready]")
        return page

    yield open_page
    context.close()
    assert trouble == []


def test_a_ring_of_four_is_played_and_shows_the_sums_of_the_run(
    opened: Callable[[View], Page], shots: Shots, request: pytest.FixtureRequest
):
    view = ring_of_four()
    page = opened(view)
    held = [array.copy() for array in ranks_of(4)]
    for stop, position in enumerate(view.stop_positions(view.recording)):
        scene, state = view.picture_at(int(position)), view.state_at(int(position))
        page.wait_for_function(STANDS_AT, arg=f"{stop + 1} of 8")
        for hop in (hop for hop in state.hops if hop.step == stop - 1):
            held[hop.dst][hop.start] = hop.value[0]
        shown = page.evaluate(CELLS)
        for rank, chunk in itertools.product(range(4), range(4)):
            assert shown[f"#r{rank}.{chunk}"][0] == str(held[rank][chunk])
        assert {key: words[1] for key, words in shown.items()} == {
            f"#{node.id}": node.sublabel for node in scene.nodes if "." in node.id
        }
        kind = "forward" if stop <= 3 else "store"
        moving = {f"#{rank}>{(rank + 1) % 4}": kind for rank in range(4)} if 0 < stop < 7 else {}
        assert page.evaluate(MOVING) == moving
        if stop in {2, 5}:
            shots(page, f"ring-{request.node.callspec.id}-{stop}")
        if stop < 7:
            page.get_by_role("button", name="step", exact=True).click()
    assert np.array_equal(held, [sum(ranks_of(4))] * 4)
    assert page.locator('.lab-node[data-kind="constant"][data-state="done"]').count() == 16


def test_the_page_draws_a_ring_as_its_still_twin_does(opened: Callable[[View], Page]):
    view = ring_of_four()
    page = opened(view)
    stops = view.stop_positions(view.recording)
    page.keyboard.press("End")
    page.keyboard.press("ArrowLeft")
    page.wait_for_function(STANDS_AT, arg="7 of 8")
    still(page)
    scene = view.picture_at(int(stops[-2]))
    nodes = {node.id: node for node in scene.nodes}
    for edge in scene.edges:
        drawn = page.locator(f'.lab-edge[data-key="#{edge.id}"]')
        assert drawn.locator(".lab-line").get_attribute("d") == edge_shape(edge, nodes).line
    words = page.locator(".lab-mark-words").all_text_contents()
    assert sorted(words) == sorted(mark.text for mark in scene.marks if mark.text)
    svg = view.svg()
    assert all(node.label in svg for node in scene.nodes)


@pytest.mark.parametrize("make", [ring_of_four, lambda: DataParallelView(trained(4))], ids=["ring", "replicas"])
def test_it_has_no_fault_that_axe_finds_and_cells_can_be_heard(
    opened: Callable[[View], Page], make: Callable[[], View], shots: Shots, request: pytest.FixtureRequest
):
    page = opened(make())
    page.keyboard.press("End")
    page.wait_for_function(AT_THE_END)
    assert faults(page) == []
    said = page.locator(".lab-node").evaluate_all("nodes => nodes.map(node => node.getAttribute('aria-label'))")
    assert all(words.startswith("rank ") for words in said)
    shots(page, f"end-{request.node.callspec.id}")


def test_the_phases_of_a_step_run_down_the_replicas(opened: Callable[[View], Page]):
    view = DataParallelView(trained(4))
    page = opened(view)
    for k, name in enumerate(("shard", "gradient", "sum", "update")):
        page.wait_for_function(STANDS_AT, arg=f"{k + 1} of 20")
        labels = [page.locator(f'.lab-node[data-key="#{name}{rank}"] .lab-label').text_content() for rank in range(4)]
        scene = {node.id: node.label for node in view.picture_at(int(view.stop_positions(view.recording)[k])).nodes}
        assert labels == [scene[f"{name}{rank}"] for rank in range(4)]
        assert len(set(labels)) == (4 if k < 2 else 1)
        page.get_by_role("button", name="step", exact=True).click()


NOTEBOOK = """
import numpy as np
import lab
from lab.parallel import run_ranks
from widgets import Player, RingView

def program(comm):
    x = np.arange(4.0) + 10 * comm.rank
    comm.all_reduce_(x)
    comm.broadcast_(x, root=1)

with lab.record() as rec:
    run_ranks(program, world_size=4)
view = RingView(rec, collective=0)
player = Player(view)
player
"""


def test_in_a_notebook_it_is_stepped_and_another_collective_is_chosen(lab_page: Callable[..., LabPage], shots: Shots):
    notebook = lab_page(NOTEBOOK)
    assert notebook.cell_errors() == []
    says(notebook.page, "1 of 8: 4 ranks entered all_reduce by ring")
    for words in ("2 of 8: ", "3 of 8: Step 2 of 6: rank 0 adds c1"):
        notebook.page.get_by_role("button", name="Step", exact=True).click()
        says(notebook.page, words)
    held = notebook.page.locator('.lab-node[data-key="#r0.1"] .lab-label')
    expect(held).to_have_text(str(1.0 + 21.0 + 31.0))
    for name in ("Light", "Dark"):
        notebook.theme(f"JupyterLab {name}")
        shots(notebook.page.locator(".jp-OutputArea").first, f"ring-notebook-{name.lower()}")
    notebook.page.get_by_role("button", name="Later", exact=True).click()
    says(notebook.page, "1 of 5: 4 ranks entered broadcast by flat")
    notebook.page.get_by_role("button", name="End", exact=True).click()
    says(notebook.page, "every rank holds what rank 1 had")
    assert notebook.errors == []
