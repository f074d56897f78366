"""A model on another codespec says what it says here, and drafts from the index that is there."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest
from tests.e2e.conftest import Home, cheapen_passes, until
from tests.http_client import Front, front_of

LIBRARY = Path(json.__file__).parent
PREFIX = '"""Implementation of JSONEncoder\n"""\nimport re\n\ntry:\n    '


@pytest.fixture
def front(home: Home, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Front]:
    """A server with an index of its own workspace."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    (home.workspace / "encoder.py").write_text((LIBRARY / "encoder.py").read_text())
    subprocess.run([sys.executable, "-m", "codespec", "index", str(home.workspace)], check=True)
    cheapen_passes(home.settings, tmp_path / "cache")
    with front_of(home.path, "--workspace", str(home.workspace)) as found:
        until(lambda: found.ask("/health")[0] == 200)
        yield found


def test_it_says_what_it_says_here_and_drafts_there(front: Front, home: Home) -> None:
    here = f"/elsewhere/{home.workspace.name}"
    request = CompletionRequest(
        PREFIX, path=f"{here}/a.py", workspace=here, language_id="python", max_tokens=24
    )
    requests = [request, replace(request, verbatim=True), replace(request, prefix=PREFIX + "fr")]
    with closing(LocalEngine(load_settings({"model": {"draft": ""}}, env={}))) as local:
        local.remembers = False
        texts = [local.complete(request).text for request in requests]
    target = {"target": f"codespec://127.0.0.1:{front.port}"}
    with closing(LocalEngine(load_settings({"model": target}, env={}))) as engine:
        engine.remembers = False
        done = [engine.complete(request) for request in requests]
        assert list(engine.prefetching(request)) == []
    assert [completion.text for completion in done] == texts
    assert all(texts)
    assert done[0].trace.backend == "codespec"
    drafted = done[1].trace.by_source
    assert "repository" in drafted
    assert done[1].trace.n_target_passes > 0
