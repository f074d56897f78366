"""Key press to ghost text, or to a next edit, in the real VS Code:
python -m tests.editors.vscode.latency

From the browser's keydown event to the first frame that shows the text: VS Code's own wait before
it asks (50 ms, which no setting and no extension changes), extension host, language server, daemon,
model and drawing included. The extension waits 60 ms before it asks for a next edit, which is there
with its hint. Settings are those of the tests: no popups, no brackets closed; next edits eager.
`typist` says what is typed. Keys that get no text (the server's rules, the deadline) are counted
apart. `..._server_ms_p50` is what the language server took of it, model included, as
`codespec stats` has it. Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from .. import chromium
from ..typist import (
    KEY,
    LOOK_S,
    PATIENCE_S,
    PERIOD_S,
    SETTINGS,
    TEXT,
    calls,
    figures,
    line_of,
    order,
    places,
)
from . import install
from .app import GHOST, Code, Window, home_in, launch, until

# Each key, and each frame in which the text is another, or a next edit's hint comes or goes:
# [milliseconds, key, text or if it is there].
_WATCH = f"""() => {{
  const ghost = {GHOST};
  window.keys = [];
  window.shown = [[0, '']];
  window.hinted = [[0, false]];
  const isHint = (e) => getComputedStyle(e, '::after').content.includes('→');
  addEventListener('keydown', () => window.keys.push(performance.now()), true);
  const look = () => {{
    const text = ghost();
    if (text !== window.shown.at(-1)[1]) window.shown.push([performance.now(), text]);
    const hint = [...document.querySelectorAll('.monaco-editor .view-line span span')].some(isHint);
    if (hint !== window.hinted.at(-1)[1]) window.hinted.push([performance.now(), hint]);
    requestAnimationFrame(look);
  }};
  look();
}}"""


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=len(TEXT))
    parser.add_argument("--jumps", type=int, default=40)
    parser.add_argument("--renamed", type=int, default=30)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch, sync_playwright() as playwright:
        folder = Path(scratch)
        env = {**home_in(folder), **SETTINGS}
        code = Code(install.install(), install.extension(), folder / "code", env)
        browser = launch(playwright, chromium.install())
        try:
            (folder / "workspace").mkdir()
            file = folder / "workspace" / "table.py"
            file.write_text("import os\n")
            window = Window(code, browser, file)
            window.wait_for_status("ready")
            window.page.evaluate(_WATCH)
            result = write(window, TEXT[: arguments.keys])
            result |= {"writing_server_ms_p50": server_ms(code)}
            file = folder / "workspace" / "places.py"
            file.write_text(places(arguments.jumps))
            window.open(file)
            result |= jump(window, arguments.jumps)
            result |= {"all_server_ms_p50": server_ms(code)}
            file = folder / "workspace" / "calls.py"
            file.write_text(calls(arguments.renamed + 1))
            window.open(file)
            result |= rename(window, arguments.renamed)
            window.close()
        finally:
            browser.close()
            code.close()
            code.codespec("daemon", "stop")
    result = {"name": "vscode_key_to_ghost_text", "editor_debounce_ms": 50, **result}
    print("\n".join(f"{key:>24}  {value}" for key, value in result.items()))
    print(json.dumps(result))


def write(window: Window, text: str) -> dict[str, object]:
    """Keys in a row, at the end of the file."""
    window.press("Control+End")
    asked: list[float] = []
    along: list[float] = []
    n_silent = 0
    for char in text:
        ms, fits = answer_ms(window, "Enter" if char == "\n" else char, char)
        if ms is None:
            n_silent += 1
        else:
            (along if fits else asked).append(ms)
        if char == "\n":
            # The text brings its own indentation. What this asked for is not measured.
            window.press("Shift+Home", "Delete")
            window.page.wait_for_timeout(PATIENCE_S * 1e3)
    return {
        **figures("writing", asked),
        **figures("typed_along", along),
        "n_writing_silent": n_silent,
    }


def jump(window: Window, n: int) -> dict[str, object]:
    """A key at each place of the file."""
    asked: list[float] = []
    for i in order(n):
        window.press("Escape")
        _go_to(window, line_of(i), 99)
        ms, _ = answer_ms(window, KEY, KEY)
        if ms is not None:
            asked.append(ms)
        # What is left at one place is what a model copies at the next.
        window.press("Escape", "Control+KeyZ")
    return {**figures("jumping", asked), "n_jumping_silent": n - len(asked)}


def _go_to(window: Window, line: int, column: int) -> None:
    """line, column: from 1."""
    window.press("Control+KeyG")
    window.page.locator(".quick-input-widget input").first.fill(f":{line}:{column}")
    window.press("Enter")
    until(lambda: window.page.locator(".monaco-editor.focused").count(), "the editor")
    window.wait_for_no_ghost()
    window.page.wait_for_timeout(LOOK_S * 1e3)


def rename(window: Window, n: int) -> dict[str, object]:
    """A key behind the same name in each line, from the top down."""
    drawn: list[float] = []
    for i, line in enumerate(calls(n).splitlines()):
        _go_to(window, i + 1, line.index("(") + 1)
        ms = drawn_ms(window, KEY)
        if ms is not None:
            drawn.append(ms)
    return {**figures("next_edit", drawn), "n_next_edit_silent": n - len(drawn)}


def drawn_ms(window: Window, key: str) -> float | None:
    """From the key, with which an earlier edit goes, to the first frame with the next one; None
    where none came in time."""
    n_keys, n_hinted = window.page.evaluate("() => [window.keys.length, window.hinted.length]")
    window.press(key)
    window.page.wait_for_timeout(PATIENCE_S * 1e3)
    key_at, hinted = window.page.evaluate(
        "([k, h]) => [window.keys[k], window.hinted.slice(h)]", [n_keys, n_hinted]
    )
    return next((at - key_at for at, is_there in hinted if is_there and at > key_at), None)


def answer_ms(window: Window, key: str, char: str) -> tuple[float | None, bool]:
    """From the key to the first frame with an answer to it, None where none came in time; and
    whether it was the next of the text that was shown."""
    began = time.monotonic()
    n_keys, n_shown = window.page.evaluate("() => [window.keys.length, window.shown.length]")
    window.press(key)
    while True:
        key_at, shown = window.page.evaluate(
            "([k, s]) => [window.keys[k], window.shown.slice(s - 1)]", [n_keys, n_shown]
        )
        before = [text for at, text in shown if at <= key_at][-1]
        fits = before.startswith(char)
        # What was shown goes away line by line.
        new = [(at, text) for at, text in shown if at > key_at and text]
        answers = [at for at, text in new if fits or not before.startswith(text)]
        passed_s = time.monotonic() - began
        if passed_s > PERIOD_S and (answers or passed_s > PATIENCE_S):
            return answers[0] - key_at if answers else None, fits
        window.page.wait_for_timeout(10)


def server_ms(code: Code) -> float | None:
    found = json.loads(code.codespec("stats", "--json"))["languages"]
    return found[0]["model_ms"][0] if found and found[0]["model_ms"] else None


if __name__ == "__main__":
    main()
