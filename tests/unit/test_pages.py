"""Pages for users: short paragraphs, links that lead somewhere, commands and settings that are
there, and parts that are made from the code as it is."""

from __future__ import annotations

import ast
import re
import shlex
import sys
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

import click
import msgspec
import pytest

from codespec.cli import main
from codespec.config import Settings, load_settings
from codespec.next_edit import BARS
from docs.generate import parts
from docs.generate.settings_tables import meanings

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parents[2]
DOCS = sorted(p.relative_to(ROOT).as_posix() for p in (ROOT / "docs").rglob("*.md"))
FOR_USERS = [page for page in DOCS if not page.startswith("docs/dev/")]
TOP = [page.name for page in sorted(ROOT.glob("*.md"))]
BESIDE = ["bench/README.md", "lsp/README.md"]
BESIDE += [f"editor-plugins/{name}README.md" for name in ("", "vscode/", "neovim/")]
ALL = [*TOP, *DOCS, *BESIDE]
SHORT = [*TOP, *FOR_USERS, *BESIDE]
"""Pages whose paragraphs are one thought each."""


@cache
def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def without_code(name: str) -> str:
    return re.sub(r"```.*?```", "", text(name), flags=re.S)


def paragraphs(name: str) -> Iterator[str]:
    """Paragraphs and list items, without code, tables and headings."""
    for block in re.split(r"\n\s*\n", without_code(name)):
        if block.strip() and not block.startswith(("|", "#", "    ", "<!--")):
            yield from re.split(r"\n(?=\s*(?:- |\d+\. ))", block)


@pytest.mark.parametrize("name", SHORT)
def test_a_paragraph_is_one_thought(name: str) -> None:
    too_long = [p for p in paragraphs(name) if len(p.split()) > 60]
    assert not too_long, "\n\n".join(too_long)


# --- links -----------------------------------------------------------------------------------


