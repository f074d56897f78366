"""The picture of a suggestion in VS Code: python -m tests.editors.vscode.picture

A user writes a method in flask, which the bundled model never saw, in the real VS Code with the
extension. Keys are typed; what is suggested is what comes. The picture is not written where what
came is not what a user would take.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from pathlib import Path

from playwright.sync_api import FloatRect, sync_playwright

from codespec_bench.demo import PACKAGE, fetch

from .. import chromium
from ..conftest import end_daemons
from . import install
from .app import Code, Window, home_in, launch

PICTURE = install.PLUGIN / "media" / "suggestion.png"
SETTINGS: dict[str, object] = {
    "editor.fontFamily": "DejaVu Sans Mono",
    "editor.autoClosingQuotes": "never",
    "editor.stickyScroll.enabled": False,
    "breadcrumbs.enabled": False,
    "workbench.sideBar.location": "right",
}
FILE = "src/flask/sansio/scaffold.py"
ABOVE = 'return self._method_route("PATCH", rule, options)'
"""The line below which the user writes."""
KEYS = (
    "\n\n",
    "Shift+Tab",
    "@setupmethod\ndef head(self, rule: str, **options: t.Any) -> t.Callable[[T_route], T_route]:\n"
    '"""Shortcut for :meth:`route` with ``methods=["HEAD"]``."""\n',
)
EXPECTED = 'return self._method_route("HEAD", rule, options)'
CLIP: FloatRect = {"x": 4, "y": 36, "width": 745, "height": 392}
PATIENCE_MS = "20000"
"""Deadline of a suggestion, as a machine may be busy."""
INDEX_S = 8.0
"""Seconds in which the index of the workspace is made."""


def write_method(window: Window) -> str:
    """Returns: what is suggested in the end."""
    window.press("Control+KeyF")
    window.type(ABOVE, delay_ms=10)
    window.press("Enter", "Escape", "End")
    for keys in KEYS:
        if "+" in keys:
            window.press(keys)
        else:
            window.type(keys)
    return window.wait_for_ghost()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    root = fetch(PACKAGE)
    parts = install.install(), install.extension()
    with tempfile.TemporaryDirectory(prefix="codespec-") as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = launch(playwright, chromium.install())
        env = {**home_in(folder), "CODESPEC_COMPLETION_DEADLINE_AUTO_MS": PATIENCE_MS}
        code = Code(*parts, folder / "code", env)
        try:
            shutil.copytree(root / "src", folder / "flask" / "src")
            (folder / "flask" / ".git").mkdir()
            with code.settings(SETTINGS):
                window = Window(code, browser, folder / "flask" / FILE)
                window.wait_for_status("ready")
                time.sleep(INDEX_S)
                suggested = write_method(window)
                assert suggested == EXPECTED, f"not what a user would take: {suggested!r}"
                window.page.screenshot(path=arguments.output, clip=CLIP)
        finally:
            code.close()
            end_daemons(folder / "run")
            browser.close()
    print(f"{arguments.output}: {arguments.output.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
