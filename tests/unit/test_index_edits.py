"""Recent edits: what of a document counts as lost, and for how long it is remembered."""

from __future__ import annotations

import numpy as np

from codespec.backends.fake import ByteTokenizer
from codespec.documents.edit_history import MAX_CHANGE_CHARS, MAX_LINES, EditHistory
from codespec.documents.recent_edits import MAX_TOKENS, RecentEdits
from tests.index_support import KEY, KEY_HEAD, KEY_LINES

TOKENIZER = ByteTokenizer()
BODY = "def first(a):\n    return old_name(a)\n\n\ndef second(b):\n    return 2\n"


class Editor:
    """Types into one document; every change is an update, as in an editor."""

    def __init__(self, text: str = BODY, edits: RecentEdits | None = None, path: str = "a") -> None:
        self.edits = edits or RecentEdits(EditHistory(), TOKENIZER.encode)
        self.path = path
        self.text = text
        self.at = 0
        self.edits.history.closed(path)
        self._update()

    def _update(self) -> None:
        self.edits.history.told(self.path, self.text, self.edits.history.text(self.path))

    def go(self, before: str) -> None:
        self.at = self.text.index(before)
        self._update()

    def delete(self, n: int) -> None:
        self.text = self.text[: self.at] + self.text[self.at + n :]
        self._update()

    def backspace(self, n: int) -> None:
        for _ in range(n):
            self.at -= 1
            self.delete(1)

    def type(self, text: str) -> None:
        for c in text:
            self.text = self.text[: self.at] + c + self.text[self.at :]
            self.at += 1
            self._update()

    @property
    def lost(self) -> list[str]:
        """Oldest first."""
        return [TOKENIZER.decode(tokens).decode() for _, tokens in reversed(self.edits.lost)]

    @property
    def known(self) -> list[str]:
        """Texts that drafts come from, between breaks, oldest first."""
        ids = self.edits.automaton.text
        parts = np.split(ids, np.flatnonzero(ids < 0) + 1)
        return [t for p in parts if (t := TOKENIZER.decode(p[p >= 0]).decode())]


def test_lost_lines_stand_where_they_stood() -> None:
    editor = Editor()
    editor.go("    return old")
    editor.delete(len("    return old_name(a)\n"))
    assert editor.lost == ["    return old_name(a)\n"]
    assert editor.known == ["a):\n    return old_name(a)\n"]
    # The first of what takes their place is drafted before anything of it is typed.
    left = TOKENIZER.encode(editor.text[: editor.at])
    assert TOKENIZER.decode(editor.edits.automaton.draft(left, 8).tokens) == b"    retu"


def test_behind_lines_that_are_kept() -> None:
    editor = Editor()
    editor.go("def first")
    editor.delete(len("def first(a):\n    return old_name(a)\n"))
    editor.type("def first(a):\n")
    assert editor.known == ["a):\n    return old_name(a)\n"]


def test_at_the_beginning_of_a_document() -> None:
    editor = Editor("x = 1\n")
    editor.delete(len("x = 1\n"))
    assert editor.known == editor.lost == ["x = 1\n"]


def test_typing_loses_nothing() -> None:
    editor = Editor()
    editor.go("\n\n\ndef second")
    editor.type("\n    x = old_")
    editor.backspace(3)
    editor.type("new\n    y")
    editor.go("(a):")
    editor.type("_more")
    assert editor.lost == []


def test_deleted_lines_are_drafted_from_elsewhere() -> None:
    editor = Editor()
    editor.go("    return old")
    editor.delete(len("    return old_name(a)\n"))
    assert editor.lost == ["    return old_name(a)\n"]
    editor.go("    return 2")
    editor.type("    return old")
    proposal = editor.edits.automaton.draft(TOKENIZER.encode("    return old"), 8)
    assert TOKENIZER.decode(proposal.tokens) == b"_name(a)"
    assert editor.lost == ["    return old_name(a)\n"]


def test_a_line_changed_key_by_key_is_remembered_whole() -> None:
    editor = Editor()
    editor.go("(a)\n\n")
    editor.backspace(len("old_name"))
    editor.type("new_name")
    assert editor.lost == ["    return old_name(a)\n"]
    editor.go("return 2")
    editor.type("# ")
    editor.go("return old" if "return old" in editor.text else "return new")
    editor.backspace(1)
    assert editor.lost[0] == "    return old_name(a)\n"


def test_what_is_typed_and_taken_back_was_never_there() -> None:
    editor = Editor()
    editor.go("    return 2")
    editor.type("    tpyo = 1\n")
    editor.backspace(len("    tpyo = 1\n"))
    assert editor.lost == []
    editor.go("2\n")
    editor.type("3")
    editor.backspace(1)
    assert editor.lost == []


