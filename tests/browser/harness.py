"""A real JupyterLab in a real Chromium: a server on 127.0.0.1 with folders of its own, one notebook open in one page.

Everything waits for a state, nothing for a time. Rate limits stay on, as users have them.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import nbformat
from playwright.sync_api import Browser, Page, Playwright, ViewportSize, WebSocket, expect
from playwright.sync_api import TimeoutError as NothingCame

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--mute-audio",
    "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader",
)  # fmt: skip
PATIENCE_MS = int(os.environ.get("LAB_PATIENCE_MS", "120000"))
"""Longest wait for anything: machines that test are busy."""
expect.set_options(timeout=PATIENCE_MS)
VIEWPORT: ViewportSize = {"width": 1280, "height": 900}
KERNEL = "window.jupyterapp.shell.currentWidget.sessionContext.session.kernel"
RUNNING = (
    "window.jupyterapp.shell.currentWidget.content.widgets"
    ".filter(cell => cell.model.executionState === 'running').length"
)
"""How many cells run. Not by a class of the page: JupyterLab's `jp-mod-running` is a row of the file browser."""

CLEAN = """
def _clean():
    import lab.training
    from ipywidgets.widgets.widget import _instances
    from widgets.live.library import Library, PlotlyLibrary
    lab.training.stop_all()
    libraries = [w for w in _instances.values() if isinstance(w, (Library, PlotlyLibrary))]
    kept = {id(w) for library in libraries for w in (library, library.layout)}
    for widget in list(_instances.values()):
        if id(widget) not in kept:
            widget.close()
_clean()
del _clean
"""
"""What a test leaves in the shared kernel is stopped and closed; libraries stay, as they do for a reader."""


def launch(playwright: Playwright) -> Browser:
    """Chromium of the system if there is one, else playwright's own."""
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    return playwright.chromium.launch(executable_path=path, args=list(FLAGS))


class LabServer:
    """`jupyter lab` over `root`, as a context manager."""

    def __init__(self, root: Path, environment: dict[str, str] | None = None) -> None:
        self.root, self.extra, self.token = root, environment or {}, "browser-test"

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="lab-browser-"))
        folders = {
            "JUPYTER_CONFIG_DIR": "config", "JUPYTER_DATA_DIR": "data", "JUPYTER_RUNTIME_DIR": "runtime",
            "JUPYTERLAB_SETTINGS_DIR": "settings", "JUPYTERLAB_WORKSPACES_DIR": "workspaces", "IPYTHONDIR": "ipython",
        }  # fmt: skip
        environment = {**os.environ, "JUPYTER_PLATFORM_DIRS": "1"}
        for variable, name in folders.items():
            (self.home / name).mkdir()
            environment[variable] = str(self.home / name)
        here = Path(__file__).resolve().parents[2]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, (str(here), os.environ.get("PYTHONPATH"))))
        environment.update(self.extra)
        self._settings()
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.log = (self.home / "lab.log").open("w")
        self.process = subprocess.Popen(self.command(), env=environment, stdout=self.log, stderr=subprocess.STDOUT)
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while not self._answers():
            if self.process.poll() is not None or time.monotonic() > deadline:
                text = (self.home / "lab.log").read_text()
                self.__exit__(None, None, None)
                raise RuntimeError(f"jupyter lab did not start:\n{text[-3000:]}")
        return self

    def command(self) -> list[str]:
        """What is started: it answers at /api/status on `self.port`, with `self.token`."""
        return [
            sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={self.port}",
            "--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}", "--expose-app-in-browser",
            "--allow-root", f"--ServerApp.root_dir={self.root}", "--LabApp.news_url=",
            "--LabApp.extension_manager=readonly",
        ]  # fmt: skip

    def _answers(self) -> bool:
        url = f"http://127.0.0.1:{self.port}/api/status?token={self.token}"
        try:
            with urllib.request.urlopen(url, timeout=2):
                return True
        except OSError:
            try:  # returns when the process has ended; until then the time-out is the pause between two questions
                self.process.wait(timeout=0.2)
            except subprocess.TimeoutExpired:
                return False
            return False

    def _settings(self) -> None:
        """Every cell rendered, no news, no notifications, nothing saved behind the test's back."""
        values: dict[str, dict[str, Any]] = {
            "notebook-extension/tracker": {"windowingMode": "none", "recordTiming": False},
            "apputils-extension/notification": {
                "fetchNews": "false",
                "checkForUpdates": False,
                "doNotDisturbMode": True,
            },
            "docmanager-extension/plugin": {"autosave": False},
        }
        for name, value in values.items():
            path = self.home / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps(value))

    def url(self, name: str) -> str:
        """Address of one notebook in the single-document mode."""
        return f"http://127.0.0.1:{self.port}/doc/tree/{name}?token={self.token}&reset"

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.log.close()
        shutil.rmtree(self.home, ignore_errors=True)


