"""Next edits of the engine: which texts they are proposed in, what counts as a change, and why
there are none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.config import Settings
from codespec.documents.edit_histories import EditHistories
from codespec.documents.open_documents import OpenDocuments
from codespec.edits.base import LineEdit
from codespec.engine.editable_texts import EditableTexts, WorkspaceTexts
from codespec.engine.local import LocalEngine
from codespec.engine.next_edits import NextEditFinder, as_next_edit
from codespec.index import file_words
from codespec.index.file_words import FileWords
from codespec.index.reader import WorkspaceIndex
from codespec.next_edit import Dismissed, NextEdit, NextEditRequest, NextEdits, NoNextEdit, Where
from codespec.requests import CompletionRequest
from codespec.syntax.text import safe_cuts
from tests.index_support import Workspace
from tests.proposers import OTHER, ReplaceWord

A = "def size(a):\n    return size(a.b)\n\nsize(3)\n"
TYPED = A.replace("def size", "def length")


class Editor:
    """Asks for next edits as one editor window does."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.indexes: dict[str, WorkspaceIndex | None] = {}
        self.finder = NextEditFinder(EditableTexts(self._index, ["left_alone/"]), ReplaceWord())
        self.dismissed: tuple[Dismissed, ...] = ()

    def _index(self, root: str) -> WorkspaceIndex | None:
        if root not in self.indexes:
            self.indexes[root] = self.workspace.open()
        index = self.indexes[root]
        if index is not None:
            index.refresh()
        return index

    def ask(
        self,
        name: str,
        text: str,
        *,
        root: Path | None = None,
        bar: float = 0.5,
        where: Where = "workspace",
        n_most: int = 99,
    ) -> NextEdits:
        root = root or self.workspace.root
        request = NextEditRequest(
            text,
            0,
            str(root / name) if name else "",
            str(root),
            document=f"file://{name}",
            version=3,
            bar=bar,
            where=where,
            n_most=n_most,
            dismissed=self.dismissed,
        )
        return self.finder.find(request)

    def edited(self, name: str, text: str, **options: object) -> list[tuple[str, int, str]]:
        """(file, line, new text) of the edits proposed for this text."""
        found = self.ask(name, text, **options)  # type: ignore[arg-type]
        assert bool(found.edits) == (found.why is None)
        root = self.workspace.root
        return [(str(Path(e.path).relative_to(root)), e.line, e.edit.text) for e in found.edits]


@pytest.fixture
def editor(workspace: Workspace) -> Editor:
    workspace.write("a.py", A)
    return Editor(workspace)


def made(text: str, edit: NextEdit) -> str:
    assert text[edit.edit.start : edit.edit.end] == edit.old
    return text[: edit.edit.start] + edit.edit.text + text[edit.edit.end :]


def test_what_differs_from_the_file_was_changed(editor: Editor) -> None:
    assert editor.ask("a.py", A).why == NoNextEdit.NOTHING_EDITED
    found = editor.ask("a.py", TYPED, n_most=1)
    (edit,) = found.edits
    assert (edit.edit.document, edit.edit.version) == ("file://a.py", 3)
    assert made(TYPED, edit) == TYPED.replace("return size", "return length")
    assert found.n_left == 2
    assert edit.kind == "word"


def test_changes_of_one_document_are_repeated_in_others(editor: Editor) -> None:
    editor.workspace.write("b.py", "size(1)\n")
    editor.ask("a.py", TYPED)
    assert editor.edited("b.py", "size(1)\n\n\n") == [
        ("b.py", 0, "length(1)"),
        ("a.py", 1, "    return length(a.b)"),
        ("a.py", 3, "length(3)"),
    ]
    elsewhere = editor.ask("b.py", "size(1)\n\n\n").edits[1]
    assert (elsewhere.edit.document, elsewhere.edit.version) == (elsewhere.path, -1)
    assert elsewhere.chance == OTHER


