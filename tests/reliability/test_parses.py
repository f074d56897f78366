"""Text made to trouble parsers, for the process that has the model: it is refused or given up, and
neither ends that process nor takes much of its memory."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from codespec.syntax import trees
from codespec.syntax.parse import grammar
from codespec.syntax.trees import MAX_MEMORY_BYTES, ParsedDocument, TreeCache

LIST = "a<" * 200 + "\n"
WILD = {
    # In one step at the text's end, which nothing can stop.
    "java": LIST * 60,
    "csharp": LIST * 60,
    "java, closed": LIST * 60 + "a" + ">" * 10,
    "typescript": "a<b,\n" * 10_000,
    "java, ends alone": ("x=>" * 33 + "\n") * 400,
    "java, in statements": ("a<" * 1900 + ";\n") * 12,
    # As it goes.
    "cpp": "a<\n" * 300_000,
    "tsx": "a<\n" * 300_000,
    "swift": "a<\n" * 300_000,
    "ruby": "-\n" * 499_000,
    "cpp, in statements": ("a<" * 15 + ";\n") * 25_000,
}
PARSE = """
import json, resource, sys
from codespec.syntax.parse import grammar
from codespec.syntax.trees import TreeCache
language, path, text = json.load(sys.stdin)
grammar(language)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
TreeCache().update(path, language, text.encode(), 0)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) << 10)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks at memory there alone")
@pytest.mark.parametrize("name", WILD)
def test_a_parse_takes_little_and_ends_nothing(name: str) -> None:
    language = name.split(",")[0]
    done = subprocess.run(
        [sys.executable, "-c", PARSE],
        input=json.dumps([language, "a", WILD[name]]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < 0.9 * MAX_MEMORY_BYTES


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("java", "for (int i = 0; i < n; i++) { f(a < b); }\n" * 3000),
        ("typescript", "const f = (a: Map<string, Array<number>>) => a < b;\n" * 3000),
        ("cpp", "  std::cout << a << b << c << std::endl;\n" * 3000),
        ("tsx", "const A = () => { return <p><b>one</b> <i>two</i> {three}</p>; };\n" * 2000),
    ],
)
def test_ordinary_code_has_a_tree(language: str, text: str) -> None:
    document = ParsedDocument(language)
    document.update(text.encode())
    assert document.can_be_parsed


def test_what_cannot_be_parsed_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    grammar("c")
    tried: list[int] = []
    parse = trees.syntax_tree

    def counted(language: str, text: bytes, *rest: object) -> object:
        tried.append(len(text))
        return parse(language, text, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(trees, "syntax_tree", counted)
    known = TreeCache()
    text = b"@a\n" * 300_000
    assert known.update("a.c", "c", text, 0) is None
    assert len(tried) == 1
    assert known.update("a.c", "c", b"int a;\n", 0) is not None
