"""Native text index over token ids: a live suffix automaton and frozen, memory-mapped segments.

Both answer the same question: after this context, what did the text say before? Tokens are int32,
0 <= id < 2**31; arrays are one-dimensional, C-contiguous, of exactly the dtype named, and are
never converted silently (TypeError). All offsets count tokens.
"""

import os
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

MAX_DEPTH: int
"""Longest left context a segment tells apart, 64 tokens."""

def common_prefix(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32]) -> int:
    """Length of the longest common prefix of two arrays of tokens."""

@final
class Proposal:
    """A drafted chain of k tokens. Immutable; its arrays are read-only views of it, (k,) int32.

    Step i drafts the token most often found after a suffix of context + tokens[:i]. At most 1,024
    tokens, whatever was asked.
    """

    def __len__(self) -> int: ...
    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The drafted ids."""

    @property
    def counts(self) -> npt.NDArray[np.int32]:
        """Occurrences that voted for tokens[i]. 1 <= counts[i] <= totals[i]."""

    @property
    def totals(self) -> npt.NDArray[np.int32]:
        """Occurrences asked at step i: those followed by any token. A segment asks at most 64."""

    @property
    def match_lengths(self) -> npt.NDArray[np.int32]:
        """Length of the suffix of context + tokens[:i] that the occurrences of step i share, at
        most the depth (64). Grows by one each step; a fall is a back-off."""

    @property
    def alt_tokens(self) -> npt.NDArray[np.int32]:
        """Runner-up at step i, -1 where all occurrences agree: the second branch of a tree."""

    @property
    def alt_counts(self) -> npt.NDArray[np.int32]:
        """Votes for the runner-up, 0 where there is none."""

    @property
    def columns(self) -> npt.NDArray[np.int32]:
        """(6, k) all of the above, in this order."""

    @property
    def match_length(self) -> int:
        """match_lengths[0]; 0 for an empty proposal."""

    @property
    def n_matches(self) -> int:
        """Occurrences of the matched suffix at step 0, before sampling. A segment counts those in
        dead documents too. 0 for an empty proposal."""

    @property
    def position(self) -> int:
        """Where tokens[0] stands in the indexed text, in one of the occurrences that voted for it:
        an index into the automaton's text, or what `Segment.locate` takes. -1 when empty."""

