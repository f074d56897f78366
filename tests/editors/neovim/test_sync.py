"""The server's text of a document is the buffer's."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from codespec_lsp.documents import Document
from codespec_lsp.positions import DocumentPlace
from tests.editors.recorded import listening, told

from .conftest import Desk, Start
from .editor import Editor
from .install import Neovim

LINES = "one\ntwo\n\nfour\n"


@pytest.fixture
def editor(neovim: Neovim, desk: Desk, start: Start, tmp_path: Path) -> Editor:
    program = str(Path(sys.executable).parent / "codespec")
    editor = start(neovim, desk, f"cmd={{'{listening(program, tmp_path)}', 'lsp'}}")
    editor.open(desk.file("a.txt", LINES))
    editor.wait_for_status("ready")
    return editor


def believed(folder: Path) -> str:
    """Its text, as what was sent up to now makes it."""
    opened = told(folder, "textDocument/didOpen")[-1]["textDocument"]
    document = Document(opened["uri"], "", 0, opened["text"])
    for params in told(folder, "textDocument/didChange"):
        for change in params["contentChanges"]:
            if "range" in change:
                start, end = (DocumentPlace(**change["range"][side]) for side in ("start", "end"))
                document.replace(start, end, change["text"], "utf-8")
            else:
                document.replace_all(change["text"])
    return document.text


def feed(editor: Editor, keys: str) -> None:
    """Returns when they are processed."""
    typed = editor.request("nvim_replace_termcodes", keys, True, True, True)
    editor.request("nvim_feedkeys", typed, "xt", False)


def check(editor: Editor, folder: Path, wanted: str) -> None:
    editor.wait_for(
        lambda: told(folder, "textDocument/didChange") and believed(folder) == wanted,
        lambda: f"{believed(folder)!r}, not {wanted!r}",
    )


@pytest.mark.parametrize(
    "keys", ["ggdG", "ggdGix<Esc>", "ggdGu", ":2,$d<CR>ddP", "cc<Esc>:2,$d<CR>o<Esc>ggdd"]
)
def test_a_buffer_that_is_emptied(editor: Editor, tmp_path: Path, keys: str) -> None:
    """Neovim's own changes leave a line end too many, or none."""
    feed(editor, keys)
    check(editor, tmp_path, editor.text + "\n")


def test_returns_within_lines(editor: Editor, desk: Desk, tmp_path: Path) -> None:
    """They end no line in the buffer, so in the document they must not."""
    path = desk.file("b.txt", "a\rb\nc\r\nd\n")
    editor.open(path)
    feed(editor, "Gix<C-v><C-m>y<Esc>gg0xggOnew<Esc>")
    check(editor, tmp_path, "new\n b\nc\r\nx yd\n")


def test_text_behind_a_return(editor: Editor, desk: Desk, tmp_path: Path) -> None:
    """Files with mixed line ends have such a return. It no longer ends its line."""
    editor.open(desk.file("b.txt", "a\nb\r\nc\n"))
    feed(editor, "2GA!<Esc>ix<Esc>")
    check(editor, tmp_path, "a\nb x!\nc\n")
