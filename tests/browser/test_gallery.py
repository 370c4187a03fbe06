"""The gallery, made by the command that a reader runs, opened from disk with the network cut; a theme for each day."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from tests.browser.behind import BY_TITLE, READ, agree
from tests.browser.kept import Kept
from tests.browser.shots import Shots
from tests.browser.test_page import Opened
from tests.browser.waiting import eventually, faults
from tests.slices import sliced
from widgets.gallery.exhibits import EXHIBITS, Exhibit, shown_of
from widgets.pictures.theme import COLOURS
from widgets.views.difference.view import DifferenceView
from widgets.views.experiments.rewrite.view import RewriteView
from widgets.views.graph.view import GraphView
from widgets.views.vmap.view import VmapView
from widgets.views.why.view import WhyView

pytestmark = [pytest.mark.browser, pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[2]
LOOKS: list[tuple[dict[str, Any], str]] = [
    ({"color_scheme": "light"}, "light"), ({"color_scheme": "dark", "contrast": "more"}, "contrast-dark"),
    ({"color_scheme": "dark"}, "dark"), ({"color_scheme": "light", "contrast": "more"}, "contrast"),
]  # fmt: skip
in_one_look = sliced("opened", together=True)
"""A look for each day, in which the page is opened once."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("gallery") / "gallery.html"
    command = [sys.executable, "-m", "tests.browser.kept", str(out)]  # `lab gallery`, and its recordings are kept
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    said = done.stdout.splitlines()
    assert said[-1] == f"The gallery is in {out}"
    assert all(line.endswith(" ...") for line in said[:-1])
    assert len(said) > 6
    return out


@pytest.fixture(scope="module", params=LOOKS, ids=lambda look: look[1])
def opened(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    """The page, opened once for each look."""
    wanted, theme = request.param
    context = browser.new_context(**wanted, offline=True, viewport={"width": 1100, "height": 1000})
    page = Opened(context, path)
    assert page.ready().evaluate("() => document.body.dataset.labTheme") == theme
    yield page
    context.close()


def drawn(page: Page) -> None:
    """Wait until every picture that has something to draw is drawn."""
    page.wait_for_function(
        """() => [...document.querySelectorAll(".lab-plot")].every(plot => plot.querySelector(".main-svg"))
             && [...document.querySelectorAll(".lab-scene")].every(
                  scene => scene.dataset.labTheme === document.body.dataset.labTheme
                           && scene.dataset.labSize === document.body.dataset.labSize)"""
    )


@in_one_look
def test_every_exhibit_is_drawn_from_disk_with_the_network_cut_and_nothing_complains(
    opened: Opened, path: Path, shots: Shots
):
    page = opened.page
    drawn(page)
    headings = page.get_by_role("heading", level=2).all_text_contents()
    assert headings == [*(exhibit.title for exhibit in EXHIBITS), "Nothing yet"]
    for exhibit in EXHIBITS:
        region = page.get_by_role("region", name=exhibit.title, exact=True)
        expect(region.locator(".lab-node, .lab-plot .trace, .lab-plot .hm").nth(1)).to_be_attached()
        made = "paced" if exhibit.run == "pipeline" else "run"
        expect(region.locator(".lab-provenance")).to_have_attribute("data-made", made)
        expect(region.locator(".lab-provenance svg path")).to_have_count(1)
    shots(page, f"gallery-{page.evaluate('document.body.dataset.labTheme')}")
    assert [url for url in opened.requests if not url.startswith("blob:")] == [path.as_uri()]
    assert opened.trouble == []


@in_one_look
def test_it_has_no_serious_fault_that_axe_finds(opened: Opened):
    assert faults(opened.page, "serious", "critical") == []


@in_one_look
def test_on_a_projector_it_has_no_serious_fault_that_axe_finds(opened: Opened):
    page = opened.page
    page.get_by_label("size", exact=True).select_option("projector")
    drawn(page)
    assert faults(page, "serious", "critical") == []
    page.get_by_label("size", exact=True).select_option("normal")
    drawn(page)


@in_one_look
def test_every_player_steps_by_itself_and_says_what_it_shows(opened: Opened):
    page = opened.page
    played = 0
    for exhibit in EXHIBITS:
        region = page.get_by_role("region", name=exhibit.title, exact=True)
        slider, words = region.get_by_role("slider"), region.locator(".lab-text-twin")
        if not slider.count():  # a picture of one moment
            continue
        played += 1
        ends = [("Home", "1"), ("End", slider.get_attribute("max") or "")]
        for key, at in ends if exhibit.opens_at_end else ends[::-1]:
            said = words.text_content() or ""
            slider.focus()
            page.keyboard.press(key)
            expect(slider).to_have_value(at)
            if exhibit.view is not DifferenceView:  # whose words are those of the whole comparison
                told = "([e, said]) => e.textContent !== said"
                page.wait_for_function(told, arg=[words.element_handle(), said])
    assert played >= len(EXHIBITS) - 1
    assert opened.trouble == []


# --- what is drawn is what was recorded ---


@pytest.fixture(scope="module")
def kept(path: Path) -> Kept:
    return Kept(path.parent)


@pytest.fixture(scope="module", params=["light", "dark"])
def calm(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Page]:
    """The page in a theme, opened once for all exhibits; nothing glides."""
    context = browser.new_context(
        color_scheme=request.param, reduced_motion="reduce", offline=True, viewport={"width": 1100, "height": 1000}
    )
    page = Opened(context, path).ready()
    drawn(page)
    yield page
    context.close()


def move(region: Locator, frame: str) -> None:
    """Move the slider, if there is one; `frame` is "" for where it opens."""
    slider = region.get_by_role("slider")
    if frame and slider.count():
        to = "(e, at) => { e.value = 1 + at * (e.max - 1); e.dispatchEvent(new Event('input')); }"
        slider.evaluate(to, float(frame))


def seen(region: Locator) -> tuple[int, dict[str, Any]]:
    """The stop that is shown, from 1 on, and what is drawn."""
    found = region.evaluate(READ)
    return int(found["step"].split(" of ")[0] or 1), found


@sliced("calm", together=True)
@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda exhibit: exhibit.title.replace(" ", "-"))
def test_what_is_drawn_is_the_picture_of_the_view_and_what_the_recording_says(calm: Page, kept: Kept, exhibit: Exhibit):
    region = calm.get_by_role("region", name=exhibit.title, exact=True)
    theme = calm.evaluate("document.body.dataset.labTheme")
    root = region.locator(".lab-scene, .lab-chart")
    assert root.get_attribute("data-lab-theme") == theme
    ink = COLOURS[theme]["text"]
    assert root.evaluate("e => getComputedStyle(e).color") == f"rgb{tuple(bytes.fromhex(ink[1:]))}"
    view, stops = shown_of(exhibit, kept)  # type: ignore[arg-type]  # recordings by the same names
    for frame in ("", "0.5") if exhibit.opens_at_end else ("", "0.5", "1"):
        move(region, frame)

        def as_recorded() -> None:  # a chart is drawn in one of the next pictures of the screen
            k, found = seen(region)
            p = int(stops[k - 1])
            agree(view.picture_at(p), found)
            BY_TITLE[exhibit.title](view.recording, p, k, found)
            searched = exhibit.view in {GraphView, RewriteView, VmapView, WhyView} and len(found["nodes"]) > 15
            assert region.locator(".lab-search:visible").count() == searched, "only where searching is of use"

        eventually(calm, as_recorded)
