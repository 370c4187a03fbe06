"""The clock of a recording: a player over one view or several, its timeline, and bookmarks."""

from widgets.player.player import Player

__all__ = ["Player"]
