"""Other servers of notebooks: Notebook 7, and Voila, which runs a whole notebook before it shows its page."""

from __future__ import annotations

import sys
import urllib.request

from tests.browser.harness import LabServer


class NotebookServer(LabServer):
    """`jupyter notebook` over `root`."""

    def command(self) -> list[str]:
        return [
            sys.executable, "-m", "notebook", "--no-browser", "--ip=127.0.0.1", f"--port={self.port}",
            "--ServerApp.port_retries=0", f"--IdentityProvider.token={self.token}", "--allow-root",
            f"--ServerApp.root_dir={self.root}", "--JupyterNotebookApp.news_url=",
        ]  # fmt: skip

    def _settings(self) -> None:
        """Also, the page shows its app to tests: Notebook does not heed its own option for that."""
        super()._settings()
        path = self.home / "config" / "labconfig" / "page_config.json"
        path.parent.mkdir()
        path.write_text('{"exposeAppInBrowser": true}')

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/notebooks/{name}?token={self.token}"


class VoilaServer(LabServer):
    """`voila` over `root`; each page has a kernel of its own, which ends with it."""

    def command(self) -> list[str]:
        return [
            sys.executable, "-m", "voila", str(self.root), "--no-browser", "--Voila.ip=127.0.0.1",
            f"--port={self.port}", "--classic-tree",
        ]  # fmt: skip

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/", timeout=2):
                return True
        except OSError:
            return super()._answers()

    def url(self, name: str) -> str:
        return f"http://127.0.0.1:{self.port}/voila/render/{name}"
