"""Commands, options, settings and links in the documents exist."""

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
PAGES = sorted(page.relative_to(ROOT).as_posix() for page in (ROOT / "docs").rglob("*.md"))
DOCUMENTS = [page.name for page in sorted(ROOT.glob("*.md"))]
DOCUMENTS += [*PAGES, "bench/README.md", "lsp/README.md"]
DOCUMENTS += [f"editor-plugins/{name}README.md" for name in ("", "vscode/", "neovim/")]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_readme_is_short() -> None:
    readme = text("README.md")
    assert len(readme.splitlines()) <= 120
    assert len(readme.split()) <= 800


def test_the_readme_begins_with_what_it_is() -> None:
    title, first, _ = text("README.md").split("\n\n", 2)
    assert title == "# codespec"
    words = " ".join(first.split())
    assert "speculative decoding" in words
    assert "suffix automaton" in words


def test_the_readme_has_the_commands_of_a_checkout() -> None:
    commands = re.findall(r"^    make (\w+)$", text("README.md"), re.M)
    assert commands == ["run", "test"]
    assert "exec make test" in text(".ci/run")
    assert set(commands) <= set(re.findall(r"^(\w+):", text("Makefile"), re.M))


def test_each_promise_of_the_readme_has_a_test() -> None:
    _, promised, _ = re.split(r"## What is promised\n|\n## What to expect", text("README.md"))
    rows = re.findall(r"^\| \*\*(.*?)\.\*\* .* \| (.*) \|$", promised, re.M)
    assert [name for name, _ in rows] == ["Exact", "Private", "Quick", "Out of the way"]
    for name, tests in rows:
        assert re.search(r"\]\(tests/\w+/test_\w+\.py\)", tests), name


def test_each_version_of_the_changelog_is_one_screen() -> None:
    _, *versions = re.split(r"^## ", text("CHANGELOG.md"), flags=re.M)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    for version in versions:
        assert re.match(r"\[(Unreleased|\d+\.\d+\.\d+)\]", version)
        assert len(version.splitlines()) <= 60
        headings = re.findall(r"^### (.*)$", version, re.M)
        assert headings
        assert set(headings) <= kinds


def test_each_page_is_listed_once() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", text("docs/README.md"))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(pages)


@pytest.mark.parametrize(
    "names", [["README.md", *PAGES], ["bench/README.md"]], ids=["docs", "bench"]
)
def test_commands_and_options_are_there(names: list[str]) -> None:
    documents = "\n".join(map(text, names))
    lines = re.findall(r"^    (?:CODESPEC_\w+=\w+ )?codespec (.*)$", documents, re.M)
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
    table = re.search(r"\| option of `codespec complete`(.*?)\n\n", text("docs/cli.md"), re.S)
    assert table is not None
    options = {option for p in command.params for option in p.opts}
    assert set(re.findall(r"--[a-z][\w-]*", table[1])) == {o for o in options if o.startswith("--")}


def test_settings_are_the_defaults() -> None:
    block = re.search(r"```toml\n(.*?)```", text("docs/settings.md"), re.S)
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
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", document.read_text("utf-8")):
        assert "://" in link or (document.parent / link).exists(), link
