"""Key press to ghost text, or to a next edit, in the real Neovim:
python -m tests.editors.neovim.measure

Each key is measured from being sent to the frame with ghost text after it, on the screen of the
user interface: the plug-in's debounce (15 ms), the server, the model and drawing included. Settings
are the defaults, but for habits and the bar of next edits. `typist` says what is typed. Keys that
got no text (the server's rules, the deadline) are counted apart. A next edit is there with the
frame that has its sign or hint; the plug-in waits 60 ms before it asks. Prints a table and one line
of JSON for each version.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

from tests.editors.typist import (
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

from .conftest import clear_up, set_up
from .editor import Editor
from .install import SUITES, install

DRAWN = "»", "→ line"
"""The sign beside the lines of a next edit, and the hint at the cursor: one is on the screen."""


def measure(version: str, n_keys: int, n_jumps: int, n_renamed: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="codespec-") as folder:
        desk = set_up(Path(folder), Path(folder) / "cache")
        editor = Editor(install(version), {**desk.env, **SETTINGS}, desk.workspace, "{}")
        try:
            editor.open(desk.file("table.py", "import os\n"))
            editor.wait_for_status("ready")
            result = write(editor, TEXT[:n_keys])
            editor.type("<Esc>")
            editor.open(desk.file("places.py", places(n_jumps)))
            result |= jump(editor, n_jumps)
            editor.type("<Esc>")
            editor.open(desk.file("calls.py", calls(n_renamed + 1)))
            result |= rename(editor, n_renamed)
            debounce_ms = editor.lua("return require('codespec.config').current.debounce_ms")
        finally:
            editor.close()
            clear_up(desk)
    return {"name": "neovim_key_to_ghost_text", "neovim": version, "debounce_ms": debounce_ms} | (
        result
    )


def write(editor: Editor, text: str) -> dict[str, object]:
    """Keys in a row, at the end of the file."""
    editor.type("Go")
    asked: list[float] = []
    along: list[float] = []
    n_silent = 0
    for char in text:
        fits = editor.suggested.startswith(char)
        ms = answer_ms(editor, "<CR><C-u>" if char == "\n" else "<lt>" if char == "<" else char)
        if ms is None:
            n_silent += 1
        else:
            (along if fits else asked).append(ms)
    return {
        **figures("writing", asked),
        **figures("typed_along", along),
        "n_writing_silent": n_silent,
    }


def jump(editor: Editor, n: int) -> dict[str, object]:
    """A key at each place of the file."""
    asked: list[float] = []
    for i in order(n):
        editor.type(f"<Esc>{line_of(i)}GA")
        editor.wait(lambda frame: not frame.ghost)
        look_until = time.perf_counter() + LOOK_S
        while time.perf_counter() < look_until:
            editor.read()
        if (ms := answer_ms(editor, KEY)) is not None:
            asked.append(ms)
        editor.type("<Esc>u")  # what is left at one place is what a model copies at the next
    return {**figures("jumping", asked), "n_jumping_silent": n - len(asked)}


def rename(editor: Editor, n: int) -> dict[str, object]:
    """A key behind the same name in each line, from the top down; none is drawn for the first."""
    drawn: list[float] = []
    for i in range(n):
        editor.type(f"<Esc>{i + 1}G0f(i")
        look_until = time.perf_counter() + LOOK_S
        while time.perf_counter() < look_until:
            editor.read()
        if (ms := drawn_ms(editor, KEY)) is not None:
            drawn.append(ms)
    return {**figures("next_edit", drawn), "n_next_edit_silent": n - len(drawn)}


def drawn_ms(editor: Editor, key: str) -> float | None:
    """From the key, with which an earlier edit goes, to the frame with the next one; None where
    none came in time."""
    before, key_at = editor.read(), time.perf_counter()
    editor.type(key)
    is_gone = False
    while time.perf_counter() - key_at < PATIENCE_S:
        frame = editor.read()
        if frame is before:
            continue
        is_drawn = any(mark in line for line in frame.lines for mark in DRAWN)
        if is_gone and is_drawn:
            return (frame.at_s - key_at) * 1e3
        is_gone = is_gone or not is_drawn
    return None


def answer_ms(editor: Editor, key: str) -> float | None:
    """From the key to the frame with an answer to it; None where none came in time."""
    before, key_at = editor.read(), time.perf_counter()
    editor.type(key)
    answer: float | None = None
    while True:
        frame = editor.read()
        passed_s = time.perf_counter() - key_at
        if answer is None and frame is not before and frame.ghost:
            answer = (frame.at_s - key_at) * 1e3
        busy = frame is before or editor.lua("return require('codespec.inline').busy()")
        busy = busy or editor.suggested  # which is drawn with the next frame
        if passed_s > PERIOD_S and (answer is not None or not busy or passed_s > PATIENCE_S):
            return answer


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--keys", type=int, default=len(TEXT))
    parser.add_argument("--jumps", type=int, default=40)
    parser.add_argument("--renamed", type=int, default=30)
    arguments = parser.parse_args()
    for version in SUITES:
        result = measure(version, arguments.keys, arguments.jumps, arguments.renamed)
        print("\n".join(f"{key:>24}  {value}" for key, value in result.items()))
        print(json.dumps(result))


if __name__ == "__main__":
    main()