def test_what_completions_saw_is_repeated_and_what_next_edits_saw_is_drafted_from(
    editor: Editor,
) -> None:
    tokenizer, root = ByteTokenizer(), str(editor.workspace.root)
    histories = EditHistories()
    documents = OpenDocuments(tokenizer, safe_cuts(tokenizer), (), histories)
    texts = EditableTexts(editor._index)
    editor.finder = NextEditFinder(texts, ReplaceWord(), histories=histories)
    path = str(editor.workspace.root / "a.py")
    for text in (A, TYPED):
        documents.update(CompletionRequest(text, path=path, workspace=root))
    assert [lost for _, lost in documents.lost(root)]
    editor.workspace.write("b.py", "size(1)\nlast(1)\n")
    assert ("b.py", 0, "length(1)") in editor.edited("b.py", "size(1)\nlast(1)\n")
    editor.ask("b.py", "size(1)\n")
    said = [tokenizer.decode(tokens).decode() for _, tokens in documents.lost(root)]
    assert said == ["last(1)\n", "def size(a):\n"]
    documents.close(path)  # which was not saved
    editor.finder.closed(path)
    assert len(documents.lost(root)) == 1
    assert editor.ask("b.py", "size(1)\n").why != NoNextEdit.NOTHING_EDITED


def test_a_bar_and_a_reach(editor: Editor) -> None:
    editor.workspace.write("b.py", "x = 1\n")
    editor.ask("a.py", TYPED)
    assert editor.ask("b.py", "x = 1\n\n", bar=0.7).why == NoNextEdit.NOT_SURE
    assert editor.ask("b.py", "x = 1\n", where="file").why == NoNextEdit.NO_PLACE
    assert len(editor.ask("a.py", TYPED, where="file").edits) == 2
    assert editor.ask("a.py", TYPED, where="line").why == NoNextEdit.NO_PLACE


def test_dismissed_edits_are_not_proposed_again_while_they_stand(editor: Editor) -> None:
    first, second = editor.ask("a.py", TYPED).edits
    editor.dismissed = (Dismissed(first.path, first.old, first.edit.text),)
    [left] = editor.ask("a.py", TYPED).edits
    assert left.edit == second.edit
    assert left.chance < second.chance
    editor.dismissed += (Dismissed(second.path, second.old, second.edit.text),)
    assert editor.ask("a.py", TYPED).why == NoNextEdit.DISMISSED
    gone = TYPED.replace("size", "other")
    assert editor.ask("a.py", gone).why == NoNextEdit.NO_PLACE


def test_a_text_from_disk_is_no_change_and_starts_anew(editor: Editor) -> None:
    assert editor.edited("a.py", TYPED)
    formatted = TYPED.replace("(3)", "( 3 )")
    editor.workspace.write("a.py", formatted)
    assert editor.ask("a.py", formatted).why == NoNextEdit.NOTHING_EDITED
    # Saving is no change.
    typed = formatted.replace("return size", "return length")
    assert editor.edited("a.py", typed) == [("a.py", 3, "length( 3 )")]
    editor.workspace.write("a.py", typed)
    assert editor.edited("a.py", typed) == [("a.py", 3, "length( 3 )")]


def test_a_closed_document_is_forgotten(editor: Editor) -> None:
    editor.workspace.write("b.py", "size(1)\n")
    assert editor.edited("a.py", TYPED)
    editor.finder.closed(str(editor.workspace.root / "a.py"))
    assert editor.ask("b.py", "size(1)\n").why == NoNextEdit.NOTHING_EDITED


def test_workspaces_do_not_serve_each_other(editor: Editor, tmp_path: Path) -> None:
    editor.workspace.write("b.py", "size(1)\n")
    editor.ask("a.py", TYPED)
    other = tmp_path / "other"
    other.mkdir()
    assert editor.ask("b.py", "size(1)\n", root=other).why == NoNextEdit.NOTHING_EDITED
    alone = NextEditRequest("size(1)\n", 0, str(tmp_path / "b.py"))
    assert editor.finder.find(alone).why == NoNextEdit.NOTHING_EDITED