@final
class SuffixAutomaton:
    """Online suffix automaton of one growing text: the live index of an open document.

    The text may hold breaks (any negative id, stored as -1), which no match and no draft
    crosses, so that several texts can share one automaton. A break counts as one position.

    Counts are exact for every string of at most max_depth + 1 tokens (a full match and the token
    after it); keeping them costs at most max_depth + 1 increments per token, so extension is linear
    even on one token repeated. On code a token takes about 58 bytes and 0.1 to 0.3 us.
    Thread-safe: calls on one automaton take turns.

    Source: Blumer et al. 1985, The smallest automaton recognizing the subwords of a text; several
    texts: Mohri, Moreno, Weinstein 2009, General suffix automaton construction algorithm.
    """

    def __init__(self, max_depth: int = 64) -> None:
        """max_depth: longest context matched, 1 to 64 tokens.

        Raises: ValueError.
        """

    def __len__(self) -> int:
        """Tokens and breaks in the text."""

    @property
    def max_depth(self) -> int: ...
    @property
    def n_states(self) -> int: ...
    @property
    def n_bytes(self) -> int:
        """Heap in use, undo log and growth reserve included."""

    @property
    def text(self) -> npt.NDArray[np.int32]:
        """A copy of the text, -1 for breaks."""

    def extend(self, tokens: npt.NDArray[np.int32]) -> None:
        """Append to the text. Releases the GIL for more than 64 tokens.

        Raises: OverflowError, and changes nothing, for over 2**30 tokens in all; MemoryError, and
        is empty then.
        """

    def extend_break(self) -> None:
        """Append a break."""

    def truncate(self, n: int) -> None:
        """Undo extensions until exactly the first n tokens and breaks remain: afterwards every
        answer equals that of an automaton built from those alone. Costs about as much as the
        extension did. Releases the GIL.

        Raises: ValueError when n is not in 0..len(self).
        """

    def assign(self, tokens: npt.NDArray[np.int32]) -> None:
        """Make exactly `tokens` the text, by `truncate` and `extend`. Costs what differs after the
        part at the start that is the same.

        Raises: as `extend`.
        """

    def count(self, string: npt.NDArray[np.int32]) -> int:
        """How often `string` occurs. Raises: ValueError for over max_depth tokens or none."""

    def followers(self, string: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
        """Tokens that follow `string` with how often, most often first, then by id.

        Raises: ValueError for over max_depth tokens or none.
        """

    def match(self, context: npt.NDArray[np.int32]) -> int:
        """Length of the longest suffix of `context`, at most max_depth, that occurs in the text."""

    def draft(
        self,
        context: npt.NDArray[np.int32],
        n_max: int,
        min_length: int = 1,
        allowed: npt.NDArray[np.int32] | None = None,
    ) -> Proposal:
        """Continue `context` (its last max_depth tokens, or what follows its last break).

        allowed: ascending ids; the first drafted token is one of them, and an occurrence that
            another follows does not count. None: any.

        At each step: w is the longest suffix of context + drafted tokens, min_length <= len(w) <=
        max_depth, with an occurrence that a token follows; the draft goes on with the token that
        follows w most often (equal counts: the one seen last). Ends at n_max tokens or when there
        is no such w. The text may contain `context` itself, e.g. as its tail.
        """

    def draft_tail(
        self, n_max: int, min_length: int = 1, allowed: npt.NDArray[np.int32] | None = None
    ) -> Proposal:
        """As `draft` for the automaton's own text as context, without the search: the match is
        the longest suffix that occurred earlier."""

def build_segment(
    path: str | os.PathLike[str],
    tokens: npt.NDArray[np.int32],
    doc_starts: npt.NDArray[np.int64],
) -> None:
    """Sort the positions of these documents and write a segment file.

    path: written in place; write under a temporary name, fsync and rename for atomicity.
    tokens: (n,) all documents, one after the other.
    doc_starts: (n_docs,) offset of each document in `tokens`: not falling, the first 0. A document
        ends where the next begins; it may be empty. Its index is its id in `dead` and `locate`.

    Tokens and positions take as many bits as the largest needs, together with 1/16 byte for the
    search: 5.4 bytes per token for 20 M tokens of a vocabulary of 150,000. The file is a function
    of the arguments. Releases the GIL. Needs about 3 times the bytes of `tokens` besides them, up
    to 11 times where one token is most of the text.

    Raises: ValueError for negative ids, bad offsets or over 2**32 - 2 tokens and documents;
    OSError when the file cannot be written.
    """

class DamagedSegmentError(ValueError):
    """Something in a segment's file is not what was written."""

def map_file(path: str | os.PathLike[str]) -> npt.NDArray[np.uint8]:
    """A file's bytes, mapped read-only as long as the array lives. Once reading finds that the file
    was cut short, or its disk fails, all of them are zeros; no process ends of it.

    Raises: OSError.
    """

@final
class Segment:
    """Frozen index of a set of documents, memory-mapped read-only, safe to share between threads
    and processes. All positions, sorted by their left context read backwards and cut at 64 tokens:
    the suffix-link tree of the documents' suffix automaton laid flat. No context crosses documents.

    Each block of the file is compared with its checksum before it is first used, until all were.
    Every read is bounds-checked besides: a file that is damaged later may propose other tokens
    (still below `n_vocab`), never crash. One that is cut short while it is open counts as damaged.
    It stays mapped as long as the object lives; there is no close.

    Methods that read the file raise DamagedSegmentError from the first damaged block on.

    Source: Manber and Myers 1990, Suffix arrays; sorting: Bentley and Sedgewick 1997, Fast
    algorithms for sorting and searching strings.
    """

    @staticmethod
    def open(path: str | os.PathLike[str]) -> Segment:
        """Map a file that `build_segment` wrote and check its header, the table of checksums, and
        where documents begin. Costs well under a millisecond, a few for the largest.

        Raises: OSError when it cannot be read; ValueError when it is not an intact segment of
        this version.
        """

    @property
    def n_tokens(self) -> int: ...
    @property
    def n_docs(self) -> int: ...
    @property
    def n_vocab(self) -> int:
        """Largest id + 1, 0 without tokens."""

    @property
    def n_bytes(self) -> int:
        """Size of the file."""

    @property
    def token_bits(self) -> int:
        """Bits that the file takes for each token, 1 to 32."""

    @property
    def n_blocks(self) -> int:
        """Checksummed blocks of 4 KiB."""

    @property
    def is_checked(self) -> bool:
        """Whether every block was compared since this object was made, and none is damaged."""

    def check_some(self, n_blocks: int) -> bool:
        """Compare some more blocks with their checksums, 1 GB/s; True while there are more. Lookups
        are a fifth quicker once all are compared. Releases the GIL."""

    def verify(self) -> list[int]:
        """Read everything and compare the checksums (CRC-32C); about 1 GB/s. Releases the GIL.

        Returns: the damaged blocks, ascending; n_blocks stands for the table of checksums,
        n_blocks + 1 for the header. Any change of up to 4 adjacent bytes is found with certainty.
        """

    def match(self, context: npt.NDArray[np.int32]) -> tuple[int, int, int]:
        """(length, lo, hi): the longest suffix of `context`, at most 64 tokens, that occurs with a
        token after it in the same document, and its interval in the sorted positions: hi - lo is
        how often. (0, 0, 0) when not even the last token does."""

    def draft(
        self,
        context: npt.NDArray[np.int32],
        n_max: int,
        min_length: int = 1,
        dead: npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | None = None,
        allowed: npt.NDArray[np.int32] | None = None,
    ) -> Proposal:
        """Continue `context` (its last 64 tokens, or what follows its last negative id).

        dead: (n_docs,) nonzero for documents whose text must not be used.
        allowed: ascending ids; the first drafted token is one of them, and an occurrence that
            another follows counts as dead. None: any.

        Search: w is the longest suffix of context + drafted tokens, min_length <= len(w) <= 64,
        that has a live occurrence with a token after it. Of its m occurrences, sorted, those at
        i * m // k for i in range(k), k = min(m, 64), are asked; if all these are dead, k = min(m,
        1024) and the first 64 live ones; if none, a shorter w. At each step the sample votes for
        the next token (equal votes: the lowest id) and only those that agree remain. When none is
        left, because their documents end, the search is repeated. Ends at n_max tokens or when a
        search finds nothing.

        Holds the GIL: a few microseconds when the pages are in memory.

        Raises: ValueError when `dead` has another length than n_docs.
        """

    def locate(self, position: int) -> tuple[int, int]:
        """(document, offset in it) of a `Proposal.position`. Raises: IndexError out of range."""

    def doc_tokens(self, doc: int) -> npt.NDArray[np.int32]:
        """A copy of one document's tokens; of a damaged file, any integers.

        Raises: IndexError out of range.
        """

MAX_WORD_BYTES: int
"""Longest word that a `WordTable` keeps."""

@final
class WordTable:
    """Words of ASCII text and their tokens, for tokenising much text at once: text is split as
    BPE models do before any merge, and each word looked up. Thread-safe; up to about 40 bytes a
    word. 100 to 200 MB of text a second where all words are known.
    """

    def __init__(self, splitting: int, max_words: int) -> None:
        """splitting: the expression that ends words: 0 qwen2, 1 llama 3 and gpt-4, 2 gpt-2.
        max_words: a full table learns nothing more.

        Raises: ValueError.
        """

    def __len__(self) -> int:
        """Words in the table."""

    def encode(
        self, text: bytes, opaque: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int64]]:
        """(tokens, unknown): the tokens of the whole text, with -1 - i in the place of those of
        unknown[i]. Releases the GIL.

        opaque: (m, 2) ascending spans of bytes that are not split: each is one of the unknown.
            Words end where one begins. Bytes beyond ASCII belong into such a span.
        unknown: (k, 2) spans of bytes; a word that is met again has the number of its first.

        Raises: ValueError for spans that are empty, not ascending, or beyond the text.
        """

    def learn(
        self,
        text: bytes,
        words: npt.NDArray[np.int64],
        tokens: npt.NDArray[np.int32],
        lengths: npt.NDArray[np.int64],
    ) -> None:
        """Put words text[begin:end] with their tokens, lengths[i] each, into the table. Words over
        `MAX_WORD_BYTES`, beyond ASCII, or in it already are left out.

        Raises: ValueError for spans beyond the text, or lengths that do not fit.
        """

