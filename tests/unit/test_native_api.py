"""The native module's interface to Python: arguments it accepts and refuses, and its guarantees."""

from __future__ import annotations

import errno
import os
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from codespec.native import (
    MAX_DEPTH,
    Boundary,
    Encoder,
    Proposal,
    Segment,
    SuffixAutomaton,
    Vocabulary,
    WordTable,
    build_segment,
)

EMPTY = np.zeros(0, np.int32)
TEXT = np.array([1, 2, 3, 1, 2, 4, 1, 2], np.int32)


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    path = tmp_path / "a segment with ünicode"
    build_segment(path, TEXT, np.array([0, 3], np.int64))
    return Segment.open(os.fspath(path))


def test_proposals_outlive_their_source_and_are_read_only() -> None:
    automaton = SuffixAutomaton()
    automaton.extend(TEXT)
    tokens = automaton.draft_tail(3).tokens
    del automaton
    assert tokens.tolist() == [4, 1, 2]
    assert tokens.dtype == np.int32
    assert tokens.flags.c_contiguous
    with pytest.raises(ValueError, match="read-only"):
        tokens[0] = 5


def test_a_cursor_keeps_the_vocabulary_that_it_reads() -> None:
    vocabulary = Vocabulary([b"ab", b"abc"])
    n_before = sys.getrefcount(vocabulary)
    boundary = Boundary(TEXT[:0], b"a", vocabulary, lambda text: EMPTY)
    assert sys.getrefcount(vocabulary) == n_before + 1
    del vocabulary
    assert boundary.is_within(EMPTY)


def test_an_encoder_needs_addresses() -> None:
    for function, vocabulary in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="address"):
            Encoder(function, vocabulary, b"", 0)


def test_the_tail_is_continued_as_it_was_before() -> None:
    automaton = SuffixAutomaton()
    automaton.extend(np.array([5, 6, 7, 8, 5, 6, 7, 9, 5, 6], np.int32))
    got = automaton.draft_tail(3)
    assert (got.match_length, got.n_matches, got.position) == (2, 3, 6)
    assert got.tokens.tolist() == [7, 9, 5]
    assert got.counts.tolist() == [2, 1, 1]
    assert got.totals.tolist() == [2, 2, 1]
    assert got.alt_tokens.tolist() == [-1, 8, -1]
    assert got.alt_counts.tolist() == [0, 1, 0]
    assert got.match_lengths.tolist() == [2, 3, 4]


def test_empty_everything(tmp_path: Path) -> None:
    automaton = SuffixAutomaton()
    for proposal in (automaton.draft(EMPTY, 4), automaton.draft_tail(4), automaton.draft(TEXT, 0)):
        assert len(proposal) == 0
        assert proposal.tokens.shape == (0,)
        assert (proposal.match_length, proposal.n_matches, proposal.position) == (0, 0, -1)
    assert automaton.match(TEXT) == 0
    automaton.extend(EMPTY)
    automaton.truncate(0)
    build_segment(tmp_path / "s", EMPTY, np.zeros(0, np.int64))
    empty = Segment.open(tmp_path / "s")
    assert (empty.n_tokens, empty.n_docs, empty.n_vocab) == (0, 0, 0)
    assert empty.match(TEXT) == (0, 0, 0)
    assert len(empty.draft(TEXT, 4)) == 0
    assert empty.verify() == []


@pytest.mark.parametrize("dtype", [np.int64, np.uint32, np.float32, np.int16])
def test_other_dtypes_are_not_converted(segment: Segment, dtype: type) -> None:
    wrong = TEXT.astype(dtype)
    automaton = SuffixAutomaton()
    for call in (automaton.extend, automaton.match, automaton.count, segment.match):
        with pytest.raises(TypeError):
            call(wrong)
    with pytest.raises(TypeError):
        automaton.draft(wrong, 4)
    with pytest.raises(TypeError):
        segment.draft(wrong, 4)
    with pytest.raises(TypeError):
        segment.match(TEXT[::2])
    with pytest.raises(TypeError):
        segment.match(TEXT.reshape(2, 4))


