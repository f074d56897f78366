"""Trees of open documents after any edits are those of the text."""

from __future__ import annotations

import asyncio.base_events
import inspect
import re
import sched
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.syntax.parse_limits import MAX_DEPTH
from codespec.syntax.symbols import find_symbols
from codespec.syntax.trees import MAX_MEMORY_BYTES, MAX_TREES, NEAR_BYTES, ParsedDocument, TreeCache

TEXTS = {
    "python": inspect.getsource(sched),
    "c": "int f(int a) {\n  if (a) { return g(a); }\n  return 0;\n}\n\nstruct S { int x; };\n" * 3,
    "typescript": "export class A {\n  m(x: number) { return `a${x}`; }\n}\n" * 3,
    "javascript": "const a = (c) => (\n  <p class='a'>{f(c.in=3)} <i for={c}/></p>\n)\n" * 3,
}
# What opens, closes and cuts: edits that change the tree far from their place.
INSERTED = ["", "x", "\n", "    ", '"', '"""', *"(){}=", "def f(x):\n    ", "/*", "é 中"]
EDITS = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 60), st.sampled_from(INSERTED)), max_size=8
)


@pytest.mark.parametrize("language", TEXTS)
@settings(max_examples=40)
@given(edits=EDITS)
@pytest.mark.slow
def test_incremental_trees_equal_fresh_ones(
    language: str, edits: list[tuple[float, int, str]]
) -> None:
    text = TEXTS[language]
    document = ParsedDocument(language)
    document.update(text.encode())
    for where, n_removed, new in edits:
        at = int(where * len(text))
        text = text[:at] + new + text[at + n_removed :]
        document.update(text.encode())
        fresh = ParsedDocument(language)
        fresh.update(text.encode())
        assert (document.root is None) == (fresh.root is None)
        if document.root is not None and fresh.root is not None:
            assert document.root.end_byte == len(text.encode())
            found = find_symbols(language, document.root, text.encode())
            assert document.symbols == found
            # Where text has errors, tree-sitter's recovery depends on what it parsed before.
            if not fresh.root.has_error:
                assert str(document.root) == str(fresh.root)


def test_symbols_follow_the_text() -> None:
    trees = TreeCache()
    trees.update("a.py", "", b"def old(x):\n    pass\n")
    trees.update("b.py", "", b"class old:\n    pass\n")
    found = trees.symbols(["a.py", "b.py"])
    assert {p: [s.kind for s in d] for p, d in found.items()} == {
        "a.py": ["function"],
        "b.py": ["class"],
    }
    trees.update("a.py", "", b"\ndef new(x):\n    pass\n")
    (symbol,) = trees.symbols(["a.py"])["a.py"]
    assert (symbol.name, symbol.signature, symbol.first_line) == ("new", "def new(x)", 2)
    assert trees.symbols(["c.py"]) == {}
    for i in range(MAX_TREES):
        trees.update(f"{i}.py", "", b"x = 1\n")
    assert trees.symbols(["a.py"]) == {}


def test_what_is_too_deep_has_no_tree_until_it_is_mended() -> None:
    document = ParsedDocument("python")
    document.update(b"def f(x):\n    pass\n" + b"(" * (MAX_DEPTH + 1) + b"\n" * MAX_DEPTH)
    assert document.root is None
    assert document.symbols == ()
    document.update(b"def f(x):\n    pass\n")
    assert [s.name for s in document.symbols] == ["f"]


@pytest.mark.skipif(sys.platform != "linux", reason="limits memory there alone")
def test_a_parse_that_takes_all_memory_ends_its_process_before() -> None:
    script = (
        "from codespec.syntax.parse import syntax_tree\n"
        "from codespec.syntax.trees import MAX_MEMORY_BYTES, TreeCache\n"
        "from codespec.system.processes import memory_limited\n"
        "TreeCache().update('a.py', '', b'def f(x):\\n    pass\\n')\n"
        "print('parsed', flush=True)\n"
        "with memory_limited(MAX_MEMORY_BYTES):\n"
        "    syntax_tree('java', b'a<\\n' * 20_000)\n"
        "print('unharmed')\n"
    )
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    most_kb = 0
    # Not by what the system says of children that ended: that counts the memory of who starts them.
    while child.poll() is None:
        status = Path(f"/proc/{child.pid}/status").read_text()
        peak = re.search(r"VmHWM:\s+(\d+) kB", status)
        most_kb = max(most_kb, int(peak[1]) if peak else 0)
        time.sleep(0.005)
    assert child.stdout is not None
    with child.stdout as out:
        assert out.read() == b"parsed\n"
    assert child.returncode < 0
    assert 0 < most_kb < (MAX_MEMORY_BYTES >> 10) * 1.3


