"""May an open file be used? The indexer's rules, answered for one path again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from codespec.index.gitfiles import info_exclude, repository_above, user_files
from codespec.index.ignore import IGNORE_FILES, IgnoreRules
from codespec.limits import PATH_CHARS
from codespec.secrets import SECRET_FOLDERS, secret_name

MAX_PATHS = 256
MAX_FOLDERS = 1024
_RULING = (*sorted(IGNORE_FILES), ".git")
# A folder changed so lately may change again without its times telling.
_FRESH_NS = 3_000_000_000

_State = tuple[int, int] | None
_Signature = tuple[tuple[str, _State], ...]


@dataclass(slots=True)
class Looks:
    """What was found in folders, for questions asked at the same moment: what rules over each of
    them, and where it is once links are followed."""

    signatures: dict[str, _Signature] = field(default_factory=dict[str, _Signature])
    real: dict[str, str] = field(default_factory=dict[str, str])


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
    the times of the files that could change it, some forty microseconds."""

    def __init__(self, exclude: Sequence[str] = ()) -> None:
        """exclude: patterns of the user's settings."""
        self._exclude = exclude
        self._answers: dict[tuple[str, ...], _Answer] = {}
        self._folders: dict[str, _Folder] = {}
        self._user_files = user_files()

    def why_excluded(
        self, path: str, workspace: str, language_id: str = "", looks: Looks | None = None
    ) -> str:
        """Why the text of this file must not be used, in words; "" when it may be.

        path: absolute, or the mere name of a document that is no file of this machine, or "".
        workspace: absolute, or "".
        language_id: the editor's name for the language. looks: an empty one for several questions
        together, so that each folder is looked at once.
        """
        if max(len(path), len(workspace)) > PATH_CHARS:
            return f"a file whose path has more than {PATH_CHARS} characters"
        path = os.path.normpath(path) if path else ""
        if secret_name(path.replace(os.sep, "/")):
            return "a file that holds secrets by its name"
        if not os.path.isabs(path):
            path = ""
        folder, name = os.path.split(path) if path else (workspace, "")
        if not os.path.isabs(folder):
            return ""
        looks = Looks() if looks is None else looks
        root = _real(workspace, looks) if workspace else ""
        folder = _real(folder, looks)
        real = _target(os.path.join(folder, name)) if path else ""
        # What a link leads to counts as much as what it is called; either may change.
        signature = self._signature(folder, looks)
        if real and os.path.dirname(real) != folder:
            signature += self._signature(os.path.dirname(real), looks)
        key = (path, real, root, language_id)
        answer = self._answers.get(key)
        if answer is None or answer.signature != signature:
            if len(self._answers) >= MAX_PATHS:
                self._answers.clear()
            why = self._why(path, real, root, language_id)
            answer = self._answers[key] = _Answer(signature, why)
        return answer.why

    def _signature(self, folder: str, looks: Looks) -> _Signature:
        """States of all files that could exclude something in this folder (links resolved), those
        above it included, and the user's own. From the root down, as far as there are folders: a
        path may be long, and nothing of it there."""
        known = looks.signatures
        if folder in known:
            return known[folder]
        if "" not in known:
            known[""] = tuple((file, _state(file)) for file in self._user_files)
        signature = known[""]
        drive, tail = os.path.splitdrive(folder)
        above = drive + os.sep
        for name in ("", *filter(None, tail.split(os.sep))):
            above = os.path.join(above, name) if name else above
            if above not in known:
                files = self._ruling_files(above)
                if files is None:
                    break
                known[above] = signature + tuple((file, _state(file)) for file in files)
            signature = known[above]
        known[folder] = signature
        return signature

    def _ruling_files(self, folder: str) -> tuple[str, ...] | None:
        """Those that are there; None for a folder that is not. One look at it says whether that is
        as it was: what comes or goes changes its times."""
        try:
            s = os.stat(folder)
        except (OSError, ValueError):
            return None
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

    def _why(self, path: str, real: str, root: str, language_id: str) -> str:
        """real, root: path and workspace without links."""
        if not path:
            return IgnoreRules(root).why_disabled(language_id)
        if not root or not real.startswith(os.path.join(root, "")):
            # Opened from elsewhere: its own repository's rules, if it is in one.
            root = repository_above(os.path.dirname(real))
        for secret in SECRET_FOLDERS.intersection(real.split(os.sep)):
            return f"in a folder that holds secrets: {secret}"
        self._user_files = user_files()
        rules = IgnoreRules(root, exclude=self._exclude)
        return rules.why_excluded(path, is_dir=False) or rules.why_disabled(language_id, path)


def _real(folder: str, looks: Looks) -> str:
    if folder not in looks.real:
        looks.real[folder] = os.path.realpath(folder)
    return looks.real[folder]


def _target(path: str) -> str:
    """Where a file is, whose folder is written without links."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _state(path: str) -> _State:
    try:
        s = os.stat(path)
    except (OSError, ValueError):
        return None
    return s.st_mtime_ns, s.st_ino
