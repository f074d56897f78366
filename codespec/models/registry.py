"""From settings to model files."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from codespec.config import ModelSettings, expanded
from codespec.errors import ModelError

BUNDLED_TARGET = "codespec-base.gguf"
BUNDLED_DRAFT = "codespec-draft.gguf"


def bundled(name: str) -> Path:
    """Raises: ModelError where the installation lacks the file."""
    path = Path(str(files("codespec.models") / "bundled" / name))
    if not path.is_file():
        raise ModelError(
            f"{path}: the bundled model is missing from this installation",
            "Install codespec again, or give a model with --model or model.target.",
        )
    return path


def target_path(settings: ModelSettings) -> Path:
    """The target model's file; existence is checked when it is loaded. Raises: ConfigError."""
    return expanded(settings.target) if settings.target else bundled(BUNDLED_TARGET)


def draft_path(settings: ModelSettings) -> Path | None:
    """The draft model's file, or None. "auto" is the bundled one, whatever the target.

    Raises: ConfigError.
    """
    if settings.draft == "auto":
        return bundled(BUNDLED_DRAFT)
    return expanded(settings.draft) if settings.draft else None
