"""Workspaces of documents, and the words for states."""

from __future__ import annotations

from typing import get_args

import pytest

from codespec.daemon.wire import State, StateChanged
from codespec_lsp.session import workspace_of
from codespec_lsp.status import status_of


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
