"""Native index over token ids, for prompt lookup drafting: a live suffix automaton, and frozen,
memory-mapped segments; and the planner and greedy decode loop that use them.

Both indexes answer one question: which tokens followed this context before? Tokens are int32,
0 <= id < 2**31; arrays are one-dimensional, C-contiguous, of exactly the dtype named, and are
never converted silently (TypeError). All offsets count tokens.
"""

import os
from collections.abc import Callable, Sequence
from typing import final

import numpy as np
import numpy.typing as npt

MAX_DEPTH: int
"""Longest context that a segment matches: 64 tokens."""

def common_prefix(a: npt.NDArray[np.int32], b: npt.NDArray[np.int32]) -> int:
    """Length of the longest common prefix of two arrays of tokens."""

@final
class Proposal:
    """A chain of k tokens that one source drafts. Immutable; its arrays are read-only views of it,
    (k,) int32. k is at most 1,024.

    Step i drafts the token that most often follows a suffix of context + tokens[:i].
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
        """Occurrences that vote at step i: those followed by any token. A segment counts at most
        64."""

    @property
    def match_lengths(self) -> npt.NDArray[np.int32]:
        """Length of the suffix of context + tokens[:i] that the occurrences of step i share, at
        most the depth (64). Grows by one each step; a fall is a back-off."""

    @property
    def alt_tokens(self) -> npt.NDArray[np.int32]:
        """Runner-up at step i, a second branch of the draft tree; -1 where all occurrences
        agree."""

    @property
    def alt_counts(self) -> npt.NDArray[np.int32]:
        """Votes for the runner-up, 0 where there is none."""

    @property
    def columns(self) -> npt.NDArray[np.int32]:
        """(6, k) int32, all of the above, in this order."""

    @property
    def match_length(self) -> int:
        """match_lengths[0]; 0 for an empty proposal."""

    @property
    def n_matches(self) -> int:
        """Occurrences of the matched suffix at step 0, before sampling. A segment counts those in
        dead documents too. 0 for an empty proposal."""

    @property
    def position(self) -> int:
        """Position of tokens[0] in one of the occurrences that voted for it: an index into the
        automaton's text, or an argument of `Segment.locate`. -1 when empty."""

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
        """Bytes of heap in use, undo log and growth reserve included."""

    @property
    def text(self) -> npt.NDArray[np.int32]:
        """(n,) int32 copy of the text, -1 for breaks."""

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
        """Make exactly `tokens` the text, by `truncate` and `extend`. The cost is that of the
        tokens after the common prefix.

        Raises: as `extend`.
        """

    def count(self, string: npt.NDArray[np.int32]) -> int:
        """Number of occurrences of `string`. Raises: ValueError for over max_depth tokens or
        none."""

    def followers(self, string: npt.NDArray[np.int32]) -> list[tuple[int, int]]:
        """(token, number of times it follows `string`) for each, most frequent first, then by id.

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

        n_max: most drafted tokens. min_length: shortest match.
        allowed: ascending ids; the first drafted token is one of them, and an occurrence followed
            by another does not count. None: any.

        At each step: w is the longest suffix of context + drafted tokens, min_length <= len(w) <=
        max_depth, with an occurrence that a token follows; the draft goes on with the token that
        follows w most often (equal counts: the one seen last). Ends at n_max tokens or when there
        is no such w. The text may contain `context` itself, e.g. as its tail.
        """

    def draft_tail(
        self, n_max: int, min_length: int = 1, allowed: npt.NDArray[np.int32] | None = None
    ) -> Proposal:
        """Draft with the automaton's own text as context, without a search: the match is the
        longest suffix that occurred earlier. Arguments as of `draft`."""

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
    """A segment's file differs from what was written: a checksum failed."""