@final
class Sources:
    """The texts that one request is drafted from, asked together, and what they offer. Not
    thread-safe; holds the GIL, some microseconds a source.

    A context is a base, the same for the whole request, and a tail that grows. Each source
    remembers where it stands: a token more costs a step and not the whole context again; any other
    context, and any change of an automaton, is seen and matched anew.
    """

    def __init__(self, base: npt.NDArray[np.int32]) -> None:
        """base: kept, and not to be written to."""

    def __len__(self) -> int:
        """How many sources there are."""

    def add_before(self, source: int, automaton: SuffixAutomaton) -> None:
        """The text before the cursor, as source 0..7. It is made to read each context, whose draft
        is then that of its own tail (`SuffixAutomaton.draft_tail`; of contexts of less than two
        tokens `draft`). Distances count from its end. Raises: ValueError."""

    def add_automata(
        self, source: int, automata: Sequence[SuffixAutomaton], is_after: bool = False
    ) -> None:
        """Other texts, kept alive. What `SuffixAutomaton.draft` gives of the automaton whose draft
        has the longest match, of the first where several have, speaks for all. is_after: of the
        text after the cursor, so that positions are distances. Raises: ValueError."""

    def add_segments(
        self,
        source: int,
        segments: Sequence[tuple[Segment, npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | None]],
    ) -> None:
        """Frozen files, each segment with its dead documents (see `Segment.draft`), which must not
        be written to from now on. The longest match of any segment speaks, of equal ones that with
        the most votes. A damaged segment is asked no more. Raises: ValueError, TypeError."""

    def draft(
        self,
        i: int,
        tail: npt.NDArray[np.int32],
        n_max: int,
        allowed: npt.NDArray[np.int32] | None = None,
    ) -> Proposal:
        """What the i-th says after base + `tail`. allowed: see `SuffixAutomaton.draft`.

        Raises: IndexError.
        """

    def draft_all(
        self,
        tail: npt.NDArray[np.int32],
        n_max: int,
        allowed: npt.NDArray[np.int32] | None = None,
    ) -> list[tuple[int, Proposal]]:
        """What each says that says anything, by its number, ascending."""

    def ask(self, tail: npt.NDArray[np.int32], path: npt.NDArray[np.int32], n_max: int) -> int:
        """What each says after base + `tail`, at most `n_max` tokens, becomes an offer. How many
        had anything to say. path: where in a draft the offers begin, drafted tokens that offers
        before them hold; they are the end of `tail`."""

    def ask_last(self, n_max: int) -> int:
        """The same for the last token alone of the last `ask`, wherever it stands."""

    def offer(
        self,
        i: int,
        position: int,
        columns: npt.NDArray[np.int32],
        path: npt.NDArray[np.int32],
    ) -> None:
        """What was found for the i-th elsewhere: position and columns as of a `Proposal`.

        Raises: IndexError; ValueError for other than 6 columns.
        """

    @property
    def offers(self) -> list[tuple[int, npt.NDArray[np.int32]]]:
        """Source and tokens of each."""

    def clear(self) -> None:
        """Forget all offers."""

