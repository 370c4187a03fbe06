"""A report of ranks opened from disk with the network cut: every section plays by itself, in both themes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, expect

from lab.events import Recording, RunFinished, RunStarted
from lab.events.bus import Batch, Row
from lab.events.event import Origin, values_of
from tests.browser.shots import Shots
from tests.browser.test_page import Opened
from tests.browser.waiting import faults
from tests.slices import sliced
from tests.widgets.golden_pipeline import pipeline
from tests.widgets.golden_ranks import collective, ranks_of
from widgets.export.report import report

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600), sliced("opened")]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording with a loss, a step of a pipeline, an all-reduce and workers."""
    told = [(e.rank, e.time_ns, e) for e in pipeline("1f1b", 3, 4, n_steps=3)]
    told.insert(0, (0, 0, RunStarted("digits", 3, 1, 26_122, "a model", "Adam")))
    told += [(rank, told[-1][1] + k, e) for k, (rank, e) in enumerate(collective("all_reduce", "ring", ranks_of(3)))]
    told.append((0, told[-1][1], RunFinished("digits", "finished", 3, 1000.0, "")))
    recording = Recording(run="*", detail="value")
    rows = [Row(type(e), time, Origin(rank, "digits"), values_of(e)) for rank, time, e in told]
    recording.receive(Batch(rows, range(len(rows))))
    recording.meta["title"] = "Three ranks"
    return report(recording, tmp_path_factory.mktemp("report") / "report.html")


@pytest.fixture(params=["light", "dark"])
def opened(browser: Browser, path: Path, request: pytest.FixtureRequest) -> Iterator[Opened]:
    context = browser.new_context(color_scheme=request.param, offline=True, viewport={"width": 1100, "height": 1000})
    yield Opened(context, path)
    context.close()


def section(opened: Opened, name: str) -> Locator:
    return opened.page.get_by_role("region", name=name)


def test_every_section_plays_by_itself_and_keys_go_to_the_one_used_last(opened: Opened, shots: Shots, path: Path):
    page = opened.ready()
    assert page.title() == "Three ranks"
    assert page.get_by_role("heading", level=2).all_text_contents() == [
        "Loss", "One step of the pipeline", "One all-reduce", "The workers",
    ]  # fmt: skip
    loss, ring = section(opened, "Loss"), section(opened, "One all-reduce")
    expect(loss.locator(".lab-step")).to_have_text(re.compile(r"^3 of 3( · .*)?$"))
    for name in ("Loss", "One step of the pipeline", "One all-reduce", "The workers"):
        expect(section(opened, name).locator(".lab-step")).to_have_text(re.compile(r"^(\d+) of \1( · .*)?$"))
    ring.get_by_role("button", name="first frame").click()
    ring.get_by_role("button", name="step", exact=True).click()
    expect(ring.locator(".lab-step")).to_have_text(re.compile(r"^2 of 6( · .*)?$"))
    expect(ring.locator(".lab-text-twin")).to_contain_text("Step 1 of 4")
    page.evaluate("() => document.activeElement.blur()")
    page.keyboard.press("End")
    expect(ring.locator(".lab-step")).to_have_text(re.compile(r"^6 of 6( · .*)?$"))
    expect(loss.locator(".lab-step")).to_have_text(re.compile(r"^3 of 3( · .*)?$"))
    loss.get_by_role("heading").click()
    loss.locator(".lab-text-twin").click()
    page.keyboard.press("Home")
    expect(loss.locator(".lab-step")).to_have_text(re.compile(r"^1 of 3( · .*)?$"))
    expect(ring.locator(".lab-step")).to_have_text(re.compile(r"^6 of 6( · .*)?$"))
    shots(page, f"report-{page.evaluate('document.body.dataset.labTheme')}")
    assert [url for url in opened.requests if not url.startswith("blob:")] == [path.as_uri()]
    assert opened.trouble == []


def test_below_the_last_words_there_is_no_empty_space(opened: Opened):
    below = """document.documentElement.scrollHeight - scrollY
        - [...document.querySelectorAll("section .lab-text-twin")].at(-1).getBoundingClientRect().bottom"""
    opened.ready().wait_for_function(f"() => 0 < {below} && {below} < 60")


def test_a_report_has_no_fault_that_axe_finds(opened: Opened):
    assert faults(opened.ready()) == []


def test_one_switch_turns_all_sections_light_or_dark(opened: Opened):
    page = opened.ready()
    before = page.evaluate("() => document.body.dataset.labTheme")
    page.get_by_label("theme").select_option("dark" if before == "light" else "light")
    page.wait_for_function(
        """before => [...document.querySelectorAll(".lab-scene")].length === 3
             && [...document.querySelectorAll(".lab-scene")].every(scene => scene.dataset.labTheme !== before)""",
        arg=before,
    )
