"""Vocabularies of models that a server has: found here, without the weights, and checked against
the server's own tokenizer.

A prompt in ids of another vocabulary would be nonsense to the model, and no error: so one that
cannot be checked is used only where the user has named it.
"""

from __future__ import annotations

import os
from pathlib import Path

from codespec.backends import registry
from codespec.backends.base import Model
from codespec.backends.remote.inquiry import Inquiry
from codespec.backends.remote.json_vocabulary import JsonVocabulary
from codespec.backends.remote.server_address import ServerAddress
from codespec.backends.remote.server_kind import Served, ServerKind
from codespec.config import ServerSettings
from codespec.errors import ModelError
from codespec.models import elsewhere
from codespec.models.resolve import listed, name_in

PROBE = "def f(x):\n    return {'ä': [x, 1_000]}\n\n\tif (a != b) {}  // λ"
"""Text whose tokens tell one vocabulary from another."""


def vocabulary_of(
    kind: ServerKind,
    served: Served,
    address: ServerAddress,
    settings: ServerSettings,
    inquiry: Inquiry,
) -> Model | None:
    """The vocabulary of a served model, to be closed; None where it is not known here.

    Raises: ModelError where the one that the settings name is not the server's, or cannot be read;
        as `Inquiry.ask`.
    """
    if settings.tokenizer:
        found = _opened(settings.tokenizer)
        if _fits(found, kind, served, inquiry) is False:
            found.close()
            raise ModelError(
                f"server.tokenizer: {settings.tokenizer}: the model {served.title} has another one",
                "Name a GGUF file or the tokenizer.json of the server's model, or none.",
            )
        return found
    for path in _paths_here(served, address):
        try:
            found = _opened(path)
        except ModelError:
            continue
        if _fits(found, kind, served, inquiry):
            return found
        found.close()
    return None


def _fits(found: Model, kind: ServerKind, served: Served, inquiry: Inquiry) -> bool | None:
    """True if a vocabulary is the server's; None where the server does not tell."""
    ids = kind.tokens(inquiry, served.model, PROBE)
    if ids is not None:
        # Some put a blank before a text; a prompt in ids has none.
        return any(ids == found.tokenizer.encode(blank + PROBE).tolist() for blank in ("", " "))
    return found.info.n_vocab == served.n_vocab if served.n_vocab else None


def _opened(where: str) -> Model:
    """A vocabulary. where: path, or a name on the user's list. Raises: ModelError."""
    path = Path(where).expanduser()
    if path.is_dir():
        path /= "tokenizer.json"
    if path.suffix == ".json":
        return JsonVocabulary(path)
    return registry.open_vocabulary(registry.in_full(where))


def _paths_here(served: Served, address: ServerAddress) -> list[str]:
    """Files on this machine that may hold the vocabulary: those of a server that runs here, and
    models of the same name."""
    said = [where for where in (served.model, *served.files) if where.isprintable()]
    named = [listed(name_in(where)) for where in said]
    paths = [str(path) for path in named if path is not None]
    if address.is_loopback:
        kept = elsewhere.by_name(served.model)
        paths += filter(str.isprintable, served.files)
        paths += [str(kept.path)] if kept is not None else []
    return [path for path in paths if os.path.isabs(path) and os.access(path, os.R_OK)]
