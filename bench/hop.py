"""`codespec bench hop`: what lies between a keystroke and its suggestion, beside the model.

A real language server, daemon and worker, driven over stdio as an editor does it: lines of a file
are typed again, key by key, at a human pace, and each key asks for a suggestion. Then a name of the
file is changed, place by place, and each change asks for the next edit.
"""

from __future__ import annotations

import os
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from codespec.documents.from_disk import read_document
from codespec.errors import InputError

from . import hop_edits, workspace
from .editor import Answer, Editor, editor_of, own_folders
from .results import Row

N_TOKENS = 1_000_000
N_FILE_LINES = 2_000
N_STARTS = 6
"""Starts of server, daemon and worker, for what only the first request after a start takes."""
_FIRST, _SECOND = (f"{which} after a start, beside the model" for which in ("first", "second"))
_TIMEOUT_S = 60.0
_CHAR = 2  # of a line's text, from where on keys are typed


def run(
    file: Path | None,
    folder: Path | None,
    n_lines: int,
    key_ms: float,
    rest_ms: float,
    model: Mapping[str, Any],
    n_edits: int = 0,
    n_storm: int = 0,
    progress: Callable[[str], None] = lambda words: None,
) -> list[Row]:
    """Figures of `n_lines` lines of `file`, typed with `key_ms` between keys, after
    the cursor rested there for `rest_ms`. Raises: InputError for a file that is not fit for that.

    folder:  the workspace, which is indexed first. Without it a file stands alone; without both, a
             workspace of `N_TOKENS` is made of the standard library, and a file of it is taken.
    model:   settings of that section, the target among them.
    n_edits: then so many places of one name are changed, each change asks for the next edit.
    n_storm: then so many requests as fast as they go, some cancelled.
    """
    with own_folders(with_cache=folder is not None or file is None) as temporary:
        if file is None and folder is None:
            progress("copying the standard library")
            folder = temporary / "workspace"
            folder.mkdir()
            workspace.copy_library(folder, N_TOKENS)
        if file is None:
            assert folder is not None
            file = workspace.file_of(folder, N_FILE_LINES)
        if len(_places(read_document(file).split("\n"))) < 2:
            raise InputError(
                f"{file}: fewer than two lines to type again", "Give a file with more code in it."
            )
        rows: list[Row] = []
        if folder is not None:
            progress("indexing")
            n_tokens = workspace.index(folder, os.environ, str(model["target"]))
            rows.append({"what": "tokens in the indexed workspace", "n": n_tokens})
        root = folder or file.parent
        times: dict[str, list[float]] = {}
        for start in range(N_STARTS):
            progress(f"start {start + 1} of {N_STARTS}")
            indexed = folder is not None
            with editor_of(root, model, indexed=indexed, patient=True) as editor:
                _first_and_second(editor, file, start, key_ms, rest_ms, times)
        with editor_of(root, model, indexed=folder is not None) as editor:
            version = _measure(editor, file, n_lines, key_ms, rest_ms, progress, times)
            hop_edits.measure(editor, file, version, n_edits, key_ms / 1e3, progress, times)
            _compare(times)
            rows += [{"what": what, **_figures(values)} for what, values in times.items()]
            if n_storm:
                progress(f"{n_storm} requests")
                rows.append(_storm(editor, file.as_uri(), n_storm))
    return rows


def _measure(
    editor: Editor,
    file: Path,
    n_lines: int,
    key_ms: float,
    rest_ms: float,
    progress: Callable[[str], None],
    times: dict[str, list[float]],
) -> int:
    """Returns: the document's version."""
    lines = read_document(file).split("\n")
    places = _places(lines)
    chosen = sorted(random.Random(0).sample(places, min(n_lines, len(places))))
    uri = file.as_uri()
    editor.open(uri, "\n".join(lines))
    editor.wait_ready()
    # Plug-ins ask with the first key; from then on files are read for next edits.
    editor.wait(editor.ask_edit(uri, 1, 0, 0))
    version = 1
    for n, at in enumerate(chosen):
        progress(f"line {n + 1} of {len(chosen)}")
        version = _retype(editor, uri, version, lines, at, key_ms / 1e3, rest_ms / 1e3, times)
        version = _supersede(editor, uri, version, at, times)
    return version


def _places(lines: list[str]) -> list[int]:
    """Lines that are worth typing again."""
    return [i for i, line in enumerate(lines) if 12 <= len(line.strip()) <= 60]