def test_files_of_the_index_are_places(editor: Editor) -> None:
    workspace = editor.workspace
    workspace.write("lib/far.py", "import x\n\nsize(7)\n")
    workspace.write("near.py", "size(1)\nsizes(2)\n")
    workspace.write("none.py", "sizes(1)\n")
    workspace.write("go.sum", "size v1\n")
    workspace.write("made.py", "# Code generated by a tool. DO NOT EDIT.\nsize(1)\n")
    workspace.write("left_alone/c.py", "size(1)\n")
    workspace.write("ignored.py", "size(1)\n")
    workspace.write(".gitignore", "ignored.py\n")
    workspace.write("windows.py", "first\r\nsize(5)\r\n")
    workspace.build()
    own = [("a.py", 1, "    return length(a.b)"), ("a.py", 3, "length(3)")]
    assert editor.edited("a.py", TYPED)[:2] == own  # there may be no time for more
    while editor.finder.idle():
        pass
    others = [("near.py", 0, "length(1)"), ("windows.py", 1, "length(5)")]
    assert editor.edited("a.py", TYPED) == [*own, *others, ("lib/far.py", 2, "length(7)")]
    # Files are read when they are asked about, and an open document is newer than its file.
    workspace.write("near.py", "\nsize(8)\n")
    editor.ask("lib/far.py", "import x\n\nsize(7, 8)\n")
    found = editor.edited("a.py", TYPED.replace("length", "longer"))
    assert ("near.py", 1, "longer(8)") in found
    assert ("lib/far.py", 2, "longer(7, 8)") in found


def test_what_became_excluded_is_no_place_until_it_is_allowed_again(editor: Editor) -> None:
    workspace = editor.workspace
    workspace.write("near.py", "size(1)\n")
    workspace.write("left.py", "size(2)\n")
    workspace.build()
    own = editor.edited("a.py", TYPED)[:2]
    while editor.finder.idle():
        pass
    near, left = ("near.py", 0, "length(1)"), ("left.py", 0, "length(2)")
    assert editor.edited("a.py", TYPED) == [*own, left, near]
    rules = workspace.write(".codespecignore", "near.py\n")
    assert editor.edited("a.py", TYPED) == [*own, left]
    workspace.write("near.py", "size(9)\n")
    workspace.write("left.py", "# @generated\nsize(2)\n")
    rules.unlink()
    assert editor.edited("a.py", TYPED) == [*own, ("near.py", 0, "length(9)")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everything")
def test_what_cannot_be_written_is_no_place(editor: Editor) -> None:
    editor.workspace.write("b.py", "size(1)\n").chmod(0o400)
    editor.workspace.build()
    assert {path for path, _, _ in editor.edited("a.py", TYPED)} == {"a.py"}


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("left_alone/c.py", "size(1)\n", "left_alone/"),
        (".env", "size=1\n", "secrets"),
        ("package-lock.json", "size\n", "a lock file"),
        ("made.py", "# @generated\nsize(1)\n", "generated"),
    ],
)
def test_documents_that_are_no_places(editor: Editor, name: str, text: str, why: str) -> None:
    editor.ask("a.py", TYPED)
    found = editor.ask(name, text)
    assert found.why == NoNextEdit.EXCLUDED
    assert why in found.reason
    # Nothing of it is repeated, either, and it is no place seen from elsewhere.
    editor.ask(name, text.replace("size", "width"))
    assert {path for path, _, _ in editor.edited("a.py", TYPED)} == {"a.py"}


def test_what_became_excluded_is_repeated_no_more(editor: Editor) -> None:
    editor.workspace.write("b.py", "size(1)\n")
    editor.ask("a.py", TYPED)
    assert editor.edited("b.py", "size(1)\n")
    editor.workspace.write(".gitignore", "a.py\n")
    assert editor.ask("b.py", "size(1)\n").why == NoNextEdit.NOTHING_EDITED


def test_a_document_without_a_file_gets_none(editor: Editor) -> None:
    assert editor.ask("", TYPED).why == NoNextEdit.NO_FILE


LINES = ["a", "b", "", "c"]


