"""Next edits of a model on a history: alone, and where lookups find nothing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codespec.backends import registry as backends
from codespec.cli import main
from codespec.config import load_settings
from codespec.edits.base import CursorLine, LineEdit
from codespec.edits.formats import registry
from codespec.engine.local import LocalEngine
from codespec.errors import InputError
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec_bench import edit_model
from codespec_bench.edit_model import ModelProposer, RepeatsThenModel
from codespec_bench.edit_session import Asking, CommitSession
from codespec_bench.line_hunks import HunkCommit
from codespec_bench.parent_texts import ParentFiles, SessionTexts
from tests.extension import rewriter
from tests.extension.test_next_edit_format import Window
from tests.index_support import isolate
from tests.unit.test_bench_edits import Always, files, last, repository

__all__ = ["files", "last", "repository"]


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    """Its model does what the repository's last commit does."""
    isolate(monkeypatch, tmp_path)
    monkeypatch.setitem(backends.SCHEMES, "rewriter", rewriter.__name__)
    monkeypatch.setattr(registry, "FORMATS", (*registry.FORMATS, Window()))
    monkeypatch.setattr(rewriter, "OLD", b"begin(")
    monkeypatch.setattr(rewriter, "NEW", b"start(")
    edit_model.loaded.cache_clear()
    engine = edit_model.loaded(load_settings({"model": {"target": "rewriter:"}}, env={}))
    yield engine
    engine.close()
    edit_model.loaded.cache_clear()


def said(asking: Asking, last: HunkCommit, files: ParentFiles) -> list[Any]:
    asks = asking.asks(last, "diff", files)
    return [
        (ask.proposal and (ask.proposal.path, ask.proposal.line), ask.kind, ask.is_right)
        for ask in asks
    ]


SILENT = (None, "", False)


def test_a_model_is_asked_about_the_lines_around_the_change(
    engine: LocalEngine, last: HunkCommit, files: ParentFiles
) -> None:
    model = ModelProposer(engine)
    assert said(Asking(model, 0.5), last, files) == [
        (("a.py", 5), "model", True), SILENT, SILENT, SILENT,
    ]  # fmt: skip
    assert said(Asking(model, 0.999), last, files) == [SILENT] * 4
    session = CommitSession(last.hunks, files)
    asked = session.history.changes(), session.texts, CursorLine("/a.py", 2)
    assert model.propose(*asked) == []  # nothing was changed
    session.make(0)
    asked = session.history.changes(), session.texts, session.cursor
    (edit,) = model.propose(*asked)
    assert model.propose(*asked, {(edit.path, edit.old, edit.new)}) == []


def test_it_sees_other_files_that_were_changed(
    engine: LocalEngine, last: HunkCommit, files: ParentFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[tuple[str, ...]] = []
    prompt = Window.prompt

    def noted(self: Window, document: Any) -> Any:
        seen.append((document.path, *(path for path, _ in document.others)))
        return prompt(self, document)

    monkeypatch.setattr(Window, "prompt", noted)
    Asking(ModelProposer(engine), 0.5).asks(last, "diff", files)
    assert seen == [("a.py",), ("a.py",), ("b.py", "a.py"), ("c.py", "b.py", "a.py")]


def test_it_is_asked_where_lookups_are_not_sure(files: ParentFiles) -> None:
    found = LineEdit("/a.py", 5, ("x",), ("y",), 0.7, "repeat")
    written = replace(found, kind="model")
    asked = (), SessionTexts(files), CursorLine("/a.py", 0)
    for bar, edit in ((0.6, found), (0.8, written)):
        both = RepeatsThenModel(Always(found), Always(written), bar)
        assert both.propose(*asked) == [edit]
    dismissed = {(found.path, found.old, found.new)}
    assert RepeatsThenModel(Always(found), Always(written), 0.6).propose(*asked, dismissed) == []


def test_what_is_missing_is_named(repository: Path, tmp_path: Path) -> None:
    for config in ("model", "all"):
        done = CliRunner().invoke(main, ["bench", "edits", str(repository), "--config", config])
        assert done.exit_code == 1
        assert "a next-edit model is needed" in done.output
        assert "--model" in done.output
    settings = load_settings({"model": {"target": str(bundled(BUNDLED_DRAFT))}}, env={})
    with pytest.raises(InputError, match="no next-edit model"):
        edit_model.check(settings)
    other = edit_model.loaded(load_settings({"model": {"target": "fake:"}}, env={}))
    with pytest.raises(InputError, match="no next-edit model"):
        ModelProposer(other)
    other.close()
    edit_model.loaded.cache_clear()


@pytest.mark.slow
def test_a_file_is_asked_in_its_format(repository: Path, tmp_path: Path) -> None:
    model = tmp_path / "sweep-next-edit.gguf"
    shutil.copy(bundled(BUNDLED_TARGET), model)
    told = ["bench", "edits", str(repository), "--model", str(model), "--order", "diff", "--json"]
    done = CliRunner().invoke(main, told)
    assert done.exit_code == 0, done.output
    rows = [json.loads(line) for line in done.output.splitlines() if line.startswith("{")]
    assert [(row["config"], row["n_asked"]) for row in rows] == [
        ("rule", 4), ("repeats", 4), ("model", 4), ("all", 4),
    ]  # fmt: skip
