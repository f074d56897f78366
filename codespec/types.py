"""Data that crosses rooms, and the Protocols of tokenizers and logits. Requests to engines are in
`requests`, capabilities of targets in `backends.base`.

Frozen dataclasses, and structs where some are made for each pass: no behaviour beyond construction
    and validation. Arrays are C-contiguous numpy arrays; `Tokens` is int32 of shape (n,).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar, Literal, Protocol, TypeAlias

import msgspec
import numpy as np
import numpy.typing as npt

from codespec import limits
from codespec.reasons import ShapeReason, Trimming

Tokens: TypeAlias = npt.NDArray[np.int32]
Logits: TypeAlias = npt.NDArray[np.float32]
Probs: TypeAlias = npt.NDArray[np.float64]

NO_TOKENS: Tokens = np.zeros(0, np.int32)
NO_TOKENS.flags.writeable = False


_CHAIN: Tokens = np.arange(-1, 255, dtype=np.int32)  # the parents of every short chain
_CHAIN.flags.writeable = False
_CHAIN_BYTES = _CHAIN.tobytes()


class Source(int):
    """Origin of a drafted token: a small number that a drafter registered by name. Learned state is
    stored by name, as numbers depend on the order of registration."""

    MOST: ClassVar[int] = 32
    OTHER: ClassVar[Source]
    """Source of drafters that register none of their own."""

    label: str
    _all: ClassVar[list[Source]] = []

    @classmethod
    def register(cls, label: str) -> Source:
        """The source of that name, registered if it is new. Raises: ValueError for one more than
        `MOST`."""
        for known in cls._all:
            if known.label == label:
                return known
        if len(cls._all) == cls.MOST:
            raise ValueError(f"{label}: there are {cls.MOST} sources already")
        made = cls(len(cls._all))
        made.label = label
        cls._all.append(made)
        return made

    @classmethod
    def all(cls) -> Sequence[Source]:
        """Every registered source; source i has number i."""
        return tuple(cls._all)

    @classmethod
    def count(cls) -> int:
        return len(cls._all)

    @classmethod
    def of(cls, number: int) -> Source:
        """The source of a draft's node. Raises: IndexError."""
        return cls._all[number]


Source.OTHER = Source.register("other")