def map_file(path: str | os.PathLike[str]) -> npt.NDArray[np.uint8]:
    """(n_bytes,) a file's bytes, mapped read-only as long as the array lives. Once the file is
    found to be truncated, or its disk fails, all of them read as zeros; no process crashes.

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
        """Bits a token in the file, 1 to 32."""

    @property
    def n_blocks(self) -> int:
        """Number of checksummed blocks of 4 KiB."""

    @property
    def is_checked(self) -> bool:
        """True if every block was compared with its checksum since `open`, and none is damaged."""

    def check_some(self, n_blocks: int) -> bool:
        """Compare up to `n_blocks` more blocks with their checksums, 1 GB/s. Returns: True while
        there are more. Lookups are a fifth faster once all are compared. Releases the GIL."""

    def verify(self) -> list[int]:
        """Read everything and compare the checksums (CRC-32C); about 1 GB/s. Releases the GIL.

        Returns: the damaged blocks, ascending; n_blocks stands for the table of checksums,
        n_blocks + 1 for the header. Any change of up to 4 adjacent bytes is found with certainty.
        """

    def match(self, context: npt.NDArray[np.int32]) -> tuple[int, int, int]:
        """(length, lo, hi): the longest suffix of `context`, at most 64 tokens, that occurs with a
        token after it in the same document, and its interval in the sorted positions: hi - lo is
        how often. (0, 0, 0) when not even the last token does."""

    def holders(self, string: npt.NDArray[np.int32], most: int) -> list[int]:
        """Documents with this string of 1 to 64 tokens and a token behind it, one for each place;
        none where there are more than `most` places.

        Raises: ValueError for a string of another length.
        """

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
    """Cache of words of ASCII text and their tokens, to tokenise much text: it is split as BPE
    tokenizers do before any merge (pre-tokenisation), and each word looked up. Thread-safe; up to
    about 40 bytes a word. 100 to 200 MB of text a second where all words are known.
    """

    def __init__(self, splitting: int, max_words: int) -> None:
        """splitting: the pre-tokenisation expression: 0 qwen2, 1 llama 3 and gpt-4, 2 gpt-2.
        max_words: capacity; a full table learns no more words.

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
    """The texts that one request drafts from, looked up together, and their offers: proposals
    together with the branch of the draft tree that they continue. Not thread-safe; holds the GIL,
    some microseconds a source.

    A context is a base, the same for the whole request, and a tail that grows. Each source keeps
    its
    match: one more token costs a step of the automaton, not the whole context again. Another
    context, or a changed automaton, is matched anew.
    """

    def __init__(self, base: npt.NDArray[np.int32]) -> None:
        """base: (n,) kept alive, and not to be written to."""

    def __len__(self) -> int:
        """Number of sources."""

    def add_before(self, source: int, automaton: SuffixAutomaton) -> None:
        """Add the text before the cursor. Its automaton is extended with each context, so that it
        drafts from its own tail (`SuffixAutomaton.draft_tail`; for contexts of less than two tokens
        `draft`). Distances count from its end.

        source: number below `Planner.max_sources`. Raises: ValueError.
        """

    def add_automata(
        self, source: int, automata: Sequence[SuffixAutomaton], is_after: bool = False
    ) -> None:
        """Add automata of other texts, kept alive, as one source. Its proposal is the draft with
        the longest match, the first of equals. is_after: True for the text after the cursor, where
        positions are distances. Raises: ValueError."""

    def add_segments(
        self,
        source: int,
        segments: Sequence[tuple[Segment, npt.NDArray[np.bool_] | npt.NDArray[np.uint8] | None]],
    ) -> None:
        """Add segments as one source, each with its dead documents (see `Segment.draft`), which
        must not be written to from now on. Its proposal is the draft with the longest match, of
        equal ones that with the most votes. A damaged segment is skipped. Raises: ValueError,
        TypeError.
        """

    def draft(
        self,
        i: int,
        tail: npt.NDArray[np.int32],
        n_max: int,
        allowed: npt.NDArray[np.int32] | None = None,
    ) -> Proposal:
        """Proposal of the i-th source after base + `tail`. allowed: see `SuffixAutomaton.draft`.

        Raises: IndexError.
        """

    def draft_all(
        self,
        tail: npt.NDArray[np.int32],
        n_max: int,
        allowed: npt.NDArray[np.int32] | None = None,
    ) -> list[tuple[int, Proposal]]:
        """(source, proposal) of every source that has one, by number, ascending."""

    def ask(self, tail: npt.NDArray[np.int32], path: npt.NDArray[np.int32], n_max: int) -> int:
        """Look up base + `tail` in each source; every proposal, of at most `n_max` tokens, becomes
        an offer. path: the drafted tokens that the offers follow, the end of `tail`; earlier offers
        hold them. Returns: number of offers."""

    def ask_last(self, n_max: int) -> int:
        """Look up the last token of the last `ask` alone, as a context of length one. Returns:
        number of offers."""

    def offer(
        self,
        i: int,
        position: int,
        columns: npt.NDArray[np.int32],
        path: npt.NDArray[np.int32],
    ) -> None:
        """Add an offer of the i-th source from outside; position and columns as of a `Proposal`.

        Raises: IndexError; ValueError for other than 6 columns.
        """

    @property
    def offers(self) -> list[tuple[int, npt.NDArray[np.int32]]]:
        """(source, tokens) of each offer."""

    def clear(self) -> None:
        """Forget all offers."""

