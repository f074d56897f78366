"""Model files that the settings lead to."""

from __future__ import annotations

from pathlib import Path

from codespec.config import ModelSettings
from codespec.errors import ModelError
from codespec.models import catalogue
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.system.folders import expanded

TIMES_DEARER = 50
"""Ratio of a target's pass to a draft model's pass from which on the larger draft model pays: at
half of that both bring as much (bench/log). It is loaded if the target's file is so many times as
large as its own."""


def listed(model: str) -> Path | None:
    """The file of a model on the user's list, or of a bundled one; None for another name."""
    from codespec.models import library  # later: it reads TOML

    return library.listed(model)


def model_file(model: str) -> Path:
    """The file of a setting: a model on the user's list (a file in the current folder cannot take
    its place), "bundled", or a path, which need not exist. Raises: ConfigError."""
    return listed(model) or expanded(model)


def name_in(where: str) -> str:
    """The name of a model in a setting: that on the user's list, or of its file."""
    return Path(where).name.removesuffix(".gguf")


def target_path(settings: ModelSettings) -> Path:
    """The target model's file; existence is checked when it is loaded. Raises: ConfigError."""
    return model_file(settings.target) if settings.target else bundled(BUNDLED_TARGET)


def draft_path(settings: ModelSettings) -> Path | None:
    """The draft model's file, or None. "auto" is the bundled one, for targets without an MTP head.

    Raises: ConfigError.
    """
    if settings.draft == "auto":
        return bundled(BUNDLED_DRAFT)
    return model_file(settings.draft) if settings.draft else None


def draft_paths(settings: ModelSettings, target_bytes: float) -> tuple[Path, ...]:
    """Files of draft models that may serve, each better and dearer than the one before:
    `draft_path`, and with "auto", for targets of so many bytes, the bundled target, too.

    Raises: ConfigError.
    """
    path = draft_path(settings)
    if path is None or settings.draft != "auto":
        return () if path is None else (path,)
    better = bundled(BUNDLED_TARGET)
    is_large = target_bytes >= TIMES_DEARER * better.stat().st_size
    return (path, better) if is_large else (path,)


def check_file(path: Path) -> None:
    """Check cheaply that a file may be a model: llama.cpp's own messages for these cases do not
    help anybody. Raises: ModelError."""
    try:
        if path.is_fifo():  # which nobody may ever write to
            raise ModelError(f"{path}: a pipe, not a file", "Give a .gguf file.")
        with path.open("rb") as f:
            magic = f.read(4)
    except FileNotFoundError:
        get_it = f"Get it: codespec models add {path}" if catalogue.by_name(str(path)) else ""
        raise ModelError(
            f"{path}: no such model file",
            get_it
            or "Give an existing .gguf file, or choose one by name: "
            "codespec models default NAME (see models list); back to the bundled pair: "
            "codespec models default bundled --draft auto",
        ) from None
    except OSError as e:
        raise ModelError(f"{path}: {e.strerror}", "Give a readable .gguf file.") from None
    if magic != b"GGUF":
        what = "an empty file" if not magic else "not a GGUF file"
        raise ModelError(f"{path}: {what}", "codespec reads GGUF models; convert or download one.")
