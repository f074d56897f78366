"""The contract of backends, which compute the models that complete.

A backend is of one of two kinds. A *target* is a model whose passes verify drafts: speculative
decoding (Leviathan et al. 2023, Chen et al. 2023) needs the logits after every drafted token and a
KV cache that can be rolled back. Abilities beyond that stand in a value, its `Capabilities`. A
*generator* decodes by itself, here or on another machine: it streams ids or text, and has no
passes, no rollback and no log-probabilities; its contract stands in `backends.generators`.
`backends.registry` finds the backend of a `model.target`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from codespec.backends.checkpoints import Checkpoint, State
from codespec.errors import InputError, ModelError
from codespec.native import Drafting, Ends, Stretch
from codespec.types import (
    NO_DRAFT,
    NO_TOKENS,
    Draft,
    LogitsRows,
    ModelInfo,
    Tokenizer,
    Tokens,
)
from codespec.verify.sampling import TokenMask

KvType: TypeAlias = Literal["f16", "q8_0"]
"""Number type of keys and values in a KV cache."""


class CancelledError(Exception):
    """The request was cancelled, as a newer one took its place. Never shown to users."""


@dataclass(frozen=True, slots=True)
class Capabilities:
    """Abilities of a target.

    max_draft:    most drafted tokens that one pass verifies, 0 or more.
    max_leaves:   most branches of a draft tree; 1: chains only.
    max_branches: most continuations decoded side by side, 1 or more, see `Target.fork`.
    rolls_back:   True if the KV cache drops rejected tokens and nothing else. False if it loses
                  the whole pass where the draft was not wholly accepted (recurrent layers): the
                  pass's tokens and the accepted ones are then recomputed.
    has_threads:  True if it computes on CPU threads whose number can change between passes.
    has_stretches: True if it can make several greedy passes in one native call, see
                  `Target.decode_stretch`; the call rolls back natively, and hands out no hidden
                  states between its passes.
    """

    max_draft: int = 64
    max_leaves: int = 1
    max_branches: int = 1
    rolls_back: bool = True
    has_threads: bool = False
    has_stretches: bool = False


class Target:
    """A language model that owns its KV cache. One thread only.

    The cache always holds a prefix of the committed tokens, plus, between `decode` and `keep`,
    the drafted tokens. A subclass needs `info`, `can`, `n_cached`, `prefill`, `decode` and `keep`;
    the defaults of the other methods serve a target that cannot do more.
    """

    info: ModelInfo
    can: Capabilities = Capabilities()
    is_exact: bool = False
    """True if a token's logits are the same to the bit in passes of any width over chains."""
    n_threads: int = 1
    busy_s: float = 0.0
    """Seconds spent in passes so far."""
    read_ms: float = 0.0
    """Milliseconds a token of the fastest chunk of prefill so far; 0 before the first."""
    saved_bytes: int = 0
    """Most bytes of memory for saved states of the KV cache."""

    @property
    def n_cached(self) -> int:
        """Number of committed tokens in the KV cache."""
        raise NotImplementedError

    def prefill(self, tokens: Tokens, cancelled: Callable[[], bool]) -> int:
        """Prefill the prompt `tokens` (n,) but its last few tokens, reusing the longest common
        prefix that the KV cache holds. Afterwards 1 <= len(tokens) - n_cached <= a batch.

        Returns: the number of reused tokens.

        Raises: CancelledError of this module once `cancelled` returns True.
        """
        raise NotImplementedError

    def decode(self, tokens: Tokens, draft: Draft) -> LogitsRows:
        """Make one pass over the uncached committed `tokens` (1 or more) and a draft after them. A
        pass that may take seconds of processor time calls `pulse.step` meanwhile.

        Returns: logits after the last of `tokens` and after every node of the draft.

        Raises: CancelledError, as `prefill`, where the pass reads the rest of a prompt.
        """
        raise NotImplementedError

    def keep(self, path: Sequence[int]) -> None:
        """Commit the accepted nodes `path` of the last draft and roll back the others; `n_cached`
        is the number of tokens left."""
        raise NotImplementedError

    def read_ahead(self, tokens: Tokens, cancelled: Callable[[], bool]) -> None:
        """Prefill `tokens` ahead of a request, but the last one. Raises: CancelledError once
        `cancelled` returns True; chunks that are in the KV cache by then stay."""
        self.prefill(tokens, cancelled)

    def checkpoint(self) -> Checkpoint:
        """Save the state of the KV cache, for `restore`; it stays in memory until `release`, or
        until there are too many others."""
        return Checkpoint(NO_TOKENS, _NO_STATE)

    def restore(self, held: Checkpoint) -> None:
        """Make the KV cache what it was at `checkpoint`, to the bit; its present state is saved. No
        effect where the checkpoint was dropped: the next `prefill` recomputes it."""

    def release(self, held: Checkpoint) -> None:
        """Drop a checkpoint that will not be restored any more."""

    def set_threads(self, n_threads: int) -> None:
        """Compute on `n_threads` threads from the next pass on; see `Capabilities.has_threads`."""

    def fork(self) -> None:
        """Fork the KV cache into `can.max_branches` branches, each with the committed tokens."""

    def decode_branches(self, branches: Sequence[int], tokens: Sequence[int]) -> LogitsRows:
        """Make one pass over a further token of each of these branches, which are equally long.
        Returns: logits; row i follows token i."""
        rows = self.decode(np.asarray(tokens, np.int32), NO_DRAFT)
        self.keep(())
        return rows

    def join(self) -> None:
        """Drop all branches. The next call must be `prefill`, which reuses the committed tokens."""

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
        is_scored: bool = False,
    ) -> Stretch:
        """Draft, verify greedily and keep, pass after pass, in one native call; only where
        `can.has_stretches`.

        drafting: the texts to draft from, after `emitted`; None for plain decoding.
        last:     the only committed token that is not in the KV cache yet.
        ends:     tokens that end the stretch, or the text.
        n_tokens, n_passes: most tokens to emit and passes to make. n_draft: most drafted tokens of
        a pass. ms: no pass begins after so many milliseconds.
        interrupted: polled every ten milliseconds or before the next pass; True ends the stretch.
        is_scored: True for the log-probabilities of the emitted tokens, too.

        Raises: ModelError, CancelledError, as `decode`.
        """
        raise NotImplementedError

    def close(self) -> None:
        """Free the memory. No other call may follow."""


