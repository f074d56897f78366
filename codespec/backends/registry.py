"""Registry of backends, by the URL scheme or the file kind of `model.target`; one line each.

A backend is imported on first use. Installed packages add theirs as entry points of the group
`codespec.backends`, named by the scheme; nothing in a repository can.
"""

from __future__ import annotations

import re
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from codespec.config import ModelSettings, Settings
from codespec.errors import ModelError
from codespec.models.resolve import check_file, listed, model_file, target_path

if TYPE_CHECKING:  # the daemon and every command import this module, and no native code
    from codespec.backends.base import Backend, Model, TargetBackend
    from codespec.types import Tokenizer

FILES = "codespec.backends.llama.backend"
"""Module of the backend of files: GGUF, or files that it refuses with a message."""

_SERVERS = "codespec.backends.remote.servers"

SCHEMES = {
    "fake": "codespec.backends.fake",
    "http": _SERVERS,
    "https": _SERVERS,
    "ollama": _SERVERS,
    "codespec": _SERVERS,
}
"""Module by scheme; each has its backend as `BACKEND`."""

_SCHEME = re.compile(r"([a-z][a-z0-9+.-]+):")  # no drive of Windows


def scheme_of(model: str) -> str:
    """Scheme of a `model.target`; "" for a file, or a model on the user's list."""
    found = _SCHEME.match(model)
    if found is None or listed(model) is not None:
        return ""
    return found[1] if found[1] in SCHEMES or plug_in(found[1]) else ""


def in_full(model: str) -> str:
    """A `model.target` in full, valid in any working folder. Raises: ConfigError."""
    return model if scheme_of(model) else str(model_file(model).absolute())


def target_of(settings: ModelSettings) -> str:
    """The target that settings name, for `backend_of`. Raises: ConfigError, ModelError."""
    return settings.target if scheme_of(settings.target) else str(target_path(settings))


def backend_of(where: str | Path) -> Backend:
    """The backend of a file or of a text with a scheme; for "", that of the bundled models.

    Raises: ModelError where a plug-in cannot be imported.
    """
    scheme = scheme_of(where) if isinstance(where, str) else ""
    module = SCHEMES.get(scheme) or plug_in(scheme) if scheme else FILES
    try:
        return import_module(module).BACKEND
    except (ImportError, AttributeError) as e:
        if not scheme:
            raise  # ours: who asks says what is wrong with the installation
        raise ModelError(
            f"the backend of {scheme}: cannot be loaded: {e}",
            "Install its package again, or choose another model: codespec models default bundled.",
        ) from e


def targets_of(where: str | Path) -> TargetBackend:
    """The target backend of `where`. Raises: ModelError where its backend is a generator's."""
    from codespec.backends.base import TargetBackend

    backend = backend_of(where)
    if isinstance(backend, TargetBackend):
        return backend
    raise ModelError(
        f"{where}: {backend.name} writes text by itself, and tells nothing of its model",
        "Give the file of a model instead.",
    )


def check(where: str | Path) -> None:
    """Check cheaply that `where` can be a model; files are read without the library that loads
    them. Raises: ModelError."""
    if isinstance(where, str) and scheme_of(where):
        backend_of(where).check(where)
    else:
        check_file(Path(where))


def try_out(where: str | Path) -> None:
    """Try to load a model in another process, see `Backend.try_out`. Raises: ModelError."""
    backend_of(where).try_out(str(where))


def decodes_by_itself(where: str) -> bool:
    """True if `where` belongs to a generator backend. Never imports the backend of files."""
    if not scheme_of(where):
        return False
    from codespec.backends.generators import GeneratorBackend

    return isinstance(backend_of(where), GeneratorBackend)


def trouble_of(where: str, settings: Settings) -> str | None:
    """See `GeneratorBackend.trouble`; None for a target. Never imports the backend of files."""
    if not decodes_by_itself(where):
        return None
    from codespec.backends.generators import GeneratorBackend

    backend = backend_of(where)
    return backend.trouble(where, settings) if isinstance(backend, GeneratorBackend) else None


def open_model(where: str | Path) -> Model:
    """Open a target's model with its weights. Raises: ModelError."""
    return targets_of(where).open(str(where))


def open_vocabulary(where: str | Path) -> Model:
    """Open a target's metadata and vocabulary, without weights: tens of milliseconds.
    Raises: ModelError."""
    return targets_of(where).open(str(where), vocab_only=True)


def open_tokenizer(settings: Settings) -> Tokenizer:
    """Open the tokenizer of the target or the generator that settings name, without weights.
    Raises: ConfigError, ModelError."""
    from codespec.backends.generators import GeneratorBackend

    where = target_of(settings.model)
    backend = backend_of(where)
    if isinstance(backend, GeneratorBackend):
        return backend.tokenizer(where, settings)
    return open_vocabulary(where).tokenizer


@cache
def plug_in(scheme: str) -> str:
    """Module of the backend that an installed package adds for this scheme; "" for none."""
    from importlib.metadata import entry_points  # takes as long as all the rest

    found = entry_points(group="codespec.backends", name=scheme)
    return next((entry.value for entry in found), "")
