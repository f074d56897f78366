"""The outcome of proposals in one workspace, by kind, and the correction of their probability that
follows.

Counts only, no text: how often a kind was proposed, the sum of the probabilities that were said of
it, and how often the user made the edit. Kept in a file a workspace, a cache that may be deleted at
any time.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import msgspec

from codespec.edits.base import LineEdit
from codespec.system.folders import private_folder, private_opener
from codespec.usage.kept_odds import Outcomes
from codespec.usage.statistics import MAX_HABIT

MAX_WORKSPACES = 8
"""Workspaces whose counts are in memory."""
MAX_KEPT = 100
"""Files; those written least recently are deleted."""
SAVE_EVERY = 10
"""Outcomes after which counts are written."""
_Counts = dict[str, Outcomes]


class LearnedOdds:
    """Counts by workspace folder and kind. One thread only."""

    def __init__(self, folder: Path | None = None) -> None:
        """folder: of the files, None for counts that end with the process."""
        self._folder = folder
        self._known: OrderedDict[str, _Counts] = OrderedDict()
        self._unsaved: set[str] = set()
        self._n_unsaved = 0

    def corrected(self, workspace: str, edits: Sequence[LineEdit]) -> list[LineEdit]:
        """The edits with corrected probabilities, likeliest first."""
        counts = self._of(workspace)
        shifts = {kind: outcomes.shift for kind, outcomes in counts.items()}
        found = [
            replace(edit, chance=_shifted(edit.chance, shifts.get(edit.kind, 0.0)))
            for edit in edits
        ]
        return sorted(found, key=lambda edit: -edit.chance)

    def learn(self, workspace: str, kind: str, chance: float, made: bool) -> None:
        """Count a proposal. chance: as it was said without a correction. made: True if the user
        made the edit, False if it was dismissed."""
        counted = self._of(workspace).setdefault(kind, Outcomes())
        counted.n_shown += 1
        counted.said += chance
        counted.n_kept += made
        if counted.n_shown > MAX_HABIT:  # so that habits can change
            counted.n_shown, counted.said = counted.n_shown / 2, counted.said / 2
            counted.n_kept /= 2
        self._learned(workspace)

    def made_after_all(self, workspace: str, kind: str) -> None:
        """Count a proposal as made that was counted as dismissed."""
        counted = self._of(workspace).get(kind)
        if counted is not None:
            counted.n_kept = min(counted.n_kept + 1, counted.n_shown)
            self._learned(workspace)

    def _learned(self, workspace: str) -> None:
        self._unsaved.add(workspace)
        self._n_unsaved += 1
        if self._n_unsaved >= SAVE_EVERY:
            self.save()

    def save(self) -> None:
        """Write the counts. An unwritable folder is no error: they are lost then."""
        self._n_unsaved = 0
        if self._folder is None or not self._unsaved:
            return
        with contextlib.suppress(OSError):
            private_folder(self._folder)
            for workspace in self._unsaved & self._known.keys():
                self._write(workspace)
            kept = sorted(self._folder.iterdir(), key=lambda file: file.stat().st_mtime_ns)
            for file in kept[:-MAX_KEPT]:
                file.unlink()
        self._unsaved.clear()

    def _of(self, workspace: str) -> _Counts:
        counts = self._known.pop(workspace, None)
        if counts is None:
            counts = self._read(workspace)
        self._known[workspace] = counts
        if len(self._known) > MAX_WORKSPACES:
            self.save()
            self._known.popitem(last=False)
        return counts

    def _read(self, workspace: str) -> _Counts:
        if self._folder is None:
            return {}
        try:
            kept = msgspec.json.decode(self._path(workspace).read_bytes(), type=_Counts)
        except (OSError, msgspec.DecodeError):
            return {}
        return {kind: outcomes for kind, outcomes in kept.items() if _is_sane(outcomes)}

    def _write(self, workspace: str) -> None:
        counts = {kind: asdict(outcomes) for kind, outcomes in self._known[workspace].items()}
        with open(self._path(workspace), "wb", opener=private_opener) as file:
            file.write(msgspec.json.encode(counts))

    def _path(self, workspace: str) -> Path:
        name = hashlib.sha256(workspace.encode("utf-8", "replace")).hexdigest()
        return Path(self._folder or "", f"{name[:32]}.json")


def _shifted(chance: float, shift: float) -> float:
    """A probability with a correction of its log-odds."""
    if not shift or not 0.0 < chance < 1.0:
        return chance
    return 1.0 / (1.0 + (1.0 - chance) / chance * math.exp(-shift))


def _is_sane(outcomes: Outcomes) -> bool:
    """False for numbers that no counting makes."""
    n, said, made = outcomes.n_shown, outcomes.said, outcomes.n_kept
    return 0 < n <= MAX_HABIT and 0 <= said <= n and 0 <= made <= n