@final
class Vocabulary:
    """The bytes of every token, searched by prefix: for token healing. Not thread-safe."""

    def __init__(self, pieces: Sequence[bytes]) -> None:
        """pieces: bytes of each token, by id; b"" for tokens without text."""

    def __len__(self) -> int: ...
    def compatible(self, wanted: bytes) -> npt.NDArray[np.int32]:
        """(k,) ids, ascending, of tokens that `wanted` is a prefix of, or that are a prefix of it.

        Raises: ValueError for b"".
        """

    def containing(self, part: bytes) -> npt.NDArray[np.int32]:
        """(k,) ids of tokens with `part` in their bytes. Takes some milliseconds."""

@final
class Encoder:
    """Tokeniser of plain text by llama_tokenize: special tokens in it are read as text, nothing is
    added. Thread-safe; releases the GIL.

    tokenize, vocabulary: addresses of the function and of a vocabulary, which must outlive the
    object; they are not checked. lead: put before each text; its first n_lead tokens are dropped.

    Raises: ValueError.
    """

    def __init__(self, tokenize: int, vocabulary: int, lead: bytes, n_lead: int) -> None: ...
    def __call__(self, text: bytes) -> npt.NDArray[np.int32]: ...

@final
class Boundary:
    """Lookups at the cursor of one request, where it may stand inside a token. Not thread-safe.

    Before the cursor `foo(` ends in a token `(`, where a file that goes on has `(self`: around the
    cursor, files with the same text have other tokens than the prompt. So a lookup there goes back
    to the last token on which both agree, keeps matches that start with the text since then, and
    proposes what follows the prompt's end, in tokens that the model would emit there.
    """

    def __init__(
        self,
        left: npt.NDArray[np.int32],
        healed: bytes,
        vocabulary: Vocabulary,
        encode: Callable[[bytes], npt.NDArray[np.int32]],
    ) -> None:
        """left: (n,) the prompt's tokens before the cursor, without the bytes that token healing
        held back. healed: those bytes, which the output must start with. encode: the model's
        tokenizer; an `Encoder` is called without Python."""

    @property
    def n_base(self) -> int:
        """Number of tokens before the cursor on which prompt and files agree: the base of
        `Sources`."""

    def is_within(self, emitted: npt.NDArray[np.int32]) -> bool:
        """True if drafts after these tokens may still begin inside a token of a file."""

    def ask(
        self,
        emitted: npt.NDArray[np.int32],
        path: npt.NDArray[np.int32],
        n_max: int,
        sources: Sources,
    ) -> int:
        """Look up base + `emitted` in the sources, see `Sources.ask`. Returns: number of offers."""

