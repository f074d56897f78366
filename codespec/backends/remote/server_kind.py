"""The contract of kinds of servers: what one says of itself, and how it is asked to continue."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import PureWindowsPath
from typing import Any, NamedTuple

from codespec.backends.generators import GeneratorFigures
from codespec.backends.remote.inquiry import Inquiry
from codespec.limits import NAME_CHARS
from codespec.types import Finish, SamplingParams


@dataclass(frozen=True, slots=True)
class Served:
    """A model as its server describes it.

    kind:   name of the kind of server, for status. model: name to ask for.
    n_ctx:  context window in tokens, 0 where unknown; n_params, n_vocab: the same of its
        parameters, and of its vocabulary.
    takes_ids: True if prompts may be token ids; the output then is, too.
    files:  paths of the model's file or folder, as the server's machine names them.
    workspaces: names of workspaces that it has an index of.
    """

    kind: str
    model: str
    n_ctx: int = 0
    n_params: int = 0
    n_vocab: int = 0
    takes_ids: bool = False
    files: tuple[str, ...] = ()
    workspaces: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        """Figures that no model has count as unknown: they go on to other processes."""
        for name, most in (("n_ctx", 1 << 24), ("n_params", 1 << 53), ("n_vocab", 1 << 31)):
            if not 0 <= getattr(self, name) <= most:
                object.__setattr__(self, name, 0)

    @property
    def title(self) -> str:
        """The model's name for people: of one that is named by its path there, its file or folder
        alone; what a terminal would obey, or no line holds, is left out."""
        path = PureWindowsPath(self.model)  # takes both kinds of slashes
        name = path.name if path.root and path.name else self.model
        return "".join(filter(str.isprintable, name[:NAME_CHARS]))


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A request for a continuation.

    prompt: text or ids. max_tokens: most tokens, 1 or more. n_ctx: tokens of context that it needs.
    only_reads: True if the prompt is to be prefilled, and nothing more.
    held: text that the output has to begin with; only for kinds that `hold_texts`.
    allowed: the only ids that its token may have; only for kinds that `hold_tokens`.
    path, workspace: the document here, "" for none.
    left_s: seconds until the deadline.
    """

    served: Served
    prompt: str | list[int]
    max_tokens: int
    sampling: SamplingParams
    n_ctx: int = 0
    only_reads: bool = False
    held: str = ""
    allowed: tuple[int, ...] = ()
    path: str = ""
    workspace: str = ""
    left_s: Callable[[], float] = lambda: math.inf

    @property
    def model(self) -> str:
        return self.served.model


class Piece(NamedTuple):
    """A piece of a continuation: ids where the server sent them, else text. finish: None while
    there is more. figures: of its drafts, where it tells them."""

    text: str = ""
    ids: tuple[int, ...] = ()
    finish: Finish | None = None
    figures: GeneratorFigures | None = None


class ServerKind:
    """A kind of server. A subclass needs all of these but `tokens` and `headers`."""

    name: str
    hold_texts: bool = False
    """True if it holds an output to a text that it has to begin with."""
    hold_tokens: bool = False
    """True if it chooses a token among ids that it is given."""
    begins_texts: bool = False
    """True if it puts the token that a text begins with before each prompt in text."""

    def served(self, inquiry: Inquiry, model: str) -> Served | None:
        """The model of this name, "" for the server's first, as the server describes it; None where
        the server is of another kind. Raises: as `Inquiry.ask`."""
        raise NotImplementedError

    def tokens(self, inquiry: Inquiry, model: str, text: str) -> list[int] | None:
        """The tokens of a text by the server's own tokenizer, no special ones among them; None
        where it has no route for that. Raises: as `Inquiry.ask`."""
        return None

    def request(self, asked: ServerRequest) -> tuple[str, dict[str, Any]]:
        """(route, body) that asks for a streamed continuation."""
        raise NotImplementedError

    def headers(self, asked: ServerRequest) -> Mapping[str, str]:
        """Headers of such a request, beside those of every one."""
        return {}

    def piece(self, line: bytes) -> Piece | None:
        """The piece in a line of the streamed answer; None for a line without one.

        Raises: ServerError for a line that is no such answer, or one that tells of an error.
        """
        raise NotImplementedError
