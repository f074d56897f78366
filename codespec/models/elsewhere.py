"""Models that other programs keep on this machine, which need not be downloaded again.

Sources: the documentation of Ollama, LM Studio, llama.cpp and Hugging Face's client, for where
their files are; Ollama's manifests are those of the OCI image specification.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec
import platformdirs

from codespec.models.split import parts

_OLLAMA_HUB = "registry.ollama.ai"
_OLLAMA_MODEL = "application/vnd.ollama.image.model"


class ForeignModel(NamedTuple):
    """A model of another program. name: the program's name for it. path: the file, of several the
    first. keeper: the program."""

    name: str
    path: Path
    keeper: str


class _Layer(msgspec.Struct):
    mediaType: str = ""
    digest: str = ""


class _Manifest(msgspec.Struct):
    layers: list[_Layer] = []


def find_all() -> list[ForeignModel]:
    """These models, sorted by name, each file once. Folders that do not exist, or cannot be read,
    hold none."""
    by_file = {os.path.realpath(f.path): f for f in (*_of_ollama(), *_in_folders())}
    return sorted(by_file.values())


def by_name(name: str) -> ForeignModel | None:
    return next((f for f in find_all() if f.name == name), None)


def _of_ollama() -> Iterator[ForeignModel]:
    service = Path("/usr/share/ollama/.ollama/models")  # on Linux
    for folder in (_named("OLLAMA_MODELS") or Path.home() / ".ollama/models", service):
        top = folder / "manifests"
        for file in _files(top, "*/*/*/*"):
            hub, owner, model, tag = file.relative_to(top).parts
            try:
                manifest = msgspec.json.decode(file.read_bytes(), type=_Manifest)
            except (OSError, msgspec.DecodeError):
                continue
            where = [] if (hub, owner) == (_OLLAMA_HUB, "library") else [owner]
            where = where if hub == _OLLAMA_HUB else [hub, *where]
            for layer in manifest.layers:
                blob = folder / "blobs" / layer.digest.replace(":", "-")
                if layer.mediaType == _OLLAMA_MODEL and os.access(blob, os.R_OK):
                    yield ForeignModel("/".join([*where, f"{model}:{tag}"]), blob, "Ollama")


def _in_folders() -> Iterator[ForeignModel]:
    home = Path.home()
    hugging_face = (_named("HF_HOME") or home / ".cache/huggingface") / "hub"
    llama = _named("LLAMA_CACHE") or platformdirs.user_cache_path("llama.cpp")
    for keeper, folder, pattern in (
        ("LM Studio", home / ".lmstudio/models", "*/*/*.gguf"),
        ("LM Studio", home / ".cache/lm-studio/models", "*/*/*.gguf"),
        ("Hugging Face", _named("HF_HUB_CACHE") or hugging_face, "models--*/snapshots/*/**/*.gguf"),
        ("llama.cpp", llama, "*.gguf"),
    ):
        for file in _files(folder, pattern):
            is_first = parts(str(file))[0] == str(file)
            # Projectors of images lie beside their models.
            if is_first and "mmproj" not in file.name.lower() and os.access(file, os.R_OK):
                yield ForeignModel(file.stem.lower(), file, keeper)


def _named(variable: str) -> Path | None:
    value = os.environ.get(variable)
    return Path(value) if value else None


def _files(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(folder.glob(pattern))
    except OSError:
        return []
