"""A programmer's work before coming to a place: the other files of the same change,
opened and edited, as far as the repository's history tells."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from codespec.requests import CompletionRequest

from .history import ask_git, hunks_of
from .places import CutPlace

MAX_FILES, MAX_HUNKS = 3, 6
MAX_COMMITS = 10


def before(place: CutPlace) -> Iterator[CompletionRequest]:
    """The documents as they were in turn: other files of the last commit that touched the place's
    file together with others, hunk by hunk."""
    relative = place.path.relative_to(place.root).as_posix()
    for path, prefix, suffix in _steps(place.root, relative):
        yield CompletionRequest(
            prefix, suffix, path=str(place.root / path), workspace=str(place.root)
        )


@lru_cache(maxsize=1024)
def _steps(root: Path, relative: str) -> tuple[tuple[str, str, str], ...]:
    """(path, text before the cursor, text after it)"""
    extension = Path(relative).suffix
    asked = ("rev-list", "--no-merges", f"-{MAX_COMMITS}", "HEAD", "--", relative)
    for commit in ask_git(root, *asked).split():
        # Of a folder inside of a repository, what lies in that folder, as it is named there.
        asked = ("diff-tree", "-r", "-z", "--no-commit-id", "--name-only", "--relative", commit)
        listed = ask_git(root, *asked).split("\0")
        others = [p for p in listed if p and p != relative and p.endswith(extension)]
        steps = [step for path in others[:MAX_FILES] for step in _edits(root, commit, path)]
        if steps:
            return tuple(steps)
    return ()


def _edits(root: Path, commit: str, path: str) -> Iterator[tuple[str, str, str]]:
    if not (root / path).is_file():
        return
    places = (f"{at}:./{path}" for at in (f"{commit}^", commit))
    old, new = (ask_git(root, "cat-file", "blob", place) for place in places)
    diff = ask_git(root, "diff-tree", "-p", "-U0", f"{commit}^", commit, "--", path)
    hunks = list(hunks_of(path, old, new, diff))[:MAX_HUNKS]
    for hunk in hunks:
        yield path, hunk.prefix, hunk.removed + hunk.suffix
        yield path, hunk.prefix + hunk.text, hunk.suffix
