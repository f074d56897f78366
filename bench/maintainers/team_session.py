"""An editor's session with a model that a team's server has: a real language server and daemon,
whose target is the engine, and somebody who types at places of a repository."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median

import msgspec

from codespec.models.bundled_pair import BUNDLED_TARGET, bundled

from ..editor import Editor, editor_of, environment, own_folders
from ..places import CutPlace

N_KEYS = 3
"""Keys that are typed at a place; a suggestion is asked for after each."""


class TypedSession(msgspec.Struct):
    """Outcome of a session.

    n_places, n_keys: typed. n_suggestions: places with one after the last key. n_right: of these,
    that begin with the rest of the line that stood there. median_ms: from the last key to it.
    backend: of the model, by the daemon's status.
    """

    n_places: int
    n_keys: int
    n_suggestions: int
    n_right: int
    median_ms: float
    backend: str


def typed_session(root: Path, places: Sequence[CutPlace], url: str) -> TypedSession:
    """Type at places whose text is cut out. url: of the engine. Raises: DaemonError."""
    settings = {
        "CODESPEC_MODEL_TARGET": url,
        "CODESPEC_MODEL_DRAFT": "",
        "CODESPEC_SERVER_TOKENIZER": str(bundled(BUNDLED_TARGET)),
    }
    waited_ms: list[float] = []
    n_keys = n_right = n_suggestions = 0
    with (
        own_folders(with_cache=True),
        environment(settings),
        editor_of(root, {}, indexed=False, patient=True) as editor,
    ):
        for place in places:
            keys = place.truth[:N_KEYS]
            text, ms = _typed(editor, place, keys)
            n_keys += len(keys)
            rest = place.truth[len(keys) :].split("\n")[0]
            if text:
                n_suggestions += 1
                n_right += bool(rest) and text.startswith(rest)
                waited_ms.append(ms)
        report = editor.daemon()
    backend = report.backend if report is not None else ""
    at = median(waited_ms) if waited_ms else 0.0
    return TypedSession(len(places), n_keys, n_suggestions, n_right, at, backend)


def _typed(editor: Editor, place: CutPlace, keys: str) -> tuple[str, float]:
    """(suggestion after the last key, milliseconds from that key)."""
    uri = place.path.as_uri()
    editor.open(uri, place.prefix + place.suffix)
    editor.wait_ready()
    line, character = place.prefix.count("\n"), len(place.prefix) - place.prefix.rfind("\n") - 1
    asked, at_s = editor.ask(uri, line, character), time.perf_counter()
    for version, key in enumerate(keys, 2):
        editor.cancel(asked)
        editor.change(uri, version, line, character, character, key)
        character += 1
        asked, at_s = editor.ask(uri, line, character), time.perf_counter()
    reply = editor.wait(asked)
    editor.shut(uri)
    text = reply.items[0][0] if reply.items else ""
    return text, (reply.at - at_s) * 1e3
