"""Frames a second of a scene in Chromium without a graphics card: growing, panned, zoomed, recoloured, with tokens.

The graphs are recordings of real runs: a deep network of about 500 nodes and an unrolled recurrent one of about 5,000.
Where the boxes stand is computed here, in columns by depth, folded into strips. Patches come 15 a second, as the pacer
sends them, and are applied as host.js does it. Run: python tests/benchmarks/bench_frames.py [repeats] [growth]; with
"growth" only that is looked at. Frames a second are the machine's as it is now; CPU time a frame bears a busy one.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from playwright.sync_api import Page, sync_playwright

from tests.browser.graphs import deep_network, scene_of, unrolled_loop
from tests.browser.harness import launch
from widgets.live.library import PICTURES, bundle, style
from widgets.pictures import theme
from widgets.pictures.patch import diff
from widgets.pictures.scene import Scene, Token
from widgets.pictures.tree import tree_of

PATCHES = 60
"""Of a growth: four seconds."""


def part(whole: Scene, n: int, new: int) -> dict[str, Any]:
    """The tree of its first `n` nodes, the last `new` of them just made."""
    kept = tuple(node._replace(state="new") if i >= n - new else node for i, node in enumerate(whole.nodes[:n]))
    ids = {node.id for node in kept}
    edges = tuple(e for e in whole.edges if e.source in ids and e.target in ids)
    width = max(node.x + node.width for node in whole.nodes)
    height = max(node.y + node.height for node in whole.nodes)
    scene = Scene(kept, edges, title=whole.title, caption=whole.caption, extent=(width, height))
    return {**tree_of(scene), "text": ""}


def measure(page: Page, name: str, whole: Scene, repeats: int, only_growth: bool) -> None:
    """Print every figure of one graph, or those of its growth."""
    n = len(whole.nodes)
    full = {**tree_of(whole), "text": ""}
    per = 3
    starts = range(n - PATCHES * per, n + 1, per)
    trees = [part(whole, k, per) for k in starts]
    patches = [diff(a, b) for a, b in pairwise(trees)]
    rng = np.random.default_rng(0)
    ids = [node.id for node in whole.nodes]

    def colours(some: int) -> list[Any]:
        def one(key: str) -> list[Any]:
            return [["nodes", f"#{key}", "tone"], round(float(rng.uniform()), 3)]

        return [[one(ids[k]) for k in rng.choice(n, some, replace=False)] for _ in range(8)]

    sent = [
        Token(whole.edges[k].id, float(rng.uniform(0, 400)), 2500.0)
        for k in rng.choice(len(whole.edges), min(200, len(whole.edges)), replace=False)
    ]
    tokens = tree_of(Scene(whole.nodes, whole.edges, tuple(sent)))["tokens"]
    text, begun = json.dumps(full), json.dumps(trees[0])
    print(f"\n{name}: {n} nodes, {len(whole.edges)} edges, {len(text) / 1e3:.0f} kB", flush=True)
    figures: dict[str, list[dict[str, float]]] = {}

    def note(what: str, figure: dict[str, float]) -> None:
        where, far = page.evaluate("() => window.shown()")
        figures.setdefault(f"{what} ({'canvas' if far else f'{where} boxes'})", []).append(figure)

    opening = []

    def gestures() -> None:
        page.evaluate("() => window.overview()")
        note("pan, all in sight", page.evaluate("() => window.pan()"))
        note("zoom, all in sight", page.evaluate("() => window.zoom()"))
        for some in (100, n):
            note(f"recolour {some} a frame", page.evaluate("r => window.recolour(r)", colours(some)))
        note("200 tokens", page.evaluate("t => window.tokens(t)", tokens))
        page.evaluate("() => window.nearer(12)")
        note("pan, readable", page.evaluate("() => window.pan()"))
        note("zoom, readable", page.evaluate("() => window.zoom()"))
        note("recolour 100 a frame, readable", page.evaluate("r => window.recolour(r)", colours(100)))

    for _ in range(repeats):
        opening.append(page.evaluate("text => window.open_(text)", text))
        if not only_growth:
            gestures()
        page.evaluate("text => window.open_(text)", begun)
        note(f"growth by {per} nodes 15 times a second, followed", page.evaluate("p => window.grow(p)", patches))
        page.evaluate("text => window.open_(text)", begun)
        page.evaluate("() => window.overview()")
        note(f"growth by {per} nodes 15 times a second, all in sight", page.evaluate("p => window.grow(p)", patches))
    print(f"  {'open, JSON to picture':64} {median(opening):7.0f} ms")
    print(
        f"  {'':64} frames/s  longest ms  CPU ms a frame, main thread: script  style, layout  all  page and compositor"
    )
    for what, some in figures.items():
        names = "fps", "worst", "script", "style", "all", "processes"
        fps, worst, script, style_, all_, both = (median(f[k] for f in some) for k in names)
        print(
            f"  {what:64} {fps:8.1f}  {worst:10.0f}  {script:35.1f}  {style_:13.1f} {all_:4.1f}  {both:19.1f}",
            flush=True,
        )


class Cpu:
    """CPU time, which a busy machine does not stretch as it does a clock.

    Of the page's main thread, and of the two processes that draw it with all their threads: those that paint tiles and
    lay them together, too.
    """

    def __init__(self, page: Page) -> None:
        self.session = page.context.new_cdp_session(page)
        assert page.context.browser is not None
        self.whole = page.context.browser.new_browser_cdp_session()
        self.session.send("Performance.enable", {"timeDomain": "threadTicks"})
        page.expose_function("begin", self.begin)
        page.expose_function("end", self.end)

    def _now(self) -> dict[str, float]:
        values = {m["name"]: m["value"] * 1e3 for m in self.session.send("Performance.getMetrics")["metrics"]}
        style_ = values["LayoutDuration"] + values["RecalcStyleDuration"]
        there = self.whole.send("SystemInfo.getProcessInfo")["processInfo"]
        processes = sum(p["cpuTime"] for p in there if p["type"] in ("renderer", "GPU")) * 1e3
        return {
            "script": values["ScriptDuration"],
            "style": style_,
            "all": values["TaskDuration"],
            "processes": processes,
        }

    def begin(self) -> None:
        """From now on."""
        self.before = self._now()

    def end(self) -> dict[str, float]:
        """Milliseconds since `begin`."""
        return {name: value - self.before[name] for name, value in self._now().items()}


def main(repeats: int, only_growth: bool) -> None:
    """Both graphs, one after the other."""
    code = bundle("patch.js", *PICTURES)
    bench = Path(__file__).with_name("frames.js").read_text(encoding="utf-8")
    script = bench.replace("TABLE", theme.table()).replace("STYLE", json.dumps(style()))
    html = f'<!doctype html><meta charset="utf-8"><body><script type="module">{code}\n{{{script}}}</script>'
    print(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores, {repeats} repeats, medians")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        path = Path(folder) / "frames.html"
        path.write_text(html, encoding="utf-8")
        page = launch(playwright).new_page(viewport={"width": 1200, "height": 900})
        Cpu(page)
        page.on("pageerror", lambda error: print("page error:", error))
        page.goto(path.as_uri())
        page.wait_for_function("() => window.ready")
        measure(page, "deep network", scene_of(deep_network()), repeats, only_growth)
        measure(page, "unrolled loop", scene_of(unrolled_loop(1000)), repeats, only_growth)
    print(f"load average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main(next((int(word) for word in sys.argv[1:] if word.isdigit()), 3), "growth" in sys.argv)
