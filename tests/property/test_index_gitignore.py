"""Ignore rules against git itself, on random rule files at several levels."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codespec.rules.ignore import IgnoreRules
from tests.index_support import git, isolate

plain = ["a", "b", "A", "ab", "x", ".c", "-", "#", "!", " ", "*", "?", "*.c", "\u00e9"]
escapes_and_brackets = ["\\a", "\\ ", "\\", "[ab]", "[!a]", "[^b]", "[a-c]", "[c-a]", "[]a]", "[a"]
atoms = st.sampled_from([*plain, *escapes_and_brackets, "[[:alpha:]]"])
components = st.lists(atoms, min_size=1, max_size=3).map("".join) | st.just("**")
bodies = st.lists(components, min_size=1, max_size=3).map("/".join)
patterns = st.builds(
    lambda negation, slash, body, end: negation + slash + body + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "", "/"]),
    bodies,
    st.sampled_from(["", "", "/"]),
)
# What git does with two stars inside a longer component depends on its fast paths, and a
# backslash before a slash is not a pattern anybody writes; neither is documented.
patterns = patterns.filter(lambda p: "\\/" not in p and not _inner_stars(p))
files = st.lists(patterns, max_size=4).map("\n".join)

NAMES = [
    "a",
    "b",
    "B",
    "ab",
    "x",
    "a.c",
    "b.c",
    "abc",
    "aab",
    ".c",
    "a-b",
    "-",
    "\u00e9",
    "a\u00e9",
]


def _inner_stars(pattern: str) -> bool:
    return any("**" in c and c.strip("!") != "**" for c in pattern.split("/"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    git(root, "init", "-q")
    for folder in ("", "a", "b/a", "x/b/ab", "ab/x"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    for folder in [root, *(p for p in root.rglob("*") if p.is_dir() and ".git" not in p.parts)]:
        for name in NAMES:
            if not (folder / name).exists():
                (folder / name).touch()
    return root


@settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(ignore_case=st.booleans(), top=files, inner=files, deep=files, exclude=files)
def test_same_answers_as_git(
    tree: Path, ignore_case: bool, top: str, inner: str, deep: str, exclude: str, tmp_path: Path
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        isolate(patch, tmp_path)
        for place, rules in (("", top), ("a", inner), ("x/b", deep)):
            (tree / place / ".gitignore").write_text(rules)
        (tree / ".git/info/exclude").write_text(exclude)
        settings = f"[core]\nrepositoryFormatVersion = 0\nignoreCase = {str(ignore_case).lower()}\n"
        (tree / ".git/config").write_text(settings)
        paths = sorted(
            os.path.relpath(os.path.join(folder, name), tree)
            for folder, folders, names in os.walk(tree)
            if ".git" not in Path(folder).parts
            for name in [*folders, *names]
            if not name.startswith(".git")
        )
        asked = b"\0".join(p.encode() for p in paths)
        answer = git(tree, "check-ignore", "-z", "--stdin", "--no-index", stdin=asked)
        expected = set(answer.decode().split("\0")) - {""}
        ours = IgnoreRules(tree)
        assert {p for p in paths if ours.why_excluded(p)} == expected
