"""Where the numbers of a picture are from: a run that took place or goes on, paced devices, or a simulation.

Read from the events of a recording and from what it says of itself, never from the clock or the folder of who looks; so
one recording always gives the same words.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple

from lab.events import ActionStarted, CollectiveStarted, RankStarted, RunStarted
from widgets.fold import Events

MOST_LETTERS = 60
"""Of a name in the words; the rest is cut."""
CLAIMS = ("simulated", "throttled")
"""What a recording can say of itself as `meta["made"]`; the other ways are seen in its events."""


MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
"""Not strftime's, which speak the language of the machine."""


class Provenance(NamedTuple):
    """How numbers came about.

    Attributes:
        made: "run", "live", "paced", "throttled" or "simulated": a key of `theme.MADE`; "" where nothing happened.
        words: the same and more in one line.
    """

    made: str
    words: str


def provenance_of(recording: Events, *, live: bool = False, file: bool = True) -> Provenance:
    """Where the numbers of this recording are from.

    Args:
        live: the picture moves on while the recording grows; a still one never does.
        file: whether to name the file from which it was loaded.

    Example:
        >>> from lab.events import Recording
        >>> rec = Recording()
        >>> rec.meta["created"] = "2026-11-29T20:14:05+00:00"
        >>> provenance_of(rec)
        Provenance(made='', words='A recording without events, begun 29 Nov 2026, 20:14 UTC')
    """
    made = _made(recording, live=live)
    if not len(recording) and not recording.live:
        when = _when(recording)
        return Provenance("", f"A recording without events{f', begun {when}' if when else ''}{_missing(recording)}")
    name, when, n_ranks = _name(recording), _when(recording), _n_ranks(recording)
    noun = {"simulated": "Simulation", "paced": "Paced run", "throttled": "Run over throttled links",
            "live": "Live run"}.get(made, "Run")  # fmt: skip
    began = f"recorded {when}" if when else "recorded"
    if recording.live:
        began = f"recording since {when}" if when else "recording"
    if name.startswith("run"):  # as a run is called that nobody named: it says already what it is
        noun = noun.removesuffix("Run").removesuffix(" run")
    what = f"{noun} {name}".strip()
    title = _meta(recording).get("title", "")
    if name and title.endswith(f" of {name}"):  # a step of a run, which itself may go on
        what = title
    parts = [f"{what[0].upper()}{what[1:]}, {began}" if name else f"{noun} {began}"]
    parts += [f"{n_ranks} rank{'s' * (n_ranks != 1)}"] if n_ranks else []
    words = ", ".join(parts)
    words += {"paced": ": an action lasts at least its nominal time; no measure of this machine",
              "throttled": ": no measure of this machine", "simulated": ": nothing ran"}.get(made, "")  # fmt: skip
    words += _missing(recording)
    source = _short(str(getattr(recording, "path", "")).replace("\\", "/").rpartition("/")[2]) if file else ""
    return Provenance(made, f"{words}; from {source}" if source else words)


def _made(recording: Events, *, live: bool) -> str:
    """What limits trust most comes first: that it is a simulation, throttled, paced, and only then that it goes on."""
    claim = _meta(recording).get("made", "")
    if claim in CLAIMS:
        return claim
    if any(recording.columns(ActionStarted)["paced"]):
        return "paced"
    return "live" if live and recording.live else "run"


def _missing(recording: Any) -> str:
    """What a recording should have and has not: the rest of a damaged file, or what found no room."""
    n_dropped = getattr(recording, "dropped", 0)
    if not n_dropped:
        return ""
    if _meta(recording).get("note", "").startswith("salvaged: "):
        return f"; salvaged from a damaged file, {n_dropped:,} later events are lost"
    return f"; not whole, {n_dropped:,} events were dropped (lab.record(limit=...) takes more)"


def _name(recording: Events) -> str:
    """Of the run that began last, else of who told the first event."""
    begun = recording.positions(RunStarted)
    if len(begun):
        return _short(str(recording.columns(RunStarted)["name"][-1]))
    return _short(recording[0].run) if len(recording) else ""


def _when(recording: Events) -> str:
    created = _meta(recording).get("created", "")
    try:
        when = datetime.fromisoformat(created if len(created) < 40 else "").astimezone(UTC)
    except (ValueError, OverflowError):  # a file may say anything
        return ""
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}, {when:%H:%M} UTC"


def _n_ranks(recording: Events) -> int:
    for kind in (RankStarted, CollectiveStarted):  # ranks that are threads start nothing
        sizes = recording.columns(kind)["world_size"]
        if len(sizes):
            return int(sizes[-1])
    return 0


def _meta(recording: Any) -> dict[str, str]:
    return getattr(recording, "meta", {})


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MOST_LETTERS else f"{text[:MOST_LETTERS]}…"
