"""The contract of backends: what computes the model that completes.

A backend is of one of two kinds. A *target* is a model whose passes we verify in: speculative
decoding (Leviathan et al. 2023, Chen et al. 2023) needs the logits after every drafted token and a
KV cache that can give drafted tokens back. What a target can do beyond that is said by a value, its
`Capabilities`. A *generator* decodes by itself, here or on another machine: it gives a stream of
ids or of text, and has no passes, no roll back and no log-probabilities. Backends are found by what
`model.target` names, see `backends.registry`.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from codespec.backends.checkpoints import Checkpoint, State
from codespec.errors import InputError, ModelError
from codespec.native import Drafting, Ends, Stretch
from codespec.sampling import TokenMask
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Draft,
    Finish,
    LogitsRows,
    ModelInfo,
    SamplingParams,
    Tokenizer,
    Tokens,
)

KvType: TypeAlias = Literal["f16", "q8_0"]
"""Numbers of keys and values in a KV cache."""


class CancelledError(Exception):
    """A newer request took this one's place. Never shown to users."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities of a target.

    max_draft:    most drafted nodes one pass takes, 0 or more.
    max_leaves:   most branches of a drafted tree; 1: chains only.
    max_branches: most texts that it continues side by side, 1 or more, see `Target.fork`.
    rolls_back:   True if the KV cache drops rejected tokens and nothing else. False if it loses
                  the whole pass where its draft was not wholly accepted (recurrent layers): what
                  the pass read and what was accepted is then read again.
    has_threads:  True if it computes on threads whose number can be changed between passes.
    has_hidden_states: True if it keeps hidden states of what it reads, for a layer of its own that
                  drafts (MTP head).
    has_stretches: True if it can make several greedy passes in one native call, see
                  `Target.decode_stretch`; the call cuts the cache natively, and hands out no hidden
                  states between its passes.
    """

    max_draft: int = 64
    max_leaves: int = 1
    max_branches: int = 1
    rolls_back: bool = True
    has_threads: bool = False
    has_hidden_states: bool = False
    has_stretches: bool = False


class Target:
    """A language model that owns its KV cache. One thread only.

    The cache always holds a prefix of the committed tokens, plus, between `decode` and `keep`,
    the drafted nodes. A subclass needs `info`, `can`, `n_cached`, `prefill`, `decode` and `keep`;
    the defaults of the other methods serve a target that cannot do more.
    """

    info: ModelInfo
    can: Capabilities = Capabilities()
    is_exact: bool = False
    """True if a token's logits are the same to the bit in passes of any size over chains."""
    n_threads: int = 1
    busy_s: float = 0.0
    """Time spent in passes up to now, seconds."""
    read_ms: float = 0.0
    """Milliseconds a token, of the part of a prompt that was read most quickly; 0: none was."""
    saved_bytes: int = 0
    """Most memory for states of the cache that are put aside."""

    @property
    def n_cached(self) -> int:
        """Number of committed tokens in the KV cache."""
        raise NotImplementedError

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        """Make the cache a prefix of `tokens`, reusing the longest common prefix, and decode all
        but the last few. Afterwards 1 <= len(tokens) - n_cached <= a batch.

        Returns: how many tokens were reused.

        Raises: CancelledError of this module when `cancelled` turns true on the way.
        """
        raise NotImplementedError

    def decode(self, tokens: Tokens, draft: Draft) -> LogitsRows:
        """One pass over the uncached committed `tokens` (at least 1) and a draft after them. One
        that may take seconds of processor time calls `pulse.step` meanwhile.

        Raises: CancelledError, as `prefill`, where the pass reads the rest of a prompt.
        """
        raise NotImplementedError

    def keep(self, path: Sequence[int]) -> None:
        """Commit these nodes of the last draft, drop the others from the cache; `n_cached` says
        what is left."""
        raise NotImplementedError

    def read_ahead(self, tokens: Tokens, cancelled: Callable[[], bool]) -> None:
        """Read what `prefill` and the first pass would read of `tokens`; parts that are read when
        `cancelled` turns true stay in the cache. Raises: CancelledError."""
        self.prefill(tokens, cancelled)

    def hold(self) -> Checkpoint:
        """The cache's state, for `take_back`; in memory until `let_go`, or until too many
        others are held."""
        return Checkpoint(NO_TOKENS, _NO_STATE)

    def take_back(self, held: Checkpoint) -> None:
        """Make the cache what it was at `hold`, to the last digit; what is in it is put aside. No
        effect where that was lost: it is read again."""

    def let_go(self, held: Checkpoint) -> None:
        """The state will not be taken back any more."""

    def set_threads(self, n_threads: int) -> None:
        """Compute on so many threads from the next pass on; see `Capabilities.has_threads`."""

    def fork(self) -> None:
        """Begin `can.max_branches` branches, each of which holds the committed tokens."""

    def decode_branches(self, branches: Sequence[int], tokens: Sequence[int]) -> LogitsRows:
        """One pass over a further token of each of these branches, which are equally long; row i
        follows token i."""
        rows = self.decode(np.asarray(tokens, np.int32), NO_DRAFT)
        self.keep(())
        return rows

    def join(self) -> None:
        """Drop all branches. The next call is `prefill`, which finds the committed tokens."""

    def decode_stretch(
        self,
        drafting: Drafting | None,
        emitted: Sequence[int],
        last: int,
        ends: Ends,
        n_tokens: int,
        n_passes: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch:
        """Calls of `decode` and `keep`, pass after pass, with the likeliest tokens; only where
        `can.has_stretches`.

        drafting: what is drafted from, after `emitted`; None: nothing is.
        last:     the committed token that is not cached yet, the only one.
        n_tokens, n_passes: emitted and done at most. n_draft: tokens of one pass. ms: no pass
        begins later.
        interrupted: True to leave off, asked each ten milliseconds or before the next pass.

        Raises: ModelError, CancelledError, as `decode`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Give back memory. No other call may follow."""


class DraftingLayer(Target):
    """A target's own layer that predicts the token after next (MTP head), as a model that drafts:
    it never keeps a draft, and gives the logits after a pass's last token alone."""

    def knows(self, tokens: Tokens) -> bool:
        """True if it can say what follows a text: the target has read all but its last token."""
        raise NotImplementedError


class Model:
    """A model that a backend has opened: its metadata, its vocabulary, and contexts to compute in.

    A subclass needs `info`, `tokenizer` and `context`.
    """

    @property
    def info(self) -> ModelInfo:
        raise NotImplementedError

    @property
    def description(self) -> str:
        """Architecture, size and quantisation in words; "" where they are not known."""
        return ""

    @property
    def tokenizer(self) -> Tokenizer:
        raise NotImplementedError

    @property
    def encoder(self) -> Callable[[bytes], Tokens]:
        """`tokenizer.encode`, or a native function that does the same and outlives no model."""
        return self.tokenizer.encode

    def kv_bytes_a_token(self, kv_type: KvType = "f16") -> int:
        """Keys and values of all layers; 0 where the shape is not known."""
        return 0

    def context(
        self,
        *,
        n_ctx: int,
        n_threads: int = 0,
        kv_type: KvType = "f16",
        max_saved_bytes: int = 0,
    ) -> Target:
        """Memory to compute in, to be closed before the model.

        n_ctx: size of the KV cache in tokens. n_threads: 0 for `processes.default_threads`.
        kv_type: of keys and values. max_saved_bytes: for KV caches that are put aside.

        Raises: ModelError where it does not fit into memory, or its kind not the model.
        """
        raise NotImplementedError

    def own_layer(self, target: Target, kv_type: KvType = "f16") -> DraftingLayer | None:
        """The model's own layer that drafts for `target`, a context of it; None where it has none,
        or was opened without. Raises: ModelError where it cannot be used."""
        return None

    def grammar_mask(self, grammar: str) -> TokenMask:
        """Holds an output to a GBNF grammar. Raises: InputError for text that is no grammar, or
        where the backend knows no grammars."""
        raise InputError(
            f"{self.info.name} cannot be held to a grammar", "Ask without one, or another model."
        )

    def metadata(self, key: str) -> str:
        """A scalar of the metadata that GGUF files have, as a line; "" where there is none."""
        return ""

    def token_text(self, token: int) -> str:
        """The vocabulary's own text of a token, 0 to n_vocab - 1; no bytes of a document."""
        return self.tokenizer.piece(token).decode("utf-8", "replace")

    def token_texts(self) -> list[str]:
        """The text of every token, by id."""
        return [self.token_text(t) for t in range(self.info.n_vocab)]

    def window(self, n: int) -> int:
        """Tokens of context that it can have, of `n`."""
        return n

    def close(self) -> None:
        """Give back memory. No other call may follow."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The prompt that a generator goes on from.

    tokens:     (n,) the prompt in ids of the generator's tokenizer, its markers included.
    text:       the same as text, markers spelled as `Generator.text` does.
    before, after: the document's text around the cursor, as much as the prompt holds of it.
    max_tokens: most tokens of the model that are of use, 1 or more.
    stop:       texts before the first of which the output ends; to end there is the engine's task,
                and a generator may, too.
    """

    tokens: Tokens
    text: str
    before: str
    after: str
    max_tokens: int
    sampling: SamplingParams
    stop: tuple[str, ...] = ()


Stream: TypeAlias = abc.Generator[bytes | Sequence[int], None, Finish]
"""Pieces of an output, as bytes of text or as ids, in order; returns why there are no more: "stop"
where the text is complete, else "length"."""


class Generator:
    """A model that decodes by itself. A subclass needs `info`, `tokenizer` and `stream`.

    n_units: tokens of `tokenizer` for one of the model's, which settings and requests count.
    heals:   True if ids are the model's own, so that a half-typed word's last token is better held
             back: the engine asks for what follows the tokens before, and once more, for what
             follows all of them, where that does not begin with the bytes held back.
    """

    info: ModelInfo
    tokenizer: Tokenizer
    n_units: int = 1
    heals: bool = True

    def stream(self, asked: Asked, cancelled: Callable[[], bool]) -> Stream:
        """Stream what follows a prompt, on a thread of its own, which may wait as long as it likes:
        it is closed at the next piece after `cancelled` turns true, and may end by itself then. An
        earlier stream may still be on its way to its end.

        Raises: ModelError, with the cause and the next step.
        """
        raise NotImplementedError

    def text(self, tokens: Tokens) -> str:
        """Text of a prompt, its markers spelled out."""
        return self.tokenizer.decode(tokens).decode("utf-8", "replace")

    def close(self) -> None:
        """No other call may follow."""


class Remark(NamedTuple):
    """All there is to say about a backend here, or about a model of it.

    level: "warning", it works worse than it could; "note", nothing is wrong, but there is a choice.
    next_step: what to do about it.
    """

    level: Literal["ok", "note", "warning"]
    message: str
    next_step: str = ""


class Backend:
    """A library or a service that computes models. `where`: what `model.target` names, in full: a
    file's path, or a scheme and what follows it.

    A subclass needs `name`.
    """

    name: str

    def device(self) -> str:
        """Hardware that models compute on: "cpu", "cuda", "metal"; or the backend's own name."""
        return self.name

    def build(self) -> str:
        """Name and version of what computes, and so of what decides what a pass costs."""
        return self.name

    def check(self, where: str) -> None:
        """Raises: ModelError where it cannot be a model, as far as a look tells."""

    def try_out(self, where: str) -> None:
        """Load all but the weights, in a process of its own: what a library makes of a damaged
        file may be the end of that. Raises: ModelError."""

    def remarks(self) -> Iterator[Remark]:
        """About the installation, for `codespec doctor`."""
        return iter(())

    def remarks_on(self, where: str, kv_type: KvType) -> Iterator[Remark]:
        """About a model, for `codespec doctor`."""
        return iter(())


class TargetBackend(Backend):
    """A backend of targets. A subclass needs `open`."""

    def open(
        self,
        where: str,
        *,
        n_gpu_layers: int = -1,
        own_layer: bool = False,
        vocab_only: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> Model:
        """A model, to be closed.

        n_gpu_layers: layers on the GPU where there is one; -1: all.
        own_layer: True to load the layer that drafts for the others, where there is one.
        vocab_only: True for metadata and vocabulary alone, without weights.
        on_progress: told the share that is loaded, 0 to 1.

        Raises: ModelError.
        """
        raise NotImplementedError

    def check_fits(self, where: str) -> None:
        """Raises: ModelError where a model is too large for the memory that is free."""

    def drafts_itself(self, where: str) -> bool:
        """True if a model has a layer of its own that drafts for it."""
        return False


class GeneratorBackend(Backend):
    """A backend of generators. A subclass needs `open`."""

    def open(self, where: str) -> Generator:
        """A generator, to be closed. Quick, and asks the model for nothing. Raises: ModelError."""
        raise NotImplementedError


def computes_nothing(model: ModelInfo) -> ModelError:
    """The error of a model whose logits are no numbers."""
    return ModelError(
        f"{model.path or model.name}: what it computes is no numbers (NaN or infinite)",
        "The file is damaged, or its backend cannot run it here: get it again, or choose another "
        "model.",
    )


_NO_STATE: State = np.empty(0, np.uint8)
