"""codespec's own loop: with its drafters, with others' drafters, and with none."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from codespec.drafters.chain import DraftChain
from codespec.drafters.cost import FLAT
from codespec.engine.local import LocalEngine
from codespec.native import SuffixAutomaton
from codespec.types import Drafter

from ..acceptance import cost_in_passes
from ..peer import PACKAGE, load_peer
from ..reference import PromptLookup, Sources
from .arctic import ArcticDrafter
from .base import Decoded, Job, MissingPeerError


class Engine:
    """`Peer`: the product's engine with the drafters that it is set up with, or some of them; ()
    is plain decoding."""

    def __init__(
        self, config: str, engine: LocalEngine, drafters: tuple[str, ...] | None = None
    ) -> None:
        self.config = config
        self._engine = engine
        self._drafters = drafters

    def start(self) -> None:
        pass

    def decode(self, job: Job) -> Decoded:
        return _timed(self._engine, job, self._engine.chain(job.context.workspace, self._drafters))

    def close(self) -> None:
        pass


class OtherDrafter:
    """`Peer`: somebody else's drafter in our loop, at the widths that it chooses itself.

    make: a new drafter for every request.
    """

    def __init__(self, config: str, engine: LocalEngine, make: Callable[[], Drafter]) -> None:
        self.config = config
        self._engine = engine
        self._make = make

    def start(self) -> None:
        pass

    def decode(self, job: Job) -> Decoded:
        chain = DraftChain([self._make()], self._engine.info.n_vocab, 1, FLAT)
        return _timed(self._engine, job, chain)

    def close(self) -> None:
        pass


class Arctic(OtherDrafter):
    """`Peer`: ArcticInference's suffix trie and rule (Oliaro et al. 2024) over the prompt.

    extension: file of its native module, None for the installed package.
    """

    def __init__(self, config: str, engine: LocalEngine, extension: Path | None) -> None:
        super().__init__(config, engine, self._drafter)
        self._extension = extension

    def start(self) -> None:
        self._peer = load_peer(self._extension)
        if self._peer is None:
            raise MissingPeerError(f"{PACKAGE} is not installed", f"pip install {PACKAGE}")

    def _drafter(self) -> Drafter:
        assert self._peer is not None
        return ArcticDrafter(self._peer.tree())


def prompt_lookup(max_ngram: int, width: int) -> Drafter:
    """Prompt lookup (Saxena 2023): copy what followed the last few tokens before."""
    return PromptLookup(Sources(SuffixAutomaton()), max_ngram, width)


def _timed(engine: LocalEngine, job: Job, chain: DraftChain) -> Decoded:
    tokens, trace = engine.decode(job.context, job.max_tokens, chain)
    return Decoded(
        tokens,
        trace.ms,
        trace.n_tokens,
        trace.n_target_passes,
        trace.n_drafted,
        trace.n_accepted,
        cost_in_passes(trace, engine.curve),
    )


def own_peers(
    engine: LocalEngine, extension: Path | None, quick: bool
) -> list[Engine | OtherDrafter]:
    """Plain decoding first."""
    lookup = functools.partial(prompt_lookup, 3, 10)
    peers: list[Engine | OtherDrafter] = [
        Engine("plain", engine, ()),
        Engine("codespec", engine),
        Engine("codespec lookup only", engine, ("lookup",)),
        OtherDrafter("prompt lookup", engine, lookup),
        Arctic("arctic suffix trie", engine, extension),
    ]
    if not quick:
        for n, width in ((3, 2), (3, 4), (4, 4)):
            make = functools.partial(prompt_lookup, n, width)
            peers.append(OtherDrafter(f"prompt lookup n={n} width={width}", engine, make))
    return peers
