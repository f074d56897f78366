"""May an open file be used? The indexer's rules, answered for one path again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass

from codespec.index.gitfiles import info_exclude, repository_above, user_files
from codespec.index.ignore import IGNORE_FILES, SECRET_FOLDERS, IgnoreRules, secret_name

MAX_PATHS = 256
MAX_FOLDERS = 1024
_RULING = (*sorted(IGNORE_FILES), ".git")
# A folder changed so lately may change again without its times telling.
_FRESH_NS = 3_000_000_000

_State = tuple[int, int] | None
_Signature = tuple[tuple[str, _State], ...]

Looks = dict[str, _Signature]
"""What was found in folders, for questions asked at the same moment."""


@dataclass(frozen=True, slots=True)
class _Folder:
    """files: that could exclude something in it. is_fresh: look for them again."""

    state: tuple[int, int, int]
    is_fresh: bool
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    signature: _Signature
    why: str


class OpenFileRules:
    """Not thread-safe. The first answer for a path costs a few file reads; later ones a look at
    the times of the files that could change it, some ten microseconds."""

    def __init__(self, exclude: Sequence[str] = ()) -> None:
        """exclude: patterns of the user's settings."""
        self._exclude = exclude
        self._answers: dict[tuple[str, str, str, str], _Answer] = {}
        self._folders: dict[str, _Folder] = {}
        self._user_files = user_files()

    def why_excluded(
        self, path: str, workspace: str, language_id: str = "", looks: Looks | None = None
    ) -> str:
        """Why the text of this file must not be used, in words; "" when it may be.

        path: absolute, or "" for a document that is no file. workspace: absolute, or "".
        language_id: the editor's name for the language. looks: an empty one for several questions
        together, so that each folder is looked at once.
        """
        folder, name = os.path.split(path) if path else (workspace, "")
        if secret_name(name):
            return "a file that holds secrets by its name"
        if not os.path.isabs(folder):
            return ""
        looks = {} if looks is None else looks
        # Rules are asked about where links lead, and links may come to lead elsewhere.
        real, root = os.path.realpath(path or folder), os.path.realpath(workspace)
        real_folder = os.path.dirname(real) if path else real
        key = (path, real, root, language_id)
        signature = self._signature(folder, looks)
        if real_folder != folder:
            signature += self._signature(real_folder, looks)
        answer = self._answers.get(key)
        if answer is None or answer.signature != signature:
            if len(self._answers) >= MAX_PATHS:
                self._answers.clear()
            why = self._why(path, workspace, language_id)
            answer = self._answers[key] = _Answer(signature, why)
        return answer.why

    def _signature(self, folder: str, looks: Looks) -> _Signature:
        """States of all files that could exclude something in this folder, those above it
        included, and the user's own."""
        if "" not in looks:
            looks[""] = tuple((file, _state(file)) for file in self._user_files)
        new: list[str] = []
        while folder not in looks:
            new.append(folder)
            parent = os.path.dirname(folder)
            if parent == folder:
                break
            folder = parent
        for folder in reversed(new):
            own = tuple((file, _state(file)) for file in self._ruling_files(folder))
            above = os.path.dirname(folder)
            looks[folder] = looks["" if above == folder else above] + own
        return looks[new[0] if new else folder]

    def _ruling_files(self, folder: str) -> tuple[str, ...]:
        """Those that are there. One look at the folder says whether that is as it was: what comes
        or goes changes its times."""
        try:
            s = os.stat(folder)
        except (OSError, ValueError):
            return ()
        state = s.st_ino, s.st_mtime_ns, s.st_ctime_ns
        known = self._folders.get(folder)
        if known is not None and known.state == state and not known.is_fresh:
            return known.files
        is_fresh = time.time_ns() - max(s.st_mtime_ns, s.st_ctime_ns) < _FRESH_NS
        there = [name for name in _RULING if os.path.lexists(os.path.join(folder, name))]
        files = tuple(
            info_exclude(folder) if name == ".git" else os.path.join(folder, name) for name in there
        )
        if len(self._folders) >= MAX_FOLDERS:
            self._folders.clear()
        self._folders[folder] = _Folder(state, is_fresh, files)
        return files

    def _why(self, path: str, workspace: str, language_id: str) -> str:
        root = os.path.realpath(workspace) if workspace else ""
        if not path:
            return IgnoreRules(root).why_disabled(language_id)
        real = os.path.realpath(path)
        if not root or not real.startswith(os.path.join(root, "")):
            # Opened from elsewhere: its own repository's rules, if it is in one.
            root = repository_above(os.path.dirname(real))
        for secret in SECRET_FOLDERS.intersection(real.split(os.sep)):
            return f"in a folder that holds secrets: {secret}"
        self._user_files = user_files()
        rules = IgnoreRules(root, exclude=self._exclude)
        return rules.why_excluded(path, is_dir=False) or rules.why_disabled(language_id, path)


def _state(path: str) -> _State:
    try:
        s = os.stat(path)
    except (OSError, ValueError):
        return None
    return s.st_mtime_ns, s.st_ino
