"""Distilled draft models: which one drafts for a target in a workspace.

A draft lies in the user's data folder, in a folder named by the target file's content and the
workspace's path. Nothing in the workspace takes part in the choice.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import msgspec

from codespec.folders import data_path
from codespec.secrets import VERSION

DRAFT_FOR_KEY = "codespec.draft_for"
"""Metadata of a draft model: hash of the tokenizer of the target it drafts for."""
UNKNOWN = "<|unknown|>"
"""Text of the last token of a reduced vocabulary, which stands for all that are left out."""

RECORD = "draft.json"
OUTDATED = "what counts as a secret has changed since; distil it again: codespec distill"
"""Why a draft that is not current is not used."""
_SAMPLE_BYTES = 1 << 20


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Drafting on held-out files. acceptance: share of drafted tokens accepted at a fixed draft of
    n_draft; speed: tokens a second over plain decoding's, drafting as served."""

    acceptance: float
    speed: float
    n_drafted: int


class DraftRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A distilled draft. before: the draft that would be used without it, None where none would.
    secrets: version of the rules by which secrets were cut out of what it learned from."""

    file: str
    target: str
    target_path: str
    workspace: str
    n_params: int
    n_vocab: int
    n_places: int
    n_draft: int
    before: Measured | None
    after: Measured
    created: str = ""
    secrets: int = 0

    @property
    def is_current(self) -> bool:
        """True if secrets were cut out of its text by the rules of today."""
        return self.secrets == VERSION

    @property
    def pays(self) -> bool:
        """Whether it drafts better than what would be used without it."""
        return self.before is None or self.after.acceptance > self.before.acceptance


def fingerprint(target: Path) -> str:
    """Names a model file by its size, its beginning and its end. Cost: 2 MiB read."""
    size = target.stat().st_size
    digest = hashlib.blake2b(str(size).encode(), digest_size=8)
    with target.open("rb") as f:
        digest.update(f.read(_SAMPLE_BYTES))
        f.seek(max(0, size - _SAMPLE_BYTES))
        digest.update(f.read())
    return digest.hexdigest()


def folder(target_fingerprint: str, workspace: str) -> Path:
    """Where the draft of a target for a workspace (any spelling of its path) lies, or would."""
    real = os.path.realpath(workspace).encode("utf-8", "surrogateescape")
    name = hashlib.blake2b(real, digest_size=8).hexdigest()
    return data_path() / "drafts" / f"{target_fingerprint}-{name}"


def read(at: Path) -> DraftRecord | None:
    """The record in a draft's folder; None where there is none that can be read."""
    try:
        return msgspec.json.decode((at / RECORD).read_bytes(), type=DraftRecord)
    except (OSError, msgspec.DecodeError):
        return None


def find(at: Path) -> Path | None:
    """The draft model in a draft's folder; None where there is none, it would not pay, or it may
    have learned what is a secret by now. Cost: one failed look-up of a file where there is none.
    """
    record = read(at)
    if record is None or not record.pays or not record.is_current:
        return None
    path = at / Path(record.file).name
    return path if path.is_file() else None


def every() -> list[tuple[Path, DraftRecord]]:
    """(folder, record) of all distilled drafts."""
    found = ((at, read(at)) for at in sorted((data_path() / "drafts").glob("*")))
    return [(at, record) for at, record in found if record is not None]