class MtpHead(Target):
    """A target's MTP head (multi-token prediction), which predicts the token after next, as a draft
    model: it never keeps a draft, and gives the logits after a pass's last token alone.

    Source: Gloeckle et al. 2024; DeepSeek-AI 2024 (DeepSeek-V3).
    """

    def knows(self, tokens: Tokens) -> bool:
        """True if the head can predict the token after the text `tokens`: the target's hidden
        states of all but the last token are known."""
        raise NotImplementedError


class Model:
    """A model that a backend has opened: metadata, vocabulary, and contexts to compute in.

    A subclass needs `info`, `tokenizer` and `context`.
    """

    @property
    def info(self) -> ModelInfo:
        """Metadata."""
        raise NotImplementedError

    @property
    def description(self) -> str:
        """Architecture, size and quantisation in words; "" where unknown."""
        return ""

    @property
    def tokenizer(self) -> Tokenizer:
        """The model's own tokenizer."""
        raise NotImplementedError

    @property
    def encoder(self) -> Callable[[bytes], Tokens]:
        """`tokenizer.encode`, or a native function that does the same while the model is open."""
        return self.tokenizer.encode

    def kv_bytes_a_token(self, kv_type: KvType = "f16") -> int:
        """Bytes a token of keys and values in all layers; 0 where the shape is unknown."""
        return 0

    def context(
        self,
        *,
        n_ctx: int,
        n_threads: int = 0,
        kv_type: KvType = "f16",
        max_saved_bytes: int = 0,
    ) -> Target:
        """Make a context: a KV cache and memory to compute in, to be closed before the model.

        n_ctx: size of the KV cache in tokens. n_threads: 0 for `processes.default_threads`.
        kv_type: number type of keys and values. max_saved_bytes: memory for saved states.

        Raises: ModelError where the context does not fit into memory, or the model lacks `kv_type`.
        """
        raise NotImplementedError

    def mtp_head(self, target: Target, kv_type: KvType = "f16") -> MtpHead | None:
        """The MTP head that drafts for `target`, a context of this model; None where the model has
        none, or was opened without. Raises: ModelError where it cannot be used."""
        return None

    def grammar_mask(self, grammar: str) -> TokenMask:
        """Mask that restricts an output to a GBNF grammar. Raises: InputError for text that is no
        grammar, or where the backend has no grammars."""
        raise InputError(
            f"{self.info.name} cannot be held to a grammar", "Ask without one, or another model."
        )

    def schema_mask(self, schema: str) -> TokenMask:
        """Mask that restricts an output to JSON that follows a schema, in the form that grammars
        are made of. Raises: InputError for another one, or where the backend has no grammars."""
        raise InputError(
            f"{self.info.name} cannot be held to a JSON schema", "Ask without, or another model."
        )

    def metadata(self, key: str) -> str:
        """Value of a scalar metadata key of GGUF files, as one line; "" where there is none."""
        return ""

    def token_text(self, token: int) -> str:
        """Spelling of a token in the vocabulary, not as bytes of a document. token: 0 to n_vocab -
        1."""
        return self.tokenizer.piece(token).decode("utf-8", "replace")

    def token_texts(self) -> list[str]:
        """Spelling of every token in the vocabulary, by id."""
        return [self.token_text(t) for t in range(self.info.n_vocab)]

    @property
    def special_tokens(self) -> Mapping[str, int]:
        """Ids of the tokens that a prompt may spell and a document does not hold, by spelling."""
        return {}

    @property
    def chat_template(self) -> str:
        """Template of chats in the model's file, in Jinja; "" for a model without one."""
        return ""

    def chat_prompt(self, messages: Sequence[tuple[str, str]]) -> str | None:
        """Prompt for the next message of a chat, special tokens spelled out; None for a model
        without a chat template. messages: (role, text) each, at least one."""
        return None

    def window(self, n: int) -> int:
        """Largest context, in tokens, that the model allows, at most `n`."""
        return n

    def close(self) -> None:
        """Free the memory. No other call may follow."""


