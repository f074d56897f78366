"""A next-edit format is one class in one file: its model proposes edits, beside the one that
completes, and clients may write prompts in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from codespec.backends import registry as backends
from codespec.backends.base import CancelledError
from codespec.backends.fake import FakeRows, FakeTarget
from codespec.config import load_settings
from codespec.context.special_tokens import Special
from codespec.edits.formats import registry
from codespec.edits.formats.base import EditedDocument, EditPrompt, ModelAnswer, NextEditFormat
from codespec.engine.local import LocalEngine
from codespec.engine.turns import Turns, in_one_turn
from codespec.errors import InputError
from codespec.http.dialects.completions import OpenAICompletions
from codespec.next_edit import Dismissed, NextEditRequest, NextEdits, NoNextEdit
from codespec.requests import CompletionRequest
from codespec.types import Draft, Tokens
from tests.engines import strict_engine
from tests.extension import rewriter
from tests.index_support import isolate

WINDOW, REWRITTEN = Special("<window>"), Special("<rewritten>")


class Window(NextEditFormat):
    """The lines around the cursor between two special tokens; the answer takes their place."""

    name = "window"
    title = "Rewriter"
    markers = re.compile("<cursor>")

    def speaks(self, names: str, vocabulary: Collection[str]) -> bool:
        return names.startswith("Rewriter") and WINDOW in vocabulary

    def is_prompt(self, text: str) -> bool:
        return text.startswith(WINDOW) and text.endswith(REWRITTEN)

    def unchanged(self, prompt: str) -> str:
        return prompt[len(WINDOW) : -len(REWRITTEN)]

    def prompt(self, document: EditedDocument) -> EditPrompt | None:
        line = max(0, document.cursor_line - 5)
        old = tuple(document.lines[line : document.cursor_line + 6])
        text = "\n".join(old)
        parts = (WINDOW, text, REWRITTEN)
        return EditPrompt(parts, line, old, document.cursor_line - line, (text,))

    def rewritten(self, prompt: EditPrompt, answer: ModelAnswer) -> tuple[str, ...] | None:
        return tuple(answer.text.split("\n"))


TEXT = "def run(task):\n    first = fetch(task)\n    second = fetch(task)\n    return first\n"
TYPED = TEXT.replace("first = fetch(", "first = fetch_all(")


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    isolate(monkeypatch, tmp_path)
    monkeypatch.setitem(backends.SCHEMES, "rewriter", rewriter.__name__)
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, Window()))
    models = {"model": {"target": "fake:"}, "edits": {"model": "rewriter:"}}
    engine = strict_engine(load_settings(models, env={}))
    engine.next_edit_model.get()
    yield engine
    engine.close()


def moment(path: Path, text: str = TYPED, **fields: Any) -> NextEditRequest:
    """The text of a file after a change of its first line but one."""
    path.write_text(TEXT)
    request = NextEditRequest(text, text.index("first"), str(path), str(path.parent))
    return replace(request, **fields)


def asked(engine: LocalEngine, path: Path, text: str = TYPED, **fields: Any) -> NextEdits:
    return in_one_turn(engine.finding(moment(path, text, **fields)))


def test_its_model_proposes_edits(engine: LocalEngine, tmp_path: Path) -> None:
    found = asked(engine, tmp_path / "a.py", document="file:///a.py", version=7)
    [edit] = found.edits
    made = TYPED[: edit.edit.start] + edit.edit.text + TYPED[edit.edit.end :]
    assert made == TYPED.replace("second = fetch(", "second = fetch_all(")
    assert (edit.kind, edit.line, edit.old) == ("model", 2, "    second = fetch(task)")
    assert (edit.edit.document, edit.edit.version) == ("file:///a.py", 7)
    assert found.n_left == 1


def test_what_it_copies_of_the_window_is_drafted(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    widths: list[int] = []
    decode = FakeTarget.decode

    def counted(target: FakeTarget, tokens: Tokens, draft: Draft) -> FakeRows:
        if target.info.name == "Rewriter":
            widths.append(1 + len(draft))
        return decode(target, tokens, draft)

    monkeypatch.setattr(FakeTarget, "decode", counted)
    assert asked(engine, tmp_path / "a.py").edits
    written = len(TYPED.replace("second = fetch(", "second = fetch_all("))
    assert len(widths) < written / 3
    assert max(widths) > 1 + engine.settings.drafting.max_width


def test_it_is_as_certain_as_its_model_and_there_is_a_bar(
    engine: LocalEngine, tmp_path: Path
) -> None:
    path = tmp_path / "a.py"
    [edit] = asked(engine, path).edits
    n_others = rewriter.TOKENIZER.n_vocab - 1
    certainty = 1 / (1 + n_others * 2.718281828459045**-rewriter.CERTAIN)
    assert edit.chance == pytest.approx(certainty, rel=1e-4)
    assert asked(engine, path, bar=0.999).why == NoNextEdit.NOT_SURE
    assert asked(engine, path, where="line").why == NoNextEdit.NO_PLACE
    dismissed = (Dismissed(edit.path, edit.old, edit.edit.text),)
    assert asked(engine, path, dismissed=dismissed).why == NoNextEdit.DISMISSED


def test_nothing_where_it_changes_nothing_or_is_not_asked(
    engine: LocalEngine, tmp_path: Path
) -> None:
    path = tmp_path / "a.py"
    assert asked(engine, path, TEXT).why == NoNextEdit.NOTHING_EDITED
    other = TYPED.replace("second = fetch(", "second = take(")
    assert asked(engine, path, other).why == NoNextEdit.NOTHING_TO_CHANGE
    marked = TYPED.replace("second =", "'<cursor>' # second =")
    assert asked(engine, path, marked).why == NoNextEdit.NO_WINDOW


def test_an_edit_that_does_not_fit_is_not_proposed(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.py"
    monkeypatch.setattr(rewriter, "NEW", b"fetch((")
    assert asked(engine, path).edits == ()
    monkeypatch.setattr(rewriter, "NEW", b"fetch_two(")
    assert len(asked(engine, path).edits) == 1


def test_another_request_may_have_its_turn_meanwhile(engine: LocalEngine, tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    alone = asked(engine, path)
    found: list[NextEdits] = []

    def turns() -> Turns[None]:
        asking = engine.finding(moment(path), paused=lambda has_progressed: has_progressed)
        found.append((yield from asking))

    n_turns = 0
    for _ in turns():
        n_turns += 1
        engine.complete(CompletionRequest("x = ", max_tokens=4))
    assert found[0].edits == alone.edits
    assert n_turns > 1
    cancelled = in_one_turn(engine.finding(moment(path), lambda: True))
    assert cancelled.why == NoNextEdit.CANCELLED


def test_clients_write_prompts_in_it(engine: LocalEngine) -> None:
    prompt = f"{WINDOW}a = fetch(1)\n{REWRITTEN}"
    raw = b'{"prompt": "%s", "max_tokens": 99}' % prompt.encode().replace(b"\n", b"\\n")
    [request] = OpenAICompletions(raw, "").requests(engine.settings.completion)
    assert (request.raw, request.form) == (True, "window")
    answer = engine.complete(request)
    assert (answer.text, answer.trace.model) == ("a = fetch_all(1)\n", "Rewriter")
    assert request.rewrites == "a = fetch(1)\n"
    assert answer.trace.by_source["aligned"].n_accepted > 0
    alone = strict_engine(load_settings({"model": {"target": "fake:"}}, env={}))
    with pytest.raises(InputError, match="format window"):
        alone.complete(request)
    assert in_one_turn(alone.finding(NextEditRequest(TYPED, 0))).why == NoNextEdit.NO_FILE
    alone.close()


def test_without_a_next_edit_model_none_is_asked(engine: LocalEngine, tmp_path: Path) -> None:
    settings = {"model": {"target": "fake:"}, "edits": {"model": "fake:"}}
    for edits in ({"model": ""}, {"model": "fake:"}):
        alone = strict_engine(load_settings({**settings, "edits": edits}, env={}))
        assert asked(alone, tmp_path / "a.py").why == NoNextEdit.NO_MODEL
        alone.close()


def test_the_model_that_completes_may_be_the_next_edit_model(
    engine: LocalEngine, tmp_path: Path
) -> None:
    both = {"model": {"target": "rewriter:"}, "edits": {"model": "rewriter:"}}
    alone = strict_engine(load_settings(both, env={}))
    path = tmp_path / "a.py"
    assert asked(alone, path).edits == asked(engine, path).edits
    alone.close()


def test_others_are_answered_while_it_is_loaded(
    engine: LocalEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, may_load = tmp_path / "a.py", Event()

    def opened(self: rewriter.RewriterBackend, where: str, **how: Any) -> rewriter.RewriterModel:
        assert may_load.wait(60)
        return rewriter.RewriterModel()

    monkeypatch.setattr(rewriter.RewriterBackend, "open", opened)
    slow = strict_engine(engine.settings)
    completed, expected = (
        each.complete(CompletionRequest("x = ", max_tokens=4)) for each in (slow, engine)
    )
    assert completed.text == expected.text
    assert asked(slow, path).why == NoNextEdit.LOADING
    prompt = CompletionRequest(
        f"{WINDOW}a = fetch(1)\n{REWRITTEN}", raw=True, form="window", verbatim=True
    )
    waiting = slow.completing(prompt, paused=lambda has_progressed: not may_load.is_set())
    next(waiting)
    assert slow.complete(CompletionRequest("x = ", max_tokens=4)).text == expected.text
    assert asked(slow, path).why == NoNextEdit.LOADING
    with pytest.raises(CancelledError):
        slow.complete(prompt, lambda: True)
    may_load.set()
    assert in_one_turn(waiting).text == "a = fetch_all(1)\n"
    assert asked(slow, path).edits == asked(engine, path).edits
    slow.close()


def test_the_edit_at_or_after_the_cursor_comes_first(engine: LocalEngine, tmp_path: Path) -> None:
    text = f"old = fetch(0)\n{TYPED}"
    path = tmp_path / "a.py"
    request = moment(path, text, n_most=9)
    path.write_text(f"old = fetch(0)\n{TEXT}")
    found = in_one_turn(engine.finding(request))
    assert [edit.line for edit in found.edits] == [3, 0]
    assert found.n_left == 2


def test_what_becomes_of_its_edits_corrects_its_certainty(
    engine: LocalEngine, tmp_path: Path
) -> None:
    path = tmp_path / "a.py"
    [first] = asked(engine, path).edits
    for n in range(20):
        other = TYPED.replace("second", f"name{n}")
        [edit] = asked(engine, path, other, bar=0.0).edits
        gone = (Dismissed(edit.path, edit.old, edit.edit.text),)
        asked(engine, path, other, dismissed=gone)
    [last] = asked(engine, path, bar=0.0).edits
    assert last.edit == first.edit
    assert last.chance < first.chance
