"""Models split into several files, named as llama.cpp names them: NAME-00001-of-00003.gguf, ..."""

from __future__ import annotations

import re
from pathlib import Path

_PART = re.compile(r"(.+-)\d{5}(-of-(\d{5})\.gguf)")


def parts(name: str) -> list[str]:
    """Names, or paths, of all files of the model that the file `name` belongs to, first the one to
    load; [name] for a model that is one file."""
    found = _PART.fullmatch(name)
    n = int(found[3]) if found else 0
    return [f"{found[1]}{i:05}{found[2]}" for i in range(1, n + 1)] if found and n else [name]


def files_of(path: Path) -> list[Path]:
    """A model's file, and those beside it that llama.cpp loads with it: the first file of a split
    model may hold next to nothing."""
    others = map(Path, parts(str(path)))
    return [path, *(other for other in others if other != path and other.is_file())]


def size_of(path: Path) -> int:
    """Bytes of all files of a model."""
    return sum(file.stat().st_size for file in files_of(path))
