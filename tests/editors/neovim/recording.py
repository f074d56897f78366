"""The picture of real use in README: python -m tests.editors.neovim.recording

A user writes in flask, which the bundled model never saw, in the real Neovim with the plug-in and
the bundled model, and takes a suggestion and the next edits. Keys are typed; what is suggested is
what comes. Each frame that Neovim draws becomes a part of an animated SVG. Long waits are cut to
`MOST_S`. The picture is not written where what came is not what a user would take.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from codespec_bench.demo import PACKAGE, fetch

from .animation import animated
from .conftest import clear_up, set_up
from .editor import Editor
from .install import SUITES, install
from .painted import PaintedScreen

PICTURE = Path(__file__).parents[3] / "docs" / "images" / "neovim.svg"
SETTINGS = "settings = { completion = { lines = 'single', deadline_auto_ms = 20000 } }"
"""Options of the plug-in: one line at a time; and patience, as a machine may be busy."""
KEYS = """
vim.keymap.set('i', '<Tab>', function() return require('codespec').accept_or('<Tab>') end,
  { expr = true })
vim.keymap.set('n', '<Tab>', function() return require('codespec').next_edit_or('<Tab>') end,
  { expr = true })
vim.o.showmode, vim.o.ruler, vim.o.showcmd, vim.o.laststatus, vim.o.cmdheight = false, false,
  false, 0, 0
vim.o.hlsearch = false
"""
FILE = "src/flask/sansio/scaffold.py"
SCENE = (
    "In flask's scaffold.py a method is renamed by hand from _method_route to _shortcut. Next "
    "edits show the five places that call it, and Tab goes to each and makes the edit. Then a "
    "new method is written: what is suggested are the rest of its signature, and its last line, "
    'return self._shortcut("HEAD", rule, options), and Tab takes them.'
)
N_CALLS = 5
"""Calls in that file of the method that gets another name."""
KEY_S = 0.06
"""Pause between two keys of the user."""
LOOK_S = 1.4
"""Pause for the viewer to read what came."""
MOST_S = 1.6
"""Longest time that a frame is shown."""


@dataclass
class Recorder:
    """A user at an editor, who sees what comes."""

    editor: Editor

    def write(self, text: str) -> None:
        for char in text:
            self.editor.type({"<": "<lt>", "\n": "<CR>"}.get(char, char))
            self.rest(KEY_S)

    def rest(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.editor.read()
            time.sleep(0.01)

    def take(self, expected: str) -> None:
        """Wait for the suggestion, look at it, and take it."""
        self.editor.wait_for(
            lambda: self.editor.suggested == expected,
            lambda: f"not suggested: {expected!r}, but {self.editor.suggested!r}",
        )
        self.rest(LOOK_S)
        self.editor.type("<Tab>")
        self.rest(LOOK_S / 2)

    def see(self, shows: Callable[[str], bool]) -> None:
        """Wait for what the screen shows, and look at it."""
        self.editor.wait(lambda frame: shows("\n".join(frame.lines)))
        self.rest(LOOK_S)


def record(editor: Editor) -> None:
    """The scene: a method gets another name where it is called, too; a route for one more kind of
    request is written like the others."""
    user = Recorder(editor)
    user.rest(LOOK_S)
    editor.type("wcw")
    user.write("_shortcut")
    editor.type("<Esc>")
    user.see(lambda screen: f"(1 of {N_CALLS})" in screen)
    while "_method_route" in editor.text:
        user.see(lambda screen: "→ line" in screen)
        editor.type("<Tab>")  # there
        user.rest(LOOK_S / 2)
        editor.type("<Tab>")  # made
        user.rest(LOOK_S / 2)
    editor.type('?"PATCH", rule<CR>')
    user.rest(LOOK_S / 2)
    editor.type("o<CR><C-u>")
    user.write("    @setupmethod\ndef head(self, rule: str")
    user.take(", **options: t.Any) -> t.Callable[[T_route], T_route]:")
    user.write('\n"""Shortcut for :meth:`route` with ``methods=["HEAD"]``."""\nreturn ')
    user.take('self._shortcut("HEAD", rule, options)')
    editor.type("<Esc>")
    user.rest(LOOK_S)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=PICTURE)
    arguments = parser.parse_args()
    root = fetch(PACKAGE)
    with tempfile.TemporaryDirectory(prefix="codespec-") as folder:
        desk = set_up(Path(folder), Path(folder) / "cache")
        shutil.copytree(root / "src", desk.workspace / "src")
        screen = PaintedScreen()
        editor = Editor(
            install(max(SUITES)), desk.env, desk.workspace, f"{{{SETTINGS}}}",
            "-c", f"lua {' '.join(KEYS.split())}", "-c", "syntax on",
            screen=screen, size=(94, 20),
        )  # fmt: skip
        try:
            editor.open(desk.workspace / FILE)
            editor.wait_for_status("ready")
            editor.type("/def _method_route<CR>zt<C-y>")  # where the user begins
            editor.idle()
            time.sleep(8)  # the index of the workspace is made
            screen.paintings.clear()
            record(editor)
        finally:
            editor.close()
            clear_up(desk)
    svg = animated(screen.paintings, MOST_S, SCENE)
    arguments.output.write_text(svg, "utf-8")
    print(f"{arguments.output}: {len(svg) >> 10} KiB, {len(screen.paintings)} frames")


if __name__ == "__main__":
    main()
