"""Other ways to draft, as fixed points to measure against. All are `Drafter`s.

The suffix-trie rule is that of SuffixDecoding (Oliaro et al. 2024) as its authors released it:
from every suffix of the context that occurs, follow the most frequent continuation while the
product of count ratios is at least 0.1, for at most as many tokens as the suffix has and at most
16; of these candidates the one with the largest sum of products wins.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from codespec.documents.sources import PREFIX, REPOSITORY, SUFFIX
from codespec.drafters.base import Drafter
from codespec.native import MAX_DEPTH, Proposal, SuffixAutomaton
from codespec.types import NO_DRAFT, NO_TOKENS, Context, Draft, PassState, Source, Tokens

MIN_PRODUCT = 0.1
MAX_TOKENS = 16
IDEAL_TOKENS = 24
FIXED_TOKENS = 8


class Sources:
    """The texts every reference drafts from: the file around the cursor, and the repository."""

    def __init__(self, repository: SuffixAutomaton) -> None:
        self._repository = repository
        self._before = SuffixAutomaton()
        self._after = SuffixAutomaton()
        self._n_left = 0

    def begin(self, context: Context) -> None:
        self._before.truncate(0)
        self._before.extend(context.left)
        self._after.truncate(0)
        self._after.extend(context.right)
        self._n_left = len(context.left)

    def follow(self, emitted: Tokens) -> None:
        self._before.extend(emitted[len(self._before) - self._n_left :])

    @property
    def automata(self) -> list[tuple[Source, SuffixAutomaton]]:
        return [
            (PREFIX, self._before),
            (SUFFIX, self._after),
            (REPOSITORY, self._repository),
        ]

    def drafts(self, context: Tokens, emitted: Tokens, n_max: int) -> list[tuple[Source, Proposal]]:
        """Each source's continuation of `context`, a suffix of left + emitted."""
        self.follow(emitted)
        # The tail itself occurs in `before` but nothing follows it, so it is no match.
        return [(source, text.draft(context, n_max)) for source, text in self.automata]


@dataclass(frozen=True, slots=True)
class Path:
    """A trie's path from one suffix of the context. products: running products of count ratios."""

    source: Source
    tokens: Tokens
    products: np.ndarray[tuple[int], np.dtype[np.float64]]


def paths(sources: Sources, recent: Tokens, emitted: Tokens, n_max: int) -> list[Path]:
    """Paths of the most frequent tokens, one for every suffix of `recent` and every source."""
    found: list[Path] = []
    alive = {PREFIX, SUFFIX, REPOSITORY}
    for length in range(1, len(recent) + 1):
        if not alive:
            break
        drafts = sources.drafts(np.ascontiguousarray(recent[-length:]), emitted, n_max)
        for source, proposal in drafts:
            if source not in alive:
                continue
            if proposal.match_length < length:
                alive.discard(source)
                continue
            # A trie does not back off: the path ends where its own occurrences do.
            grows = np.diff(proposal.match_lengths) == np.where(
                proposal.match_lengths[:-1] < MAX_DEPTH, 1, 0
            )
            n = len(proposal) if grows.all() else int(np.argmin(grows)) + 1
            ratios = proposal.counts[:n] / proposal.totals[:n]
            found.append(Path(source, proposal.tokens[:n], np.cumprod(ratios, dtype=np.float64)))
    return found


class _Reference(Drafter):
    """Keeps the context and the sources; `choose` makes the draft."""

    name = "reference"

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._context = Context(NO_TOKENS)

    def begin(self, context: Context) -> None:
        self._context = context
        self._sources.begin(context)

    def _paths(self, emitted: Tokens, n_max: int) -> list[Path]:
        text = np.concatenate([self._context.left[-MAX_DEPTH:], emitted])
        return paths(self._sources, text[-MAX_DEPTH:], emitted, n_max)


class SuffixTrie(_Reference):
    """The published rule."""

    name = "suffix-trie"

    def propose(self, state: PassState, n_max: int) -> Draft:
        emitted = state.emitted
        best, best_score = NO_DRAFT, 0.0
        text = np.concatenate([self._context.left[-MAX_DEPTH:], emitted])[-MAX_DEPTH:]
        for length, path in _with_lengths(self._sources, text, emitted):
            n = min(n_max, MAX_TOKENS, length, int((path.products >= MIN_PRODUCT).sum()))
            score = float(path.products[:n].sum())
            if n and score >= best_score:
                best = Draft.chain(path.tokens[:n], path.source)
                best_score = score
        return best


def _with_lengths(sources: Sources, recent: Tokens, emitted: Tokens) -> list[tuple[int, Path]]:
    seen: dict[Source, int] = {}
    out: list[tuple[int, Path]] = []
    for path in paths(sources, recent, emitted, MAX_TOKENS):
        seen[path.source] = seen.get(path.source, 0) + 1
        out.append((seen[path.source], path))
    return out


