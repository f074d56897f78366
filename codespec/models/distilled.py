"""Distilled draft models: the one that drafts for a target in a workspace.

A draft model lies in the user's data folder, in a folder named by the target file's content and the
workspace's path. Nothing in the workspace takes part in the choice.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from codespec.rules.secrets import VERSION
from codespec.system.folders import data_path

DRAFT_FOR_KEY = "codespec.draft_for"
"""Metadata of a draft model: hash of the tokenizer of the target it drafts for."""
UNKNOWN = "<|unknown|>"
"""Text of the last token of a reduced vocabulary, which stands for all that are left out."""

RECORD = "draft.json"
OUTDATED = "what counts as a secret has changed since; distil it again: codespec distill"
"""Reason not to use a draft model that is not current."""
_SAMPLE_BYTES = 1 << 20


class DraftFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Drafting on held-out files. acceptance: share of drafted tokens accepted at a fixed draft of
    n_draft; speed: tokens a second over plain decoding's, drafting as served."""

    acceptance: float
    speed: float
    n_drafted: int


class DraftRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Record of a distilled draft model. before: figures of the draft model that would be used
    without it, None without one. after: its own. n_places: places measured. secrets: version of the
    rules by which secrets were cut out of the text it learned from."""

    file: str
    target: str
    target_path: str
    workspace: str
    n_params: int
    n_vocab: int
    n_places: int
    n_draft: int
    before: DraftFigures | None
    after: DraftFigures
    created: str = ""
    secrets: int = 0

    @property
    def is_current(self) -> bool:
        """True if secrets were cut out of its text by the current rules."""
        return self.secrets == VERSION

    @property
    def pays(self) -> bool:
        """True if it drafts better than the draft model that would be used without it."""
        return self.before is None or self.after.acceptance > self.before.acceptance


def fingerprint(target: Path) -> str:
    """Name of a model file by its size, its beginning and its end. Cost: 2 MiB read."""
    size = target.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=8)
    with target.open("rb") as f:
        digest.update(f.read(_SAMPLE_BYTES))
        f.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(f.read())
    return digest.hexdigest()


def draft_folder(target_fingerprint: str, workspace: str) -> Path:
    """The folder of the draft model of a target for a workspace (any spelling of its path). It need
    not exist."""
    real = os.path.realpath(workspace).encode("utf-8", "surrogateescape")
    name = hashlib.blake2b(real, digest_size=8).hexdigest()
    return data_path() / "drafts" / f"{target_fingerprint}-{name}"


def read(at: Path) -> DraftRecord | None:
    """The record in a draft model's folder; None if there is none that can be read."""
    try:
        return msgspec.json.decode((at / RECORD).read_bytes(), type=DraftRecord)
    except (OSError, msgspec.DecodeError):
        return None


def find(at: Path) -> Path | None:
    """The draft model in a folder; None if there is none, it would not pay, or it may have learned
    a value that counts as a secret by now. Cost: one failed look-up of a file if there is none."""
    record = read(at)
    if record is None or not record.pays or not record.is_current:
        return None
    path = at / Path(record.file).name
    return path if path.is_file() else None


def all_records() -> list[tuple[Path, DraftRecord]]:
    """(folder, record) of all distilled draft models."""
    found = ((at, read(at)) for at in sorted((data_path() / "drafts").glob("*")))
    return [(at, record) for at, record in found if record is not None]
