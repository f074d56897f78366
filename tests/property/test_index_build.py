"""After any history of a workspace its index holds what a look at the files alone says."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from codespec.index import compact
from codespec.index.parsers import Parsers
from codespec.index.reader import WorkspaceIndex
from codespec.index.update import with_ruled, withdraw
from codespec.index.watch import IndexKeeper
from codespec.languages.registry import language_of
from codespec.rules.ignore import IgnoreRules
from tests.index_support import SETTINGS, Workspace, isolate

FOLDERS = ["d", "d/e", "f", "f/d", "h"]
PATHS = ["a.py", "b.zzz", "d/a.py", "d/e/c.zzz", "d/.env", "f/g.py", "node_modules/x.py"]
IGNORE_FILES = [".gitignore", "d/.gitignore", ".codespecignore"]
PATTERNS = ["*.py", "d/", "/f", "!a.py", "e/*", "*.zzz", "!*.zzz", ""]
# Distinct first letters: a text is recognised by any part of it.
TEXTS = [f"{c}1 = {c}2({c}3)\n{c}4 = {c}5\n" * n for c in "pqrstuvw" for n in (1, 3)]
PARSERS = Parsers(2)  # for all histories: to start processes takes longer than any of them
SKIPPED = ["", "\0binary", "ghp_" + "x" * 36 + "\n"]


class WorkspaceHistory(RuleBasedStateMachine):
    @initialize(full=st.booleans())
    def start(self, full: bool) -> None:
        self.folder = Path(tempfile.mkdtemp())
        self.patch = pytest.MonkeyPatch()
        isolate(self.patch, self.folder)
        self.patch.setattr(compact, "SEGMENT_TOKENS", 150)
        self.patch.setattr(compact, "MAX_SEGMENTS", 3)
        self.workspace = Workspace(self.folder / "w")
        self.reader: WorkspaceIndex | None = None
        self.built = False
        self.scanned = False
        self.events: set[str] = set()
        store = self.workspace.store
        self.keeper = IndexKeeper(
            store.root, self.workspace.encoder, SETTINGS, threading.Event(), clock=lambda: -1.0
        )
        if full:  # events are worth more where there is something to lose
            for path, text in zip(PATHS, TEXTS, strict=False):
                self.workspace.write(path, text)
            self.build(False)

    def happened(self, *paths: str) -> None:
        self.events.update(paths)
        self.built = False

    def teardown(self) -> None:
        self.patch.undo()
        shutil.rmtree(self.folder)

    @rule(path=st.sampled_from(PATHS), text=st.sampled_from(TEXTS + SKIPPED))
    def write(self, path: str, text: str) -> None:
        self.workspace.write(path, text)
        self.happened(path)

    @rule(path=st.sampled_from(PATHS), text=st.sampled_from(TEXTS))
    def write_with_the_old_time(self, path: str, text: str) -> None:
        file = self.workspace.root / path
        before = file.stat().st_mtime_ns if file.exists() else 10**18
        self.workspace.write(path, text)
        os.utime(file, ns=(before, before))
        self.happened(path)

    @rule(path=st.sampled_from(IGNORE_FILES), lines=st.lists(st.sampled_from(PATTERNS), max_size=3))
    def ignore(self, path: str, lines: list[str]) -> None:
        self.workspace.write(path, "\n".join(lines))
        self.happened(path)

    @rule(path=st.sampled_from(PATHS + IGNORE_FILES))
    def delete(self, path: str) -> None:
        (self.workspace.root / path).unlink(missing_ok=True)
        self.happened(path)

    @rule(old=st.sampled_from(PATHS), new=st.sampled_from(PATHS))
    def rename(self, old: str, new: str) -> None:
        source, target = self.workspace.root / old, self.workspace.root / new
        if source.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            source.replace(target)
        self.happened(old, new)

    @rule(old=st.sampled_from(FOLDERS), new=st.sampled_from(FOLDERS))
    def rename_folder(self, old: str, new: str) -> None:
        """The system tells of the folder alone."""
        source, target = self.workspace.root / old, self.workspace.root / new
        if source.exists() and not target.exists() and not target.is_relative_to(source):
            target.parent.mkdir(parents=True, exist_ok=True)
            source.rename(target)
            self.happened(old, new)

    @precondition(lambda self: not self.built)
    @rule(parallel=st.booleans())
    def build(self, parallel: bool) -> None:
        self.workspace.build(parsers=PARSERS if parallel else None)
        self.scanned = True
        self.is_fresh()

    @precondition(lambda self: self.scanned and not self.built)
    @rule(in_steps=st.booleans())
    def watch(self, in_steps: bool) -> None:
        """Events, and nothing else, tell what changed."""
        if in_steps:
            withdraw(self.workspace.store, with_ruled(self.events), SETTINGS)
            assert self.reader is not None
            self.reader.refresh()
            expected = self.expected()
            assert set(self.reader.paths) <= set(expected)
            for text in TEXTS:
                self.check_drafts(self.reader, text, {expected[path] for path in self.reader.paths})
        self.keeper.handle(set(self.events))
        self.is_fresh()

    def is_fresh(self) -> None:
        self.built = True
        self.events.clear()
        if self.reader is None:
            self.reader = self.workspace.index()
        else:
            self.reader.refresh()

    def expected(self) -> dict[str, str]:
        """Path -> text, by a plain look at every file."""
        rules = IgnoreRules(self.workspace.root)
        found: dict[str, str] = {}
        for path in self.workspace.root.rglob("*"):
            name = str(path.relative_to(self.workspace.root))
            if path.is_file() and not rules.why_excluded(name):
                text = path.read_text()
                if text.strip() and text not in SKIPPED:
                    found[name] = text
        return found

    @invariant()
    def the_index_is_what_the_files_say(self) -> None:
        if not getattr(self, "built", False):
            return
        assert self.reader is not None
        expected = self.expected()
        fresh = self.workspace.index()
        for index in (self.reader, fresh):
            assert index.paths == tuple(sorted(expected))
            # Identical text counts once in each language.
            contents = {(language_of(path), text) for path, text in expected.items()}
            assert index.n_tokens == sum(len(text) for _, text in contents)
            for text in TEXTS:
                self.check_drafts(index, text, set(expected.values()))

    def check_drafts(self, index: WorkspaceIndex, text: str, live: set[str]) -> None:
        """A text is drafted from if and only if a file holds it, or what is drafted."""
        tokens = self.workspace.tokenizer.encode(text)
        for at in (2, len(text) // 2):
            proposal = index.find(tokens[:at], 16).proposal
            drafted = self.workspace.tokenizer.decode(proposal.tokens).decode()
            matched = text[at - proposal.match_length : at] if len(proposal) else ""
            step = (matched + drafted)[: len(matched) + 1]
            if len(proposal):
                assert any(step in t for t in live)
            longest = max(
                (n for n in range(1, min(at, 64) + 1)
                 if any(text[at - n : at] in t[:-1] for t in live)), default=0
            )  # fmt: skip
            assert proposal.match_length == longest
            letters = {c for c in drafted if c.isalpha()}
            assert letters <= {c for t in live for c in t}


@pytest.fixture(autouse=True, scope="module")
def parsers() -> Iterator[None]:
    yield
    PARSERS.close()


WorkspaceHistory.TestCase.settings = settings(
    max_examples=40, stateful_step_count=25, deadline=None
)
TestWorkspaceHistory = WorkspaceHistory.TestCase


def test_drafts_equal_those_of_a_fresh_build(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One long history of one file set, against an index built at once from its end."""
    isolate(monkeypatch, tmp_path)
    rng = np.random.default_rng(0)
    workspace = Workspace(tmp_path / "w")
    source = Path(np.__file__).parent.glob("*.py")
    files = sorted(source)[:12]
    for _ in range(15):
        for file in files:
            lines = file.read_text().splitlines(keepends=True)
            start, end = sorted(rng.integers(0, len(lines) + 1, 2))
            if rng.random() < 0.3:
                (workspace.root / file.name).unlink(missing_ok=True)
            else:
                workspace.write(file.name, "".join(lines[start:end]))
        workspace.build()
    old = workspace.index()
    shutil.rmtree(workspace.store.folder)
    workspace.build()
    new = workspace.index()
    assert old.paths == new.paths
    assert old.n_tokens == new.n_tokens
    for path in old.paths:
        tokens = workspace.tokenizer.encode((workspace.root / path).read_bytes())
        for at in rng.integers(1, len(tokens), 40) if len(tokens) > 1 else ():
            a, b = (i.find(tokens[:at], 8, (path,)).proposal for i in (old, new))
            assert a.match_length == b.match_length
