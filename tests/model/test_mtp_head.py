"""A target's MTP head: tiny models with weights for which its answers are known, and with random
ones, whose answers must not depend on what came before."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codespec.backends.checkpoints import Checkpoints
from codespec.backends.llama import LlamaTokenizer, load_model, nextn
from codespec.backends.llama.mtp import HiddenStates, HiddenStateTarget, LlamaMtpHead
from codespec.types import NO_DRAFT, Draft, Logits, Tokens
from tests import zoo
from tests.mtp_head import TEXTS, answering

pytestmark = pytest.mark.skipif(
    nextn._hand_out is None, reason="this build of llama.cpp hands out no hidden states"
)

N_CTX = 256


def never():
    return False


class Pair:
    """A target and its MTP head."""

    def __init__(self, file: Path, kind: type[LlamaMtpHead] = LlamaMtpHead, **options: Any) -> None:
        self.model = load_model(file, n_gpu_layers=0, mtp_head=True)
        assert self.model.has_mtp_head
        self.target = HiddenStateTarget(self.model, n_ctx=N_CTX, n_threads=1, **options)
        self.layer = kind(self.model, self.target)
        tokenizer = LlamaTokenizer(self.model)
        self.documents = [tokenizer.encode(text[:1500])[:180] for text in TEXTS]

    def close(self) -> None:
        self.layer.close()
        self.target.close()
        self.model.close()

    def read(self, tokens: Tokens, draft: Draft = NO_DRAFT, path: Sequence[int] = ()) -> Logits:
        """By the target. Returns: logits after the last."""
        self.target.prefill(tokens, never)
        row = self.target.decode(tokens[self.target.n_cached :], draft).row(0).copy()
        self.target.keep(path)
        return row

    def drafted(self, tokens: Tokens) -> Logits:
        """Logits of the layer."""
        assert self.layer.knows(tokens)
        self.layer.prefill(tokens, never)
        return self.layer.decode(tokens[self.layer.n_cached :], NO_DRAFT).row(0).copy()


def test_each_family_is_in_the_zoo():
    assert nextn.FAMILIES >= nextn.OF_WANTED_ONLY
    assert all(zoo.ANIMALS[name].own for name in nextn.FAMILIES)


class Late(LlamaMtpHead):
    """Gives each token the state of one that is further back."""

    def _give(self, start: int, tokens: Tokens) -> int:
        n_sure = super()._give(start, tokens)
        if start >= 2:
            assert self._hidden is not None
            first = self._hidden.rows[start - 2 : start - 1]
            given = self._given[: len(tokens)]
            given[:] = np.concatenate([first, given[:-1]])
        return n_sure


def states_answer(file, kind):
    """(steps in which the head drafts the last token again, all steps)."""
    with closing(Pair(file, kind)) as pair:
        tokens = pair.documents[0][:60]
        n_right, n = 0, 24
        for _ in range(n):
            tokens = np.append(tokens, np.int32(pair.read(tokens).argmax()))
            n_right += int(pair.drafted(tokens).argmax()) == tokens[-1]
        assert len(set(tokens[-n:].tolist())) > n // 2
        return n_right, n


def test_the_next_token_is_not_the_last(mtp_family, tmp_path):
    """A layer that knows what the target will say, and one that is given one token less."""
    path = tmp_path / "known.gguf"
    zoo.write(path, mtp_family, mtp_head=True, quantised=False, weights=answering("token"))
    with closing(Pair(path)) as pair:
        tokens = pair.documents[0][:60]
        for _ in range(12):
            tokens = np.append(tokens, np.int32(pair.read(tokens).argmax()))
            says = int(pair.drafted(tokens).argmax())
            says_late = int(pair.drafted(tokens[:-1]).argmax())
            assert says == pair.read(tokens).argmax()
            assert says_late == tokens[-1] != says


def test_a_token_is_read_with_the_state_of_the_one_before(mtp_family, tmp_path):
    path = tmp_path / "known.gguf"
    zoo.write(path, mtp_family, mtp_head=True, quantised=False, weights=answering("state"))
    n_right, n = states_answer(path, LlamaMtpHead)
    assert n_right == n
    n_right, n = states_answer(path, Late)
    assert n_right <= 1


def test_what_was_read_before_does_not_matter(mtp_file):
    """Typing, edits, rejected and accepted drafts, other texts, and its own drafts."""
    rng = np.random.default_rng(5)
    options: dict[str, Any] = {"max_saved_bytes": 0}  # what is put back was not read
    with closing(Pair(mtp_file, **options)) as pair, closing(Pair(mtp_file, **options)) as fresh:
        tokens = pair.documents[0][:100]
        for _ in range(40):
            match int(rng.integers(6)):
                case 0:  # typed on
                    tokens = np.concatenate([tokens, pair.documents[1][: int(rng.integers(1, 20))]])
                case 1:  # edited further up
                    tokens = tokens.copy()
                    tokens[int(rng.integers(40, len(tokens)))] = rng.integers(10, 4000)
                case 2:  # deleted
                    tokens = tokens[: -int(rng.integers(1, 20))]
                case 3:
                    tokens = pair.documents[int(rng.integers(2))][: int(rng.integers(60, 150))]
                case 4:  # a draft, of which some is right
                    chain = rng.integers(10, 4000, 5).astype(np.int32)
                    n = int(rng.integers(0, 6))
                    pair.read(tokens, Draft.chain(chain), range(n))
                    tokens = np.concatenate([tokens, chain[:n], [77]]).astype(np.int32)
                    row = pair.drafted(tokens)  # before the rest is read again
                    fresh.target.prefill(np.array([1, 1], np.int32), never)
                    fresh.layer.prefill(np.array([1, 1], np.int32), never)
                    fresh.read(tokens)
                    compare(pair, row, fresh.drafted(tokens))
                case _:
                    pass
            tokens = tokens[: N_CTX - 20]
            row = pair.read(tokens)
            said = np.append(tokens, np.int32(row.argmax()))
            row = pair.drafted(said)
            for _ in range(int(rng.integers(4))):
                pair.layer.decode(rng.integers(10, 4000, 1).astype(np.int32), NO_DRAFT)
            fresh.target.prefill(np.array([1, 1], np.int32), never)
            fresh.layer.prefill(np.array([1, 1], np.int32), never)
            fresh.read(tokens)
            compare(pair, row, fresh.drafted(said))


def compare(pair, row, expected):
    assert np.isfinite(row).all()
    if pair.target.is_exact:
        np.testing.assert_array_equal(row, expected)
    else:
        assert np.abs(row - expected).max() < 0.5 * expected.std()


def test_a_state_that_was_put_back_is_no_reason_to_guess(mtp_file):
    """Nothing is known of what was not read. After the next pass there is, and the layer goes on
    behind the gap."""
    with closing(Pair(mtp_file)) as pair:
        first, second = pair.documents
        pair.read(first)
        held = pair.target.checkpoint()
        pair.read(second)
        pair.drafted(np.append(second, np.int32(5)))
        pair.target.restore(held)
        more = np.concatenate([first, second[:30]])
        assert not pair.layer.knows(more[: len(first) + 1])
        row = pair.read(more)
        assert pair.layer.knows(np.append(more, np.int32(row.argmax())))
        assert np.isfinite(pair.drafted(np.append(more, np.int32(row.argmax())))).all()
        assert pair.layer._first > 0
        # Read from the beginning.
        pair.target._saved = Checkpoints(0, can_truncate=pair.target.can.rolls_back)
        pair.target._cut(0)
        said = np.append(more, np.int32(pair.read(more).argmax()))
        assert np.isfinite(pair.drafted(said)).all()
        assert pair.layer._first == 0  # there is no gap any more
        other = second[::-1].copy()
        pair.read(other)
        assert np.isfinite(pair.drafted(np.append(other, np.int32(5)))).all()
        assert pair.layer._first == 0


def test_hidden_states_are_of_one_text():
    states = HiddenStates(16, 2)
    tokens = np.arange(10, dtype=np.int32)

    def rows(n, of):
        return np.full((n, 2), of, np.float32)

    states.note(tokens[:0], tokens[:4], rows(4, 1))
    states.note(tokens[:4], tokens[4:6], rows(2, 2))
    assert states.known(tokens) == (0, 6)
    assert states.known(tokens[:5]) == (0, 5)
    assert states.known(tokens[1:]) == (0, 0)
    states.note(tokens[:3], np.array([9], np.int32), rows(1, 3))  # typed over
    assert states.known(tokens) == (0, 3)
    assert states.rows[:4, 0].tolist() == [1, 1, 1, 3]
    states.note(tokens[:7], tokens[7:9], rows(2, 4))  # what is before came from elsewhere
    assert states.known(tokens) == (7, 9)
    states.note(tokens[:5], tokens[5:7], rows(2, 5))
    assert states.known(tokens) == (5, 7)