class LabPage:
    """One notebook in one page, with what went wrong and how many bytes came from the kernel."""

    def __init__(self, page: Page, server: LabServer, name: str) -> None:
        self.page, self.server, self.name = page, server, name
        self.errors: list[str] = []
        self.late: list[str] = []
        self.foreign: list[str] = []
        self.received = 0
        page.set_default_timeout(PATIENCE_MS)
        page.on("pageerror", lambda error: self._complain(str(error)))
        page.on("console", lambda message: self._complain(message.text) if message.type == "error" else None)
        page.on("websocket", self._watch)
        page.on("request", self._note)

    def _complain(self, text: str) -> None:
        """An error, or only that anywidget gave a model up in a busy page: it comes all the same (test_late)."""
        (self.late if "[anywidget] Failed to initialize model." in text else self.errors).append(text[:500])

    def _watch(self, socket_: WebSocket) -> None:
        def count(payload: str | bytes) -> None:
            self.received += len(payload)

        socket_.on("framereceived", count)

    def _note(self, request: Any) -> None:
        if not request.url.startswith((f"http://127.0.0.1:{self.server.port}", "blob:", "data:")):
            self.foreign.append(request.url)

    def write(self, *cells: str) -> None:
        """Make the notebook from the sources of its cells."""
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(notebook, self.server.root / self.name)

    def rewrite(self, *cells: str) -> None:
        """Put other cells into the open notebook, and take out of its kernel what the old ones left there."""
        self.page.set_viewport_size(VIEWPORT)
        self.page.mouse.move(0, 0)
        self.page.evaluate(
            """sources => {
                const cells = window.jupyterapp.shell.currentWidget.content.model.sharedModel;
                cells.transact(() => {
                    cells.deleteCellRange(0, cells.cells.length);
                    cells.insertCells(0, sources.map(source => ({ cell_type: "code", source })));
                });
            }""",
            list(cells),
        )
        self.kernel(CLEAN)
        self.errors.clear()
        self.late.clear()
        self.foreign.clear()

    def reload(self) -> None:
        """Save the notebook and load its page again, as a reader who presses F5."""
        self.command("docmanager:save")
        address = self.page.url.split("?")[0]
        self.page.goto(f"{address}?token={self.server.token}", wait_until="domcontentloaded")
        self.ready()

    def close(self) -> None:
        """Shut the kernel down and close the page."""
        self.page.evaluate("() => window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        self.page.close()

    def open(self) -> None:
        """Open the notebook and wait for its kernel."""
        self.page.goto(self.server.url(self.name), wait_until="domcontentloaded")
        self.ready()
        self.kernel("pass")  # what the page asks a new kernel about widgets is answered before any cell makes one

    def ready(self) -> None:
        """Wait for the cells of a page that was loaded, and for its kernel."""
        self.page.wait_for_selector(".jp-Notebook .jp-Cell")
        self.page.wait_for_function(
            f"() => window.jupyterapp?.shell.currentWidget?.sessionContext?.isReady && {KERNEL}?.status === 'idle'"
        )

    def command(self, name: str) -> None:
        """Run one of JupyterLab's commands and wait for it."""
        self.page.evaluate("name => window.jupyterapp.commands.execute(name).then(() => null)", name)

    def run_all(self) -> None:
        """Run every cell and wait until the kernel is idle."""
        self.command("notebook:run-all-cells")
        self.rest()

    def rest(self) -> None:
        """Wait until no cell runs and the kernel is idle."""
        state = f"({{status: {KERNEL}.status, running: {RUNNING}}})"
        try:
            self.page.wait_for_function(f"() => {{ const s = {state}; return s.status === 'idle' && !s.running; }}")
        except NothingCame as why:
            raise AssertionError(f"not idle: {self.page.evaluate(state)}, cells say {self.cell_errors()}") from why

    def kernel(self, code: str) -> str:
        """Run code in the kernel, beside the notebook; returns what it printed. Raises if it failed."""
        result = self.page.evaluate(
            f"""async code => {{
                const future = {KERNEL}.requestExecute({{ code, store_history: false, stop_on_error: false }});
                let out = "", bad = null;
                future.onIOPub = m => {{
                    if (m.header.msg_type === "stream") out += m.content.text;
                    if (m.header.msg_type === "error") bad = m.content.traceback.join("\\n");
                }};
                await future.done;
                return [out, bad];
            }}""",
            code,
        )
        if result[1]:
            raise AssertionError(f"the kernel says:\n{result[1]}")
        return str(result[0]).strip()

    def until(self, code: str, expected: str) -> None:
        """Ask the kernel until it prints what is expected; each question is a round trip, so nothing spins."""
        deadline = time.monotonic() + PATIENCE_MS / 1000
        while (answer := self.kernel(code)) != expected:
            assert time.monotonic() < deadline, f"{code} prints {answer!r}, not {expected!r}"

    def cell_errors(self) -> list[str]:
        """Errors in the outputs of cells."""
        found: list[str] = self.page.evaluate(
            """() => window.jupyterapp.shell.currentWidget.content.widgets
                 .filter(cell => cell.model.type === "code")
                 .flatMap(cell => cell.model.outputs.toJSON())
                 .filter(output => output.output_type === "error")
                 .map(output => `${output.ename}: ${output.evalue}`)"""
        )
        return found

    def theme(self, name: str) -> None:
        """Switch to "JupyterLab Light" or "JupyterLab Dark" and wait until the page has it."""
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', { theme })", name)
        light = str(name.endswith("Light")).lower()
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === light", arg=light)
        self.page.wait_for_selector("#jupyterlab-splash", state="detached")  # JupyterLab covers the page meanwhile
