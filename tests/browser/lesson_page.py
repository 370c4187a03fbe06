"""The start lesson as one stand-alone page, made in its own notebook: small, and it plays with the network cut."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser, expect

from tests.browser.learner import Learner
from tests.browser.shots import Shots
from tests.browser.test_page import Opened

EXPORT = """
from widgets import export_page
export_page(
    "start.html",
    "The question", "Two numbers, one formula: the graph was drawn from the run.", GraphView(forward),
    "The walk backward", "It starts at z with gradient 1 and goes against the arrows.", Player(GraphView(both_ways)),
    "One number, one curve", Player(GraphView(parabola)),
    "Forget to clear", Lines("step", "loss", cleared=cleared, never_cleared=kept),
    "The same walk, 4,810 weights", Player(GraphView(one_step, direction="down")),
    "Train it", dashboard(run), "Four copies", dashboard(four), DataParallelView(four),
    title="Start here: which way should a weight move?",
)
"""
HEADINGS = ["The question", "The walk backward", "One number, one curve", "Forget to clear",
            "The same walk, 4,810 weights", "Train it", "Four copies"]  # fmt: skip


def page_of(learner: Learner) -> Path:
    """The page of the lesson that is open and has run."""
    learner.lab.kernel(EXPORT)
    return learner.lab.server.root / "start.html"


def plays_without_a_network(browser: Browser, path: Path, shots: Shots, scheme: str) -> None:
    """See that a page that was opened from disk has everything in it, and steps."""
    context = browser.new_context(color_scheme=scheme, offline=True, viewport={"width": 1100, "height": 1000})
    opened = Opened(context, path)
    page = opened.ready()
    assert page.get_by_role("heading", level=2).all_text_contents()[: len(HEADINGS)] == HEADINGS
    walk = page.get_by_role("region", name="The walk backward")
    walk.get_by_role("button", name="step", exact=True).click()
    expect(walk.locator(".lab-step")).to_have_text("2 of 7")
    page.wait_for_function("() => document.querySelectorAll('.lab-plot .main-svg .xtick').length > 10")
    shots(page, f"lesson-page-{scheme}")
    assert [url for url in opened.requests if not url.startswith("blob:")] == [path.as_uri()]
    assert opened.trouble == []
    context.close()