def _first_and_second(
    editor: Editor,
    file: Path,
    start: int,
    key_ms: float,
    rest_ms: float,
    times: dict[str, list[float]],
) -> None:
    """The first generation after a start beside the second: a key in one line, then in another,
    the two lines changing places from start to start."""
    lines = read_document(file).split("\n")
    uri = file.as_uri()
    times.setdefault("start to the reply to initialize", []).append(editor.startup_ms)
    pair = random.Random(start // 2).sample(_places(lines), 2)
    editor.open(uri, "\n".join(lines))
    editor.wait_ready()
    own: list[float] = []
    for n, at in enumerate(pair if start % 2 else pair[::-1]):
        line = lines[at]
        indent = len(line) - len(line.lstrip()) + _CHAR
        editor.focus(uri, at, len(line))
        time.sleep(rest_ms / 1e3)
        editor.change(uri, 2 * n + 2, at, indent, len(line), "")
        time.sleep(key_ms / 1e3)
        started = time.perf_counter()
        editor.change(uri, 2 * n + 3, at, indent, indent, line[indent])
        reply = editor.wait(editor.ask(uri, at, indent + 1))
        if reply.answer.is_made:
            own.append((reply.at - started) * 1e3 - reply.answer.model_ms)
    if len(own) == len(pair):
        for name, ms in zip((_FIRST, _SECOND), own, strict=True):
            times.setdefault(name, []).append(ms)


def _compare(times: dict[str, list[float]]) -> None:
    """Add what the first request takes more than the second. In two starts the lines change places,
    so what a line takes cancels out."""
    first, second = (times.get(name, []) for name in (_FIRST, _SECOND))
    more = [a - b for a, b in zip(first, second, strict=True)]
    pairs = zip(more[::2], more[1::2], strict=False)
    if len(more) == N_STARTS:
        times[f"{_FIRST}: more than second"] = [(a + b) / 2 for a, b in pairs]


def _storm(editor: Editor, uri: str, n_requests: int) -> Row:
    """Each request is to have one reply, whatever became of it."""
    chance = random.Random(1)
    requests: list[int] = []
    for n in range(n_requests):
        editor.change(uri, 100_000 + n, 0, 0, n % 2, "" if n % 2 else "x")
        requests.append(editor.ask(uri, 0, 1 - n % 2, invoked=chance.random() < 0.5))
        if chance.random() < 0.4:
            editor.cancel(chance.choice(requests[-4:]))
        if n % 100 == 99:  # or both pipes fill up
            editor.wait(requests[-1])
    started = time.perf_counter()
    while time.perf_counter() - started < _TIMEOUT_S and not all(map(editor.n_replies, requests)):
        time.sleep(0.05)
    n_wrong = sum(editor.n_replies(request) != 1 for request in requests)
    what = "requests with random cancels, of them with no reply or several"
    return {"what": what, "n": n_requests, "n_wrong": n_wrong}


def _retype(
    editor: Editor,
    uri: str,
    version: int,
    lines: list[str],
    at: int,
    pause_s: float,
    rest_s: float,
    times: dict[str, list[float]],
) -> int:
    """Come to a line, look at it, type it again. A key waits for the answer to the one before, so
    that late ones count, too."""
    line = lines[at]
    indent = len(line) - len(line.lstrip()) + _CHAR
    editor.focus(uri, at, len(line))
    time.sleep(rest_s)
    version += 1
    editor.change(uri, version, at, indent, len(line), "")
    waiting: tuple[int, float] | None = None
    for n, key in enumerate(line[indent:], indent):
        time.sleep(pause_s)
        if waiting is not None:
            _take(editor, waiting, times)
        version += 1
        started = time.perf_counter()
        editor.change(uri, version, at, n, n, key)
        waiting = editor.ask(uri, at, n + 1), started
    if waiting is not None:
        _take(editor, waiting, times)
    return version


def _take(editor: Editor, waiting: tuple[int, float], times: dict[str, list[float]]) -> None:
    reply = editor.wait(waiting[0])
    _note(times, (reply.at - waiting[1]) * 1e3, reply.answer)


def _supersede(
    editor: Editor, uri: str, version: int, at: int, times: dict[str, list[float]]
) -> int:
    """A generation in full swing, and other text: how long until the model is free for it."""
    editor.change(uri, version + 1, at, 0, 0, "de")
    editor.ask(uri, at, 2, invoked=True)
    time.sleep(0.03)
    started = time.perf_counter()
    editor.change(uri, version + 2, at, 0, 2, "")
    reply = editor.wait(editor.ask(uri, at, 0, invoked=True))
    if reply.answer.is_made:
        waited = (reply.at - started) * 1e3 - reply.answer.engine_ms
        times.setdefault("superseded work stops, hop included", []).append(waited)
    return version + 2


def _note(times: dict[str, list[float]], ms: float, answer: Answer) -> None:
    if not answer.n_offers:
        where = "by the model" if answer.is_made else "without the model"
        times.setdefault(f"nothing to suggest, {where}", []).append(ms)
    elif not answer.is_made:
        times.setdefault("typed through", []).append(ms)
    else:
        kind = "suggestion by the model"
        times.setdefault(kind, []).append(ms)
        times.setdefault(f"{kind}, beside the engine", []).append(ms - answer.engine_ms)
        times.setdefault(f"{kind}, beside the model", []).append(ms - answer.model_ms)


def _figures(values: list[float]) -> Row:
    values = sorted(values)
    pick = [values[min(len(values) - 1, int(len(values) * q))] for q in (0.5, 0.95)]
    return {"n": len(values), "p50_ms": round(pick[0], 2), "p95_ms": round(pick[1], 2)}


def print_rows(rows: list[Row]) -> None:
    table = Table("", "n", "p50 ms", "p95 ms", title="from key to suggestion")
    for row in rows:
        n_wrong = [f"{row['n_wrong']} wrong"] if "n_wrong" in row else []
        figures = [str(row[key]) for key in ("n", "p50_ms", "p95_ms") if key in row]
        table.add_row(row["what"], *figures, *n_wrong)
    Console().print(table)
