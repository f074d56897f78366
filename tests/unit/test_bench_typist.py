"""Keys made of a history's edits: they write what the commit wrote, whatever is suggested."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

from codespec.errors import DaemonError
from codespec.types import SourceStats, Trace
from codespec_bench import editor
from codespec_bench.acceptance import by_position, by_source
from codespec_bench.editor import Answer, Editor, Reply
from codespec_bench.history import Commit, Hunk
from codespec_bench.keystrokes import strokes, type_along
from codespec_bench.typist import Typist

TEXT = "def f(first):\n    # größer 𝒳\n    return first + 1\n"
HUNK = Hunk("a.py", "import os\n\n", TEXT, "\nend = 1\n", "old = 2\nolder = 3\n")


class Recorder:
    """A server that applies changes, and suggests the true rest of the line, at the end of one the
    next line too, or rubbish."""

    def __init__(self, suggest: str = "") -> None:
        self.text = ""
        self.n_accepted = self.n_asked = self.n_open = 0
        self._suggest = suggest

    def open(self, uri: str, text: str) -> None:
        assert uri.endswith("/a.py")
        self.n_open += 1
        self.text = text

    def shut(self, uri: str) -> None:
        self.text = ""

    def replace(
        self, uri: str, version: int, start: tuple[int, int], end: tuple[int, int], text: str
    ) -> None:
        lines = [*self.text.splitlines(keepends=True), ""]

        def offset(place: tuple[int, int]) -> int:
            line = lines[place[0]].encode("utf-16-le")[: 2 * place[1]].decode("utf-16-le")
            return sum(map(len, lines[: place[0]])) + len(line)

        self.text = self.text[: offset(start)] + text + self.text[offset(end) :]

    def ask(self, uri: str, line: int, character: int, invoked: bool) -> int:
        self.n_asked += 1
        return self.n_asked

    def cancel(self, request: int) -> None:
        pass

    def reply_by(self, request: int, at: float) -> Reply | None:
        if not self._suggest:
            return None
        now = time.perf_counter()
        if self._suggest in ("truth", "lines"):
            written = self.text[len(HUNK.prefix) : -len("\n" + HUNK.suffix)]
            left = TEXT[len(written) : -1] if TEXT.startswith(written) else ""
            begin = "\n" if self._suggest == "lines" and left.startswith("\n") else ""
            rest = begin + left.removeprefix(begin).partition("\n")[0]
        else:
            rest = self._suggest
        answer = Answer(n_offers=bool(rest), is_kept=request % 3 > 0)
        return Reply(now, ((rest, "id"),) if rest else (), answer)

    def accept(self, item_id: str) -> None:
        assert item_id == "id"
        self.n_accepted += 1


class Nowhere:
    def check_out(self, commit: Commit) -> None:
        pass


def typed(editor: Any, *hunks: Hunk, n_keys: int = 1000) -> Typist:
    typist = Typist(editor, Path("/project"), 0.0, pace=0.001)
    commit = Commit("sha", {}, hunks)
    nowhere: Any = Nowhere()
    typist.write([commit], nowhere, n_keys, lambda n: None)
    return typist


def test_strokes_spell_the_text_and_are_the_same_each_time() -> None:
    keys = list(strokes(HUNK, 1))
    assert "".join(key.text for key in keys) == TEXT[:-1]
    assert [key.at for key in keys[1:]] == [key.end for key in keys[:-1]]
    assert keys == list(strokes(HUNK, 1))
    assert keys != list(strokes(HUNK, 2))
    assert "\n    " in [key.text for key in keys]


def test_the_model_is_asked_where_the_suggestion_in_view_is_not_what_is_typed() -> None:
    def prefixes(n_keys: int, suggest: str | None = None) -> list[str]:
        found: list[str] = []

        def model(prefix: str) -> str:
            found.append(prefix.removeprefix(HUNK.prefix))
            rest = TEXT[len(found[-1]) :]
            return rest.partition("\n")[0] if suggest is None else suggest

        type_along(HUNK, n_keys, model)
        return found

    # To the end of its line, which asks anew; then with each line break.
    begins = [TEXT[:n] for n in range(1, len(TEXT)) if TEXT[n] == "\n" or TEXT[n - 1] == "\n"]
    asked_at = prefixes(1000)
    assert [p for p in asked_at if p.endswith("    ") or len(p) == 1] == [
        TEXT[:1], *(b + "    " for b in begins if b.endswith("\n"))
    ]  # fmt: skip
    assert {b for b in begins if not b.endswith("\n")} <= {*asked_at, TEXT[:-1]}
    assert len(asked_at) < 8
    # Rubbish, and nothing: with each key.
    for suggest in ("@@", ""):
        assert prefixes(1000, suggest)[-1] == TEXT[:-1]
        assert prefixes(5, suggest) == [TEXT[:n] for n in range(1, 6)]


def test_pauses_are_longer_where_people_think() -> None:
    keys = [key for seed in range(30) for key in strokes(HUNK, seed)]
    mean = {
        kind: sum(k.pause_s for k in found) / len(found)
        for kind, found in {
            "line": [k for k in keys if k.text.startswith("\n")],
            "inside": [k for k in keys if k.text == "n"],
        }.items()
    }
    assert mean["line"] > 3 * mean["inside"]
    assert any(key.wrong for key in keys)


@pytest.mark.parametrize("suggest", ["", "truth", "rubbish"])
def test_the_document_ends_as_the_commit_left_it(suggest: str) -> None:
    editor = Recorder(suggest)
    typist = typed(editor, HUNK)
    assert editor.text == HUNK.prefix + TEXT + HUNK.suffix
    assert typist.seen.n_requests == editor.n_asked
    assert (editor.n_accepted > 0) == (suggest == "truth")
    assert typist.seen.n_accepted == editor.n_accepted


def test_who_took_a_suggestion_reads_the_next_one_and_takes_that_too() -> None:
    editor = Recorder("lines")
    seen = typed(editor, HUNK).seen
    assert editor.text == HUNK.prefix + TEXT + HUNK.suffix
    # One for each line; after the last there is nothing to look for.
    assert seen.n_accepted == 3
    assert len(seen.next) == 2
    assert seen.n_keys < 10
    assert seen.n_requests == editor.n_asked == seen.n_keys - seen.n_swallowed + 2


def test_a_run_of_few_keys_leaves_the_document_whole() -> None:
    editor = Recorder()
    assert typed(editor, HUNK, n_keys=5).seen.n_keys <= 7
    assert editor.text == HUNK.prefix + TEXT + HUNK.suffix


def test_the_next_place_in_a_file_needs_no_new_document() -> None:
    written = HUNK.prefix + TEXT
    following = Hunk("a.py", written + "\n", "x = 1\ny = 2\n", "end = 1\n", "")
    editor = Recorder()
    typed(editor, HUNK, following)
    assert editor.n_open == 1
    assert editor.text == written + "\nx = 1\ny = 2\nend = 1\n"


def test_acceptance_by_source_and_place() -> None:
    trace = Trace(pass_depth=[3, 0, 2], pass_accepted=[1, 0, 2])
    trace.by_source["suffix"] = SourceStats(5, 3)
    assert by_position([trace, trace]) == [[4, 4], [2, 4], [0, 2]]
    assert by_source([trace, trace]) == {"suffix": [6, 10]}


def test_a_server_that_is_too_slow_is_an_error_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def start(_self: object, *_args: object, **_more: object) -> None:
        raise AssertionError("it is made by hand")

    monkeypatch.setattr(Editor, "__init__", start)
    monkeypatch.setattr(editor, "TIMEOUT_S", 0.01)
    slow = Editor.__new__(Editor)
    slow._news = threading.Condition()
    slow._replies = {}
    slow._status = {"busy": True, "kind": "Normal", "message": "loading the model"}
    with pytest.raises(DaemonError, match="not ready: loading"):
        slow.wait_ready()
    with pytest.raises(DaemonError, match="does not answer"):
        slow.wait(1)
