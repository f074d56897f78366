"""The next-edit model beside the one that completes: what it needs, what doctor says of it."""

from __future__ import annotations

import shutil
from pathlib import Path
from threading import Event
from typing import Any

import pytest

from codespec.backends.base import Model
from codespec.backends.llama.backend import LlamaBackend
from codespec.cli.doctor import edit_model_checks
from codespec.config import Settings, load_settings
from codespec.daemon import worker
from codespec.engine.engine_on_demand import RETRY_S
from codespec.engine.generation import Generation
from codespec.engine.local import LocalEngine
from codespec.engine.next_edit_model import N_CTX, NextEditModel, memory_needed
from codespec.engine.turns import Turns, in_one_turn
from codespec.errors import ModelError
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.next_edit import NextEditRequest, NoNextEdit
from codespec.requests import CompletionRequest
from tests.planted import forms

KEY = forms(1)["github"]
TEXT = "def run(task):\n    return fetch(task)\n"


def settings_of(model: object) -> Settings:
    options = {"model": {"target": "fake:"}, "edits": {"model": str(model)}}
    return load_settings(options, env={})


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep-next-edit.gguf"
    shutil.copy(bundled(BUNDLED_TARGET), path)
    return path


def said(settings: Settings) -> list[tuple[str, str]]:
    return [(finding.level, finding.message) for finding in edit_model_checks.check(settings)]


def test_a_worker_may_take_its_memory_too(sweep: Path, tmp_path: Path) -> None:
    n_bytes = sweep.stat().st_size
    needed = memory_needed(settings_of(sweep))
    assert needed > n_bytes + Settings().model.max_saved_kv_bytes
    for other in ("", "fake:", tmp_path / "gone.gguf"):
        assert memory_needed(settings_of(other)) == 0

    def told(model: object) -> int:
        engine, ready = worker.local_engine(settings_of(model), lambda share: None)
        engine.close()
        return ready().saved_bytes

    assert told(sweep) - told("") == needed


def test_doctor_names_it_and_its_format(sweep: Path) -> None:
    assert said(settings_of("")) == []
    [(level, message)] = said(settings_of(sweep))
    assert level == "ok"
    assert "Sweep Next Edit's format" in message


def test_doctor_says_what_keeps_it_from_working(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    [(level, message)] = said(settings_of(tmp_path / "gone.gguf"))
    assert (level, "no such model file" in message) == ("warning", True)
    [(level, message)] = said(settings_of(bundled(BUNDLED_DRAFT)))
    assert (level, "no next-edit model" in message) == ("warning", True)
    zeta1 = sweep.rename(tmp_path / "zeta.gguf")
    levels = [level for level, _ in said(settings_of(zeta1))]
    assert levels == ["ok", "note"]
    monkeypatch.setattr(edit_model_checks, "free_memory", lambda: 1)
    assert said(settings_of(zeta1))[-1][0] == "warning"


def test_its_prompt_shows_nothing_that_no_prompt_may(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "work"
    root.mkdir()
    (root / ".gitignore").write_text("hidden.py\n")
    texts = {
        "shown.py": "def shown():\n    pass\n",
        "hidden.py": "def hidden():\n    pass\n",
        ".env": "PLACE=somewhere\n",
        "keys.py": f'def keys():\n    token = "{KEY}"\n',
        "a.py": TEXT,
    }
    for name, text in texts.items():
        (root / name).write_text(text)
    prompts: list[str] = []
    answering = LocalEngine.answering

    def noted(self: LocalEngine, *args: Any) -> Turns[Generation]:
        prompts.append(args[2].prefix)
        return answering(self, *args)

    monkeypatch.setattr(LocalEngine, "answering", noted)
    engine = LocalEngine(settings_of(sweep))
    engine.next_edit_model.get()
    try:
        for name in ("keys.py", "hidden.py", ".env", "shown.py"):
            path = str(root / name)
            engine.open(CompletionRequest(texts[name], path=path, workspace=str(root)))
            typed = texts[name].replace("():", "(x):").replace("PLACE", "PLACES")
            in_one_turn(engine.finding(NextEditRequest(typed, 5, path, str(root))))
        typed = texts["a.py"].replace("fetch(", "fetch_all(")
        asked = NextEditRequest(typed, typed.index("_all"), str(root / "a.py"), str(root))
        in_one_turn(engine.finding(asked))
        prompts[:-1] = []
        hidden = NextEditRequest("def hidden(x):\n", 5, str(root / "hidden.py"), str(root))
        assert in_one_turn(engine.finding(hidden)).why == NoNextEdit.EXCLUDED
    finally:
        engine.close()
    [prompt] = prompts
    assert "fetch_all(" in prompt
    assert "def shown(" in prompt
    for word in ("hidden", "somewhere", KEY):
        assert word not in prompt


def test_one_that_cannot_be_loaded_is_not_tried_with_every_request(sweep: Path) -> None:
    tries, now = [], 0.0
    own = LocalEngine(settings_of(""))

    def build(settings: Settings) -> LocalEngine:
        tries.append(settings.model.target)
        raise ModelError("too large", "Choose a smaller one.")

    model = NextEditModel(settings_of(sweep), build, own, clock=lambda: now)

    def n_tries() -> int:
        with pytest.raises(ModelError, match="too large"):
            model.get()
        return len(tries)

    assert model.ready() is None
    assert (n_tries(), n_tries()) == (1, 1)
    with pytest.raises(ModelError, match="too large"):
        model.ready()
    now = RETRY_S
    assert n_tries() == 2
    sweep.write_bytes(b"GGUF")
    assert (n_tries(), n_tries()) == (3, 3)
    assert set(tries) == {str(sweep)}
    own.close()


def test_what_is_being_loaded_is_closed_with_the_rest(sweep: Path) -> None:
    own = LocalEngine(settings_of(""))
    may_load, closed = Event(), list[str]()

    class Closing(LocalEngine):
        def close(self) -> None:
            closed.append(self.info.name)
            super().close()

    def build(settings: Settings) -> LocalEngine:
        assert may_load.wait(60)
        return Closing(settings)

    model = NextEditModel(settings_of(sweep), build, own)
    assert model.ready() is None
    assert model.ready() is None
    may_load.set()
    model.close()
    own.close()
    assert closed == ["codespec-base"]


def test_the_model_that_completes_is_loaded_once(
    sweep: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    load = LlamaBackend.open

    def noted(self: LlamaBackend, where: str, **how: Any) -> Model:
        opened.append(where)
        return load(self, where, **how)

    monkeypatch.setattr(LlamaBackend, "open", noted)
    link = tmp_path / "sweep-next-edit-too.gguf"
    link.symlink_to(sweep)
    options = {"model": {"target": str(sweep), "draft": ""}, "edits": {"model": str(link)}}
    settings = load_settings(options, env={})
    assert memory_needed(settings) == 0
    assert said(settings)[0][1].endswith("it is the model that completes, loaded once")
    path = tmp_path / "a.py"
    path.write_text(TEXT)
    typed = TEXT.replace("fetch(", "fetch_all(")
    opened.clear()
    engine = LocalEngine(settings)
    try:
        found = in_one_turn(engine.finding(NextEditRequest(typed, 5, str(path), str(tmp_path))))
        assert found.why != NoNextEdit.NO_MODEL
        assert engine.info.n_ctx == N_CTX
        engine.closed(str(path))
        engine.settle()
    finally:
        engine.close()
    assert opened == [str(sweep)]
