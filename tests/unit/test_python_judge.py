"""Python's own parser as a judge of suggestions: what it is asked, and that nothing it is asked can
harm."""

from __future__ import annotations

import ast
import subprocess
import sys
import time

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codespec.suggest import Candidate, python
from codespec.suggest.fit import Judge, fit
from codespec.suggest.place import Place
from codespec.suggest.python import accepts
from codespec.syntax.trees import ParsedDocument, TreeCache

REFUSED = [
    "def f():\n    # a\n\n\nclass X:\n    a = 1\n",
    "if a:\n    # b\nelse:\n    c\n",
    "x = 1\n    y = 2\n",
    "if a:\n        x = 1\n    y = 2\n",
    "if a:\n\tx\n        y\n",
    "print 'a'\n",
    "f(a=1, b)\n",
    "def f(a=1, b):\n    pass\n",
    "del f()\n",
    "b'é'\n",
    "0123\n",
    "from x import a,\n",
    "try:\n    a\nx = 1\n",
    "f(x for x in y, 1)\n",
    "try:\n    a\nexcept A, e:\n    pass\n",
    "match x:\n    case 1:\n        a\n    case 2:\n",
    '"\\N{foo}"\n',
]
TAKEN = [
    "def f():\n    # a\n    return 1\n",
    "async def f():\n    await x\n    return [y async for y in z]\n",
    "match x:\n    case 1:\n        a\n    case 2:\n        b\n",
    "class A:\n    def f(self): return 1\n\n    x = '\\d'\n",
    "if a:\n    b; c\nelse:\n    d\n",
    'def f():\n    """\na\n  """\n    return 1\n',
]
BEFORE = [
    "",
    "def q():\n    return 1\n\n\n",
    "class Q:\n    a = 1\n\n    def q(self):\n        pass\n\n",
]


def judged(text: str, start: int, end: int) -> bool | None:
    document = ParsedDocument("python")
    document.update(text.encode())
    assert document.root is not None
    return accepts(document.root, text.encode(), start, end)


@pytest.mark.parametrize("before", BEFORE)
@pytest.mark.parametrize(
    ("text", "taken"), [*((text, False) for text in REFUSED), *((text, True) for text in TAKEN)]
)
def test_python_is_asked_about_the_statements_around(before: str, text: str, taken: bool):
    if before.startswith("class"):
        text = "".join(f"    {line}" for line in text.splitlines(keepends=True))
    # What is wrong further away does not count.
    far = "print 'Python 2'\n"
    whole = f"{far}\n\ny = 1\n\n\n{before}{text}\n\nx = 1\n\n\n{far}"
    start = whole.index(text)
    end = start + len(text.encode()) - 1
    assert judged(whole, start, end) is taken


LINES = [
    "if a:",
    "else:",
    "x = 1",
    "# c",
    "def f(a):",
    "return x",
    "try:",
    "except A:",
    "",
    "f(b=1, c)",
]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(LINES)), min_size=1, max_size=8))
@pytest.mark.slow
def test_a_short_document_is_judged_as_a_whole(lines: list[tuple[int, str]]):
    text = "".join(f"{'    ' * indent}{line}\n" for indent, line in lines)
    found = judged(text, 0, len(text) - 1)
    assume(found is not None)
    try:
        ast.parse(text)
    except SyntaxError:
        assert not found
    else:
        assert found


def test_what_python_refuses_is_not_suggested():
    def fitted(text: str, prefix: str, suffix: str) -> str:
        parsed = TreeCache().update("a.py", "", (prefix + suffix).encode())
        assert parsed is not None
        place = Place(prefix, suffix, "python", parsed)
        return fit(Candidate(place, text), Judge(place))

    below = "\n\n\ndef g():\n    pass\n"
    assert fitted("# only this", "def f():\n    ", below) == ""
    assert fitted("for a in b:", "def f():\n    ", below) == ""
    assert fitted("for a in b:", "def f():\n    ", "\n        c(a)\n" + below) == "for a in b:"
    assert fitted(" a in b:", "def f():\n    for", below) == " a in b:"  # its body comes next
    assert fitted("y:", "def f():\n    tr", below) == "y:"
    assert fitted("import get.it", "from a ", below) == ""
    # Where anything would be refused, it is not the suggestion's fault.
    assert fitted("1, b", "print 'a', ", "\n") == "1, b"
    assert fitted("# and this", "try:\n    a\n", "\nx = 1\n") == "# and this"


def hostile(n: int) -> dict[str, str]:
    """Texts that nest, of about n bytes a statement."""
    return {
        "unary": "x = " + "-" * n + "1",
        "not": "x = " + "not " * (n // 4) + "1",
        "attributes": "a" + ".b" * (n // 2),
        "calls": "a" + "()" * (n // 2),
        "conditions": "x = " + "a if b else " * (n // 12) + "1",
        "lambdas": "x = " + "lambda:" * (n // 7) + "1",
        "powers": "x = " + "a**" * (n // 3) + "1",
        "sums": "x = " + "a+" * (n // 2) + "1",
        "brackets": "x = " + "[" * (n // 2) + "]" * (n // 2),
        "branches": "if a:b\n" + "elif a:b\n" * n,
        "blocks": "".join(f"{' ' * i}if a:\n" for i in range(min(n, 120))) + " " * 120 + "b",
    }


def test_what_nests_deeply_is_not_judged():
    for name, text in hostile(2 * python.MAX_STATEMENT_BYTES - 200).items():
        if name != "blocks":
            assert judged(f"y = 1\n{text}\nz = 1\n", 6, 6 + len(text)) is None, name


def test_what_nests_deeply_is_passed_over_in_no_time():
    """A parent is looked for from the top: from each node to the next that took seven seconds."""
    document = ParsedDocument("python")
    document.update(b"do |x|\n" * 20_000)
    root = document.root
    assert root is not None
    began = time.process_time()
    accepts(root, document.text, 70_000, 70_000)
    assert time.process_time() - began < 1


@pytest.mark.slow
def test_what_is_judged_needs_little_stack():
    """In a process of its own, as the failure would be its death."""
    script = (
        "import sys, threading\n"
        "from codespec.syntax.trees import ParsedDocument\n"
        "from codespec.suggest.python import accepts\n"
        "text = sys.stdin.read()\n"
        "document = ParsedDocument('python')\n"
        "document.update(text.encode())\n"
        "root = document.root\n"
        "threading.stack_size(512 * 1024)\n"
        "found = []\n"
        "def ask(): found.append(accepts(root, text.encode(), 0, len(text) - 1))\n"
        "thread = threading.Thread(target=ask)\n"
        "thread.start()\n"
        "thread.join()\n"
        "print(found)\n"
    )
    n = python.MAX_STATEMENT_BYTES - 100
    texts = {k: v for k, v in hostile(n).items() if k not in ("brackets", "branches")}
    texts["branches"] = "if a:b\n" + "elif a:b\n" * 90
    for name, text in texts.items():
        command = [sys.executable, "-c", script]
        ran = subprocess.run(
            command, input=text + "\n", capture_output=True, text=True, check=False
        )
        assert ran.returncode == 0, (name, ran.stderr[-500:])
        assert ran.stdout.strip() in ("[True]", "[False]", "[None]"), name
