"""The bundled pair: a target and a draft model that come with codespec."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

from codespec.errors import ModelError

BUNDLED_TARGET = "codespec-base.gguf"
BUNDLED_DRAFT = "codespec-draft.gguf"


def bundled(name: str) -> Path:
    """Path of a bundled model's file. Raises: ModelError if the installation lacks it."""
    path = Path(str(files("codespec.models") / "bundled" / name))
    if not path.is_file():
        raise ModelError(
            f"{path}: the bundled model is missing from this installation",
            "Install codespec again, or give a model with --model or model.target.",
        )
    return path
