"""Key press to ghost text in VS Code, as a user sees it: `python -m tests.editors.vscode.latency`.

From the browser's keydown event to the first frame that shows the text: VS Code's own debounce
(50 ms), extension host, language server, daemon, model and drawing included. Each sample is at a
place of its own that nothing was asked for before, so no answer was suggested earlier.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from .. import chromium
from . import install
from .app import GHOST, Code, Window, home_in, launch, until

N_SAMPLES = 40
NAMES = ("items", "values", "names", "rows", "paths", "words", "users", "tokens")

_WATCH = f"""() => {{
  const ghost = {GHOST};
  window.key_at = window.shown_at = 0;
  addEventListener('keydown', () => {{
    window.key_at = performance.now();
    window.shown_at = 0;
  }}, true);
  const look = () => {{
    if (!window.shown_at && ghost()) window.shown_at = performance.now();
    requestAnimationFrame(look);
  }};
  look();
}}"""


def main() -> None:
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        code = Code(install.install(), install.extension(), folder / "code", home_in(folder))
        browser = launch(playwright, chromium.install())
        try:
            file = folder / "workspace" / "main.py"
            file.parent.mkdir()
            file.write_text("".join(map(function, range(N_SAMPLES + 5))))
            window = Window(code, browser, file)
            window.wait_for_status("ready")
            window.page.evaluate(_WATCH)
            samples = [sample(window, n) for n in range(N_SAMPLES + 5)][5:]
            window.close()
        finally:
            browser.close()
            code.close()
            code.codespec("daemon", "stop")
    shown = sorted(ms for ms in samples if ms is not None)
    result = {
        "name": "vscode_key_to_ghost_text",
        "n": len(samples),
        "n_shown": len(shown),
        "editor_debounce_ms": 50,
        "p50_ms": round(statistics.median(shown), 1),
        "p95_ms": round(shown[int(0.95 * (len(shown) - 1))], 1),
        "min_ms": round(shown[0], 1),
    }
    print("\n".join(f"{key:>20}  {value}" for key, value in result.items()))
    print(json.dumps(result))


def function(n: int) -> str:
    """Four lines; the third is where it is typed."""
    name = f"{NAMES[n % len(NAMES)]}_{n}"
    return f"def show_{name}({name}):\n    print({name})\n    \n    return len({name})\n"


def sample(window: Window, n: int) -> float | None:
    """Milliseconds from the last key of `print(` to the text; None where none came in a second."""
    window.press("Control+KeyG")
    window.page.locator(".quick-input-widget input").first.fill(f":{4 * n + 3}:5")
    window.press("Enter")
    until(lambda: window.page.locator(".monaco-editor.focused").count(), "the editor")
    window.type("print", delay_ms=80)
    window.press("Escape")
    window.wait_for_no_ghost()
    window.type("(", delay_ms=0)
    window.page.wait_for_timeout(1000)
    key_at, shown_at = window.page.evaluate("() => [window.key_at, window.shown_at]")
    window.press("Escape")
    return shown_at - key_at if shown_at else None


if __name__ == "__main__":
    main()
