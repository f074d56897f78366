"""Each language is one file, and nothing else names one."""

from __future__ import annotations

import ast
import os
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path

import pytest

import codespec
from codespec.languages.base import Language
from codespec.languages.registry import TEXT, notation_of, parsed_as, record_at, record_of, records
from codespec.syntax.lexis import token_patterns

ROOT = Path(codespec.__file__).parent
RECORDS = records()
PATTERNS = (
    "others_say",
    "case_label", "characters", "heredocs", "continues", "no_comma_before", "unfinished",
    "import_head", "unless", "after",
)  # fmt: skip
# Files that say such a word and know nothing of the language.
ARGUED = {
    "backends/remote/server_vocabulary.py": "the extension of a tokenizer's file",
    "daemon/address.py": "the extension of a file of codespec's own",
    "edits/learned_odds.py": "the extension of a file of codespec's own",
    "http/dialects/ollama_bodies.py": "the value of a field of Ollama's",
    "http/json_schemas.py": "a word of JSON Schema",
    "http/openapi.py": "words of OpenAPI and of JSON Schema",
    "models/provenance.py": "the extension of a file of codespec's own",
    "rules/ignore.py": "the folder of a build tool",
    "rules/secrets/values.py": "words without vowels",
    "syntax/markup.py": "the name of an element, and of a group in a pattern",
    "train/__main__.py": "the extension of a file of codespec's own",
    "train/bundle.py": "the grammars that go to another machine with the corpus",
    "train/evaluate.py": "the language whose held-out files models are measured on",
    "train/more_sources.py": "the files that are taken out of downloaded archives",
    "train/corpus_sources.py": "the corpus of the bundled models; another list makes other models",
}


def names_of(record: Language) -> set[str]:
    """Its name, identifiers and extensions; those of one letter and `text` are words of Python's
    interfaces, too."""
    names = {record.name, *record.ids, *record.extensions}
    return {name for name in names if len(name) > 1} - {TEXT}


def literals(tree: ast.Module) -> Iterator[str]:
    """Strings in code: no documentation, which stands by itself."""
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.value


def patterns(value: object) -> Iterator[str]:
    """All regular expressions in a record."""
    if isinstance(value, tuple):
        for part in value:
            yield from patterns(part)
    if not is_dataclass(value):
        return
    for field in fields(value):
        part = getattr(value, field.name)
        if field.name in ("opens", "begins"):
            yield from part.values()
        elif field.name in PATTERNS:
            yield part
        else:
            yield from patterns(part)


def test_no_other_file_names_a_language() -> None:
    names = set[str]().union(*map(names_of, RECORDS))
    found: dict[str, set[str]] = {}
    for path in ROOT.rglob("*.py"):
        if path.parent != ROOT / "languages":
            said = names.intersection(literals(ast.parse(path.read_text("utf-8"))))
            if said:
                found[path.relative_to(ROOT).as_posix()] = said
    assert found.keys() <= ARGUED.keys(), found


def test_no_two_languages_claim_a_name_an_extension_or_an_identifier() -> None:
    claimed = Counter(
        name
        for r in RECORDS
        for name in (
            *(r.name, *r.extensions),
            *(f"file {file}" for file in r.files),
            *(f"id {id_}" for id_ in r.ids),
        )
    )
    assert [name for name, n in claimed.items() if n > 1] == []
    assert all(extension == extension.lower() for r in RECORDS for extension in r.extensions)
    assert all(extension[0] == "." for r in RECORDS for extension in r.extensions)


def test_a_file_holds_the_language_that_it_is_called() -> None:
    files = {path.stem for path in (ROOT / "languages").glob("*.py")}
    names = {record.name for record in RECORDS}
    assert files - {"__init__", "base", "registry"} == names - {TEXT} | {"plain"}
    assert {name for r in RECORDS for name in r.yields_to} <= names


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.name)
def test_its_patterns_compile(record: Language) -> None:
    for pattern in (*patterns(record), *token_patterns(record)):
        re.compile(pattern)


