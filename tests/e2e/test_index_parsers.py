"""Processes that parse: what they say, how they die, and that they go."""

from __future__ import annotations

import os
import signal
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from codespec.errors import CodespecError
from codespec.index import parsers as module
from codespec.index.parsers import ParserDiedError, Parsers
from codespec.index.selection import select

HERE = Path(__file__)
CODE = "# Licence: MIT\n\ndef one(x):\n    return x\n\nclass Two:\n    pass\n"
BOMB = (b"a<" * 200 + b"\n") * 100


def children() -> set[int]:
    return {p.pid for p in psutil.Process().children(recursive=True)}


@pytest.mark.parametrize(
    ("path", "text"),
    [("a.py", CODE), ("a.py", ""), ("ü\udcff.py", CODE), ("go.sum", "x"), ("a.zzz", "é\n" * 9)],
)
def test_the_answer_is_that_of_this_process(path: str, text: str) -> None:
    with Parsers(1) as parsers:
        for _ in range(2):
            assert parsers.select(path, text.encode()) == select(path, text.encode())


def test_large_files_pass(tmp_path: Path) -> None:
    text = b"".join(b"def f_%d(x):\n    return x\n" % i for i in range(20_000))
    with Parsers(1) as parsers:
        assert parsers.select("a.py", text) == select("a.py", text)


def test_children_are_shared_by_threads_and_end() -> None:
    before = children()
    texts = [CODE.replace("one", f"one_{i}").encode() for i in range(40)]
    with Parsers(2) as parsers, ThreadPoolExecutor(4) as pool:
        assert children() == before
        found = list(pool.map(lambda t: parsers.select("a.py", t), texts))
        assert found == [select("a.py", t) for t in texts]
        assert len(children() - before) == 2
        parsers.rest()
        (kept,) = children() - before
        assert parsers.select("a.py", texts[0]) == found[0]
        assert children() - before == {kept}
    assert children() == before


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of memory")
def test_a_death_costs_one_file() -> None:
    with Parsers(2) as parsers:
        for _ in range(2):
            with pytest.raises(ParserDiedError):
                parsers.select("a.java", BOMB)
        assert parsers.select("a.py", CODE.encode()) == select("a.py", CODE.encode())


@pytest.mark.skipif(os.name != "posix", reason="kills by signal")
def test_a_child_killed_between_two_files_is_noticed() -> None:
    before = children()
    with Parsers(1) as parsers:
        parsers.select("a.py", b"x = 1\n")
        (child,) = children() - before
        os.kill(child, signal.SIGKILL)
        with pytest.raises(ParserDiedError):
            parsers.select("a.py", b"x = 2\n" * 100_000)
        assert parsers.select("a.py", b"x = 1\n") == select("a.py", b"x = 1\n")


def test_a_child_that_cannot_start_is_no_death(monkeypatch: pytest.MonkeyPatch) -> None:
    before = threading.active_count()
    monkeypatch.setattr(module, "module_command", lambda _: [sys.executable, "-c", "1 / 0"])
    with Parsers(1) as parsers:
        for _ in range(2):
            with pytest.raises(CodespecError, match="cannot be started"):
                parsers.select("a.py", b"x = 1\n")
    assert threading.active_count() == before


@pytest.mark.skipif(os.name != "posix", reason="POSIX priorities")
def test_children_give_way() -> None:
    before = children()
    with Parsers(1) as parsers:
        parsers.select("a.py", b"x = 1\n")
        (child,) = children() - before
        assert psutil.Process(child).nice() >= 10
