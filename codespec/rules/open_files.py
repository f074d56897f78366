"""The indexer's ignore rules for open files, answered for one path again and again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from codespec.limits import PATH_CHARS
from codespec.restraint import NO_EDIT_RESTRAINT, NO_RESTRAINT, EditRestraint, Restraint
from codespec.rules.exclusion import Exclusion, ExclusionRule, text_of
from codespec.rules.gitfiles import info_exclude, repository_above, user_files
from codespec.rules.ignore import IGNORE_FILES, IgnoreRules
from codespec.rules.secrets import SECRET_FOLDERS, secret_name

MAX_PATHS = 256
MAX_FOLDERS = 1024
_RULING = (*sorted(IGNORE_FILES), ".git")
# A folder changed so lately may change again without its times telling.
_FRESH_NS = 3_000_000_000

_State = tuple[int, int] | None
_Signature = tuple[tuple[str, _State], ...]


@dataclass(slots=True)
class FolderSnapshot:
    """State of folders, shared by questions asked at the same moment: the files that could exclude
    something in each, and its path once links are followed; and the rules of each root, of which a
    folder's are read after its state."""

    signatures: dict[str, _Signature] = field(default_factory=dict[str, _Signature])
    real: dict[str, str] = field(default_factory=dict[str, str])
    rules: dict[str, IgnoreRules] = field(default_factory=dict[str, IgnoreRules])


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder that was looked at. state: its times. is_fresh: True if it may change again without
    its times telling, so that it is looked at anew. files: those that could exclude something in
    it."""

    state: tuple[int, int, int]
    is_fresh: bool
    files: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ruling:
    """The rules' answer about a document. exclusion: the rule against using its text; None if it
    may be used. restraint, edits: what the workspace asks for there."""

    exclusion: Exclusion | None = None
    restraint: Restraint = NO_RESTRAINT
    edits: EditRestraint = NO_EDIT_RESTRAINT


@dataclass(frozen=True, slots=True)
class _Answer:
    signature: _Signature
    ruling: Ruling


class OpenFileRules:
    """Cached answers of `IgnoreRules`. The first answer for a path costs a few file reads; later
    ones a look at the times of the files that could change it, some forty microseconds. Not
    thread-safe."""

    def __init__(self, exclude: Sequence[str] = ()) -> None:
        """exclude: patterns of the user's settings."""
        self._exclude = exclude
        self._answers: dict[tuple[str, ...], _Answer] = {}
        self._folders: dict[str, _Folder] = {}
        self._user_files = user_files()

    def why_excluded(
        self,
        path: str,
        workspace: str,
        language_id: str = "",
        snapshot: FolderSnapshot | None = None,
    ) -> str:
        """The exclusion of `ruling`, as text for people; "" if the file may be used."""
        return text_of(self.ruling(path, workspace, language_id, snapshot).exclusion)

    def ruling(
        self,
        path: str,
        workspace: str,
        language_id: str = "",
        snapshot: FolderSnapshot | None = None,
    ) -> Ruling:
        """path: absolute, or the mere name of a document that is no file of this machine, or "".
        workspace: absolute, or "".
        language_id: the editor's name for the language.
        snapshot: pass the same empty one with several questions, so that each folder is looked at
            once.
        """
        if max(len(path), len(workspace)) > PATH_CHARS:
            return Ruling(Exclusion(ExclusionRule.PATH_TOO_LONG, str(PATH_CHARS)))
        path = os.path.normpath(path) if path else ""
        if secret_name(path.replace(os.sep, "/")):
            return Ruling(Exclusion(ExclusionRule.SECRET_NAME))
        if not os.path.isabs(path):
            path = ""
        folder, name = os.path.split(path) if path else (workspace, "")
        if not os.path.isabs(folder):
            return Ruling()
        snapshot = FolderSnapshot() if snapshot is None else snapshot
        root = _real(workspace, snapshot) if workspace else ""
        folder = _real(folder, snapshot)
        real = _target(os.path.join(folder, name)) if path else ""
        # A link's target counts as much as its name; either may change.
        signature = self._signature(folder, snapshot)
        if real and os.path.dirname(real) != folder:
            signature += self._signature(os.path.dirname(real), snapshot)
        key = (path, real, root, language_id)
        answer = self._answers.get(key)
        if answer is None or answer.signature != signature:
            if len(self._answers) >= MAX_PATHS:
                self._answers.clear()
            found = self._look(path, real, root, language_id, snapshot)
            answer = self._answers[key] = _Answer(signature, found)
        return answer.ruling

    def _signature(self, folder: str, snapshot: FolderSnapshot) -> _Signature:
        """States of all files that could exclude something in this folder (links resolved), those
        above it included, and the user's own. From the root down, as far as there are folders: a
        path may be long and nothing of it exist."""
        known = snapshot.signatures
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
        """The files in this folder that could exclude something; None for a folder that does not
        exist. One look at the folder's times tells if they are as they were."""
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

    def _look(
        self, path: str, real: str, root: str, language_id: str, snapshot: FolderSnapshot
    ) -> Ruling:
        """The ruling of rules read at this moment. real, root: path and workspace with links
        followed."""
        if not path:
            rules = IgnoreRules(root)
            off = rules.language_exclusion(language_id)
            return Ruling(off, rules.restraint(), rules.edit_restraint())
        if not root or not real.startswith(os.path.join(root, "")):
            # Opened from elsewhere: its own repository's rules, if it is in one.
            root = repository_above(os.path.dirname(real))
        for secret in SECRET_FOLDERS.intersection(real.split(os.sep)):
            return Ruling(Exclusion(ExclusionRule.SECRET_FOLDER, secret))
        rules = snapshot.rules.get(root)
        if rules is None:
            self._user_files = user_files()
            rules = snapshot.rules[root] = IgnoreRules(root, exclude=self._exclude)
        found = rules.exclusion(path, is_dir=False) or rules.language_exclusion(language_id, path)
        return Ruling(found, rules.restraint(path), rules.edit_restraint(path))


def _real(folder: str, snapshot: FolderSnapshot) -> str:
    if folder not in snapshot.real:
        snapshot.real[folder] = os.path.realpath(folder)
    return snapshot.real[folder]


def _target(path: str) -> str:
    """Path of a file with its last link followed; links in its folder's path are followed
    already."""
    return os.path.realpath(path) if os.path.islink(path) else path


def _state(path: str) -> _State:
    try:
        s = os.stat(path)
    except (OSError, ValueError):
        return None
    return s.st_mtime_ns, s.st_ino
