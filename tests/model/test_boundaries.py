"""Lookups with the cursor at every offset of real files, with the bundled model's tokenizer.

The files are indexed; the document holds one's text up to the cursor. Where the index knows how the
file's own tokens go on, it must know so from every place inside the next of them.
"""

from __future__ import annotations

import bisect
import inspect
import keyword
import sched
from pathlib import Path

import numpy as np
import pytest

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.config import Settings
from codespec.context.healing import HealingMask, hold_back, vocabulary_of
from codespec.documents.live import LiveDocument
from codespec.documents.sources import BUFFERS, REPOSITORY
from codespec.drafters.lookup import LookupDrafter
from codespec.drafters.planners import Planners
from codespec.drafters.token_kinds import token_kinds
from codespec.models.resolve import target_path
from codespec.native import (
    Boundary,
    Segment,
    Sources,
    SuffixAutomaton,
    Vocabulary,
    build_segment,
)
from codespec.syntax.text import safe_cuts
from codespec.types import NO_TOKENS, Context, PassState, Tokens

TEXTS = [inspect.getsource(module) for module in (bisect, keyword, sched)]
BEYOND_ASCII = 'def grüße(namen):\n    """Schöne Grüße, „alle“."""\n    return "👋 " + namen\n'
WINDOW = 240
N = 6


@pytest.fixture(scope="module")
def tokenizer(model_options: Settings) -> LlamaTokenizer:
    return LlamaTokenizer(load_model(target_path(model_options.model), vocab_only=True))


@pytest.fixture(scope="module")
def vocabulary(tokenizer: LlamaTokenizer) -> Vocabulary:
    return vocabulary_of(tokenizer)


class Files:
    """Files that are the only source."""

    def __init__(self, index: Segment | SuffixAutomaton) -> None:
        self.index = index

    def after(self, left: Tokens, boundary: Boundary, said: Tokens, n_max: int) -> Tokens:
        sources = Sources(left[: boundary.n_base])
        if isinstance(self.index, Segment):
            sources.add_segments(REPOSITORY, [(self.index, None)])
        else:
            sources.add_automata(BUFFERS, [self.index])
        boundary.ask(said, NO_TOKENS, n_max, sources)
        return sources.offers[0][1] if sources.offers else NO_TOKENS

    def knows(self, tokens: Tokens, i: int) -> bool:
        """True if the i-th token is drafted after those before it."""
        found = self.index.draft(tokens[max(0, i - 64) : i].copy(), 1).tokens.tolist()
        return found == [int(tokens[i])]


def files(kind: str, documents: list[Tokens], folder: Path) -> Files:
    if kind == "segment":
        starts = np.cumsum([0, *map(len, documents)], dtype=np.int64)[:-1]
        build_segment(folder / "s", np.concatenate(documents), starts)
        return Files(Segment.open(folder / "s"))
    automaton = SuffixAutomaton()
    for tokens in documents:
        automaton.extend(tokens)
        automaton.extend_break()
    return Files(automaton)


@pytest.mark.parametrize("kind", ["segment", "automaton"])
def test_every_offset_of_real_files(
    tokenizer: LlamaTokenizer, vocabulary: Vocabulary, tmp_path: Path, kind: str
) -> None:
    texts = [*TEXTS, BEYOND_ASCII * 2]
    documents = [tokenizer.encode(text) for text in texts]
    repository = files(kind, documents, tmp_path)
    document = LiveDocument(tokenizer, safe_cuts(tokenizer))
    n_right = n_known = 0
    for text, tokens in zip(texts, documents, strict=True):
        raw = text.encode()
        ends = np.cumsum([len(tokenizer.piece(t)) for t in tokens.tolist()])
        known = [False, *(repository.knows(tokens, i) for i in range(1, len(tokens)))]
        for at in range(text.index("\n") + 1, len(text)):
            n_before = len(text[:at].encode())
            if not known[int(np.searchsorted(ends, n_before, "right"))]:
                continue
            document.update(text[text.rfind("\n", 0, max(0, at - WINDOW)) + 1 : at], "")
            kept, healed = hold_back(document.left, tokenizer)
            boundary = Boundary(kept, healed, vocabulary, tokenizer.encode)
            found = repository.after(kept, boundary, NO_TOKENS, N)
            n_known += 1
            got = tokenizer.decode(found)
            truth = raw[n_before - len(healed) :]
            n_right += len(got) > len(healed) and truth.startswith(got[: len(healed) + 1])
            if healed and len(found):
                allowed = HealingMask(healed, vocabulary, tokenizer).allowed([])
                assert allowed is None or found[0] in allowed
    assert n_known > 8000
    assert n_right == n_known


def test_lookups_after_the_first_pass_match_the_tokens_of_files(
    tokenizer: LlamaTokenizer, vocabulary: Vocabulary
) -> None:
    """The model read `(` and said `self`, where the file has one token for both."""
    text = "def walk(self, callback):\n    return callback(self)\n"
    repository = files("automaton", [tokenizer.encode(text)], Path())
    document = LiveDocument(tokenizer)
    for at in range(9, len(text) - 12):
        document.update(text[:at], "")
        kept, healed = hold_back(document.left, tokenizer)
        boundary = Boundary(kept, healed, vocabulary, tokenizer.encode)
        said = tokenizer.encode(text[at - len(healed) :])[:2]
        rest = tokenizer.decode(repository.after(kept, boundary, said, 4))
        so_far = text[: at - len(healed)].encode() + tokenizer.decode(said)
        assert rest
        assert text.encode().startswith(so_far + rest)


def test_the_drafter_heals(tokenizer: LlamaTokenizer, vocabulary: Vocabulary) -> None:
    text = "value = compute_checksum(path, seed)\n"
    document = LiveDocument(tokenizer)
    file = SuffixAutomaton()
    file.extend(tokenizer.encode(text * 2))
    planners = Planners(token_kinds(tokenizer))
    drafter = LookupDrafter(
        lambda path: document,
        planners.of,
        neighbours=lambda context: [(BUFFERS, file)],
        boundary=lambda c: Boundary(c.left, c.healed, vocabulary, tokenizer.encode),
    )
    for at in range(len("value = c"), len("value = compute_checksum(path, se")):
        document.update(text[:at], "")
        kept, healed = hold_back(document.left, tokenizer)
        drafter.begin(Context(NO_TOKENS, left=kept, healed=healed, path="a", workspace="/w"))
        draft = drafter.propose(PassState(), 8)
        truth = (text * 2)[at - len(healed) :].encode()
        assert truth.startswith(tokenizer.decode(draft.tokens))
        assert len(tokenizer.decode(draft.tokens)) > len(healed)
        assert len(draft) <= 8
