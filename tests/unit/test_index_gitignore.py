"""Single patterns of ignore files; `tests/property` compares whole files with git."""

from __future__ import annotations

import time

import pytest

from codespec.rules.gitignore import MAX_PATTERNS, MAX_WILDCARDS, RuleSet


def excluded(lines: list[str], path: str) -> bool:
    is_dir = path.endswith("/")
    rule = RuleSet(lines).decide(path.strip("/").split("/"), is_dir)
    return rule is not None and not rule.negated


@pytest.mark.parametrize(
    ("pattern", "path", "expected"),
    [
        ("*.log", "a/b.log", True),
        ("*.log", "a/b.logs", False),
        ("/x", "x", True),
        ("/x", "a/x", False),
        ("a/x", "a/x", True),
        ("a/x", "b/a/x", False),
        ("x/", "x/", True),
        ("x/", "x", False),
        ("**/x", "a/b/x", True),
        ("a/**", "a/b/c", True),
        ("a/**", "a/", False),
        ("a/**/b", "a/b", True),
        ("a/**/b", "a/x/y/b", True),
        ("a/*/b", "a/x/y/b", False),
        ("[ab]?[!c]", "bxd", True),
        ("[ab]?[!c]", "bxc", False),
        ("[[:digit:]]", "7", True),
        ("[[:digit:]]", "x", False),
        ("[]x]", "]", True),
        ("[x", "[x", False),
        ("\\#x", "#x", True),
        ("# x", "# x", False),
        ("\\!x", "!x", True),
        ("x\\ ", "x ", True),
        ("x ", "x", True),
        ("a\\*", "a*", True),
        ("a\\*", "ab", False),
        ("x\r\n", "x", True),
        ("\ufeffx", "x", True),
        ("!x", "x", False),
        ("/", "x", False),
        ("a//b", "a/b", False),
        ("\u00e9?", "\u00e9a", True),
        ("/caf??", "caf\u00e9", True),
        ("caf?", "caf\u00e9", False),
        ("[!a]", "\u00e9", False),
        ("[\u00e9]", "\u00e9", False),
        ("[[:space:]]x", "\u00a0x", False),
    ],
)
def test_one_pattern(pattern: str, path: str, expected: bool) -> None:
    assert excluded([pattern], path) is expected


def test_the_last_match_decides() -> None:
    lines = ["*.py", "!keep.py", "keep.*"]
    assert not excluded(lines[:2], "keep.py")
    assert excluded(lines, "keep.py")
    assert not excluded(lines[:2], "keep.pyc")


def test_time_is_bounded_on_patterns_made_to_backtrack() -> None:
    rules = RuleSet(["*a" * 100 + "b", "**/a/" * 50 + "b", "?*" * 60 + "[!a]"])
    start = time.process_time()
    rules.decide(["a" * 255], False)
    rules.decide(["a"] * 100, False)
    # A backtracking matcher needs longer than the universe is old; the margin is for slow machines.
    assert time.process_time() - start < 5


@pytest.mark.slow
def test_of_a_file_with_more_lines_than_are_read_everything_is_ignored() -> None:
    rules = RuleSet(f"x{i}" for i in range(MAX_PATTERNS))
    assert rules.decide([f"x{MAX_PATTERNS - 1}"], False) is not None
    assert rules.decide(["y"], False) is None
    rule = RuleSet(f"!x{i}" for i in range(MAX_PATTERNS + 1)).decide(["y"], False)
    assert rule is not None
    assert not rule.negated
    assert "lines" in rule.text


@pytest.mark.parametrize("pattern", ["*a", "/*a", "x/**/[y]", "?a/"])
def test_where_wildcards_are_too_many_everything_is_ignored(pattern: str) -> None:
    n = MAX_WILDCARDS // sum(pattern.count(c) for c in "*?[")
    few = RuleSet(["!b"] + [pattern] * n)
    assert few.decide(["b"], False) is not None
    assert few.decide(["c"], False) is None
    start = time.process_time()
    many = RuleSet([*(pattern.replace("a", f"a{i}") for i in range(20_000)), "!b"])
    assert time.process_time() - start < 5
    for path in (["b"], ["c"], ["d", "e"]):
        rule = many.decide(path, False)
        assert rule is not None
        assert not rule.negated
        assert "wildcards" in rule.text


def test_names_and_paths_without_wildcards_are_looked_up() -> None:
    lines = [f"x{i}" for i in range(10_000)] + [f"/d/x{i}/" for i in range(10_000)]
    rules = RuleSet([*lines, "!x5", "x7/", "!*7", "/d/x7"])
    start = time.process_time()
    for _ in range(1000):
        assert rules.decide(["e", "y"], False) is None
        assert rules.decide(["e", "x9"], False) is not None
    assert time.process_time() - start < 1

    def said(path: str, is_dir: bool = False) -> str:
        rule = rules.decide(path.split("/"), is_dir)
        return "" if rule is None else rule.text

    assert said("x5") == said("x5", is_dir=True) == said("d/x5") == "!x5"
    assert said("d/x6") == "x6"
    assert said("d/x6", is_dir=True) == "/d/x6/"
    assert said("x7") == said("x7", is_dir=True) == said("e/d/x7") == "!*7"
    assert said("d/x7") == "/d/x7"
