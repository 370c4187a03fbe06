"""RingView: a collective with the ranks around a ring, in which most of them are best seen."""

from __future__ import annotations

from typing import Any

from widgets.views.collective.view import CollectiveView


class RingView(CollectiveView):
    """One collective of a recording, with the ranks around a ring, or in a row below the one that talks to all.

    Args:
        source, collective: as of CollectiveView.

    Example:
        >>> import lab, numpy as np
        >>> from lab.parallel import run_local
        >>> with lab.record() as rec:
        ...     _ = run_local("broadcast", "flat", [np.ones(2)] * 3)
        >>> RingView(rec).sentence_at(len(rec))
        'All 3 ranks left after 2 steps: every rank holds what rank 0 had; rank 0 sent most, 32 B.'
    """

    title = "Ring"
    arranges = False

    def __init__(self, source: Any, *, collective: int | None = None) -> None:
        super().__init__(source, layout="ring", collective=collective)
