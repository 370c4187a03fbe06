"""How long a click on a control takes while a training runs on real workers, in a real JupyterLab in Chromium.

From the click in the page to the words below the controls that say that the run is pausing or held, or goes on: kernel,
ranks and page together. One training on this machine, so the ranks want the cores that page and kernel want too.
Run: python tests/benchmarks/bench_clicks.py [workers] [clicks].
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from statistics import median

from playwright.sync_api import sync_playwright

from tests.browser.harness import VIEWPORT, LabPage, LabServer, launch

CELL = """
import lab
from lab.parallel import Cluster, DataParallel
from widgets import dashboard
cluster = Cluster({n})
run = lab.fit(lab.nn.mlp(64, 128, 128, 10, rng=0), lab.data.digits()[0], epochs=10_000, on=DataParallel(cluster))
dashboard(run)
"""
ALONE = """
import lab
from widgets import dashboard
run = lab.fit(lab.nn.mlp(64, 128, 128, 10, rng=0), lab.data.digits()[0], epochs=10_000)
dashboard(run)
"""
CLICK = """
([name, words]) => new Promise(resolve => {
    const says = () => [...document.querySelectorAll("[role=status]")].some(e => e.textContent.includes(words));
    const button = [...document.querySelectorAll("button")].find(b => b.textContent.trim() === name);
    const start = performance.now();
    const watcher = new MutationObserver(() => {
        if (!says()) return;
        watcher.disconnect();
        resolve(performance.now() - start);
    });
    watcher.observe(document.body, { subtree: true, childList: true, characterData: true });
    button.click();
})
"""
"""Milliseconds from a click on a button of this name to a status that has these words."""


def measure(lab: LabPage, name: str, cell: str, n_clicks: int) -> None:
    """Print the times of Pause and Resume, clicked in turn."""
    lab.rewrite(cell)
    lab.run_all()
    lab.until("print(run.progress[0] > 5)", "True")
    taken: dict[str, list[float]] = {"Pause": [], "Resume": []}
    for _ in range(n_clicks):
        for button, words in (("Pause", "‖ paus"), ("Resume", "▶ running")):
            lab.page.wait_for_function(
                "name => [...document.querySelectorAll('button:enabled')].some(b => b.textContent.trim() === name)",
                arg=button,
            )
            taken[button].append(float(lab.page.evaluate(CLICK, [button, words])))
            before = lab.kernel("print(run.progress[0])")
            if button == "Resume":
                lab.until(f"print(run.progress[0] > {before} + 5)", "True")
    for button, times in taken.items():
        print(f"{name:24} {button:7} median {median(times):5.0f} ms, worst of {n_clicks} {max(times):5.0f} ms, aim 300",
              flush=True)  # fmt: skip
    lab.kernel("run.stop(); run.join(10); globals().get('cluster') and cluster.close()")


def main() -> None:
    n, n_clicks = (int(word) for word in (sys.argv[1:] + ["4", "15"][len(sys.argv) - 1 :]))
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder, LabServer(Path(folder)) as server:
        browser = launch(playwright)
        lab = LabPage(browser.new_page(viewport=VIEWPORT), server, "clicks.ipynb")
        lab.write("pass")
        lab.open()
        measure(lab, "training in the kernel", ALONE, n_clicks)
        measure(lab, f"training on {n} workers", CELL.format(n=n), n_clicks)
        lab.close()
        browser.close()


if __name__ == "__main__":
    main()