def _with_line(text: bytes, line: int, new: bytes) -> tuple[int, int, bytes]:
    """(first byte, byte after the last, new): a change of a line, from 0."""
    lines = text.split(b"\n")
    at = sum(len(s) + 1 for s in lines[:line])
    return at, at + len(lines[line]), new


FILES = {
    "python": inspect.getsource(asyncio.base_events).encode(),
    "typescript": b"".join(
        b"export class A%d {\n" % i
        + b"".join(b"  m%d(x) {\n    if (x) {\n      f();\n    }\n  }\n\n" % k for k in range(30))
        + b"}\n\n"
        for i in range(9)
    ),
    "c": b"".join(
        b"int f%d(int a) {\n  if (a) {\n    return g(a);\n  }\n  return 0;\n}\n\n" % i
        for i in range(200)
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", FILES)
def test_far_statements_below_the_cursor_change_no_verdict(language: str) -> None:
    text = FILES[language]
    extension = {"python": "py", "typescript": "ts", "c": "c"}[language]
    trees, whole = TreeCache(), ParsedDocument(language)
    whole.update(text)
    n_lines = text.count(b"\n")
    for line in range(3, n_lines, n_lines // 25):
        at, end, old = _with_line(text, line, text.split(b"\n")[line])
        near = trees.update(f"a.{extension}", "", text, at)
        assert near is not None
        assert near.text[:at] == text[:at]
        assert len(near.text) < at + 4 * NEAR_BYTES
        for new in (b"", b"x(", b"x[", b'"', b"  x;", b"}", b"        f(a, b)", old + b" +", old):
            verdicts = [d.with_change(at, end, new) for d in (near, whole)]
            assert len({root is not None and root.has_error for root in verdicts}) == 1, (line, new)


FUNCTIONS = b"".join(b"int f%d(int a) {\n  return a;\n}\n\n" % i for i in range(99))
# (text before the cursor's line, the line, what stands below): what the line opens is closed below.
OPENED = {
    "a.c": (
        b"int f(int a) {\n",
        b"  while (a) {",
        b"    a--;\n  }\n" + b"  g(a);\n" * 200 + b"  return a;\n}\n\n" + FUNCTIONS,
    ),
    "a.cpp": (b"", b"/*", b"int a;\n" * 200 + b"*/\n" + FUNCTIONS),
    "a.py": (b"def f():\n", b"    x = {", b"        a.b: 'c',\n" * 100 + b"    }\n"),
    "a.rb": (b"f 1\n", b"describe A do", b"  it { f 2 }\n" * 150 + b"end\n\n" + b"f 3\n" * 9),
}


@pytest.mark.parametrize("path", OPENED)
def test_what_is_missing_at_the_cursor_is_no_fault_of_what_is_far(path: str) -> None:
    above, line, below = OPENED[path]
    near = TreeCache().update(path, "", above + b"\n" + below, len(above))
    assert near is not None
    with_line = near.with_change(len(above), len(above), line)
    assert with_line is not None
    assert not with_line.has_error


def test_what_is_wrong_far_below_is_not_parsed_either() -> None:
    wrong = b"int g(int a) {\n  int x = a.;\n  return x +* 2;\n}\n\n"
    text = FUNCTIONS + wrong + FUNCTIONS
    near = TreeCache().update("a.c", "", text, 0)
    assert near is not None
    assert len(near.text) < 4 * NEAR_BYTES


@settings(max_examples=40)
@given(edits=EDITS)
@pytest.mark.slow
def test_a_near_document_has_the_text_around_the_cursor(
    edits: list[tuple[float, int, str]],
) -> None:
    text = TEXTS["python"].encode()
    trees = TreeCache()
    for where, n_removed, new in edits:
        at = int(where * len(text))
        text = text[:at] + new.encode() + text[at + n_removed :]
        at += len(new.encode())
        near = trees.update("a.py", "", text, at)
        if near is not None:
            line_end = text.find(b"\n", at) + 1 or len(text)
            assert near.text[:line_end] == text[:line_end]
            assert len(near.text) <= len(text)
        else:
            assert TreeCache().update("a.py", "", text) is None
        fresh = ParsedDocument("python")
        fresh.update(text)
        same = [[s for s in found if s.name == "scheduler"] for found in (
            fresh.symbols, trees.symbols(["a.py"])["a.py"],
        )]  # fmt: skip
        assert same[0] == same[1]
