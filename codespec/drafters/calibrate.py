"""Planners of workspaces: their first knowledge, and when they remember what they learned.

The prior comes with codespec: weights fitted on replayed edits of repositories (`codespec_bench.
prior`). Every outcome moves them; what a workspace taught is kept in the cache folder, apart for
each model, and a new workspace starts with what that model's last one taught. No text can be read
from it.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections import OrderedDict
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.drafters.learned import (
    Learned,
    learned_of,
    parse_learned,
    read_learned,
    source_names,
    write_learned,
)
from codespec.folders import private_folder
from codespec.native import Planner
from codespec.types import Source

MAX_WORKSPACES = 8
SAVE_EVERY = 64
"""Requests of a workspace. What a killed process has learned since is lost."""

MAX_KEPT = 200
"""Files in the folder, which take 5 MB together; those written last are kept."""

_SMALL = 100_000_000
_ANY = "*"  # stands for the workspace used last; no folder's path


@cache
def prior(n_params: int = _SMALL) -> Learned:
    """The weights to start from, for a target of so many parameters.

    Fitted on what people wrote, which good models come close to. A small model says again what it
    has before it much more often; its weights go on from those with what the bundled one writes.
    """
    name = "prior.bin" if n_params >= _SMALL else "prior_small.bin"
    known = parse_learned(files("codespec.drafters").joinpath(name).read_bytes())
    assert known is not None, f"{name} is damaged"
    return known


class Planners:
    """The planner of each workspace. One thread only.

    kinds:  see `kinds.token_kinds`.
    model:  identity of the target; what is accepted depends on who accepts.
    folder: where to remember, None for not at all. A cache: anything in it may be damaged or go.
    start:  what to begin with where nothing is remembered, see `prior`.
    """

    def __init__(
        self,
        kinds: npt.NDArray[np.uint8],
        model: str = "",
        folder: Path | None = None,
        start: Learned | None = None,
    ) -> None:
        self._start = prior() if start is None else start
        self._kinds = kinds
        self._model = model
        self._folder = folder
        self._known: OrderedDict[str, Planner] = OrderedDict()
        self._n_unsaved: dict[str, int] = {}

    def of(self, workspace: str) -> Planner:
        """The planner for a request in this folder, "" for none."""
        planner = self._known.pop(workspace, None) or self._open(workspace)
        if planner.n_sources < Source.count():
            planner = self._with_new_sources(planner)
        self._known[workspace] = planner
        self._n_unsaved[workspace] = self._n_unsaved.get(workspace, 0) + 1
        if self._n_unsaved[workspace] >= SAVE_EVERY:
            self._save(workspace)
        if len(self._known) > MAX_WORKSPACES:
            self._save(next(iter(self._known)))
            self._known.popitem(last=False)
        return planner

    def save(self) -> None:
        """Remember everything. A folder that cannot be written to costs only that."""
        if self._folder:
            with contextlib.suppress(OSError):
                private_folder(self._folder)
        for workspace in self._known:
            self._save(workspace)
        if self._folder:
            with contextlib.suppress(OSError):  # another process may do the same
                kept = sorted(self._folder.iterdir(), key=lambda f: f.stat().st_mtime_ns)
                for file in kept[:-MAX_KEPT]:
                    file.unlink()

    def _open(self, workspace: str) -> Planner:
        planner, names = self._new(self._start), source_names()
        for name in (_ANY, workspace) if self._folder else ():
            known = read_learned(self._path(name))
            if known is not None:
                with contextlib.suppress(ValueError):  # absurd numbers
                    planner.load(known.state(names))
        return planner

    def _with_new_sources(self, planner: Planner) -> Planner:
        """One that goes on from what this one learned: drafters registered sources since."""
        return self._new(_learned(planner))

    def _new(self, start: Learned) -> Planner:
        names = source_names()
        planner = Planner(self._kinds, len(names))
        planner.load(start.state(names))
        return planner

    def _save(self, workspace: str) -> None:
        if self._folder and self._n_unsaved.pop(workspace, 0):
            learned = _learned(self._known[workspace])
            with contextlib.suppress(OSError):
                for name in (workspace, _ANY):
                    write_learned(self._path(name), learned)

    def _path(self, workspace: str) -> Path:
        name = hashlib.sha256(f"{workspace}\0{self._model}".encode("utf-8", "replace")).hexdigest()
        return Path(self._folder or "", f"{name[:32]}.bin")


def _learned(planner: Planner) -> Learned:
    learned = learned_of(planner.state(), source_names()[: planner.n_sources])
    assert learned is not None
    return learned
