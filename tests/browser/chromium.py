"""Find a Chromium for the browser tests, or bring one.

First the one on PATH, then Debian's package, then playwright's own build. `python -m tests.browser.chromium` brings it
and prints where it is; tests call `find`.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def find() -> str | None:
    """Path of a Chromium that is here already, or None: LAB_CHROMIUM, then PATH, then playwright's download."""
    named = os.environ.get("LAB_CHROMIUM")
    if named:
        return named
    on_path = next(filter(None, map(shutil.which, NAMES)), None)
    return on_path or _playwrights_own()


def _playwrights_own() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).exists() else None


def _apt_command() -> list[str] | None:
    """How to install Debian packages without being asked for a password; None where that cannot be done."""
    if shutil.which("apt-get") is None:
        return None
    if os.geteuid() == 0:
        return ["apt-get"]
    if shutil.which("sudo") is None:
        return None
    without_password = subprocess.run(["sudo", "-n", "true"], capture_output=True, check=False).returncode == 0
    return ["sudo", "-n", "apt-get"] if without_password else None


def bring() -> str | None:
    """Install a Chromium and return its path, or None after saying what to do."""
    apt = _apt_command()
    if apt is not None:
        print("No Chromium found: installing Debian's package for the browser tests.", flush=True)
        subprocess.run([*apt, "update", "-qq"], check=False)
        command = [*apt, "install", "-y", "-qq", "--no-install-recommends", "chromium"]
        subprocess.run(command, env=os.environ | {"DEBIAN_FRONTEND": "noninteractive"}, check=False)
        if found := find():
            return found
    # Not tried by the project's own CI, which has no internet beyond package indexes.
    print("No Chromium found: asking playwright to download its own (needs internet access).", flush=True)
    subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=False)
    return find()


def main() -> int:
    """Print the path of a Chromium, brought if need be; 1 when there is none to be had."""
    path = find() or bring()
    if path is None:
        print(
            "The browser tests need Chromium or Chrome: install one and put it on PATH, or set LAB_CHROMIUM to it.",
            file=sys.stderr,
        )
        return 1
    print(f"Chromium: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
