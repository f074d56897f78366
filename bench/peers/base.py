"""Contract of a peer: a way of decoding, as the comparison sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Protocol

from codespec.errors import CodespecError
from codespec.types import Context, Trace

from ..replay_trees import Tree

ANSWER_S = 600.0
"""A program that says nothing for so long hangs."""


@dataclass(frozen=True, slots=True)
class DecodingTask:
    """Decode greedily after `context.prompt` until the end token or `max_tokens`.

    Peers read the prompt alone, as a plug-in sends it; codespec's drafters also know the rest of
    the context: the document, and the workspace where there is one. tree: that workspace, for
    peers that can be told of it.
    """

    context: Context
    max_tokens: int
    tree: Tree | None = None


@dataclass(slots=True)
class Decoded:
    """ms: from the processed prompt to the last token; n_timed: tokens decoded in that time, the
    end token included: one fewer where the clock starts at the first one.

    trace: of our own loop alone. own_ms: what of its time is not in passes of the target, where
    the prompt was in the cache.
    """

    tokens: list[int] = field(default_factory=list[int])
    ms: float = 0.0
    n_timed: int = 0
    n_passes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    trace: Trace | None = None
    own_ms: float = 0.0

    def __post_init__(self) -> None:
        """Raises: ValueError for times and counts that are none, as another program may say."""
        counts = self.n_timed, self.n_passes, self.n_drafted, self.n_accepted
        if not (math.isfinite(self.ms) and min(self.ms, *counts) >= 0):
            raise ValueError(f"{self.ms} ms, {counts}")


class MissingPeerError(CodespecError):
    """A peer is not installed here; the hint says how to get it."""


class Peer(Protocol):
    """A way of decoding with one setting. Started, asked many times, closed.

    config: its name in the results, setting included.
    """

    config: str

    def start(self) -> None:
        """Raises: MissingPeerError, ModelError."""
        ...

    def decode(self, job: DecodingTask) -> Decoded:
        """The prompt is processed before the clock starts."""
        ...

    def close(self) -> None: ...
