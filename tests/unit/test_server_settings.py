"""Settings of servers, and who may give them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from codespec.config import load_settings
from codespec.daemon.address import address_of, resolved
from codespec.errors import ConfigError
from codespec.rules.open_files import OpenFileRules
from codespec.rules.restrictions import parse_restrictions
from codespec_lsp.configuration import Configuration

SERVER = "https://models.example/v1"


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's own settings file."""
    file = tmp_path / "config.toml"
    file.write_text("")
    monkeypatch.setenv("CODESPEC_CONFIG", str(file))
    return file


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("model", "target", SERVER),
        ("model", "target", "http://127.0.0.1:8000"),
        ("model", "target", "HTTPS://models.example"),
        ("model", "target", "codespec://models.example"),
        ("model", "target", "ollama:qwen2.5-coder"),
        ("model", "fallback", SERVER),
        ("model", "draft", SERVER),
        ("edits", "model", SERVER),
        ("server", "key_file", "/home/user/.ssh/id_rsa"),
        ("server", "ca_file", "/w/ca.pem"),
        ("server", "allow_unencrypted", True),
        ("server", "share_workspace", True),
    ],
)
def test_no_editor_names_a_server(own: Path, section: str, key: str, value: Any) -> None:
    for name in ("options", "client"):
        asked = Configuration()
        setattr(asked, name, {section: {key: value}})
        with pytest.raises(ConfigError, match="no editor and no workspace may name a server") as e:
            asked.load()
        assert str(own) in str(e.value), "the next step"
    # It stays what the user's own settings say.
    own.write_text(f'[model]\ntarget = "{SERVER}"\n[server]\nkey_file = "/home/user/key"\n')
    with pytest.raises(ConfigError, match="no editor"):
        asked.load()
    asked.client = None
    assert asked.load().server.key_file == "/home/user/key"
    assert asked.load().model.target == SERVER


def test_an_editor_may_choose_a_model_here(own: Path) -> None:
    own.write_text(f'[model]\ntarget = "{SERVER}"\n')
    asked = Configuration()
    asked.client = {"model": {"target": "bundled", "fallback": ""}, "server": {}}
    assert asked.load().model.target == "bundled"


def test_a_workspace_names_no_server(tmp_path: Path) -> None:
    """A file that would name one switches codespec off there, as all that is not understood."""
    for text in (
        f'target = "{SERVER}"\n',
        f'[model]\ntarget = "{SERVER}"\n',
        '[server]\nkey_file = "/home/user/key"\n',
    ):
        assert "unknown key" in parse_restrictions(text.encode()).why_off
        (tmp_path / ".codespec.toml").write_text(text)
        rules = OpenFileRules()
        assert "unknown key" in rules.why_excluded(str(tmp_path / "a.py"), str(tmp_path))


def test_own_file_environment_and_flags_do(own: Path) -> None:
    own.write_text(f'[model]\ntarget = "{SERVER}"\n[server]\nallow_unencrypted = true\n')
    assert load_settings().model.target == SERVER
    env = {"CODESPEC_MODEL_TARGET": "http://other", "CODESPEC_SERVER_KEY_FILE": "/k"}
    settings = load_settings(env={**env, "CODESPEC_CONFIG": str(own)})
    assert settings.model.target == "http://other"
    assert (settings.server.key_file, settings.server.allow_unencrypted) == ("/k", True)
    assert load_settings({"model": {"target": "https://flag"}}).model.target == "https://flag"


def test_files_are_found_from_any_folder(
    own: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon runs in another folder, and another key is another daemon."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    own.write_text('[model]\nfallback = "bundled"\n[server]\nkey_file = "~/key"\nca_file = "ca"\n')
    monkeypatch.setenv("CODESPEC_SERVER_TOKENIZER", "tokenizer.json")
    found = resolved(load_settings())
    assert found.server.key_file == str(tmp_path / "key")
    assert found.server.ca_file == str(tmp_path / "ca")
    assert found.server.tokenizer == str(tmp_path / "tokenizer.json")
    assert Path(found.model.fallback).is_absolute()
    before = address_of(load_settings())
    own.write_text(
        '[model]\nfallback = "bundled"\n[server]\nkey_file = "~/other"\nca_file = "ca"\n'
    )
    assert address_of(load_settings()) != before