class Remark(NamedTuple):
    """A line of `codespec doctor` about a backend here, or about one of its models.

    level: "warning" where it works worse than it could; "note" where nothing is wrong, but there is
    a choice. next_step: an instruction to the user, "" for none.
    """

    level: Literal["ok", "note", "warning"]
    message: str
    next_step: str = ""


class Backend:
    """A library or a service that computes models. A subclass needs `name`.

    The argument `where` of its methods is a full `model.target`: the path of a file, or a scheme
    and the text after it.
    """

    name: str

    def device(self) -> str:
        """Hardware that computes models: "cpu", "cuda", "metal", "hip", "vulkan", "sycl"; or the
        backend's own name."""
        return self.name

    def build(self) -> str:
        """Name and version of the code that computes: cost curves are stored apart by it."""
        return self.name

    def check(self, where: str) -> None:
        """Check cheaply that `where` can be a model. Raises: ModelError."""

    def try_out(self, where: str) -> None:
        """Load the model but its weights, in a process of its own, which a damaged file may crash.
        Raises: ModelError."""

    def remarks(self) -> Iterator[Remark]:
        """Remarks about the installation, for `codespec doctor`."""
        return iter(())

    def remarks_on(self, where: str, kv_type: KvType) -> Iterator[Remark]:
        """Remarks about a model, for `codespec doctor`."""
        return iter(())


class TargetBackend(Backend):
    """A backend of targets. A subclass needs `open`."""

    def open(
        self,
        where: str,
        *,
        n_gpu_layers: int = -1,
        mtp_head: bool = False,
        vocab_only: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> Model:
        """Open a model, to be closed.

        n_gpu_layers: layers on the GPU where there is one; -1: all.
        mtp_head: True to load the model's MTP head, too, where it has one.
        vocab_only: True for metadata and vocabulary alone, without weights.
        on_progress: called with the loaded share, 0 to 1.

        Raises: ModelError.
        """
        raise NotImplementedError

    def check_fits(self, where: str) -> None:
        """Check that a model fits into free memory. Raises: ModelError where it does not."""

    def has_mtp_head(self, where: str) -> bool:
        """True if a model has an MTP head that can draft for it."""
        return False


def non_finite_logits(model: ModelInfo) -> ModelError:
    """The error of a model whose logits are NaN or infinite."""
    return ModelError(
        f"{model.path or model.name}: what it computes is no numbers (NaN or infinite)",
        "The file is damaged, or its backend cannot run it here: get it again, or choose another "
        "model.",
    )


_NO_STATE: State = np.empty(0, np.uint8)