class SuffixTrieTree(_Reference):
    """The published rule for trees: from every suffix of the context that occurs, the 16 likeliest
    nodes by the product of count ratios, of at least 0.1; of these trees the one with the largest
    sum of products wins. Without the rule's limit by the length of the suffix, which would cost it
    a tenth of the tokens it accepts: here it is a measure of candidates, not of speed."""

    name = "suffix-trie-tree"

    def propose(self, state: PassState, n_max: int) -> Draft:
        emitted = state.emitted
        best, best_score = NO_DRAFT, 0.0
        self._sources.follow(emitted)
        text = np.concatenate([self._context.left[-MAX_DEPTH:], emitted])[-MAX_DEPTH:]
        for source, automaton in self._sources.automata:
            for length in range(1, automaton.match(text) + 1):
                context = np.ascontiguousarray(text[-length:])
                draft = likeliest(automaton, context, min(n_max, MAX_TOKENS), source)
                score = float(draft.probs.sum())
                if len(draft) and score >= best_score:
                    best, best_score = draft, score
        return best


def likeliest(automaton: SuffixAutomaton, context: Tokens, n_max: int, source: Source) -> Draft:
    """The n_max likeliest nodes of a trie below `context`. probs: of whole paths."""
    tokens: list[int] = []
    parents: list[int] = []
    probs: list[float] = []
    texts: list[Tokens] = []
    # Sorted by falling probability, then by age.
    open_nodes: list[tuple[float, int, int, int, Tokens]] = []
    n_seen = 0

    def expand(parent: int, prob: float, text: Tokens) -> None:
        nonlocal n_seen
        found = automaton.followers(text) if len(text) <= automaton.max_depth else []
        total = sum(count for _, count in found)
        for token, count in found[:n_max]:
            if (p := prob * count / total) < MIN_PRODUCT:
                break
            n_seen += 1
            heapq.heappush(open_nodes, (-p, n_seen, token, parent, text))

    expand(-1, 1.0, context)
    while open_nodes and len(tokens) < n_max:
        p, _, token, parent, text = heapq.heappop(open_nodes)
        tokens.append(token)
        parents.append(parent)
        probs.append(-p)
        texts.append(np.append(text, np.int32(token)))
        expand(len(tokens) - 1, -p, texts[-1])
    k = len(tokens)
    return Draft(
        np.array(tokens, np.int32),
        np.array(parents, np.int32),
        np.array(probs, np.float32),
        np.full(k, source, np.int8),
    )


class Fixed(_Reference):
    """A chain of fixed length from the longest match, whatever it costs."""

    name = "fixed"

    def propose(self, state: PassState, n_max: int) -> Draft:
        emitted = state.emitted
        text = np.concatenate([self._context.left[-MAX_DEPTH:], emitted])[-MAX_DEPTH:]
        found = self._sources.drafts(np.ascontiguousarray(text), emitted, min(n_max, FIXED_TOKENS))
        source, best = max(found, key=lambda f: f[1].match_length)
        return Draft.chain(best.tokens, source) if len(best) else NO_DRAFT


class PromptLookup(_Reference):
    """Copy what followed the last occurrence of the last three, two or one tokens in the file
    before the cursor (Saxena 2023), ten tokens at a time: what is commonly built in."""

    name = "prompt-lookup"

    def __init__(self, sources: Sources, max_ngram: int = 3, width: int = 10) -> None:
        super().__init__(sources)
        self._max_ngram = max_ngram
        self._width = width

    def propose(self, state: PassState, n_max: int) -> Draft:
        emitted = state.emitted
        text = np.concatenate([self._context.left, emitted])
        for n in range(min(self._max_ngram, len(text) - 1), 0, -1):
            windows = np.lib.stride_tricks.sliding_window_view(text[:-1], n)
            hits = np.flatnonzero((windows == text[-n:]).all(axis=1))
            if len(hits):
                start = int(hits[-1]) + n
                return Draft.chain(text[start : start + min(n_max, self._width)], PREFIX)
        return NO_DRAFT


class Ideal(_Reference):
    """Knows the text: of the trie's candidates, the longest correct prefix, no token too many."""

    name = "ideal"

    def __init__(self, sources: Sources, truth: Callable[[], Tokens]) -> None:
        super().__init__(sources)
        self._truth = truth

    def propose(self, state: PassState, n_max: int) -> Draft:
        emitted = state.emitted
        truth = self._truth()[len(emitted) :]
        best, source = 0, Source.OTHER
        for path in self._paths(emitted, min(n_max, IDEAL_TOKENS)):
            n = min(len(path.tokens), len(truth))
            wrong = np.flatnonzero(path.tokens[:n] != truth[:n])
            n_right = int(wrong[0]) if len(wrong) else n
            if n_right > best:
                best, source = n_right, path.source
        return Draft.chain(truth[:best], source) if best else NO_DRAFT


def automaton_of(documents: Sequence[Tokens]) -> SuffixAutomaton:
    """One exact trie over many documents, no match across them."""
    automaton = SuffixAutomaton()
    for tokens in documents:
        automaton.extend(tokens)
        automaton.extend_break()
    return automaton
