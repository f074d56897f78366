"""What an editor says to the language server: the real one, with somebody listening."""

from __future__ import annotations

import json
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
    text = (folder / "told").read_bytes().decode(errors="replace")
    messages: list[Any] = []
    at = 0
    decoder = json.JSONDecoder()
    while (at := text.find("{", at)) >= 0:
        try:
            message, at = decoder.raw_decode(text, at)
        except ValueError:  # not all of it is there yet
            break
        if message.get("method") == method:
            messages.append(message.get("params"))
    return messages
