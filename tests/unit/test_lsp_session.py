"""Workspaces of documents, and the words for states."""

from __future__ import annotations

from typing import get_args

import pytest

from codespec.config import load_settings
from codespec.daemon.async_client import AsyncClient
from codespec.daemon.wire import State, StateChanged
from codespec.errors import ConfigError
from codespec_lsp.session import Session, workspace_of
from codespec_lsp.status import Status, status_of


@pytest.mark.parametrize(
    ("path", "folders", "expected"),
    [
        ("/a/b/c.py", ["/a", "/a/b", "/x"], "/a/b"),
        ("/a/b/c.py", ["/a/bb"], ""),
        ("/a/b/c.py", [], ""),
        ("", ["/a"], "/a"),
        ("", ["/a", "/b"], ""),
    ],
)
def test_the_workspace_is_the_innermost_folder(
    path: str, folders: list[str], expected: str
) -> None:
    assert workspace_of(path, folders) == expected


@pytest.mark.asyncio
async def test_settings_that_lead_nowhere_change_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(AsyncClient, "connect", lambda _: None)  # which would start a daemon
    lost = load_settings({"model": {"target": "~no-such-user/x.gguf"}}, env={})
    found = load_settings({"completion": {"max_tokens": 5}}, env={})
    session = Session(found, lambda _: None, lambda *_: "")
    with pytest.raises(ConfigError, match="no-such-user"):
        session.configure(lost)
    assert session.settings is found
    await session.close()
    # What was wrong from the start can be mended.
    session = Session(lost, lambda _: None, lambda *_: "")
    session.configure(found)
    assert session.settings is found
    await session.close()


def test_every_state_has_words() -> None:
    for state in get_args(State):
        status = status_of(StateChanged(state=state, reason="why"))
        assert status["message"]
        assert status["kind"] in ("Normal", "Warning", "Error", "Inactive")
        assert status["busy"] == (state in ("starting", "loading", "restarting"))
    loading = status_of(StateChanged(state="loading", progress=0.4))
    assert loading["message"] == "loading the model, 40 %"
    ready = status_of(StateChanged(state="ready", model="codespec-base"))
    assert ready == {"busy": False, "kind": "Normal", "message": "ready: codespec-base"}


def test_a_failure_is_told_with_its_reason_and_the_next_step() -> None:
    why = "the model is too large for the free memory: it needs 6.1 GB, 2.0 GB are free"
    status = status_of(StateChanged(state="failed", reason=why))
    assert status == {"busy": False, "kind": "Error", "message": f"no completions: {why}"}
    status = status_of(StateChanged(state="failed", reason=why, hint="Close other programs."))
    assert status["message"] == f"no completions: {why}. Close other programs."


def test_one_message_for_each_cause_the_worst_one_first() -> None:
    sent: list[object] = []
    status = Status(lambda params: sent.append(params["message"]))
    for _ in range(3):  # requests while nothing changes
        status.state(StateChanged(state="ready", model="m"))
        status.paused("")
    for _ in range(3):
        status.paused("file ignored by .gitignore: *.log")
        status.state(StateChanged(state="ready", model="m"))
    status.error('unknown setting "completion.max_token"')
    status.paused("")
    status.paused("switched off in the settings")
    status.error("")
    status.paused("")
    assert sent == [
        "ready: m",
        "paused: file ignored by .gitignore: *.log",
        'unknown setting "completion.max_token"',
        "paused: switched off in the settings",
        "ready: m",
    ]
