"""A draft model with a tokenizer of its own: its text becomes the target's, none too early."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.base import CancelledError
from codespec.backends.fake import ByteTokenizer, FakeTarget, hashed_logits
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.heterogeneous import WINDOW, HeterogeneousModel
from codespec.drafters.model_drafter import ModelDrafter
from codespec.engine.completer import Completer
from codespec.engine.output import OutputLimits
from codespec.types import NO_TOKENS, Context, SamplingParams, Tokens, Trace
from codespec.verify.sampling import Sampler
from tests.drafters import combined

BYTES = ByteTokenizer()
CHEAP = CostCurve({1: 1.0, 17: 1.1})
CODE = "def area(self, width):\n    return self.width * width\n"
END = 256


class Pieces(ByteTokenizer):
    """Whole words beside bytes: at each place the longest piece."""

    def __init__(self, *words: str) -> None:
        self.words = [bytes([i]) for i in range(256)] + [word.encode() for word in words]
        self.n_vocab = len(self.words)
        self.hash = "/".join(words)

    def piece(self, token: int) -> bytes:
        return self.words[token] if 0 <= token < self.n_vocab else b""

    def encode(self, text: str | bytes) -> Tokens:
        raw = text.encode() if isinstance(text, str) else text
        ids: list[int] = []
        while raw:
            token = max(
                (i for i, word in enumerate(self.words) if raw.startswith(word)),
                key=lambda i: len(self.words[i]),
            )
            ids.append(token)
            raw = raw[len(self.words[token]) :]
        return np.array(ids, np.int32)


WORDS = Pieces("def", "ret", "return", " self", ".width", " width", "):\n")


def writer(tokenizer: ByteTokenizer, text: str = CODE, doubt: str = "") -> FakeTarget:
    """Writes `text` on from wherever it is in it, then ends. Half sure where `doubt` comes."""
    tokens = tokenizer.encode(text).tolist()
    doubts = set(tokenizer.encode(doubt).tolist()) if doubt else set()
    n_vocab, end = max(tokenizer.n_vocab, 260), END if tokenizer is BYTES else tokenizer.n_vocab

    def logits(context: tuple[int, ...]) -> np.ndarray:
        at = next(
            (
                i
                for n in range(len(context), 0, -1)
                for i in range(n, len(tokens) + 1)
                if tokens[i - n : i] == list(context[-n:])
            ),
            0,
        )
        row = np.full(n_vocab + 1, -50.0, np.float32)
        token = tokens[at] if at < len(tokens) else end
        row[token] = 20.0
        if token in doubts:
            row[0] = 20.0 - 1e-3
        return row

    model = FakeTarget(logits, n_vocab + 1, order=12, eog=frozenset({end}))
    model.info = replace(model.info, fim=model.info.fim if tokenizer is BYTES else None)
    return model


def at_cursor(
    before: str, after: str = "", healed: bytes = b"", target: ByteTokenizer = WORDS
) -> Context:
    left, right = target.encode(before), target.encode(after)
    return Context(left, left, right, healed=healed)


def translated(
    before: str,
    *,
    tokenizer: ByteTokenizer = BYTES,
    target: ByteTokenizer = WORDS,
    healed: bytes = b"",
    **options: str,
) -> HeterogeneousModel:
    small = HeterogeneousModel(writer(tokenizer, **options), tokenizer, target)
    small.begin(at_cursor(before, healed=healed, target=target))
    return small


def never() -> bool:
    return False


def said(small: HeterogeneousModel, emitted: Tokens = NO_TOKENS, n: int = 99) -> list[bytes]:
    small.catch_up(emitted, never)
    words: list[bytes] = []
    while len(words) < n and (word := small.next()) is not None:
        words.append(WORDS.piece(word[0]))
    return words


def test_its_text_comes_as_the_targets_tokens_to_the_end():
    small = translated("def area(self, width):\n    ")
    assert said(small) == [b"return", b" self", b".width", b" ", b"*", b" width", b"\n"]
    assert small.next() is None


def test_a_token_counts_when_the_next_one_has_begun():
    """`ret` is a token, too, and `re` two."""
    model = writer(BYTES)
    small = HeterogeneousModel(model, BYTES, WORDS)
    small.begin(at_cursor("def area(self, width):\n    "))
    small.catch_up(NO_TOKENS, never)
    word = small.next()
    assert word is not None
    assert WORDS.piece(word[0]) == b"return"
    assert model.n_passes == len("return ")


def test_it_goes_on_from_what_was_emitted():
    small = translated("def area(self, width):\n    ")
    emitted = WORDS.encode("return self")
    assert said(small, emitted, 2) == [b".width", b" "]
    assert said(small, WORDS.encode("return self.width"), 2) == [b" ", b"*"]
    # Back again, as after a rejected draft.
    assert said(small, emitted, 1) == [b".width"]


def test_what_was_held_back_of_the_prompt_comes_first():
    small = translated("def area(self, width):\n    ", healed=b"ret")
    assert said(small, n=2) == [b"return", b" self"]
    assert said(small, WORDS.encode("r"), 2) == [b"e", b"t"]
    assert said(small, WORDS.encode("return self"), 1) == [b".width"]
    assert said(small, WORDS.encode("x"), 1) == []


def test_a_token_is_as_likely_as_all_that_begins_in_it():
    sure = translated("def area(self, width):\n    ")
    unsure = translated("def area(self, width):\n    ", doubt="u")
    for small, expected in ((sure, 1.0), (unsure, 0.5)):
        small.catch_up(NO_TOKENS, never)
        words = [small.next(), small.next()]
        assert [word is not None and word[1] for word in words] == [
            pytest.approx(expected, abs=1e-2),  # the u of return
            pytest.approx(1.0, abs=1e-2),
        ]


def test_tokens_within_one_of_its_own_are_certain_once_that_is():
    small = translated("def", tokenizer=WORDS, target=BYTES, doubt=" width")
    small.catch_up(BYTES.encode(" area(self,"), never)
    words = [small.next() for _ in range(4)]
    assert [word is not None and word[0] for word in words] == list(b" wid")
    assert [word is not None and word[1] for word in words] == [
        pytest.approx(0.5, abs=1e-2),
        *[1.0] * 3,
    ]


def test_further_lines_are_read_behind_what_follows_the_cursor():
    """A suffix between prefix and middle stays where it is."""
    model = writer(BYTES)
    n_new: list[int] = []
    prefill = model.prefill

    def counted(tokens, cancelled):
        n_cached = prefill(tokens, cancelled)
        n_new.append(len(tokens) - n_cached)
        return n_cached

    model.prefill = counted
    small = HeterogeneousModel(model, BYTES, WORDS)
    small.begin(at_cursor("def area(self, width):\n    ", "\nprint(area)\n" * 8))
    emitted = WORDS.encode("return self.width * width\nx = 1\n")
    for n in range(len(emitted) + 1):
        small.catch_up(emitted[:n], never)
        small.next()
    assert max(n_new[1:]) < 16


@pytest.mark.slow
def test_its_prompt_is_of_its_own_tokens_and_bounded():
    model = writer(BYTES)
    small = HeterogeneousModel(model, BYTES, WORDS)
    small.begin(at_cursor("x = 1\n" * 2000, "y = 2\n" * 2000))
    assert small.fits(8)
    n_prompt = small.n_unread
    assert WINDOW.n_prefix // 2 < n_prompt <= WINDOW.n_prefix + WINDOW.n_suffix + 3
    small.read(never)
    assert small.n_cached == n_prompt - 1
    small.begin(at_cursor("x = 1\n" * 2000 + "z", "y = 2\n" * 2000))
    assert small.n_unread <= 2
    with pytest.raises(CancelledError):
        small.read(lambda: True)


def test_outputs_longer_than_its_window_and_a_short_context_of_its_own():
    text = "a = 1\n" * 400
    for n_ctx, fits in ((300, True), (200, False)):
        model = writer(BYTES, "a = 1\n" * 3)
        model.info = replace(model.info, n_ctx=n_ctx)
        small = HeterogeneousModel(model, BYTES, WORDS)
        small.begin(at_cursor("x = 0\n" * 100, text))
        assert small.fits(4000) == fits
        if fits:
            emitted = WORDS.encode(text)
            assert said(small, emitted, 3) == [b"a", b" ", b"="]
            assert small.n_cached < n_ctx


def test_a_character_in_several_tokens_is_read_when_it_is_whole():
    text = "\nname = 'é' + 'ü'\n"
    small = HeterogeneousModel(writer(BYTES, text), BYTES, BYTES)
    small.begin(at_cursor("\nname = '", target=BYTES))
    whole = BYTES.encode("é' + '")
    for n in range(len(whole) + 1):
        small.catch_up(whole[:n], never)
        word = small.next()
        if n in (0, len(whole)):
            assert word is not None
            assert word[0] == text.encode()[9 + n]


def scribbler(seed: int) -> FakeTarget:
    """Writes any bytes, markers and ends."""
    table = np.random.default_rng(seed).standard_normal((7, 260)).astype(np.float32)
    return FakeTarget(lambda context: table[sum(context) % 7], eog=frozenset({END}))


ANY_TEXT = st.text("defrtunsli .w*é\n", max_size=30)
ANY_TOKENS = st.lists(st.integers(0, WORDS.n_vocab - 1), max_size=12)


@given(st.integers(0, 2**31), ANY_TEXT, st.sampled_from([b"", b"re", "é".encode()]), ANY_TOKENS)
@pytest.mark.slow
def test_whatever_it_writes_and_reads_words_are_what_it_wrote(seed, before, healed, tokens):
    small = HeterogeneousModel(scribbler(seed), BYTES, WORDS)
    small.begin(at_cursor(before, before, healed))
    emitted = np.array(tokens, np.int32)
    for _ in range(2):
        small.catch_up(emitted, never)
        words = [small.next() for _ in range(6)]
        assert all(word is None or 0 <= word[1] <= 1 for word in words)
        text = WORDS.decode([word[0] for word in words if word is not None])
        held_back = healed[len(WORDS.decode(emitted)) :]
        assert text[: len(held_back)] == held_back[: len(text)] or not text


@given(st.integers(0, 2**31), ANY_TEXT, st.sampled_from([b"", b"re"]))
@pytest.mark.slow
def test_whatever_it_says_the_output_is_the_targets(seed, before, healed):
    target = FakeTarget(hashed_logits(WORDS.n_vocab, 3.0), WORDS.n_vocab, eog=frozenset({7}))
    context = at_cursor("x = " + before, before, healed)

    def run(*drafters: ModelDrafter) -> list[int]:
        chain = combined(drafters, WORDS.n_vocab, curve=CHEAP)
        args = context, Sampler(SamplingParams()), OutputLimits(24)
        return Completer(target, chain).run(*args)[0]

    assert run(ModelDrafter(HeterogeneousModel(scribbler(seed), BYTES, WORDS), CHEAP)) == run()


def test_a_model_that_would_say_the_same_text_saves_passes():
    truth = writer(WORDS)
    drafter = ModelDrafter(HeterogeneousModel(writer(BYTES), BYTES, WORDS), CHEAP)
    context = at_cursor("def area(self, width):\n    ")
    passes: list[int] = []
    for drafters in ([], [drafter]):
        trace = Trace()
        chain = combined(drafters, truth.info.n_vocab, curve=CHEAP)
        args = context, Sampler(SamplingParams()), OutputLimits(24)
        tokens, finish = Completer(truth, chain).run(*args, trace=trace)
        assert WORDS.decode(tokens) == b"return self.width * width\n"
        assert finish == "stop"
        passes.append(trace.n_target_passes)
    assert passes[1] < passes[0] / 2
