"""Next edits in `bench hop`: a name is changed by hand, place by place, and each change asks for
the edit that follows from it, in the file or elsewhere in the workspace.
"""

from __future__ import annotations

import re
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from codespec.documents.from_disk import read_document
from codespec.edits.line_tokens import KEYWORDS

from .editor import Editor

ASK_S = 0.06
"""Seconds from a change until our plug-ins ask for a next edit; they ask for a suggestion first."""
_ENDING = "_x"
_WORD = re.compile(r"[^\W\d]\w{2,}")
_USED = re.compile(r"[^\W\d]\w{2,}(?=[(.\[])")


def measure(
    editor: Editor,
    file: Path,
    version: int,
    n_edits: int,
    pause_s: float,
    progress: Callable[[str], None],
    times: dict[str, list[float]],
) -> None:
    """Change `n_edits` places of one name in an open document, from the top down, with a pause
    before each. Adds times from the question to its answer, in milliseconds.

    version: the document's, whose text is that of the file.
    """
    lines = read_document(file).split("\n")
    name = chosen_name(lines, n_edits)
    places = _places(lines).get(name, [])[:n_edits]
    uri = file.as_uri()
    for n, (line, start) in enumerate(places, 1):
        progress(f"change {n} of {len(places)}")
        time.sleep(pause_s)
        end = start + _n_units(name)
        editor.change(uri, version + n, line, end, end, _ENDING)
        end += len(_ENDING)
        suggestion = editor.ask(uri, line, end)
        time.sleep(ASK_S)
        asked = time.perf_counter()
        reply = editor.wait(editor.ask_edit(uri, version + n, line, end))
        kind = "next edit" if reply.answer.n_offers else "no next edit"
        times.setdefault(kind, []).append((reply.at - asked) * 1e3)
        times.setdefault(f"{kind}, in the engine", []).append(reply.answer.engine_ms)
        editor.wait(suggestion)


def chosen_name(lines: Sequence[str], n_places: int) -> str:
    """A name that is called or reached into: of those that stand in more lines than `n_places` the
    rarest, else the commonest of all; "" where there are none."""
    used = {name for line in lines for name in _USED.findall(line)} - KEYWORDS
    n_lines = {name: len(places) for name, places in _places(lines).items() if name in used}
    enough = {name: n for name, n in n_lines.items() if n > n_places}
    if enough:
        return min(enough, key=lambda name: (enough[name], name))
    return max(n_lines, key=lambda name: (n_lines[name], name), default="")


def _places(lines: Sequence[str]) -> Mapping[str, list[tuple[int, int]]]:
    """(line, column in units of UTF-16) of each word, its first one in a line."""
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, line in enumerate(lines):
        for match in _WORD.finditer(line):
            places = found[match[0]]
            if not places or places[-1][0] != number:
                places.append((number, _n_units(line[: match.start()])))
    return found


def _n_units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2