@final
class Planner:
    """Chooses, from the proposals of all sources, the draft with the most expected tokens per
    millisecond. Not thread-safe; no argument can crash it.

    The proposals are merged into one draft tree. P(token accepted | the tokens before it accepted)
    is the logistic function of a sum of table entries, which learn from every verdict. Under 0.2 us
    a token, the choice included.

    Source: Hastie and Tibshirani 1986, Generalized additive models. Trees of the likeliest nodes:
    Li et al. 2024, EAGLE-2.
    """

    n_shared: int
    """Number of weights that all sources share."""
    n_by_source: int
    """Number of weights of each source."""
    n_features: int
    """Number of table entries that are summed for a token."""
    max_sources: int

    def __init__(self, classes: npt.NDArray[np.uint8], n_sources: int) -> None:
        """classes: (n_vocab,) lexical kind of each token, 0 to 15; 1 stands for the end of a line.
        n_sources: 1 to max_sources; numbers of sources are below it.

        Raises: ValueError.
        """

    @property
    def n_sources(self) -> int: ...
    @property
    def n_weights(self) -> int:
        """Length of a state: n_shared weights, then n_by_source of each source."""

    def state(self) -> npt.NDArray[np.float32]:
        """(n_weights,) all weights."""

    def load(self, state: npt.NDArray[np.float32]) -> None:
        """Replace the weights by an earlier `state`, or a prior, (n_weights,).

        Raises: ValueError, and changes nothing, for arrays of other sizes and absurd numbers.
        """

    def begin(self, before: npt.NDArray[np.int32], after: npt.NDArray[np.int32]) -> None:
        """Start a completion between these texts. Costs 1 to 2 ns a token."""

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
        """Choose the draft tree to verify.

        sources: with their offers. An offer whose path no earlier one holds is skipped.
        n_max, max_leaves: most tokens and branches of the tree; with one leaf, runner-ups are left
            out.
        costs: (n_max + 1,) milliseconds of passes that draft 0, 1, ... n_max tokens.
        again, n_tail: for chains of a target that does not roll back: milliseconds to recompute a
            token after a rejection, and committed tokens of this pass.

        Returns: (k,) tokens, parents, acceptance probabilities, sources of the tree, parents first,
        and 1 for each token that no offer continues, else 0; None where no draft pays.

        Raises: ValueError for costs that are not positive and sources out of range.
        """

    def ended(self, n_emitted: int) -> None:
        """Learn that the text was complete after `n_emitted` of the tokens given to `learn`: tokens
        drafted behind line ends are worth less where texts end there."""

    def learn(self, known: Sequence[int], n_emitted: int) -> None:
        """Learn from `known`, the tokens that follow the context of the last `plan`. The first
        `n_emitted` are part of the text from now on; more are known only in replays of existing
        text."""

    def outcomes(
        self,
    ) -> tuple[
        npt.NDArray[np.int8],
        npt.NDArray[np.int32],
        npt.NDArray[np.float32],
        npt.NDArray[np.uint8],
        npt.NDArray[np.uint16],
    ]:
        """The n drafted tokens that the last `learn` decided: (n,) source, match length, estimated
        probability, 1 if accepted, and (n * n_features,) table entries."""

@final
class Calibration:
    """What the requests of one workspace learn together: weights of a `Planner`. Thread-safe.

    Requests overlap; the weights learn from whole ones, in the order in which they began, so they
    do not depend on how requests overlap. A request that stays open is waited for until 64 that
    began later have ended.
    """

    def __init__(
        self,
        classes: npt.NDArray[np.uint8],
        n_sources: int,
        start: npt.NDArray[np.float32],
    ) -> None:
        """classes, n_sources: as of a `Planner`. start: its weights at first, (n_weights,).

        Raises: ValueError.
        """

    def weights(self) -> npt.NDArray[np.float32]:
        """(n_weights,) for `Planner.load`."""

    @property
    def n_open(self) -> int:
        """Number of requests that have begun and not ended."""

@final
class DraftedRequest:
    """One request of an engine that serves many: its text so far, its sources, and a planner of its
    own that starts from the calibration. `RowThreads` drafts for it."""

    def __init__(
        self,
        calibration: Calibration,
        sources: Sources,
        left: npt.NDArray[np.int32],
        right: npt.NDArray[np.int32],
    ) -> None:
        """sources: nobody else's from now on. left, right: the document around the cursor.

        Raises: ValueError for more sources than those of the calibration.
        """

    def end(self) -> None:
        """Hand over to the calibration what the text taught; nothing is drafted any more. Happens
        by itself when the object is collected."""

    @property
    def by_source(self) -> list[tuple[int, int]]:
        """Tokens drafted and accepted, by number of source."""

@final
class RowThreads:
    """Threads that draft for all rows of an engine's step. Thread-safe: one call at a time."""

    def __init__(self, n: int) -> None:
        """n: threads, the caller's included, 1 to 64; a few rows are done in the caller's alone.

        Raises: ValueError.
        """

    def __len__(self) -> int: ...
    def draft(
        self,
        requests: Sequence[DraftedRequest],
        fresh: Sequence[Sequence[int]],
        n_max: Sequence[int],
        costs: npt.NDArray[np.float64],
        ms: float,
    ) -> tuple[list[list[int]], int, int]:
        """Read what each request emitted since the last call, and draft what follows. Releases the
        GIL; about 10 us a row.

        fresh: emitted tokens, by request. n_max: most drafted tokens, by request. costs: (k + 1,)
            milliseconds of steps in which a row drafts 0, 1, ... k tokens, the bound of all.
        ms: rows that begin after so many milliseconds only read.

        Returns: (a chain for each request, number of rows that were too late, number that failed:
        a request that was given twice, or want of memory).

        Raises: ValueError, TypeError.
        """

