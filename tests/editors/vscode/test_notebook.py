"""Cells of a notebook: each is a document to VS Code, and all are one file to its user."""

from __future__ import annotations

import json
from pathlib import Path

from .app import Code, Window, until
from .test_editor import CODE, START


def test_a_cell_goes_on_with_what_others_say(window: Window, code: Code, workspace: Path) -> None:
    sources = [CODE.rpartition("def third")[0], "def third(items):\n    ", "x = 1"]
    cells = [
        {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": s}
        for s in sources
    ]
    file = workspace / "book.ipynb"
    metadata = {"language_info": {"name": "python"}}
    file.write_text(
        json.dumps({"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5})
    )

    def edit_next() -> None:
        window.press("Escape", "ArrowDown", "Enter", "Control+End")

    window.open(file, is_notebook=True)
    window.page.locator(".notebook-editor .cell-list-container:focus-within").wait_for()
    edit_next()
    window.type(START)
    ghost = window.wait_for_ghost()
    window.press("Tab")

    def is_saved() -> bool:
        window.press("Control+KeyS")
        saved = json.loads(file.read_text())["cells"][1]["source"]
        return "".join(saved) == sources[1] + START + ghost

    until(is_saved, "the suggestion in the cell's text")

    window.command("codespec: Enable or Disable in This File")
    window.wait_for_status("codespec: off", "disabled in this file")
    edit_next()
    window.type("\ny")
    until(lambda: "Cell 3 of 3" in window.page.inner_text(".statusbar"), "the other cell")
    window.wait_for_status("codespec: off", "disabled in this file")
    window.command("codespec: Enable or Disable in This File")
    window.wait_for_status("codespec: ready")