@final
class Vocabulary:
    """The bytes of every token: which tokens start with, or are a start of, given bytes. Not
    thread-safe."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        """By id; b"" for tokens that stand for no text."""

    def __len__(self) -> int: ...
    def compatible(self, wanted: bytes) -> npt.NDArray[np.int32]:
        """Ids, ascending, of tokens that start with `wanted` or that it starts with.

        Raises: ValueError where nothing is wanted.
        """

    def containing(self, part: bytes) -> npt.NDArray[np.int32]:
        """Ids of tokens with `part` in their bytes. Takes some milliseconds."""

@final
class Encoder:
    """Plain text to tokens by llama_tokenize: special tokens in it are read as text, nothing is
    added. By addresses, of the function and of a vocabulary, which must outlive it: nothing here is
    checked. lead: put before each text, and gone from the tokens with the first n_lead of them.
    Thread-safe; other threads run meanwhile. Raises: ValueError."""

    def __init__(self, tokenize: int, vocabulary: int, lead: bytes, n_lead: int) -> None: ...
    def __call__(self, text: bytes) -> npt.NDArray[np.int32]: ...

@final
class Boundary:
    """The cursor of one request, where it may stand inside a token. Not thread-safe.

    Before the cursor `foo(` ends in a token `(`, where a file that goes on has `(self`: around the
    cursor, files that hold the same text have other tokens than the prompt. So a lookup there goes
    back to where both agree, takes only what starts with the text since then, and proposes what
    lies beyond the prompt's end, in tokens that the model would say there.
    """

    def __init__(
        self,
        left: npt.NDArray[np.int32],
        healed: bytes,
        vocabulary: Vocabulary,
        encode: Callable[[bytes], npt.NDArray[np.int32]],
    ) -> None:
        """left: the prompt's tokens before the cursor, without the piece held back. healed: that
        piece, which the output must start with. encode: as of the model's tokenizer; an `Encoder`
        is not asked by way of Python."""

    @property
    def n_base(self) -> int:
        """How many of the tokens before the cursor prompt and files agree on: `Sources` begin with
        those."""

    def is_within(self, emitted: npt.NDArray[np.int32]) -> bool:
        """Whether, after these tokens, drafts may still begin inside a token of a file."""

    def ask(
        self,
        emitted: npt.NDArray[np.int32],
        path: npt.NDArray[np.int32],
        n_max: int,
        sources: Sources,
    ) -> int:
        """What sources say after these tokens becomes offers, see `Sources.ask`."""

@final
class Planner:
    """Chooses, of what all sources propose, the draft with the most expected tokens per
    millisecond. Not thread-safe; nothing it is given can make it crash.

    The proposals are merged into one tree. P(token accepted | the tokens before it accepted) is a
    sum of table entries through the logistic function, which learn from every outcome. Under 0.2 us
    a token, the choice included.

    Source: Hastie and Tibshirani 1986, Generalized additive models. Trees of the likeliest nodes:
    Li et al. 2024, EAGLE-2.
    """

    n_shared: int
    """Weights that all sources share."""
    n_by_source: int
    """Weights that each source has for itself."""
    n_features: int
    """Table entries a token's probability is the sum of."""
    max_sources: int

    def __init__(self, classes: npt.NDArray[np.uint8], n_sources: int) -> None:
        """classes: (n_vocab,) kind of each token, 0 to 15; 1 stands for the end of a line.
        n_sources: 1 to max_sources; ids of sources are below it.

        Raises: ValueError.
        """

    @property
    def n_sources(self) -> int: ...
    @property
    def n_weights(self) -> int:
        """Numbers of a state: n_shared, then n_by_source of each source."""

    def state(self) -> npt.NDArray[np.float32]:
        """(n_weights,) all that was learned."""

    def load(self, state: npt.NDArray[np.float32]) -> None:
        """Start from an earlier `state`, or a prior, (n_weights,).

        Raises: ValueError, and changes nothing, for arrays of other sizes and absurd numbers.
        """

    def begin(self, before: npt.NDArray[np.int32], after: npt.NDArray[np.int32]) -> None:
        """A completion between these texts starts. Costs 1 to 2 ns a token."""

    def plan(
        self,
        sources: Sources,
        n_max: int,
        max_leaves: int,
        costs: npt.NDArray[np.float64],
        again: float = 0.0,
        n_tail: int = 1,
    ) -> (
        tuple[
            npt.NDArray[np.int32],
            npt.NDArray[np.int32],
            npt.NDArray[np.float32],
            npt.NDArray[np.int8],
            npt.NDArray[np.uint8],
        ]
        | None
    ):
        """Tokens, parents, probabilities and sources of the tree to verify, parents first; None
        where nothing pays. Last, 1 for each token after which no offer goes on.

        sources: with what they offered. An offer whose path none before it holds is left aside.
        n_max, max_leaves: most tokens and branches of the tree; with one leaf, runner-ups are left
            aside.
        costs: (n_max + 1,) milliseconds of passes that draft 0, 1, ... n_max tokens.
        again, n_tail: of chains, where committed tokens are read again after a draft that was not
            wholly right: the cost of each, and how many this pass reads.

        Raises: ValueError for costs that are not positive and sources out of range.
        """

    def ended(self, n_emitted: int) -> None:
        """The text ended of itself behind so many of the tokens that `learn` told of. What is
        drafted behind line ends is worth less where texts end there."""

    def learn(self, known: Sequence[int], n_emitted: int) -> None:
        """What follows where the last `plan` began. The first `n_emitted` tokens are part of the
        text from now on; more are known only when a text that exists is replayed."""

    def outcomes(
        self,
    ) -> tuple[
        npt.NDArray[np.int8],
        npt.NDArray[np.int32],
        npt.NDArray[np.float32],
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint16],
    ]:
        """Of every token that the last `learn` decided: its source, match length, probability,
        whether it was accepted, and its table entries, (n * n_features,)."""