@final
class Batch:
    """Fills the arrays of a llama_batch without numpy, each of whose operations takes ten times as
    long between two passes of a small model as in a hot loop."""

    def __init__(
        self,
        tokens: npt.NDArray[np.int32],
        positions: npt.NDArray[np.int32],
        wanted: npt.NDArray[np.int8],
    ) -> None:
        """(n,) each, not copied and kept alive. wanted: nonzero for tokens with logits."""

    def lay(
        self,
        committed: npt.NDArray[np.int32],
        chain: npt.NDArray[np.int32],
        start: int,
        want: bool,
    ) -> None:
        """Fill in committed tokens from position `start` on and a chain after them. want: True for
        logits after the last of `committed` and each of `chain`; else none.

        Raises: ValueError for more tokens than there is room for, or a negative start.
        """

@final
class Rows:
    """`types.LogitsRows` over one array of logits."""

    def __init__(self, logits: npt.NDArray[np.float32]) -> None:
        """(n, n_vocab), not copied and kept alive."""

    def row(self, i: int) -> npt.NDArray[np.float32]:
        """(n_vocab,) a view; do not write. Raises: IndexError."""

    def argmax(self, i: int) -> int:
        """The lowest id of the largest logit. Raises: IndexError."""

def log_probability(row: npt.NDArray[np.float32], token: int) -> float:
    """Natural logarithm of a token's probability under softmax of `row` (n_vocab,), -100 or more,
    within 1e-5. Raises: IndexError."""

ENDS_STRETCH: int
ENDS_TEXT: int
"""Marks of `Ends`: a token whose pass ends the stretch; an end-of-generation token."""

@final
class Drafting:
    """Native drafting for stretches: proposals of `sources` after base and output, looked up by
    `boundary` where there is one; `planner` chooses a chain. All are kept alive.

    costs: (2, n) float64 milliseconds of passes over 1, 2, ... n tokens, after a wide pass and
        after
    one over one token; at most n - 1 are drafted. Not to be written to.

    Raises: ValueError, TypeError.
    """

    def __init__(
        self,
        sources: Sources,
        boundary: Boundary | None,
        planner: Planner,
        costs: npt.NDArray[np.float64],
    ) -> None: ...

    is_back: bool
    """True if the next pass follows one over one token, as at first."""
    width: int
    """Width that passes are padded to; 1 at first, for none."""

@final
class Ends:
    """Tokens that end a stretch. marks: (n_vocab,) uint8: ENDS_TEXT for end-of-generation tokens,
    ENDS_STRETCH for tokens whose pass is the last of a stretch, 0 for others."""

    def __init__(self, marks: npt.NDArray[np.uint8]) -> None: ...

@final
class Stretch:
    """Result of several greedy passes in one native call. Lists are not copied.

    tokens: emitted tokens. log_probs: the natural logarithm of each one's probability, [] if they
    were not asked for. widths: tokens of each pass; n_drafted, n_accepted, draft_ms, pass_ms:
    one number a pass, too. by_source: (source, tokens drafted, tokens accepted) of each source that
    drafted. is_damaged: True if drafting failed and the rest was decoded without drafts. code:
    llama.cpp's status of a pass that failed; 0 for none.
    """

    @property
    def tokens(self) -> list[int]: ...
    @property
    def log_probs(self) -> list[float]: ...
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
"""Address of `bool (*)(void* steps)`, an abort callback for llama.cpp: it adds 1 to the 64 bits at
`steps` and returns false, so that the pass goes on."""

@final
class LlamaContext:
    """A llama.cpp context by addresses: of the functions llama_decode, llama_get_logits and
    llama_memory_seq_rm, of their arguments, and of a llama_batch whose tokens are all in sequence
    0. All must outlive the object; they are not checked."""

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
        is_scored: bool = False,
    ) -> Stretch:
        """Draft, verify greedily and keep, pass after pass, see
        `backends.base.Target.decode_stretch`. Releases the GIL in passes.

        n_cached: tokens in the KV cache, all before `last`; afterwards it holds all emitted tokens
        but the last.

        Raises: ValueError, and any exception of `interrupted`.
        """

def accepts(accept: int, sampler: int, token: int) -> bool:
    """Let a llama.cpp sampler accept a token. accept, sampler: addresses of llama_sampler_accept
    and of the sampler, which are not checked.

    Returns: False where the function threw an exception. Raises: ValueError for an address of 0.
    """
