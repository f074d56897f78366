"""Frozen segments against a sorted list of all contexts, and against damage."""

from __future__ import annotations

import contextlib
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.native import MAX_DEPTH, DamagedSegmentError, Proposal, Segment, build_segment

Ints = npt.NDArray[np.int32]
Docs = list[list[int]]


def ids(values: list[int]) -> Ints:
    return np.array(values, np.int32)


def write(path: Path, docs: Docs) -> Path:
    starts = np.cumsum([0, *map(len, docs)][: len(docs)], dtype=np.int64)
    build_segment(path, ids([t for doc in docs for t in doc]), starts)
    return path


def build(docs: Docs) -> Segment:
    with TemporaryDirectory() as folder:
        return Segment.open(write(Path(folder) / "segment", docs))


class Oracle:
    """The documented rules, over plain lists."""

    def __init__(self, docs: Docs, dead: list[bool] | None = None) -> None:
        self.docs = docs
        self.dead = dead or [False] * len(docs)
        places = [(d, i) for d, doc in enumerate(docs) for i in range(1, len(doc))]
        self.contexts = sorted(
            (tuple(reversed(docs[d][max(0, i - MAX_DEPTH) : i])), (d, i)) for d, i in places
        )
        self.intervals: dict[tuple[int, ...], list[int]] = {}
        for i, (key, _) in enumerate(self.contexts):
            for n in range(1, len(key) + 1):
                self.intervals.setdefault(key[:n], []).append(i)

    def usable(self, context: list[int]) -> tuple[int, ...]:
        """Read backwards, up to a break."""
        tail: list[int] = []
        for t in reversed(context[-MAX_DEPTH:]):
            if t < 0:
                break
            tail.append(t)
        return tuple(tail)

    def match(self, context: list[int]) -> tuple[int, int, int]:
        tail = self.usable(context)
        for n in range(len(tail), 0, -1):
            if found := self.intervals.get(tail[:n]):
                return n, found[0], found[-1] + 1
        return 0, 0, 0

    def ask(self, found: list[int]) -> list[tuple[int, int]]:
        m = len(found)
        for limit in (64, 1024):
            k = min(m, limit)
            asked = [self.contexts[found[i * m // k]][1] for i in range(k)]
            if live := [place for place in asked if not self.dead[place[0]]]:
                return live[:64]
        return []

    def draft(
        self, context: list[int], n_max: int, min_length: int = 1
    ) -> tuple[list[tuple[int, ...]], int, int]:
        rows: list[tuple[int, ...]] = []
        n_matches, position, length = 0, -1, 0
        sample: list[tuple[int, int]] = []
        while len(rows) < n_max:
            if not sample:
                tail = self.usable(context)
                for length in range(len(tail), min_length - 1, -1):
                    found = self.intervals.get(tail[:length], [])
                    if sample := self.ask(found):
                        break
                else:
                    break
                n_matches = n_matches if rows else len(found)
            said = [self.docs[d][i] for d, i in sample]
            votes = Counter(said)
            ranked = sorted(votes, key=lambda t: (-votes[t], t))
            best, second = ranked[0], ranked[1] if len(ranked) > 1 else -1
            if not rows:
                d, i = sample[said.index(best)]
                position = 1 + sum(len(doc) + 1 for doc in self.docs[:d]) + i
            rows.append((best, votes[best], len(said), length, second, votes[second]))
            context = [*context, best]
            sample = [
                (d, i + 1)
                for d, i in sample
                if self.docs[d][i] == best and i + 1 < len(self.docs[d])
            ]
            length = min(length + 1, MAX_DEPTH)
        return rows, n_matches, position


def unpack(p: Proposal) -> tuple[list[tuple[int, ...]], int, int]:
    columns = (p.tokens, p.counts, p.totals, p.match_lengths, p.alt_tokens, p.alt_counts)
    rows = [tuple(int(v) for v in row) for row in zip(*columns, strict=True)]
    return rows, p.n_matches, p.position


def check(segment: Segment, docs: Docs, contexts: Docs, dead: list[bool]) -> None:
    everything, live = Oracle(docs), Oracle(docs, dead)
    mask = np.array(dead, np.bool_)
    for context in [*contexts, *docs[:3]]:
        array = ids(context)
        assert segment.match(array) == everything.match(context)
        assert unpack(segment.draft(array, 6)) == everything.draft(context, 6)
        assert unpack(segment.draft(array, 6, 2, mask)) == live.draft(context, 6, 2)
        got = unpack(segment.draft(array, 6, dead=mask.view(np.uint8)))
        assert got == live.draft(context, 6)
        if got[2] >= 0:
            doc, offset = segment.locate(got[2])
            assert docs[doc][offset] == got[0][0][0]
            assert not dead[doc]


alphabets = st.sampled_from(
    [
        [0],
        [0, 1],
        [3, 4, 5],
        [0, 65534],
        [0, 65535, 7],
        [1, 2**24 - 2],
        [2**24 - 1, 0],
        [0, 2**31 - 1],
    ]
)


@st.composite
def corpora(draw: st.DrawFn) -> tuple[Docs, Docs, list[bool]]:
    alphabet = st.sampled_from(draw(alphabets))
    docs = draw(st.lists(st.lists(alphabet, max_size=25), max_size=8))
    if docs and draw(st.booleans()):  # long common runs, up to and past the depth
        docs.append((docs[0] * 90)[: draw(st.integers(60, 90))])
    contexts = st.lists(alphabet | st.sampled_from([-1, 9, 2**31 - 1]), max_size=70)
    dead = [draw(st.booleans()) for _ in docs]
    return docs, draw(st.lists(contexts, max_size=4)), dead


@given(corpora())
@settings(max_examples=250)
def test_lookup_equals_sorted_contexts(corpus: tuple[Docs, Docs, list[bool]]) -> None:
    docs, contexts, dead = corpus
    segment = build(docs)
    largest = max((t for doc in docs for t in doc), default=-1)
    assert (segment.n_tokens, segment.n_docs) == (sum(map(len, docs)), len(docs))
    assert segment.n_vocab == largest + 1
    assert segment.token_bits == max(1, (largest + 1).bit_length())
    assert [segment.doc_tokens(d).tolist() for d in range(len(docs))] == docs
    assert segment.verify() == []
    check(segment, docs, contexts, dead)


@pytest.fixture(scope="module")
def code_like() -> Docs:
    """Zipf-distributed tokens with copied stretches: intervals of every size."""
    rng = np.random.default_rng(7)
    docs: Docs = []
    for _ in range(40):
        doc = np.minimum(rng.zipf(1.4, 120) - 1, 999).tolist()
        if docs:
            source = docs[rng.integers(len(docs))]
            at = int(rng.integers(len(doc)))
            doc[at:at] = source[int(rng.integers(len(source))) :][:80]
        docs.append(doc)
    return docs


@pytest.mark.parametrize("dead_share", [0.0, 0.5, 0.97, 1.0])
def test_large_intervals_are_sampled_as_documented(code_like: Docs, dead_share: float) -> None:
    rng = np.random.default_rng(8)
    dead = (rng.random(len(code_like)) < dead_share).tolist()
    contexts = [doc[: int(rng.integers(1, len(doc)))] for doc in code_like]
    contexts += [[0], [1], [0, 0], [998, 0], [0, 998]]
    check(build(code_like), code_like, contexts, dead)


def test_a_file_is_a_function_of_its_content(tmp_path: Path, code_like: Docs) -> None:
    one, two = write(tmp_path / "one", code_like), write(tmp_path / "two", code_like)
    assert one.read_bytes() == two.read_bytes()


def test_long_copies_sort_in_linear_passes() -> None:
    """Equal contexts far beyond the depth, in sizes that every part of the sort meets."""
    docs = [[1] * 700, [2, 1] * 300, [*range(90)] * 6, [*range(90)] * 6, [1] * 63, [1] * 64]
    check(
        build(docs),
        docs,
        [[1] * 100, [2, 1] * 40, [*range(90)], [5], [1] * 64, [1] * 63],
        [False] * 6,
    )


# ---- damage -------------------------------------------------------------------------------------


def drill(segment: Segment, contexts: Docs, dead: npt.NDArray[np.bool_]) -> None:
    """Every query; results may be anything that the contract allows."""
    for context in contexts:
        length, lo, hi = segment.match(ids(context))
        assert 0 <= length <= MAX_DEPTH
        assert 0 <= lo <= hi
        for mask in (None, dead):
            proposal = segment.draft(ids(context), 16, dead=mask)
            tokens = proposal.tokens
            assert ((tokens >= 0) & (tokens < segment.n_vocab)).all()
            assert (proposal.counts <= proposal.totals).all()
            # The table of documents may be damaged, too.
            with contextlib.suppress(IndexError):
                doc, _ = segment.locate(proposal.position)
                assert 0 <= doc < segment.n_docs
    for doc in range(0, segment.n_docs, 5):
        segment.doc_tokens(doc)


@pytest.mark.parametrize("scale", [1, 10**6])
def test_every_single_byte_of_damage_is_found(tmp_path: Path, scale: int) -> None:
    docs = [[t * scale for t in doc] for doc in [[1, 2, 3, 1, 2, 4], [], [1, 2, 3, 9, 9], [3, 1]]]
    good = write(tmp_path / "good", docs).read_bytes()
    bad = tmp_path / "bad"
    for i in range(len(good)):
        for flip in (0x01, 0xFF):
            damaged = bytearray(good)
            damaged[i] ^= flip
            bad.write_bytes(damaged)
            try:
                segment = Segment.open(bad)
            except ValueError:
                continue
            assert i >= 128, f"byte {i} of the header may not be damaged unnoticed"
            assert segment.verify() != []
            # The one block holds the byte, so no first use is without damage.
            for use in (
                lambda s: s.draft(ids([1, 2]), 4),
                lambda s: s.match(ids([1, 2])),
                lambda s: s.doc_tokens(0),
            ):
                with pytest.raises(DamagedSegmentError):
                    use(Segment.open(bad))
            assert not segment.check_some(99)
            assert not segment.is_checked
            drill(damaged_later(bad, good, bytes(damaged)), docs, np.array([1, 0, 0, 0], np.bool_))


def damaged_later(path: Path, good: bytes, bad: bytes) -> Segment:
    """A segment that was sound when all of it was checked."""
    path.write_bytes(good)
    segment = Segment.open(path)
    while segment.check_some(1000):
        pass
    assert segment.is_checked
    with open(path, "rb+") as f:
        f.write(bad)
    return segment


@pytest.mark.parametrize("n_docs", range(200, 1800, 200))
def test_all_of_the_table_of_documents_is_checked_on_opening(tmp_path: Path, n_docs: int) -> None:
    path = write(tmp_path / "segment", [[1, 2]] * n_docs)
    raw = bytearray(path.read_bytes())
    n_checksums = 4 * Segment.open(path).n_blocks
    raw[len(raw) - n_checksums - 1] ^= 0x01
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="block"):
        Segment.open(path)


def test_blocks_are_checked_on_first_use(tmp_path: Path) -> None:
    """A file of many blocks, any of them damaged: drafts are those of the good file, or none."""
    rng = np.random.default_rng(3)
    docs: Docs = [[int(t) for t in rng.integers(0, 300, 2000)] for _ in range(30)]
    good = write(tmp_path / "good", docs)
    raw = good.read_bytes()
    reference = Segment.open(good)
    assert reference.n_blocks > 30
    contexts = [ids(docs[i][: 10 + 60 * i]) for i in range(3)]
    expected = [reference.draft(c, 16).tokens.tolist() for c in contexts]
    bad = tmp_path / "bad"
    n_found = n_unused = n_refused = 0
    for block in range(reference.n_blocks):
        damaged = bytearray(raw)
        damaged[max(128, min(block * 4096 + int(rng.integers(4096)), len(raw) - 1))] ^= 0x10
        bad.write_bytes(damaged)
        try:
            segment = Segment.open(bad)
        except ValueError:
            n_refused += 1  # the table of documents, or of checksums
            continue
        try:
            assert [segment.draft(c, 16).tokens.tolist() for c in contexts] == expected
            n_unused += 1
            while segment.check_some(7):
                assert not segment.is_checked
        except DamagedSegmentError:
            n_found += 1
        assert not segment.is_checked
        with pytest.raises(DamagedSegmentError):
            segment.draft(contexts[0], 16)
        with pytest.raises(DamagedSegmentError):
            segment.doc_tokens(0)
    assert min(n_found, n_unused, n_refused) > 0
    while reference.check_some(7):
        assert not reference.is_checked
    assert reference.is_checked
    assert [reference.draft(c, 16).tokens.tolist() for c in contexts] == expected


def test_any_length_but_the_right_one_is_refused(tmp_path: Path) -> None:
    good = write(tmp_path / "good", [[1, 2, 3], [1, 2, 4]]).read_bytes()
    bad = tmp_path / "bad"
    for n in range(len(good)):
        bad.write_bytes(good[:n])
        with pytest.raises(ValueError, match="segment"):
            Segment.open(bad)
    bad.write_bytes(good + b"\0")
    with pytest.raises(ValueError, match="size"):
        Segment.open(bad)


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_heavy_damage_never_crashes(code_like: Docs, data: st.DataObject) -> None:
    scale = data.draw(st.sampled_from([1, 100, 10**5]))
    docs = [[t * scale for t in doc] for doc in code_like]
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    with TemporaryDirectory() as folder:
        path = write(Path(folder) / "segment", docs)
        good = path.read_bytes()
        raw = np.frombuffer(good, np.uint8).copy()
        kind = data.draw(st.sampled_from(["bytes", "zeros", "ones", "noise", "shuffle"]))
        if kind == "bytes":
            where = rng.integers(128, len(raw), int(rng.integers(1, 3000)))
            raw[where] = rng.integers(0, 256, len(where))
        else:
            begin = int(rng.integers(128, len(raw)))
            end = int(rng.integers(begin, len(raw))) + 1
            part = raw[begin:end]
            part[:] = {
                "zeros": np.zeros_like(part),
                "ones": np.full_like(part, 255),
                "noise": rng.integers(0, 256, len(part)).astype(np.uint8),
                "shuffle": rng.permutation(part),
            }[kind]
        contexts = [docs[int(i)][: int(rng.integers(1, 100))] for i in rng.integers(0, 40, 12)]
        contexts += [[0], [scale]]
        dead = rng.random(len(docs)) < 0.5
        segment = damaged_later(path, good, raw.tobytes())
        segment.verify()
        drill(segment, contexts, dead)
        try:
            segment = Segment.open(path)
        except ValueError:
            return
        segment.verify()
        with contextlib.suppress(DamagedSegmentError):
            drill(segment, contexts, dead)
