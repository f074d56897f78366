"""Clients from npm and PyPI against the HTTP front: each gets the text that the model writes."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.editors import node

from .conftest import QUESTION, Fronts

HERE = Path(__file__).parent


def answers(*command: str) -> dict[str, Any]:
    done = subprocess.run(
        command, input=json.dumps(QUESTION), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_clients_from_npm(npm_folder: Path, fronts: Fronts) -> None:
    code, chat = fronts.texts
    found = answers(str(node.PROGRAM), str(HERE / "ask.mjs"), str(npm_folder), *fronts.urls)
    models = found.pop("models")
    assert models["openai"]
    assert models["ollama"] == [f"{name}:latest" for name in models["openai"]]
    assert models["show"] == ["completion", "insert"]
    assert models["ps"] == 1
    chats = {name: found.pop(name) for name in [*found] if name.startswith("chat: ")}
    assert set(found.values()) == {code}, found
    assert set(chats.values()) == {chat}, chats
    assert len(found) > len(chats) > 4


def test_litellm(litellm_python: Path, fronts: Fronts) -> None:
    code, chat = fronts.texts
    found = answers(str(litellm_python), str(HERE / "ask_litellm.py"), *fronts.urls)
    chats = {name: found.pop(name) for name in [*found] if name.startswith("chat: ")}
    assert set(found.values()) == {code}, found
    assert set(chats.values()) == {chat}, chats
    assert len(found) > len(chats) > 3
