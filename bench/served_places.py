"""Places of a repository as requests to an engine that serves many: prompts in ids."""

from __future__ import annotations

from pathlib import Path

import msgspec

from codespec.config import Settings
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest

from .places import places_in


class ServedPlace(msgspec.Struct, frozen=True):
    """A place that was cut out. prompt: ids, as codespec writes it; truth: ids of what stood there,
    none where the cut goes through a token."""

    path: str
    prompt: list[int]
    truth: list[int]


def served_places(
    root: Path, n: int, kinds: tuple[str, ...] = ("line", "block"), per_file: int = 1
) -> list[ServedPlace]:
    """Places of Python files, `n` of each kind, for the bundled model. No text of other files and
    no recent edits are in the prompts: they may hold what was cut out."""
    base = Settings()
    context = msgspec.structs.replace(base.context, symbols="off", buffers="off", edits="off")
    engine = LocalEngine(msgspec.structs.replace(base, context=context))
    try:
        found: list[ServedPlace] = []
        for place in places_in(root, n, kinds, per_file=per_file):
            if place.language != "python":
                continue
            request = CompletionRequest(
                prefix=place.prefix,
                suffix=place.suffix,
                path=str(place.path),
                workspace=str(root),
                language_id=place.language,
            )
            made = engine.context(request)
            truth = [] if made.healed else engine.tokenizer.encode(place.truth).tolist()
            found.append(ServedPlace(str(place.path), made.prompt.tolist(), truth))
        return found
    finally:
        engine.close()
