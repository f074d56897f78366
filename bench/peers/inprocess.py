"""codespec's own loop: with its drafters, with others' drafters, and with none."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from codespec.backends.llama import kernels
from codespec.config import Settings
from codespec.cost.cost_curve import FLAT
from codespec.drafters.base import Drafter
from codespec.drafters.combined import CombinedDrafter
from codespec.drafters.guard import GuardPolicy
from codespec.engine.local import LocalEngine
from codespec.native import SuffixAutomaton

from ..peer import PACKAGE, PeerTree, load_peer
from ..peer import TriePeer as TriePeer
from ..predicted import PAUSE_S
from ..reference import PromptLookup, Sources
from ..replay_trees import Tree
from .arctic import MAX_SPEC_FACTOR, MIN_TOKEN_PROB, ArcticDrafter
from .base import Decoded, DecodingTask, MissingPeerError


class LoopPeer:
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

    def decode(self, job: DecodingTask) -> Decoded:
        return _timed(
            self._engine, job, self._engine.drafter(job.context.workspace, self._drafters)
        )

    def close(self) -> None:
        pass


class LlamaKernels:
    """`Peer`: plain decoding in our loop, with llama.cpp's own products and attention."""

    config = "plain, llama.cpp's kernels"

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._engine: LocalEngine | None = None

    def start(self) -> None:
        if not kernels.NAME:
            raise MissingPeerError(f"as plain: {kernels.WHY_NOT}", "unset CODESPEC_KERNELS")
        with kernels.switched_off():
            self._engine = LocalEngine(self._settings)

    def decode(self, job: DecodingTask) -> Decoded:
        assert self._engine is not None, "not started"
        with kernels.switched_off():
            none = self._engine.drafter(job.context.workspace, ())
            # Its cache is its own: what the others find read there, it reads before the clock runs.
            self._engine.passes.decode(job.context, 1, none)
            done = _timed(self._engine, job, none)
        # What passes cost is measured with our kernels, so nothing is predicted.
        return dataclasses.replace(done, trace=None)

    def close(self) -> None:
        if self._engine is not None:
            self._engine.close()


class OtherDrafter:
    """`Peer`: somebody else's drafter in our loop, at the widths that it chooses itself.

    make: a new drafter for every request.
    """

    def __init__(
        self, config: str, engine: LocalEngine, make: Callable[[DecodingTask], Drafter]
    ) -> None:
        self.config = config
        self._engine = engine
        self._make = make

    def start(self) -> None:
        pass

    def decode(self, job: DecodingTask) -> Decoded:
        drafter = CombinedDrafter(
            [self._make(job)], self._engine.info.n_vocab, 1, FLAT, policy=GuardPolicy.RAISE
        )
        return _timed(self._engine, job, drafter)

    def close(self) -> None:
        pass


class Arctic(OtherDrafter):
    """`Peer`: ArcticInference's suffix trie and rule (Oliaro et al. 2024) over the prompt.

    peer:       its native module, None where that is not installed.
    factor, min_prob: its settings, its own defaults by default.
    with_files: give it the workspace, too, as a trie that is made before the clock starts.
    """

    def __init__(
        self,
        config: str,
        engine: LocalEngine,
        peer: TriePeer | None,
        factor: float = MAX_SPEC_FACTOR,
        min_prob: float = MIN_TOKEN_PROB,
        with_files: bool = False,
    ) -> None:
        super().__init__(config, engine, self._drafter)
        self._peer = peer
        self._settings = factor, min_prob
        self._with_files = with_files
        self._files: tuple[Tree, PeerTree] | None = None

    def start(self) -> None:
        if self._peer is None:
            raise MissingPeerError(f"{PACKAGE} is not installed", f"pip install {PACKAGE}")

    def _drafter(self, job: DecodingTask) -> Drafter:
        assert self._peer is not None
        files = self._files_of(self._peer, job.tree) if self._with_files and job.tree else None
        return ArcticDrafter(self._peer.tree(), *self._settings, files)

    def _files_of(self, peer: TriePeer, tree: Tree) -> PeerTree:
        if self._files is None or self._files[0] is not tree:
            made = peer.tree()
            for i, tokens in enumerate(tree.living):
                made.extend_ndarray(i, np.array(tokens, np.int32))  # it takes no read-only one
            self._files = tree, made
        return self._files[1]


def prompt_lookup(max_ngram: int, width: int, _job: DecodingTask) -> Drafter:
    """Prompt lookup (Saxena 2023): copy what followed the last few tokens before."""
    return PromptLookup(Sources(SuffixAutomaton()), max_ngram, width)


def _timed(engine: LocalEngine, job: DecodingTask, drafter: CombinedDrafter) -> Decoded:
    # Servers sleep while others decode: we do, too.
    time.sleep(PAUSE_S)
    busy_s = engine.target.busy_s
    tokens, trace = engine.passes.decode(job.context, job.max_tokens, drafter)
    passes_ms = (engine.target.busy_s - busy_s) * 1e3
    # An end token takes a pass like any other, and the other peers count it.
    n_timed = len(tokens) + (len(tokens) < job.max_tokens)
    return Decoded(
        tokens,
        trace.ms,
        n_timed,
        trace.n_target_passes,
        trace.n_drafted,
        trace.n_accepted,
        trace,
        max(trace.ms - passes_ms, 0.0),
    )


def own_peers(
    engine: LocalEngine, extension: Path | None, quick: bool
) -> list[LoopPeer | LlamaKernels | OtherDrafter]:
    """Plain decoding first. extension: file of the suffix trie's native module, None for the
    installed package. Raises: InputError."""
    trie = load_peer(extension)  # once: its types cannot be registered twice
    lookup = functools.partial(prompt_lookup, 3, 10)
    peers: list[LoopPeer | LlamaKernels | OtherDrafter] = [
        LoopPeer("plain", engine, ()),
        LlamaKernels(engine.settings),
        LoopPeer("codespec", engine),
        LoopPeer("codespec lookup only", engine, ("lookup",)),
        OtherDrafter("prompt lookup", engine, lookup),
        Arctic("arctic suffix trie", engine, trie),
    ]
    if not quick:
        for n, width in ((3, 2), (3, 4), (4, 4)):
            make = functools.partial(prompt_lookup, n, width)
            peers.append(OtherDrafter(f"prompt lookup n={n} width={width}", engine, make))
        for factor, min_prob, with_files in (
            (1.0, 0.5, False), (0.25, 0.5, False), (1.0, 0.1, True), (0.25, 0.5, True)
        ):  # fmt: skip
            config = f"arctic suffix trie factor={factor} p>={min_prob}"
            peers.append(
                Arctic(
                    config + (", workspace" if with_files else ""),
                    engine, trie, factor, min_prob, with_files,
                )
            )  # fmt: skip
    return peers
