"""Workspaces that an engine's requests draft from: their indexes, and what each has learned."""

from __future__ import annotations

import logging
import re
from collections import Counter, OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.drafters.planner_weights import source_names
from codespec.drafters.planners import prior
from codespec.index.reader import WorkspaceIndex
from codespec.native import Calibration, Segment
from codespec.serving.tenants.tenant_store import workspace_store
from codespec.types import Source, Tokens

log = logging.getLogger(__name__)

MOST_LEARNING = 256
"""Most workspaces whose calibration is kept, up to 200 KB each; those used last."""
MOST_OPEN = 256
"""Most workspaces of tenants whose indexes are open; those used last."""
_OF_TENANT = re.compile("([0-9a-f]{32})/([0-9a-f]{32})?")

_WINDOW = 32
"""Tokens of a piece of a document by which its stored copy is found."""
_MOST_WINDOWS = 48
_MOST_PLACES = 8
"""A piece that stands in more places, as a licence does, says nothing."""
_LEAST_SHARE = 0.5
"""Share of the document's telling pieces that its stored copy has; edits take some away."""


def windows_of(document: Sequence[Tokens]) -> list[Tokens]:
    """Pieces all over a document of several parts, none across two; a short part is one piece."""
    pieces: list[Tokens] = []
    for part in document:
        if not len(part):
            continue
        n = max(1, min(_MOST_WINDOWS // len(document), len(part) // _WINDOW))
        starts = np.linspace(0, max(0, len(part) - _WINDOW), n).astype(int)
        pieces += [np.ascontiguousarray(part[start : start + _WINDOW]) for start in starts]
    return pieces


def own_copies(index: WorkspaceIndex, document: Sequence[Tokens]) -> set[str]:
    """Contents of the index that are, by their text, the stored state of this document.

    document: its text before and after the cursor, which may be a part of it.
    """
    votes = Counter[str]()
    n_telling = 0
    for piece in windows_of(document):
        holders = index.holders(piece[:-1], _MOST_PLACES) if len(piece) > 1 else set[str]()
        votes.update(holders)
        n_telling += bool(holders)
    return {key for key, n in votes.items() if n >= max(1.0, _LEAST_SHARE * n_telling)}


class ServedWorkspaces:
    """Indexes and calibrations by id of a workspace. One thread only.

    roots:    id -> folder of the workspace; its index is opened when it is first asked for, and
        newer ones as they are made.
    kinds, tokenizer_hash: of the target's vocabulary.
    n_params: parameters of the target, see `planners.prior`.
    tenants: folder of tenants' workspaces, whose ids are "tenant/workspace", as the server writes
        them; None for none.
    """

    def __init__(
        self,
        roots: Mapping[str, str],
        kinds: npt.NDArray[np.uint8],
        tokenizer_hash: str,
        n_params: int,
        tenants: Path | None = None,
    ) -> None:
        self._roots = dict(roots)
        self._kinds = kinds
        self._hash = tokenizer_hash
        self._start = prior(n_params)
        self._tenants = tenants
        self._indexes: dict[str, WorkspaceIndex | None] = {}
        self._of_tenants: OrderedDict[str, WorkspaceIndex] = OrderedDict()
        self._calibrations: OrderedDict[str, Calibration] = OrderedDict()

    def segments(
        self, workspace: str, path: str, document: Sequence[Tokens]
    ) -> list[tuple[Segment, npt.NDArray[np.bool_] | None]]:
        """Segments to draft from, without the stored text of the file at hand. It is found by its
        path, else by what it shares with the document."""
        index = self.index(workspace)
        if index is None:
            return []
        index.refresh()
        if path and index.has(path):
            return index.segments((path,))
        return index.segments(contents=own_copies(index, document))

    def calibration(self, workspace: str) -> Calibration:
        """The calibration of a workspace. Those of a tenant whose index is not open share one, as
        requests may name any; so do all that are of nobody."""
        name = ""
        if workspace in self._roots or workspace in self._of_tenants:
            name = workspace
        elif self._tenants is not None and (named := _OF_TENANT.fullmatch(workspace)):
            name = f"{named[1]}/"
        known = self._calibrations.pop(name, None)
        if known is None:
            start = self._start.state(source_names())
            known = Calibration(self._kinds, Source.count(), start)
        self._calibrations[name] = known
        if len(self._calibrations) > MOST_LEARNING:
            self._calibrations.popitem(last=False)
        return known

    def index(self, workspace: str) -> WorkspaceIndex | None:
        """The index of a workspace; None for an unknown one, or where there is no sound one yet."""
        root = self._roots.get(workspace)
        if root is None:
            return self._index_of_tenant(workspace)
        known = self._indexes.get(workspace)
        if known is None:
            known = self._indexes[workspace] = WorkspaceIndex.open(root, self._hash)
        return known

    def _index_of_tenant(self, workspace: str) -> WorkspaceIndex | None:
        named = _OF_TENANT.fullmatch(workspace)
        if self._tenants is None or named is None or not named[2]:
            return None
        known = self._of_tenants.pop(workspace, None)
        if known is None:
            known = WorkspaceIndex.of(
                workspace_store(self._tenants, named[1], named[2], self._hash)
            )
        elif known.is_deleted:
            self.forget([workspace])
            return None
        if known is not None:
            self._of_tenants[workspace] = known
            if len(self._of_tenants) > MOST_OPEN:
                self._of_tenants.popitem(last=False)
        return known

    def forget(self, workspaces: Iterable[str]) -> None:
        """Close the indexes of these workspaces of tenants, and forget what was learned there."""
        for workspace in workspaces:
            self._of_tenants.pop(workspace, None)
            self._calibrations.pop(workspace, None)

    def reopen(self, workspaces: Iterable[str]) -> None:
        """Close the indexes of these workspaces of tenants until they are asked for again: their
        old files were rewritten, and stay on disk while they are mapped."""
        for workspace in workspaces:
            self._of_tenants.pop(workspace, None)

    def open_all(self) -> list[str]:
        """Open all indexes. Returns: ids of workspaces without one for this vocabulary."""
        missing: list[str] = []
        for name in self._roots:
            index = self.index(name)
            if index is None:
                missing.append(name)
            else:
                log.info("codespec: workspace %s: %d tokens", name, index.n_tokens)
        return missing
