"""Where nan or infinity began, on the picture of a graph: the words for it, and what is lit when the reader asks."""

from __future__ import annotations

from dataclasses import replace

from lab.events import Nonfinite, first_nonfinite
from widgets.fold import Events
from widgets.pictures import theme
from widgets.pictures.scene import Scene
from widgets.tape.tape import Tape


class Trouble:
    """What a GraphView says of the first nan or infinity in its recording.

    Attributes:
        lights: whether the operation in which it began is lit, with its operands.
    """

    def __init__(self, recording: Events) -> None:
        self.lights = False
        self._recording = recording
        self._found: Nonfinite | None = None

    def words(self) -> str:
        """Where it began, in up to three lines, a line of code without the comma at its end; "" where all is finite."""
        self._found = self._found or first_nonfinite(self._recording)
        lines = self._found.text.splitlines() if self._found is not None else []
        told = "\n".join(theme.signed(line) if line.startswith("with ") else line.rstrip(", ") for line in lines)
        return told[:1].upper() + told[1:]

    def told(self, scene: Scene, state: Tape) -> Scene:
        """The scene with the words before its own."""
        if state.bad is None:
            return scene
        return replace(scene, caption=f"{', '.join(self.words().splitlines())}. {scene.caption}")

    def steps(self, state: Tape) -> list[tuple[int, int]]:
        """What is lit: the operation with each of its operands, as (operation, number); of a leaf nothing."""
        entry = state.entries.get(state.bad_node)
        return [(entry.node, i) for i in range(len(entry.parents))] if entry is not None and self.lights else []

    def lit(self, state: Tape) -> frozenset[str]:
        """Ids of what is lit where every node has its box."""
        if not self.lights or state.bad_node not in state.entries:
            return frozenset()
        parents = state.entries[state.bad_node].parents
        ways = {f"{node}.{i}" for node, i in self.steps(state)}
        return frozenset({str(state.bad_node), *map(str, parents), *ways, *(f"c{way}" for way in ways)})