@final
class Batch:
    """The arrays that a pass reads its tokens from, filled without numpy: between two passes of a
    small model each of its operations takes ten times as long as in a hot loop."""

    def __init__(
        self,
        tokens: npt.NDArray[np.int32],
        positions: npt.NDArray[np.int32],
        wanted: npt.NDArray[np.int8],
    ) -> None:
        """(n,) each, not copied and kept alive. wanted: whether the model says what follows."""

    def lay(
        self,
        committed: npt.NDArray[np.int32],
        chain: npt.NDArray[np.int32],
        start: int,
        want: bool,
    ) -> None:
        """Committed tokens from position `start` on and a chain after them. want: what follows the
        last of `committed` and each of `chain`; else nothing.

        Raises: ValueError for more tokens than there is room for, or a negative start.
        """

@final
class Rows:
    """`types.LogitsRows` over logits in one piece."""

    def __init__(self, logits: npt.NDArray[np.float32]) -> None:
        """(n, n_vocab), not copied and kept alive."""

    def row(self, i: int) -> npt.NDArray[np.float32]:
        """(n_vocab,) a view; do not write. Raises: IndexError."""

    def argmax(self, i: int) -> int:
        """The lowest id of the largest logit. Raises: IndexError."""

ENDS_STRETCH: int
ENDS_TEXT: int
"""Of a token in `LlamaContext.stretch`: the stretch ends after its pass; nothing follows it."""

