"""The first pages that people read, README and CHANGELOG, are short and true."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def text(name: str) -> str:
    return (ROOT / name).read_text("utf-8")


def test_the_readme_is_short() -> None:
    readme = text("README.md")
    assert len(readme.splitlines()) <= 120
    assert len(readme.split()) <= 700


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