@cache
def anchors(name: str) -> set[str]:
    """Names of a page's headings, as code hosts and the site make them."""
    headings = re.findall(r"^#+ (.*)$", without_code(name), re.M)
    plain = (re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", h).replace("`", "") for h in headings)
    return {re.sub(r"[^\w\- ]", "", h.lower()).strip().replace(" ", "-") for h in plain}


@pytest.mark.parametrize("name", ALL)
def test_links_lead_somewhere(name: str) -> None:
    for link, anchor in re.findall(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)", without_code(name)):
        if "://" in link:
            assert link.startswith("https://"), link
            continue
        target = (ROOT / name).parent / link if link else ROOT / name
        assert target.exists(), link
        if anchor and target.suffix == ".md":
            page = target.resolve().relative_to(ROOT).as_posix()
            assert anchor in anchors(page), f"{link}#{anchor}"


def test_each_page_is_listed_once() -> None:
    listed = re.findall(r"\]\(([\w-]+\.md)\)", text("docs/README.md"))
    pages = {page.name for page in (ROOT / "docs").glob("*.md")} - {"README.md"}
    assert sorted(listed) == sorted(pages)


def test_each_editor_is_listed() -> None:
    listed = set(re.findall(r"\]\((editors/[\w-]+\.md)", text("docs/editors.md")))
    assert listed == {f"editors/{page.name}" for page in (ROOT / "docs" / "editors").glob("*.md")}


def test_pictures_have_a_text() -> None:
    for name in ALL:
        for alternative in re.findall(r"!\[([^\]]*)\]", without_code(name)):
            assert len(alternative.split()) >= 3, f"{name}: {alternative}"
    for drawing in (ROOT / "docs" / "images").glob("*.svg"):
        svg = drawing.read_text("utf-8")
        assert re.search(r"<title[^>]*>[^<]+</title>", svg), drawing.name
        assert re.search(r"<desc[^>]*>[^<]+</desc>", svg), drawing.name


# --- commands --------------------------------------------------------------------------------


def command_lines(name: str) -> Iterator[str]:
    """Commands of ours in blocks of code, and in the line."""
    page = text(name)
    yield from re.findall(r"^(?:    |\$ )(?:[A-Z_]+=\S+ )*codespec (.*)$", page, re.M)
    for block in re.findall(r"```(?:sh|bash|console)\n(.*?)```", page, re.S):
        yield from re.findall(r"^(?:\$ )?codespec (.*)$", block, re.M)
    inline = (
        " ".join(code.split()) for code in re.findall(r"`codespec ([^`]+)`", without_code(name))
    )
    yield from (code for code in inline if code not in STATES)


STATES = {"paused", "off", "error", "»", "…"}
"""Words that Neovim's status line has behind the name."""


def check_command(line: str) -> None:
    """Raises: click.UsageError for a command that the command line does not take."""
    words = shlex.split(re.split(r" [<>&;] ?", line)[0], comments=True)
    for given in alternatives(words):
        command: click.Command = main
        path = "codespec"
        while isinstance(command, click.Group) and given and not given[0].startswith("-"):
            name = given.pop(0)
            context = click.Context(command, info_name=path)
            found = command.get_command(context, name)
            if found is None:
                raise click.UsageError(f"no command {name}: {line}")
            command, path = found, f"{path} {name}"
        context = click.Context(command, info_name=path)
        given = [word for word in given if word not in ("[OPTIONS]", "...", "COMMAND", "[ARGS]...")]
        if given and given[-1].startswith("--"):  # named without its value
            given.append("VALUE")
        try:
            _, rest, _ = command.make_parser(context).parse_args(given)
        except click.BadOptionUsage:  # a flag
            _, rest, _ = command.make_parser(context).parse_args(given[:-1])
        rest = [word for word in rest if word != "VALUE"]
        if rest and not isinstance(command, click.Group):
            raise click.UsageError(f"too many arguments: {line}")


def alternatives(words: list[str]) -> Iterator[list[str]]:
    """`a b | c` stands for a b and a c."""
    if "|" not in words:
        yield words
        return
    first = words.index("|")
    yield words[:first]
    for n, word in enumerate(words):
        if word == "|":
            rest = words[n + 1 :]
            upto = rest.index("|") if "|" in rest else len(rest)
            n_common = next(
                (k for k, w in enumerate(words[:first]) if w in ("daemon", "models")), 0
            )
            yield [*words[: n_common + 1], *rest[:upto]]


@pytest.mark.parametrize("name", ALL)
def test_commands_are_there(name: str) -> None:
    if name == "CHANGELOG.md":  # it tells of former ones
        return
    for line in command_lines(name):
        check_command(line)


def test_a_wrong_command_would_be_found() -> None:
    for line in ("explode", "complete --nothing FILE:1:1", "daemon start | burn", "stats FILE"):
        with pytest.raises(click.UsageError):
            check_command(line)
    assert sum(len(list(command_lines(name))) for name in ALL) > 100


# --- settings --------------------------------------------------------------------------------


SECTIONS: dict[str, dict[str, object]] = msgspec.to_builtins(Settings())


@pytest.mark.parametrize("name", [page for page in ALL if page != "CHANGELOG.md"])
def test_settings_are_there(name: str) -> None:
    named = re.findall(r"`(\w+)\.(\w+)(?: = [^`]*)?`", without_code(name))
    for section, key in named:
        if section in SECTIONS and key == key.lower() and key != "py":
            assert key in SECTIONS[section], f"{section}.{key}"


def test_settings_files_can_be_read(tmp_path: Path) -> None:
    blocks = [
        block
        for name in ("docs/settings.md", "docs/remote-model.md")
        for block in re.findall(r"```toml\n(.*?)```", text(name), re.S)
    ]
    assert blocks
    for block in blocks:
        file = tmp_path / "config.toml"
        file.write_text(block, "utf-8")
        load_settings(env={}, config_file=file)


def test_settings_in_tables_are_allowed() -> None:
    """`section.key = value` with a value is one that the settings take."""
    pairs = re.findall(r"`(\w+)\.(\w+) = ([^`]*)`", "".join(map(text, FOR_USERS)))
    assert len(pairs) > 15
    for section, key, value in pairs:
        if section in SECTIONS:
            said = tomllib.loads(f"value = {value}")["value"]
            load_settings({section: {key: said}}, env={}, config_file=ROOT / "none.toml")


def test_every_setting_has_a_meaning() -> None:
    for field in msgspec.structs.fields(Settings):
        said = meanings(field.type)
        for key in (f.name for f in msgspec.structs.fields(field.type)):
            assert len(said.get(key, "").split()) > 2, f"{field.name}.{key}"


def test_the_bars_of_next_edits_are_those_of_the_code() -> None:
    field = next(f for f in msgspec.structs.fields(Settings) if f.name == "edits")
    assert "{high}, {medium} or {low}".format(**BARS) in meanings(field.type)["eagerness"]


@pytest.mark.parametrize("page", parts.MADE)
def test_parts_made_from_the_code_are_up_to_date(page: str) -> None:
    assert parts.renewed(page) == text(f"docs/{page}"), "run: python -m docs.generate"


@pytest.mark.parametrize("name", parts.PICTURES)
def test_pictures_made_from_figures_are_up_to_date(name: str) -> None:
    assert parts.PICTURES[name]() == text(f"docs/{name}"), "run: python -m docs.generate"


# --- messages --------------------------------------------------------------------------------


@cache
def strings_of_the_code() -> tuple[str, ...]:
    """Every string that the product has, each part of an f-string for itself."""
    files = chain((ROOT / "codespec").rglob("*.py"), (ROOT / "lsp").rglob("*.py"))
    trees = (ast.parse(file.read_text("utf-8")) for file in files)
    return tuple(
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    )


def test_messages_in_troubleshooting_are_those_of_the_code() -> None:
    messages = re.findall(r"^\| `([^`]+)` \|", text("docs/troubleshooting.md"), re.M)
    assert len(messages) > 35
    for message in messages:
        for part in filter(None, (p.strip() for p in message.split("..."))):
            assert any(part in said for said in strings_of_the_code()), f"{message}: {part}"