@final
class Drafting:
    """What stretches are drafted from: what `sources` say after their base and what was emitted, as
    `boundary` asks them where there is one, weighed by `planner`; chains. costs: float64, two rows,
    of passes over 1, 2, ... tokens, one more than are drafted at most, after a wide pass and after
    one over one token. All of them are kept, and not to be written to. Raises: ValueError,
    TypeError.
    """

    def __init__(
        self,
        sources: Sources,
        boundary: Boundary | None,
        planner: Planner,
        costs: npt.NDArray[np.float64],
    ) -> None: ...

    is_back: bool
    """Whether the next pass follows one over one token; True at first."""
    width: int
    """Passes over fewer tokens are filled up to this; 1 at first."""

@final
class Ends:
    """Where stretches end. marks: uint8, of each token of the vocabulary: ENDS_TEXT for one that
    nothing follows, ENDS_STRETCH for one with whose pass a stretch ends, 0 for others."""

    def __init__(self, marks: npt.NDArray[np.uint8]) -> None: ...

@final
class Stretch:
    """Passes in a row. tokens: emitted. widths: tokens of each pass; n_drafted, n_accepted,
    draft_ms, pass_ms: of each, too. by_source: (source, tokens drafted, tokens accepted) of each
    source that drafted. is_damaged: whether drafting failed; the rest was done without. code:
    llama.cpp's; that of a pass that could not be done, where it is not 0. Lists are not copied.
    """

    @property
    def tokens(self) -> list[int]: ...
    @property
    def widths(self) -> list[int]: ...
    @property
    def n_drafted(self) -> list[int]: ...
    @property
    def n_accepted(self) -> list[int]: ...
    @property
    def draft_ms(self) -> list[float]: ...
    @property
    def pass_ms(self) -> list[float]: ...
    @property
    def by_source(self) -> list[tuple[int, int, int]]: ...
    @property
    def is_damaged(self) -> bool: ...
    @property
    def code(self) -> int: ...

STEP_COUNTER: int
"""Address of `bool (*)(void* steps)`, a callback of llama.cpp that is asked whether to give up a
pass: it adds 1 to the 64 bits at `steps` and says no."""

@final
class LlamaContext:
    """A context of llama.cpp by addresses: of llama_decode, llama_get_logits and
    llama_memory_seq_rm, of what they take, and of a batch whose tokens are all in sequence 0. All
    of them must outlive it: nothing here is checked."""

    def __init__(
        self,
        decode: int,
        logits: int,
        remove: int,
        context: int,
        memory: int,
        batch: int,
        n_vocab: int,
        n_ctx: int,
    ) -> None: ...
    def stretch(
        self,
        drafting: Drafting | None,
        emitted: Sequence[int],
        last: int,
        n_cached: int,
        ends: Ends,
        n_tokens: int,
        n_passes: int,
        n_draft: int,
        ms: float,
        interrupted: Callable[[], bool],
    ) -> Stretch:
        """Greedily on from the committed token `last`, while the cache holds the `n_cached` before
        it; in the end it holds all but the last one emitted. Releases the GIL in passes. See
        `engine.stretch.StretchingTarget`. Raises: ValueError, and what `interrupted` raises."""

def accepts(accept: int, sampler: int, token: int) -> bool:
    """Whether a sampler of llama.cpp takes in a token: whether its function llama_sampler_accept,
    given by its address, as the sampler is, ends otherwise than with an exception. Nothing here is
    checked. Raises: ValueError for an address that is 0."""
