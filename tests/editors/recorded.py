"""Messages from a real editor to the language server, recorded on their way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any


def listening(program: str, folder: Path) -> str:
    """A program that is `program` for an editor, and writes down what it is told."""
    script = folder / "codespec"
    script.write_text(f'#!/bin/sh\ntee -a {folder}/told | {program} "$@"\n')
    script.chmod(0o755)
    (folder / "told").touch()
    return str(script)


def told(folder: Path, method: str) -> list[Any]:
    """Params of each message of this method up to now."""
    return [m.get("params") for m in _messages(folder) if m.get("method") == method]


def answers(folder: Path) -> list[Any]:
    """Answers of the editor up to now to requests for one of its settings."""
    results = [m.get("result") for m in _messages(folder) if "method" not in m]
    return [result[0] for result in results if isinstance(result, list) and len(result) == 1]


def _messages(folder: Path) -> Iterator[dict[str, Any]]:
    text = (folder / "told").read_bytes().decode(errors="replace")
    at = 0
    decoder = json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        try:
            message, at = decoder.raw_decode(text, at)
        except ValueError:  # not all of it is there yet
            return
        yield message
