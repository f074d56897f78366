"""Names and docstrings of the product: one name stands for one thing, and a docstring's first
sentence has its subject."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import chain
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NAMED = ("codespec", "lsp")
WRITTEN = (*NAMED, "bench", "tests")
QUESTIONS = {"Whether", "What", "Of", "Where", "As", "And", "For", "Or", "Who"}

PACKAGES = {"__init__", "__main__", "base", "registry"}
"""Modules that each of several packages has for the same purpose."""
COMMANDS = ("codespec/cli/",)
"""Folders of modules with the names that users type, and of no others."""
FAMILIES = ("codespec/languages/", "lsp/handlers/")
"""Folders of modules named by the member of a family that they hold: a language, a request."""


DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
BLOCKS = (*DOCUMENTED, ast.If, ast.Try, ast.With)


@cache
def modules_of(folder: str) -> list[tuple[str, ast.Module]]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return [(p.relative_to(ROOT).as_posix(), ast.parse(p.read_text("utf-8"))) for p in paths]


def modules(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """(path relative to the root, tree) of each module in these folders."""
    return chain.from_iterable(map(modules_of, folders))


def twice(places: dict[str, list[str]]) -> dict[str, list[str]]:
    return {name: found for name, found in places.items() if len(found) > 1}


def docstrings(node: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, docstring) of modules, classes, functions and attributes."""
    for inner in ast.walk(node):
        if not isinstance(inner, BLOCKS):
            continue
        first = isinstance(inner, DOCUMENTED)
        for before, each in zip([None, *inner.body], inner.body, strict=False):
            has_place = first if before is None else isinstance(before, ast.Assign | ast.AnnAssign)
            if has_place and isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                text = each.value.value
                if isinstance(text, str) and text.strip():
                    yield each.lineno, text


def test_no_class_has_the_name_of_another() -> None:
    places = defaultdict[str, list[str]](list)
    for path, tree in modules(*NAMED):
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(f"{path}:{node.lineno}")
    assert twice(places) == {}


def test_no_module_has_the_name_of_another() -> None:
    places = defaultdict[str, list[str]](list)
    for path, _ in modules(*NAMED):
        name = Path(path).stem
        if name not in PACKAGES and not path.startswith(FAMILIES):
            places[name].append(path)
    others = {
        name: found
        for name, found in twice(places).items()
        if not all(path.startswith(COMMANDS) for path in found)
    }
    assert others == {}


def test_docstrings_begin_with_their_subject() -> None:
    begun = [
        f"{path}:{line}: {text.strip().splitlines()[0]}"
        for path, tree in modules(*WRITTEN)
        for line, text in docstrings(tree)
        if text.split()[0].strip(",:;.") in QUESTIONS
    ]
    assert begun == []


def test_the_rules_find_what_they_forbid() -> None:
    tree = ast.parse('def f():\n    """Whether it is."""\n\n\nN = 1\n"""Of a kind."""\n')
    assert sorted(docstrings(tree)) == [(2, "Whether it is."), (6, "Of a kind.")]
    assert twice({"a": ["x", "y"], "b": ["x"]}) == {"a": ["x", "y"]}
