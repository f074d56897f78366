"""What the documents say can be typed: commands, options, settings, links."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import click
import msgspec
import pytest

from codespec.cli import main
from codespec.config import Settings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DOCUMENTS = ["README.md", "ARCHITECTURE.md", "SECURITY.md", "bench/README.md", "lsp/README.md"]
DOCUMENTS += [f"editor-plugins/{name}README.md" for name in ("", "vscode/", "neovim/")]


@pytest.mark.parametrize("name", ["README.md", "bench/README.md"])
def test_commands_and_options_are_there(name: str) -> None:
    lines = re.findall(
        r"^    (?:CODESPEC_\w+=\w+ )?codespec (.*)$", (ROOT / name).read_text(), re.M
    )
    assert len(lines) > 10
    for line in lines:
        # `a | b` stands for either.
        words = [word for word in shlex.split(line, comments=True) if word != "|"]
        command: click.Command = main
        while isinstance(command, click.Group):
            found = command.get_command(click.Context(command), words.pop(0))
            assert found is not None, line
            command = found
        options = {option for p in command.params for option in (*p.opts, *p.secondary_opts)}
        assert {word for word in words if word.startswith("--")} <= options, line


def test_the_options_of_complete_are_there() -> None:
    command = main.get_command(click.Context(main), "complete")
    assert command is not None
    table = re.search(
        r"\| option of `codespec complete`(.*?)\n\n", (ROOT / "README.md").read_text(), re.S
    )
    assert table is not None
    options = {option for p in command.params for option in p.opts}
    assert set(re.findall(r"--[a-z][\w-]*", table[1])) == {o for o in options if o.startswith("--")}


def test_settings_are_the_defaults() -> None:
    block = re.search(r"```toml\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert block is not None
    said = tomllib.loads(block[1])
    del said["model"]["target"]  # an example
    default = msgspec.to_builtins(Settings())
    for section, values in said.items():
        for key, value in values.items():
            kept = default[section][key]
            assert value == (list(kept) if isinstance(kept, tuple) else kept), f"{section}.{key}"


@pytest.mark.parametrize("name", DOCUMENTS)
def test_links_lead_somewhere(name: str) -> None:
    document = ROOT / name
    for link in re.findall(r"\]\(([^)#]+)\)", document.read_text()):
        assert "://" in link or (document.parent / link).exists(), link