@pytest.mark.parametrize(
    ("path", "language_id", "expected"),
    [
        ("package.json", "", "json"),
        ("package.json", "jsonc", "jsonc"),
        ("package.json", "json5", "json5"),
        ("package.json", "yaml", "json"),
        ("tsconfig.json", "", "jsonc"),
        ("tsconfig.build.json", "", "jsonc"),
        ("tsconfig.json", "json", "jsonc"),
        (".vscode/settings.json", "", "jsonc"),
        ("vscode/settings.json", "", "json"),
        ("file:///a/.vscode/tasks.json", "", "jsonc"),
        (".eslintrc", "", "jsonc"),
        ("events.ndjson", "", "jsonl"),
        ("Pipfile.lock", "", "json"),
        ("schema.SQL", "", "sql"),
        ("unsaved", "postgres", "sql"),
        ("Dockerfile.dev", "", "dockerfile"),
        ("CMakeLists.txt", "", "cmake"),
    ],
)
def test_a_name_or_an_identifier_tells_the_language(
    path: str, language_id: str, expected: str
) -> None:
    assert record_at(path, language_id).name == expected
    assert notation_of(path, language_id) == expected


def test_any_other_name_is_plain_text() -> None:
    assert record_of("") is record_of("no language") is record_of(TEXT)


PLAIN = b'#ifdef __cplusplus\nextern "C" {\n#endif\nint f(int a);\nstruct point { int x; };\n'


@pytest.mark.parametrize(
    ("beside", "text", "language_id", "expected"),
    [
        ([], PLAIN, "", "c"),
        (["b.cpp", "c.hpp"], PLAIN, "", "cpp"),
        (["b.cu", "README"], PLAIN, "", "cpp"),
        (["b.c", "x.h"], PLAIN, "", "c"),
        (["b.py"], PLAIN, "", "c"),
        # The file that it is the header of counts before others.
        (["a.cc", "b.c", "c.c"], PLAIN, "", "cpp"),
        (["a.c", "b.cpp"], PLAIN, "", "c"),
        # What the editor says counts before both.
        (["a.cpp"], PLAIN, "c", "c"),
        (["a.c"], PLAIN, "cpp", "cpp"),
        # Its own text, where they do not agree.
        (["b.c", "c.cpp"], PLAIN, "", "c"),
        (["b.c", "c.cpp"], b"class S {\n  int a;\n};\n", "", "cpp"),
        ([], b"namespace a::b {\nint f();\n}\n", "", "cpp"),
        ([], b"struct S {\n public:\n  int a;\n", "", "cpp"),
        ([], b"template <typename T>\nT f(T a);\n", "", "cpp"),
        ([], b"#include <vector>\n", "", "cpp"),
        ([], b"class API S\n    : public T\n{\n};\n", "", "cpp"),
        ([], b"/*\n class of things\n using the {\n */\nstruct s {", "", "c"),
        ([], b"#include <stdio.h>\n// a class of {\nint class_of(int a) {\n", "", "c"),
    ],
)
def test_a_header_is_in_the_language_of_its_neighbours(
    tmp_path: Path, beside: list[str], text: bytes, language_id: str, expected: str
) -> None:
    for name in beside:
        (tmp_path / name).touch()
    assert parsed_as(str(tmp_path / "a.h"), language_id, text) == expected
    # A file whose extension tells is in no other language.
    assert parsed_as(str(tmp_path / "z.c"), "", text) == "c"
    assert parsed_as(str(tmp_path / "z.hpp"), "", text) == "cpp"


def test_neighbours_may_come_and_go(tmp_path: Path) -> None:
    header = str(tmp_path / "a.h")
    assert parsed_as(header, "", PLAIN) == "c"
    (tmp_path / "a.cpp").touch()
    os.utime(tmp_path, ns=(1, 1))
    assert parsed_as(header, "", PLAIN) == "cpp"
    (tmp_path / "a.cpp").unlink()
    os.utime(tmp_path, ns=(2, 2))
    assert parsed_as(header, "", PLAIN) == "c"
    assert parsed_as(str(tmp_path / "missing" / "a.h"), "", PLAIN) == "c"
