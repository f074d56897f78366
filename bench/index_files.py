"""Measurements of `codespec bench index` on files: a first build, a switch of branches, an edit."""

from __future__ import annotations

import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from codespec.config import Settings
from codespec.documents.live import LiveDocument
from codespec.errors import InputError
from codespec.index.build import BuildProgress, build_index
from codespec.index.parsers import Parsers
from codespec.index.reader import WorkspaceIndex
from codespec.index.update import apply_changes
from codespec.index.walk import is_binary
from codespec.index.word_encoder import WordEncoder
from codespec.syntax.trees import TreeCache
from codespec.types import Tokenizer

from .editor import environment

DRAFT = 16
SOURCE_BYTES = 24_000_000
SWITCHED_FILES = 500
EDITED_LINES = 2000
N_EDITS = 50
_MARK = b"# on the other branch this line is new\n"
_MARK_EVERY = 40  # lines

Result = dict[str, Any]


def measure_sources(
    files: Sequence[Path],
    tokenizer: Tokenizer,
    parsers: Parsers,
    settings: Settings,
    show: Callable[[int, int], None] = lambda done, of: None,
) -> Result:
    """MB of source files a second, from the first look at the folder to an index that answers;
    then seconds for a switch of branches that changes some hundred of them. Both also per CPU time,
    which other work on the machine changes less.

    Raises: InputError for files that say too little.
    """
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary) / "workspace"
        root.mkdir()
        step = max(1, sum(p.stat().st_size for p in files) // SOURCE_BYTES)
        paths: list[Path] = []
        for i, path in enumerate(files[::step]):
            folder = root / str(i // 100)
            folder.mkdir(exist_ok=True)
            paths.append(folder / f"{i}_{path.name}")
            shutil.copyfile(path, paths[-1])

        def progress(p: BuildProgress) -> None:
            show(p.n_bytes_done, p.n_bytes)

        with environment({"CODESPEC_CACHE_DIR": str(Path(temporary) / "cache")}):
            begin = _cpu_s()
            encoder = WordEncoder(tokenizer)
            report = build_index(root, encoder, settings.index, progress, parsers=parsers)
            cpu_seconds = _cpu_s() - begin
            megabytes = report.n_source_bytes / 1e6
            return {
                "source_mb_per_s": megabytes / report.seconds,
                "source_mb_per_cpu_s": megabytes / cpu_seconds,
            } | _measure_switch(root, paths, encoder, parsers, settings)


def _measure_switch(
    root: Path, paths: Sequence[Path], encoder: WordEncoder, parsers: Parsers, settings: Settings
) -> Result:
    """Lines change all over some hundred files; meanwhile a reader asks all the time. It shares
    this process and its interpreter lock, which in the product it does not."""
    changed = _switch(paths[:: max(1, len(paths) // SWITCHED_FILES)])
    index = WorkspaceIndex.open(root, encoder.tokenizer.hash)
    context = encoder.encode(b"    def __init__(self, ")
    if index is None or not len(index.find(context, DRAFT).proposal):
        raise InputError(
            "the files say too little: nothing is drafted after `def __init__(self, `",
            "Give a larger folder.",
        )
    done = threading.Event()
    waits: list[float] = []

    def ask() -> None:
        last = time.perf_counter()
        is_done = False
        while not is_done:
            index.refresh()
            # Where all files change, which is where they are few, there may be none for a moment.
            if len(index.find(context, DRAFT).proposal):
                now = time.perf_counter()
                waits.append(now - last)
                last = now
            is_done = done.wait(0.002)

    reader = threading.Thread(target=ask)
    reader.start()
    try:
        begin, begin_cpu = time.perf_counter(), _cpu_s()
        apply_changes(root, encoder, settings.index, {""}, parsers=parsers)
        seconds, cpu = time.perf_counter() - begin, _cpu_s() - begin_cpu
    finally:
        done.set()
        reader.join()
    index.refresh()
    mark = encoder.encode(_MARK)
    draft = index.find(mark[: len(mark) // 2], 4).proposal
    assert draft.tokens.tolist() == mark[len(mark) // 2 :][:4].tolist(), "a change is missing"
    return {
        "switch_files": changed,
        "switch_s": seconds,
        "switch_cpu_s": cpu,
        "switch_answers": len(waits),
        "switch_longest_wait_ms": max(waits) * 1e3,
    }


def _switch(paths: Sequence[Path]) -> int:
    n = 0
    for path in paths:
        raw = path.read_bytes()
        if not is_binary(raw):
            lines = raw.splitlines(keepends=True)
            lines[::_MARK_EVERY] = [_MARK + line for line in lines[::_MARK_EVERY]]
            path.write_bytes(b"".join(lines))
            n += 1
    return n


def measure_edits(tokenizer: Tokenizer, text: str) -> Result:
    """A line somewhere in a document of 2,000 lines changes while the cursor is at its end: time
    until tokens, automaton and syntax tree are those of the new text, and the new line is drafted
    from its first tokens."""
    lines = text.splitlines(keepends=True)
    lines = (lines * (EDITED_LINES // len(lines) + 1))[:EDITED_LINES]
    written = [i for i, line in enumerate(lines) if line.strip()]
    document, trees = LiveDocument(tokenizer), TreeCache()
    rng = np.random.default_rng(0)
    taken: list[float] = []
    taken_tree: list[float] = []
    for i in range(N_EDITS):
        at = int(rng.choice(written))
        indent = lines[at][: len(lines[at]) - len(lines[at].lstrip())]
        # Ends in a word: tokenizers join a bracket with the end of its line.
        new = f"{indent}zyx_{i}_result = compute_{i}(first_{i}) + second"
        tokens = tokenizer.encode(new)
        context, rest = tokens[: len(tokens) // 2], tokens[len(tokens) // 2 :]
        document.update("".join(lines), "")
        trees.update("a.py", "python", "".join(lines).encode())
        edited = lines.copy()
        edited[at] = new + "\n"
        prefix = "".join(edited)
        begin = time.perf_counter()
        document.update(prefix, "")
        draft = document.before.draft(context, len(rest))
        middle = time.perf_counter()
        parsed = trees.update("a.py", "python", prefix.encode())
        end = time.perf_counter()
        taken.append((end - begin) * 1e3)
        taken_tree.append((end - middle) * 1e3)
        assert np.array_equal(draft.tokens, rest), "the new line is not drafted"
        assert parsed is not None
    return {
        "edit_ms": float(np.median(taken)),
        "edit_ms_max": max(taken),
        "edit_tree_ms": float(np.median(taken_tree)),
    }


def _cpu_s() -> float:
    """CPU time of this process and of its children that run."""
    seconds = time.process_time()
    for child in psutil.Process().children():
        taken = child.cpu_times()
        seconds += taken.user + taken.system
    return seconds
