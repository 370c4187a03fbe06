"""How tests wait for a page: until it moves no more, until something that is looked at as a whole holds.

What one element says is awaited by `expect`, what one expression gives by `wait_for_function`. Nothing is read once
that the page or the kernel may still be about to change, and nothing waits for a time.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.browser.harness import PATIENCE_MS

STILL = """() => new Promise(resolve => {
    let last = "", same = 0;
    const all = name => [...document.querySelectorAll(name)];
    const look = () => {
        const rests = !document.getAnimations().length && all(".lab-svg").every(e => !e.style.transform);
        const now = JSON.stringify([
            all(".lab-node, .lab-scene svg > g").map(e => e.getAttribute("transform")),
            all(".lab-plot").map(e => e._fullLayout?.datarevision),
            all(".lab-root, .lab-inspector").map(e => e.getBoundingClientRect()),
        ]);
        same = rests && now === last ? same + 1 : 0;
        last = now;
        same > 5 ? resolve(true) : requestAnimationFrame(look);
    };
    look();
})"""
"""Six pictures of the screen alike: what begins to move does so in the first of them."""
NEXT_PICTURE = "() => new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


def still(page: Page) -> None:
    """Wait until nothing glides, fades, is drawn again or pushes something else aside."""
    page.wait_for_function(STILL)


def eventually(page: Page, check: Callable[[], object]) -> None:
    """Run a check after each picture of the screen until it holds, and finds all that it looks at.

    In the end what it complains of is raised.
    """
    deadline = time.monotonic() + PATIENCE_MS / 1000
    while True:
        try:
            check()
        except (AssertionError, LookupError, ValueError):
            if time.monotonic() > deadline:
                raise
            page.evaluate(NEXT_PICTURE)
        else:
            return


def says(page: Page, text: str) -> None:
    """Wait until a live region says this."""
    page.wait_for_function(
        "text => [...document.querySelectorAll('[role=status]')].some(e => e.textContent.includes(text))", arg=text
    )


def no_rest(page: Page) -> None:
    """Timers of the page never come from now on: for its scripts, what the reader does next takes no time."""
    page.evaluate("() => { window.setTimeout = () => 0; }")


def faults(page: Page, *impacts: str) -> list[tuple[str, list[str]]]:
    """What axe finds, as rule and elements: in text that fades in, contrast would depend on the moment.

    Args:
        impacts: only faults of these, e.g. "serious"; all if none is given.
    """
    still(page)
    found = Axe().run(page).response["violations"]
    chosen = [fault for fault in found if not impacts or fault["impact"] in impacts]
    return [(fault["id"], [node["html"][:120] for node in fault["nodes"]]) for fault in chosen]
