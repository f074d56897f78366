"""Checkpoints and weights on disk, as torch writes them."""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import torch

from codespec.errors import InputError, ModelError


def write_torch(path: Path, content: object) -> None:
    """Raises: InputError where it cannot be written; what was there stays."""
    temporary = path.with_suffix(".tmp")
    try:
        torch.save(content, temporary)
        os.replace(temporary, path)
    except (OSError, RuntimeError) as error:  # torch's own for a disk that is full
        temporary.unlink(missing_ok=True)
        cause = str(error).partition("\n")[0]
        raise InputError(f"{path} cannot be written: {cause}", "Is the disk full?") from error


def read_torch(path: Path, device: torch.device) -> dict[str, Any]:
    """A file that `write_torch` wrote; tensors and plain data only, no code."""
    try:
        return torch.load(path, weights_only=True, map_location=device)
    except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
        raise ModelError(f"{path} cannot be read: {error}", "Train it first, or again.") from error
