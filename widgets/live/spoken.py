"""A line of text that screen readers speak when it changes: an aria-live region that stays while its text changes.

An `ipw.HTML` replaces its whole content, region included, and then most readers say nothing.
"""

from __future__ import annotations

import traitlets

from widgets.live.buttons import css
from widgets.live.heard import Heard
from widgets.live.library import bundle


class Spoken(Heard):
    """One line of text.

    Example:
        >>> line = Spoken(text="3 of 7")
        >>> line.text = "4 of 7"
        >>> line.close()
    """

    _esm = bundle("gone.js", "late.js", "once.js", "spoken.js")
    _css = css()  # the controls that this line speaks for stand beside it
    text = traitlets.Unicode().tag(sync=True)
    twin = traitlets.Unicode("none").tag(sync=True)
    """Mark of still words in an output before, hidden in the page as long as this line is there."""