class Draft(msgspec.Struct, frozen=True, eq=False):
    """A proposed token tree, in topological order: parents come before their children.

    tokens:  (k,) int32.
    parents: (k,) int32, index of the parent node, -1 for a child of the last committed token.
    probs:   (k,) float32, estimated P(node accepted | parent accepted).
    sources: (k,) int8, numbers of `Source`.
    q:       None for a deterministic draft (chosen by rank, no randomness of its own); otherwise
             (k, n_vocab) float32, the distribution node i was truly sampled from. Such drafts are
             chains and are verified by rejection, see `verify.accept_sampled`.
    """

    tokens: Tokens
    parents: Tokens
    probs: npt.NDArray[np.float32]
    sources: npt.NDArray[np.int8]
    q: npt.NDArray[np.float32] | None = None

    @classmethod
    def chain(
        cls,
        tokens: Tokens | Sequence[int],
        source: Source = Source.OTHER,
        probs: npt.NDArray[np.float32] | None = None,
        q: npt.NDArray[np.float32] | None = None,
    ) -> Draft:
        """A draft without branches: node i is the child of node i - 1."""
        toks = np.ascontiguousarray(tokens, np.int32)
        k = len(toks)
        return cls(
            toks,
            _CHAIN[:k] if k <= len(_CHAIN) else np.arange(-1, k - 1, dtype=np.int32),
            np.ones(k, np.float32) if probs is None else probs,
            np.full(k, source, np.int8),
            q,
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def is_chain(self) -> bool:
        # Asked several times a pass: bytes compare quicker than arrays.
        k = len(self.parents)
        if k > len(_CHAIN):
            return bool((self.parents == np.arange(-1, k - 1)).all())
        return self.parents.tobytes() == _CHAIN_BYTES[: 4 * k]


NO_DRAFT = Draft.chain(NO_TOKENS)


class PassState(msgspec.Struct, frozen=True, eq=False):
    """State of the next pass: drafters and their cost depend on it.

    emitted: (m,) the output so far.
    n_tail:  committed tokens that the pass reads before a draft, 1 or more.
    width:   least tokens a pass; shorter drafts are padded to it. 1: no padding.
    after_single: True if the last pass was over one token: a wider one then makes the way back to
        passes over one token due, see `CostCurve`.
    """

    emitted: Tokens = NO_TOKENS
    n_tail: int = 1
    width: int = 1
    after_single: bool = True


ANY_PASS = PassState()
"""State of a first pass: nothing emitted, one token to read, no padding."""


class Verdict(msgspec.Struct, frozen=True):
    """Result of verification in one pass.

    emitted: tokens to append to the output, always at least one.
    path: indices of the accepted draft nodes, root first; emitted[:len(path)] are their tokens.
    """

    emitted: tuple[int, ...]
    path: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """Parameters of the next-token distribution. Temperature 0 is greedy: argmax, lowest id on
    ties."""

    temperature: limits.Temperature = 0.0
    top_k: limits.TopK = 0  # 0: off
    top_p: limits.Share = 1.0
    min_p: limits.Share = 0.0
    repetition_penalty: limits.RepeatPenalty = 1.0  # CTRL (Keskar et al. 2019), over emitted tokens
    frequency_penalty: limits.Penalty = 0.0  # off the logit for each time a token was emitted
    presence_penalty: limits.Penalty = 0.0  # off the logit of a token that was emitted
    seed: limits.Seed = 0
    # True where no client asked for this seed: drafts may change the text, not its distribution.
    any_seed: bool = False
    grammar: limits.Grammar = ""  # GBNF that the whole output follows; "": none
    json_schema: limits.SchemaText = ""  # schema of the JSON that the whole output is; "": none

    def __post_init__(self) -> None:
        if not (self.temperature >= 0 and 0 < self.top_p <= 1 and 0 <= self.min_p <= 1):
            raise ValueError("need temperature >= 0, 0 < top_p <= 1, 0 <= min_p <= 1")
        if self.top_k < 0 or not 0.01 <= self.repetition_penalty <= 100:
            raise ValueError("need top_k >= 0 and repetition_penalty from 0.01 to 100")
        if not (abs(self.frequency_penalty) <= 100 and abs(self.presence_penalty) <= 100):
            raise ValueError("need frequency_penalty and presence_penalty from -100 to 100")

    @property
    def has_form(self) -> bool:
        """True if the whole output is held to a form."""
        return bool(self.grammar or self.json_schema)

    @property
    def has_penalty(self) -> bool:
        return (self.repetition_penalty, self.frequency_penalty, self.presence_penalty) != (1, 0, 0)


SnippetSource: TypeAlias = Literal["symbols", "buffers", "edits"]


@dataclass(frozen=True, slots=True)
class Snippet:
    """Text of another file in the prompt. path: absolute. why: reason of its choice, in words."""

    source: SnippetSource
    path: limits.PathText
    text: limits.Text
    why: limits.Name = ""


@dataclass(frozen=True, slots=True)
class Context:
    """A request in tokens.

    prompt: (n,) tokens that the model reads, special tokens included.
    left:   (m,) the document's own tokens before the cursor (or before the healed piece): lookups
        match against them.
    right:  (s,) the document's own tokens after the cursor.
    healed: bytes that stand before the cursor but were held back from the prompt because they may
        be part of a longer token; the output must start with them.
    fim:    True for a fill-in-the-middle prompt.
    document: key of the document in `OpenDocuments`; "": its path.
    snippets: text of other files in the prompt.
    n_before: tokens of the document before the cursor that the prompt holds.
    n_after: tokens after it.
    old:    (o,) tokens of a text that the output rewrites, the held-back bytes first; none for a
        completion.
    """

    prompt: Tokens
    left: Tokens = field(default_factory=lambda: NO_TOKENS)
    right: Tokens = field(default_factory=lambda: NO_TOKENS)
    healed: bytes = b""
    fim: bool = False
    path: str = ""
    workspace: str = ""
    document: str = ""
    sampling: SamplingParams = SamplingParams()
    snippets: tuple[Snippet, ...] = ()
    n_before: int = 0
    n_after: int = 0
    old: Tokens = field(default_factory=lambda: NO_TOKENS)

    @property
    def n_left_out(self) -> int:
        """Tokens of the document that the prompt does not hold."""
        return len(self.left) + len(self.right) - self.n_before - self.n_after


@dataclass(slots=True)
class SourceStats:
    n_drafted: int = 0
    n_accepted: int = 0


@dataclass(slots=True)
class Trace:
    """Record of one request; every time in milliseconds."""

    n_tokens: int = 0
    n_repeated: int = 0  # tokens of these that only spell the held-back bytes
    n_old: int = 0  # tokens of the text that the output was expected to repeat much of
    n_old_copied: int = 0  # tokens of these that the output has
    n_target_passes: int = 0
    n_drafted: int = 0
    n_accepted: int = 0
    n_prompt_tokens: int = 0
    n_prompt_cached: int = 0
    n_left_out: int = 0  # tokens of the document that the prompt does not hold
    n_snippets: int = 0  # texts of other files in the prompt
    by_source: dict[str, SourceStats] = field(default_factory=dict[str, SourceStats])
    # One element a pass of the target: its time, its width in tokens, the depth of the draft, the
    # accepted tokens.
    pass_ms: list[float] = field(default_factory=list[float])
    pass_width: list[int] = field(default_factory=list[int])
    pass_depth: list[int] = field(default_factory=list[int])
    pass_accepted: list[int] = field(default_factory=list[int])
    ms: float = 0.0
    paused_ms: float = 0.0  # part of `ms` in which others took their turn
    context_ms: float = 0.0
    begin_ms: float = 0.0  # for the drafters to find their sources
    draft_ms: float = 0.0
    target_ms: float = 0.0
    first_token_ms: float = 0.0
    model_ms: float = 0.0  # in passes of models, prefill and drafting included
    syntax_ms: float = 0.0
    finish_ms: float = 0.0
    shape: str = ""  # kind of shape of the suggestion
    shape_why: ShapeReason | None = None
    trimmed: tuple[Trimming, ...] = ()  # changes before the text was shown, in their order
    # Probability that the text is kept up to each of its lines; empty where none was asked for.
    chances: tuple[float, ...] = ()
    n_likely: int = 0  # lines of these that are suggested
    has_log_probs: bool = False  # False where the chances come from length and place alone
    n_stop: int = -1  # place, among the request's, of the stop text that ended it; -1: none did
    is_limited: bool = False  # True if the client's limit of indentation or time ended it
    model: str = ""
    n_ctx: int = 0  # tokens that the model's context holds
    backend: str = ""


Finish: TypeAlias = Literal["stop", "length", "deadline", "cancelled", "empty"]


FimOrder: TypeAlias = Literal["psm", "spm", "suffix-first"]


@dataclass(frozen=True, slots=True)
class FileMarkers:
    """Markers by which a model was trained to tell files apart, see `context.snippets`. Ids; -1:
    none.

    repository: marker before the name of a repository.
    file:       marker before the path of each file.
    heading:    text before each path instead, for models without a marker.
    is_inside:  True if the path of the cursor's own file stands behind the marker of the prefix,
        and, where no marker precedes files, the paths of all of them.
    """

    repository: int = -1
    file: int = -1
    heading: str = ""
    is_inside: bool = False


@dataclass(frozen=True, slots=True)
class FimTokens:
    """Ids of a model's fill-in-the-middle markers, and the order it was trained with, see
    `context.fim`."""

    prefix: int
    suffix: int
    middle: int  # -1: none; "suffix-first" alone, the prefix is last
    order: FimOrder = "psm"
    files: FileMarkers | None = None  # None: other files are comments to it

    @property
    def markers(self) -> tuple[int, ...]:
        """Markers of a prompt without other files: before the prefix, the suffix, the middle."""
        return tuple(t for t in (self.prefix, self.suffix, self.middle) if t >= 0)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    name: str
    path: str
    architecture: str
    n_vocab: int
    n_ctx: int
    n_params: int
    file_bytes: int
    fim: FimTokens | None
    eog: frozenset[int]  # end-of-generation ids: the output stops before them
    bos: int | None  # id to put first, None where the model wants none
    tokenizer_hash: str  # equal hashes: the same text gives the same ids
    backend: str  # "cpu", "cuda", "metal", ..., "fake"


class Tokenizer(Protocol):
    """Text to token ids and back. Thread-safe: the indexer reads several files at a time."""

    @property
    def n_vocab(self) -> int: ...
    @property
    def hash(self) -> str:
        """Identity of the vocabulary; names index segments."""
        ...

    def encode(self, text: str | bytes) -> Tokens:
        """Ids of plain text: special tokens in it are read as text, nothing is added."""
        ...

    def piece(self, token: int) -> bytes:
        """The bytes of one token; b"" for special tokens and ids out of range."""
        ...

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes: ...


class LogitsRows(Protocol):
    """Logits of one pass: row 0 follows the committed tokens, row i + 1 follows draft node i.
    Rows are read lazily and are valid until the model's next pass."""

    def row(self, i: int) -> Logits:
        """(n_vocab,) float32; do not write."""
        ...

    def argmax(self, i: int) -> int: ...
