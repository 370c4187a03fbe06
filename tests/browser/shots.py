"""Pictures of what tests see, for whoever wants to look at them."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Locator, Page


class Shots:
    """Takes pictures into a folder. No test says anything by one, so without a folder none is taken: that takes long.

    Args:
        folder: what `$LAB_SHOTS` names, or "".
    """

    def __init__(self, folder: str) -> None:
        self._folder = Path(folder) if folder else None
        if self._folder is not None:
            self._folder.mkdir(parents=True, exist_ok=True)

    def __call__(self, what: Page | Locator, name: str) -> None:
        """Of a page, all of it, or of an element."""
        if self._folder is None:
            return
        path = str(self._folder / f"{name}.png")
        if isinstance(what, Page):
            what.screenshot(path=path, full_page=True)
        else:
            what.scroll_into_view_if_needed()
            what.screenshot(path=path)