def test_an_undo_takes_it_back() -> None:
    editor = Editor()
    editor.go("    return old")
    editor.delete(len("    return old_name(a)\n"))
    assert editor.lost
    editor.type("    return old_name(a)\n")
    assert editor.lost == []


def test_edits_of_several_places_and_documents_are_kept_apart() -> None:
    edits = RecentEdits(EditHistory(), TOKENIZER.encode)
    one, two = Editor(edits=edits), Editor("x = 1\ny = 2\n", edits, "b")
    one.go("def first")
    one.delete(len("def first(a):\n"))
    two.go("x = 1")
    two.delete(len("x = 1\n"))
    one.go("    return 2")
    one.delete(len("    return 2\n"))
    assert sorted(one.lost) == ["    return 2\n", "def first(a):\n", "x = 1\n"]
    assert edits.history.paths == {"a", "b"}
    edits.history.forget("a")
    assert one.lost == ["x = 1\n"]


def test_bounds() -> None:
    edits, lost = RecentEdits(EditHistory(), TOKENIZER.encode), []
    for i in range(100):
        editor = Editor(f"line {i:04} " + "x" * 100 + "\nlast\n", edits)
        editor.delete(111)
        editor.go("last")
        editor.type("\n\n\n")
        editor.go("last")
        editor.type("z")
        lost = editor.lost
    assert len(edits.automaton) <= MAX_TOKENS + 200
    assert "line 0099" in lost[-1]
    assert "line 0000" not in "".join(lost)
    window = Editor("a line of it\n" * (MAX_CHANGE_CHARS // 10))
    window.text = "another part of the file\n" * 900
    window.go("another")
    assert window.lost == []


def test_more_lines_than_are_repeated_are_lost_until_they_are_back() -> None:
    lines = "".join(f"value_{i} = make({i})\n" for i in range(2 * MAX_LINES))
    editor = Editor(BODY + lines)
    editor.go("value_0")
    editor.delete(len(lines))
    assert editor.lost == [lines]
    assert editor.edits.history.changes() == []
    editor.go("def second")
    editor.text = editor.text[: editor.at] + lines + editor.text[editor.at :]
    editor.go("return 2")
    assert editor.lost == []


def test_a_formatter_ends_what_is_repeated_and_takes_no_lost_lines() -> None:
    editor = Editor(BODY + "".join(f"x{i}=1\n\n" for i in range(9)))
    editor.go("    return old")
    editor.delete(len("    return old_name(a)\n"))
    editor.text = editor.text.replace("=", " = ")
    editor.go("return 2")
    assert editor.edits.history.changes() == []
    assert editor.lost == ["    return old_name(a)\n"]
    assert editor.edits.history.forget("a")
    assert editor.lost == []


def test_secrets_are_not_remembered() -> None:
    secret = "token = ghp_" + "x" * 36 + "\n"
    editor = Editor(secret + BODY)
    editor.delete(len(secret))
    assert editor.lost == []


def test_a_secret_far_below_a_change_that_deletes_it_is_not_remembered() -> None:
    """The deletion takes a change with it that began when nothing was looked for so far below."""
    secret = "token = ghp_" + "x" * 36 + "\n"
    lines = "".join(f"x{i} = {i}\n" for i in range(450))
    editor = Editor(BODY + lines + secret + "rest\n")
    editor.go("old_name")
    editor.type("x")
    editor.go("    return xold")
    editor.delete(len(editor.text) - editor.at - len("rest\n"))
    lost = "".join(editor.lost)
    assert "x449 = 449" in lost
    assert "ghp_" not in lost


def test_lines_of_a_key_are_not_remembered() -> None:
    """Nor while what tells that it is one stays, or came with the edit."""
    editor = Editor(KEY + BODY)
    for n in (1, 2):
        editor.go(KEY_LINES[n])
        editor.delete(len(KEY_LINES[n]) + 1)
        editor.go("return 2")
        editor.type("# ")
        assert editor.lost == []
    editor = Editor(BODY + "\n".join(KEY_LINES))
    editor.go(KEY_LINES[1])
    editor.text = editor.text.replace(KEY_LINES[1], KEY_HEAD)
    editor._update()
    assert editor.lost == []


def test_after_any_edits_the_lost_lines_were_once_there() -> None:
    rng = np.random.default_rng(3)
    text = "".join(f"value_{i} = make({i})\n" for i in range(40))
    editor = Editor(text)
    ever = set(text.splitlines())
    for _ in range(400):
        editor.at = int(rng.integers(0, len(editor.text) + 1))
        if rng.random() < 0.5:
            editor.delete(int(rng.integers(1, 40)))
        else:
            editor.type(str(rng.choice(["\n", "x", "new_line = 1\n"])))
        ever |= set(editor.text.splitlines())
        for part in editor.lost:
            assert set(part.splitlines()) <= ever