@pytest.mark.parametrize("ends", ["", "\n"])
@pytest.mark.parametrize(
    ("line", "old", "new"),
    [
        (1, ("b",), ("B", "B")),
        (0, ("a", "b"), ("x",)),
        (2, ("",), ("x",)),
        (1, (), ("x", "")),
        (0, (), ("x",)),
        (1, ("b", ""), ()),
        (0, ("a",), ()),
        (3, ("c",), ()),
        (3, ("c",), ("C",)),
        (0, ("a", "b", "", "c"), ()),
        (4, (), ("x", "y")),
    ],
)
def test_edits_of_lines_as_edits_of_characters(
    ends: str, line: int, old: tuple[str, ...], new: tuple[str, ...]
) -> None:
    text = "\n".join(LINES) + ends
    request = NextEditRequest(text, 0, "/w/a.py")
    texts = WorkspaceTexts({"/w/a.py": text}, "/w/a.py", None, lambda path: "")
    edit = as_next_edit(LineEdit("/w/a.py", line, old, new, 0.9, "word"), texts, request)
    assert edit is not None
    lines = text.split("\n")
    lines[line : line + len(old)] = new
    assert made(text, edit) == "\n".join(lines)


def test_an_edit_whose_old_lines_do_not_stand_there_is_dropped() -> None:
    texts = WorkspaceTexts({"/w/a.py": "a\nb"}, "/w/a.py", None, lambda path: "")
    request = NextEditRequest("a\nb", 0, "/w/a.py")
    for path, line, old in (("/w/a.py", 0, "b"), ("/w/a.py", 7, "b"), ("/w/b.py", 0, "a")):
        assert as_next_edit(LineEdit(path, line, (old,), ("x",), 1.0, ""), texts, request) is None


def test_words_follow_the_index(workspace: Workspace) -> None:
    for i in range(20):
        workspace.write(f"{i}.py", f"word{i} common\n" if i != 7 else "word3 common\n")
    workspace.build()
    index = workspace.index()
    words = FileWords(index)

    def holding(*asked: str) -> set[str]:
        return {os.path.basename(path) for path in words.holding(asked)}

    assert holding("common") == set()
    while words.read_some():
        pass
    assert holding("common") == {f"{i}.py" for i in range(20)}
    assert holding("word3", "common") == {"3.py", "7.py"}
    assert holding("word3", "word4") == set()
    assert holding("word") == holding() == set()
    workspace.write("3.py", "other common\n")
    workspace.write("new.py", "word3\n")
    (workspace.root / "7.py").unlink()
    workspace.build()
    assert index.refresh()
    assert holding("word3") == set()  # not read yet
    while words.read_some():
        pass
    assert holding("word3") == {"new.py"}
    assert holding("other") == {"3.py"}
    near = [os.path.basename(p) for p in words.holding(["common"], str(workspace.root / "x.py"))]
    assert len(near) == 19
    # A content that went and came back is found once.
    for text in ("gone\n", "other common\n"):
        workspace.write("3.py", text)
        workspace.build()
        assert index.refresh()
        while words.read_some():
            pass
        assert holding("gone") == ({"3.py"} if text == "gone\n" else set())
    assert len(list(words.holding(["other", "common"]))) == 1


def test_words_of_many_files_are_merged_while_they_are_read(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(file_words, "_MANY", 4)
    for i in range(30):
        workspace.write(f"{i}.py", f"word{i} common\n")
    workspace.build()
    words = FileWords(workspace.index())
    for n_read in range(1, 31):
        assert words.read_some()
        assert len(list(words.holding(["common"]))) == n_read
    while words.read_some():
        pass
    assert [os.path.basename(path) for path in words.holding(["word7", "common"])] == ["7.py"]


def test_an_engine_finds_them(workspace: Workspace) -> None:
    text = "def run(task):\n    first = fetch(task)\n    second = fetch(task)\n    return first\n"
    typed = text.replace("first = fetch(task)", "first = fetch_all(task)")
    path = str(workspace.write("a.py", text))
    engine = LocalEngine(Settings())
    try:
        found = engine.find_edits(NextEditRequest(typed, 30, path, str(workspace.root), bar=0.0))
        assert "second = fetch_all(task)" in made(typed, found.edits[0])
        engine.closed(path)
        workspace.write("a.py", typed)
        again = engine.find_edits(NextEditRequest(typed, 30, path, str(workspace.root), bar=0.0))
        assert again.why == NoNextEdit.NOTHING_EDITED
    finally:
        engine.close()