def test_read_only_input_is_welcome(segment: Segment) -> None:
    frozen = TEXT.copy()
    frozen.flags.writeable = False
    assert segment.match(frozen) == segment.match(TEXT)


def test_arguments_out_of_range(segment: Segment) -> None:
    automaton = SuffixAutomaton()
    automaton.extend(TEXT)
    for depth in (0, -1, MAX_DEPTH + 1):
        with pytest.raises(ValueError, match="max_depth"):
            SuffixAutomaton(depth)
    for n in (-1, 9):
        with pytest.raises(ValueError, match="length of the text"):
            automaton.truncate(n)
    for string in (EMPTY, np.zeros(65, np.int32)):
        with pytest.raises(ValueError, match="max_depth"):
            automaton.count(string)
    for drafter in (automaton, segment):
        with pytest.raises(ValueError, match="n_max"):
            drafter.draft(TEXT, -1)
        with pytest.raises(ValueError, match="min_length"):
            drafter.draft(TEXT, 4, 0)
    for position in (-1, 0, 11, 2**40):
        with pytest.raises(IndexError):
            segment.locate(position)
    for doc in (-1, 2):
        with pytest.raises(IndexError):
            segment.doc_tokens(doc)
    for dead in (np.zeros(1, np.bool_), np.zeros(3, np.uint8)):
        with pytest.raises(ValueError, match="per document"):
            segment.draft(TEXT, 4, dead=dead)
    with pytest.raises(TypeError):
        segment.draft(TEXT, 4, dead=np.zeros(2, np.int32))  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    ("tokens", "starts", "message"),
    [
        ([1, 2], [1], "token 0"),
        ([1, 2], [], "token 0"),
        ([1, 2], [0, 3], "within"),
        ([1, 2], [0, 2, 1], "order"),
        ([1, -2], [0], "negative"),
        ([], [-1], "token 0"),
    ],
)
def test_documents_that_are_none(
    tmp_path: Path, tokens: list[int], starts: list[int], message: str
) -> None:
    path = tmp_path / "s"
    with pytest.raises(ValueError, match=message):
        build_segment(path, np.array(tokens, np.int32), np.array(starts, np.int64))
    assert not path.exists()


