"""Model files that the settings lead to, and the role of each."""

from __future__ import annotations

from os.path import realpath
from pathlib import Path

from codespec.backends.registry import scheme_of, targets_of
from codespec.config import load_settings
from codespec.models.resolve import draft_path, model_file, target_path


def files_in_use() -> dict[str, Path]:
    """Role -> file: the settings' target and, if that has no MTP head of its own, draft model; the
    next-edit model, if there is one."""
    settings = load_settings()
    if scheme_of(settings.model.target):
        return {}
    target, small = target_path(settings.model), draft_path(settings.model)
    files = {"target": target, "draft": small}
    may_draft_itself = settings.model.target and settings.may_draft_itself
    if may_draft_itself and targets_of(target).has_mtp_head(str(target)):
        del files["draft"]
    if (edits := settings.edits.model) and not scheme_of(edits):
        files["edits"] = model_file(edits)
    return {role: path.absolute() for role, path in files.items() if path is not None}


def roles(path: Path, in_use: dict[str, Path]) -> list[str]:
    """Roles that the settings give to a file."""
    return [role for role, used in in_use.items() if realpath(used) == realpath(path)]
