"""Planners of workspaces: their prior, and when learned weights are written to disk.

A planner estimates each drafted token's acceptance probability. The prior comes with codespec:
weights fitted on replayed edits of repositories (`codespec_bench.maintainers.prior`). Every
verified pass moves them; a workspace's weights are kept in the cache folder, apart for each model,
and a new workspace starts with those of the model's last one. No text can be read from them.
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

from codespec.drafters.planner_weights import (
    PlannerWeights,
    parse_weights,
    read_weights,
    source_names,
    weights_of,
    write_weights,
)
from codespec.native import Planner
from codespec.system.folders import private_folder
from codespec.types import Source

MAX_WORKSPACES = 8
SAVE_EVERY = 64
"""Requests of a workspace between two saves; a killed process loses what it learned since."""

MAX_KEPT = 200
"""Most files in the folder, together about 5 MB; those written last are kept."""

_SMALL = 100_000_000
_ANY = "*"  # stands for the workspace used last; no folder's path


@cache
def prior(n_params: int = _SMALL) -> PlannerWeights:
    """The weights that a planner starts from, for a target of `n_params` parameters.

    They were fitted on text that people wrote, which good models come close to. Targets below 100 M
    parameters repeat their context much more often; theirs were fitted further on the output of the
    bundled model.
    """
    name = "prior.bin" if n_params >= _SMALL else "prior_small.bin"
    known = parse_weights(files("codespec.drafters").joinpath(name).read_bytes())
    assert known is not None, f"{name} is damaged"
    return known


class Planners:
    """The planner of each workspace. One thread only.

    kinds:  (n_vocab,) uint8, see `token_kinds.token_kinds`.
    model:  identity of the target; acceptance rates depend on it.
    folder: folder of the saved weights, None to save none. A cache: its files may be damaged or
        deleted at any time.
    start:  weights for a workspace without saved ones; None: see `prior`.
    """

    def __init__(
        self,
        kinds: npt.NDArray[np.uint8],
        model: str = "",
        folder: Path | None = None,
        start: PlannerWeights | None = None,
    ) -> None:
        self._start = prior() if start is None else start
        self._kinds = kinds
        self._model = model
        self._folder = folder
        self._known: OrderedDict[str, Planner] = OrderedDict()
        self._n_unsaved: dict[str, int] = {}

    def of(self, workspace: str) -> Planner:
        """The planner for a request in the folder `workspace`; "" for a request outside of any."""
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
        """Write the weights of all planners. An unwritable folder is no error: they are lost
        then."""
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
            known = read_weights(self._path(name))
            if known is not None:
                with contextlib.suppress(ValueError):  # absurd numbers
                    planner.load(known.state(names))
        return planner

    def _with_new_sources(self, planner: Planner) -> Planner:
        """A planner with tables for all registered sources that goes on from this one's weights."""
        return self._new(_learned(planner))

    def _new(self, start: PlannerWeights) -> Planner:
        names = source_names()
        planner = Planner(self._kinds, len(names))
        planner.load(start.state(names))
        return planner

    def _save(self, workspace: str) -> None:
        if self._folder and self._n_unsaved.pop(workspace, 0):
            learned = _learned(self._known[workspace])
            with contextlib.suppress(OSError):
                for name in (workspace, _ANY):
                    write_weights(self._path(name), learned)

    def _path(self, workspace: str) -> Path:
        name = hashlib.sha256(f"{workspace}\0{self._model}".encode("utf-8", "replace")).hexdigest()
        return Path(self._folder or "", f"{name[:32]}.bin")


def _learned(planner: Planner) -> PlannerWeights:
    learned = weights_of(planner.state(), source_names()[: planner.n_sources])
    assert learned is not None
    return learned