def test_file_errors_are_os_errors_with_name_and_number(tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as caught:
        Segment.open(missing)
    assert caught.value.filename == str(missing)
    with pytest.raises(IsADirectoryError):
        Segment.open(tmp_path)
    with pytest.raises(OSError, match="folder") as failed:
        build_segment(tmp_path / "no folder" / "s", TEXT, np.zeros(1, np.int64))
    assert failed.value.errno == errno.ENOENT
    for content in (b"", b"x", b"x" * 5000):
        missing.write_bytes(content)
        with pytest.raises(ValueError, match="not a segment"):
            Segment.open(missing)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
def test_a_full_disk_is_reported() -> None:
    with pytest.raises(OSError, match="full") as caught:
        build_segment("/dev/full", np.zeros(100_000, np.int32), np.zeros(1, np.int64))
    assert caught.value.errno == errno.ENOSPC


def test_another_version_is_refused_by_name(tmp_path: Path, segment: Segment) -> None:
    build_segment(tmp_path / "s", TEXT, np.zeros(1, np.int64))
    raw = bytearray((tmp_path / "s").read_bytes())
    raw[8] += 1
    (tmp_path / "s").write_bytes(raw)
    with pytest.raises(ValueError, match="another version"):
        Segment.open(tmp_path / "s")


def test_a_segment_works_after_its_file_is_unlinked(tmp_path: Path) -> None:
    build_segment(tmp_path / "s", TEXT, np.zeros(1, np.int64))
    segment = Segment.open(tmp_path / "s")
    (tmp_path / "s").unlink()
    assert segment.draft(TEXT[:2], 3).tokens.tolist() == [3, 1, 2]
    assert segment.verify() == []


def test_threads_may_share_one_automaton() -> None:
    """One writer, three readers: every answer is one that some whole prefix of the text gives."""
    rng = np.random.default_rng(3)
    text = rng.integers(0, 30, 60_000).astype(np.int32)
    automaton = SuffixAutomaton()
    wrong: list[object] = []
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            n = len(automaton)
            proposal: Proposal = automaton.draft_tail(8)
            if len(proposal) and proposal.tokens[0] != text[proposal.position]:
                wrong.append((n, proposal.position))

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
    for begin in range(0, len(text), 2000):
        automaton.extend(text[begin : begin + 2000])
        automaton.truncate(begin + 1000)
        automaton.extend(text[begin + 1000 : begin + 2000])
    done.set()
    for reader in readers:
        reader.join()
    assert wrong == []
    assert (automaton.text == text).all()


def test_memory_and_state_figures() -> None:
    rng = np.random.default_rng(4)
    automaton = SuffixAutomaton()
    for text in (np.zeros(20_000, np.int32), rng.integers(0, 40, 20_000).astype(np.int32)):
        automaton.truncate(0)
        assert automaton.n_states == 1
        automaton.extend(text)
        assert automaton.n_states <= 2 * len(text)
        assert 20 * len(text) < automaton.n_bytes < 150 * len(text)


def spans(*pairs: tuple[int, int]) -> np.ndarray:
    return np.array(pairs, np.int64).reshape(-1, 2)


def test_a_word_table_says_what_it_does_not_know() -> None:
    table = WordTable(0, 4)
    text = b"ab cd ab\xc3\xa9\n"
    tokens, unknown = table.encode(text, spans((8, 11)))
    assert [text[a:b] for a, b in unknown] == [b"ab", b" cd", b" ab", b"\xc3\xa9\n"]
    assert tokens.tolist() == [-1, -2, -3, -4]
    table.learn(text, unknown, np.array([5, 6, 7, 8], np.int32), np.array([1, 2, 0, 1]))
    assert len(table) == 3  # nothing beyond ASCII
    tokens, unknown = table.encode(b"ab cd ab ef ef", spans())
    assert tokens.tolist() == [5, 6, 7, -1, -1]
    assert unknown.tolist() == [[8, 11]]
    for word in (b"x", b"y"):
        table.learn(word, spans((0, 1)), np.array([1], np.int32), np.array([1]))
    assert len(table) == 4  # full


@pytest.mark.parametrize("wrong", [(0, 0), (-1, 1), (2, 4), (2, 1)])
def test_a_word_table_refuses_spans_beyond_the_text(wrong: tuple[int, int]) -> None:
    table = WordTable(0, 4)
    with pytest.raises(ValueError, match="spans"):
        table.encode(b"abc", spans(wrong))
    with pytest.raises(ValueError, match="spans"):
        table.learn(b"abc", spans(wrong), np.zeros(1, np.int32), np.ones(1, np.int64))


def test_a_word_table_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="splitting"):
        WordTable(3, 4)
    table = WordTable(0, 4)
    with pytest.raises(ValueError, match="spans"):
        table.encode(b"abc", spans((0, 2), (1, 3)))
    for lengths in ([2], [-1], [1, 0], []):
        with pytest.raises(ValueError, match="lengths"):
            table.learn(b"a", spans((0, 1)), np.zeros(1, np.int32), np.array(lengths, np.int64))


def test_a_word_table_holds_many_words_of_any_number_of_tokens() -> None:
    rng = np.random.default_rng(0)
    table = WordTable(2, 100_000)
    words = sorted(
        {bytes(rng.integers(97, 123, rng.integers(1, 30)).tolist()) for _ in range(9999)}
    )
    text = b" ".join(words)
    _, unknown = table.encode(text, spans())
    lengths = rng.integers(0, 5, len(unknown))
    tokens = np.arange(lengths.sum(), dtype=np.int32)
    table.learn(text, unknown, tokens, lengths)
    again, missing = table.encode(text, spans())
    assert len(missing) == 0
    assert np.array_equal(again, tokens)
