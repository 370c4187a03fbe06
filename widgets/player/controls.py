"""What stands above the pictures of a player: buttons, timeline, speed and a line of words, kept in step with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from widgets.live.buttons import button, pixels, ringed
from widgets.live.spoken import Spoken
from widgets.player.timeline import Timeline

if TYPE_CHECKING:
    from widgets.player.player import Player

SPEEDS: tuple[tuple[str, float], ...] = (("slow", 0.5), ("normal", 1.0), ("fast", 2.0), ("very fast", 5.0))


def made_for(player: Player) -> dict[str, Any]:
    """The controls of a player by name."""
    import ipywidgets as ipw

    listed: tuple[tuple[str, str, str, Callable[[], object]], ...] = (
        ("Start", "fast-backward", "To the first stop (Home)", lambda: player.seek(0)),
        ("Previous mark", "backward", "To the mark before: a step, a backward walk, a collective ([)",
         player.previous_mark),
        ("Back", "step-backward", "One stop back (arrow left)", player.back),
        ("Step", "step-forward", "One stop forward (arrow right)", player.step),
        ("Play", "play", "Play from here, or pause (space)", player.toggle),
        ("Next mark", "forward", "To the next mark: a step, a backward walk, a collective (])", player.next_mark),
        ("End", "fast-forward", "To the newest stop; follows while recording (End)", player.to_end),
        ("Loop", "retweet", LOOPS[0], player.mark_loop),
    )  # fmt: skip
    controls: dict[str, Any] = {
        name: button(name, icon, tip, action, style="primary" * (name == "Step")) for name, icon, tip, action in listed
    }
    controls["Loop"].layout.min_width = pixels(132)  # of the longest of its words: what stands beside it stays there
    timeline = Timeline(lambda name, value: wished(player, name, value))
    controls["Bookmark"] = button(
        "Bookmark this moment…", "bookmark", "Write a note below; Enter keeps this moment with it (b)", timeline.write
    )
    chosen = player.speed if player.speed in dict(SPEEDS).values() else 1.0
    speed = ringed(ipw.Dropdown(
        description="Speed", options=SPEEDS, value=chosen, tooltip="How fast Play moves",
        layout=ipw.Layout(width=pixels(180)),
    ))  # fmt: skip

    def sped(change: Mapping[str, Any]) -> None:
        player.transport.speed = float(change["new"])

    speed.observe(sped, "value")
    return controls | {"Speed": speed, "Timeline": timeline, "text": Spoken()}


LOOPS = (
    "Mark where a loop begins, here; press again where it ends (l)",
    "Mark where the loop ends, here; at its beginning: repeat all (l)",
    "End the loop (l)",
)
"""What the loop button does next: for no loop, for one that has begun, for one that repeats."""


def panel(controls: Mapping[str, Any], pictures: list[Any]) -> Any:
    """Controls above pictures; keys pressed anywhere in it are the player's."""
    import ipywidgets as ipw

    row = ipw.Layout(display="flex", flex_flow="row wrap", align_items="center", width="100%")
    head = ipw.Box([*(c for name, c in controls.items() if name not in ("Timeline", "text"))], layout=row)
    box = ipw.VBox([head, controls["Timeline"], controls["text"], *pictures])
    box.add_class("lab-player-box")
    return box


def wished(player: Player, name: str, value: Any) -> None:
    """Do what the reader wants of the timeline."""
    match name:
        case "seek":
            player.seek(value)
        case "add":
            player.bookmark(value)
        case "go" if 0 <= value < len(player.bookmarks):
            player.go_to(value)
        case "remove" | "rename":
            stop, note, *written = value
            listed = [[player.transport.stop_of(b.position), b.note] for b in player.bookmarks]
            if [stop, note] in listed:  # else it has gone since the page drew it
                number = listed.index([stop, note])
                player.rename_bookmark(number, *written) if written else player.remove_bookmark(number)
        case "undo":
            player.restore_bookmark()
        case "key":
            keys: Mapping[str, Callable[[], object]] = {
                " ": player.toggle, "ArrowLeft": player.back, "ArrowRight": player.step,
                "Home": lambda: player.seek(0), "End": player.to_end, "[": player.previous_mark,
                "]": player.next_mark, "l": player.mark_loop,
            }  # fmt: skip
            keys.get(value, lambda: None)()


def refresh(controls: Mapping[str, Any], player: Player, words: str) -> None:
    """Bring the controls to where the player is."""
    t, line = player.transport, controls["Timeline"]
    marks = player.marks
    with line.hold_sync():
        line.n, line.at, line.words = len(t.stops), t.index, words.partition("\n")[0][:200]
        line.marks = [[stop, name] for stop, name in marks.items()]
        line.bookmarks = [[t.stop_of(b.position), b.note] for b in player.bookmarks]
        gone = player.removed
        line.removed = [] if gone is None else [t.stop_of(gone.position), gone.note]
        line.loop = list(t.loop or (() if t.loop_start is None else (t.loop_start,)))
    controls["Play"].description, controls["Play"].icon = ("Pause", "pause") if t.playing else ("Play", "play")
    controls["Back"].disabled = controls["Start"].disabled = t.index == 0
    controls["Step"].disabled = t.index == t.last
    controls["Previous mark"].disabled = player.mark_before() is None
    controls["Next mark"].disabled = player.mark_after() is None
    controls["End"].description = "Live" if player.live else "End"
    state = 2 if t.loop else int(t.loop_start is not None)
    controls["Loop"].tooltip, controls["Loop"].description = LOOPS[state], ("Loop", "Loop to here", "End loop")[state]
    controls["text"].text = words
