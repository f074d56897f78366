"""Key press to ghost text in the real Neovim: python -m tests.editors.neovim.measure [--keys N]

Keys come at the speed of a quick typist (120 ms). Each is measured from being sent to the frame
with ghost text after it, on the screen of the user interface: the plug-in's debounce, the server,
the model and drawing included. Settings are the defaults. Keys that got no suggestion (the server's
rules, the deadline) are counted apart. Prints a table and one line of JSON.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from pathlib import Path

from .conftest import clear_up, set_up
from .editor import Editor
from .install import SUITES, install

TEXT = '''
def parse_line(line, separator=","):
    """Split a line into fields."""
    fields = []
    for field in line.split(separator):
        fields.append(field.strip())
    return fields


def read_table(path):
    rows = []
    with open(path, encoding="utf-8") as file:
        for line in file:
            if line.strip():
                rows.append(parse_line(line))
    return rows
'''
PERIOD_S = 0.12
PATIENCE_S = 1.0


def measure(version: str, n_keys: int) -> dict[str, object]:
    with tempfile.TemporaryDirectory(prefix="codespec-") as folder:
        desk = set_up(Path(folder), Path(folder) / "cache")
        path = desk.file("table.py", "import os\n")
        editor = Editor(install(version), desk.env, desk.workspace, "{}")
        try:
            editor.open(path)
            editor.wait_for_status("ready")
            editor.type("Go")
            asked, along, silent = [], [], 0
            for char in TEXT[:n_keys]:
                before = editor.read()
                suggested, key_at = editor.suggested, time.perf_counter()
                editor.type("<CR><C-u>" if char == "\n" else "<lt>" if char == "<" else char)
                while True:
                    frame = editor.read()
                    if frame is not before and frame.ghost:
                        (along if suggested.startswith(char) else asked).append(
                            (frame.at_s - key_at) * 1e3
                        )
                        break
                    if time.perf_counter() - key_at > PATIENCE_S or not (
                        frame is before or editor.lua("return require('codespec.inline').busy()")
                    ):
                        silent += 1
                        break
                while time.perf_counter() - key_at < PERIOD_S:
                    editor.read()
            debounce_ms = editor.lua("return require('codespec.config').current.debounce_ms")
        finally:
            editor.close()
            clear_up(desk)
    return {
        "neovim": version, "debounce_ms": debounce_ms, "n_asked": len(asked),
        "asked_ms_p50": round(statistics.median(asked), 1),
        "asked_ms_p95": round(statistics.quantiles(asked, n=20)[-1], 1),
        "n_typed_along": len(along),
        "typed_along_ms_p50": round(statistics.median(along), 1) if along else None,
        "n_silent": silent,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=len(TEXT))
    arguments = parser.parse_args()
    for version in SUITES:
        result = measure(version, arguments.keys)
        for name, value in result.items():
            print(f"{name:20} {value}")
        print(json.dumps(result))


if __name__ == "__main__":
    main()
