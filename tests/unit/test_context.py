"""Prompts: all FIM orders, windows that move in steps, token healing."""

from __future__ import annotations

import itertools
import os
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.fake import FIM_MIDDLE, FIM_PREFIX, FIM_SUFFIX, ByteTokenizer, FakeTarget
from codespec.context.fim import assemble
from codespec.context.healing import HealingMask, hold_back, vocabulary_of
from codespec.context.prompt_window import STEP, Window, build_context, n_in_line, window_start
from codespec.documents.from_disk import read_document, split_at, workspace_of
from codespec.errors import InputError
from codespec.requests import CompletionRequest
from codespec.types import NO_TOKENS, FimOrder, FimTokens

TOKENIZER = ByteTokenizer()
INFO = FakeTarget().info
LEFT = TOKENIZER.encode("ab(")
RIGHT = TOKENIZER.encode(")z")


def test_an_old_text_begins_with_what_the_output_repeats():
    left, window = TOKENIZER.encode("x = num"), Window(200, 100)

    def old(heals: bool = True, **fields) -> bytes:
        request = CompletionRequest("x = num", **fields)
        context = build_context(request, left, NO_TOKENS, INFO, TOKENIZER, window, heals=heals)
        assert context.healed == (b"m" if heals and not request.raw else b"")
        return TOKENIZER.decode(context.old)

    assert old() == b""
    assert old(rewrites="ber\r\n") == b"mber\n"
    assert old(rewrites="ber", raw=True) == b"ber"
    assert old(heals=False, rewrites="ber\n") == b"ber\n"
    assert len(old(rewrites="a" * 2 * INFO.n_ctx)) == INFO.n_ctx


def test_prefix_suffix_middle():
    prompt, fim = assemble(INFO, LEFT, RIGHT)
    assert fim
    assert prompt.tolist() == [FIM_PREFIX, *b"ab(", FIM_SUFFIX, *b")z", FIM_MIDDLE]


def test_suffix_first_has_the_same_markers():
    fim = FimTokens(FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, "suffix-first")
    prompt, _ = assemble(replace(INFO, fim=fim), LEFT, RIGHT, n_in_line=1)
    assert prompt.tolist() == [FIM_SUFFIX, *b")z", FIM_PREFIX, *b"ab", FIM_MIDDLE, *b"("]


def test_without_a_marker_of_the_middle_the_prefix_comes_last():
    fim = FimTokens(FIM_PREFIX, FIM_SUFFIX, -1, "suffix-first")
    prompt, _ = assemble(replace(INFO, fim=fim), LEFT, RIGHT, n_in_line=1)
    assert prompt.tolist() == [FIM_SUFFIX, *b")z", FIM_PREFIX, *b"ab("]


def test_suffix_prefix_middle_ends_with_the_prefix():
    fim = FimTokens(FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, "spm")
    prompt, _ = assemble(replace(INFO, fim=fim), LEFT, RIGHT)
    assert prompt.tolist() == [FIM_PREFIX, FIM_SUFFIX, *b")z", FIM_MIDDLE, *b"ab("]


def test_a_typed_character_comes_last_in_all_orders():
    """All of the prompt before stays as it was, and with it the KV cache."""
    window = Window(200, 100)
    asked = [FimTokens(FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE, order) for order in get_args(FimOrder)]
    for fim in (*asked, FimTokens(FIM_PREFIX, FIM_SUFFIX, -1, "suffix-first")):
        info = replace(INFO, fim=fim)
        prompts = []
        for typed in ("", "x", "x=", "x=(", "x=(1,"):
            left = TOKENIZER.encode("def f():\n    y = 2\n" + typed)
            request = CompletionRequest("", "")
            context = build_context(request, left, RIGHT, info, TOKENIZER, window)
            assert context.healed == (typed[-1:].encode() if typed[-1:].isalnum() else b"")
            prompts.append(context.prompt.tolist())
        for before, after in itertools.pairwise(prompts):
            assert after[: len(before)] == before
        assert FIM_MIDDLE in prompts[-1][-6:] or fim.order == "spm" or fim.middle < 0


def test_a_line_without_end_is_not_looked_through():
    left = TOKENIZER.encode("\n" + "x" * 1000)
    assert n_in_line(left, TOKENIZER) == 0
    assert n_in_line(left[:51], TOKENIZER) == 50
    assert n_in_line(left[:1], TOKENIZER) == 0
    assert n_in_line(left[:0], TOKENIZER) == 0


def test_a_model_without_fim_gets_the_prefix_alone():
    prompt, fim = assemble(replace(INFO, fim=None), LEFT, RIGHT)
    assert (prompt.tolist(), fim) == (list(b"ab("), False)


def test_a_model_without_markers_reads_the_only_token():
    """Held back, it would leave no prompt at all."""
    plain = replace(INFO, fim=None)
    cases = [
        (plain, "x", [*b"x"], b""),
        (plain, "xy", [*b"x"], b"y"),
        (replace(plain, bos=99), "x", [99], b"x"),
        (INFO, "x", [FIM_PREFIX, FIM_SUFFIX, FIM_MIDDLE], b"x"),
    ]
    for info, text, prompt, healed in cases:
        left, window = TOKENIZER.encode(text), Window(200, 100)
        context = build_context(CompletionRequest(""), left, NO_TOKENS, info, TOKENIZER, window)
        assert (context.prompt.tolist(), context.healed) == (prompt, healed)


def test_bos_goes_first_where_the_model_wants_one():
    assert assemble(replace(INFO, bos=99), LEFT, RIGHT)[0][0] == 99


def test_the_window_start_moves_in_steps():
    starts = [window_start(n, 1024) for n in range(4000)]
    assert all(n - s <= 1024 for n, s in enumerate(starts))
    assert all(s % STEP == 0 for s in starts)
    assert len(set(starts)) < 15
    assert starts[:1025] == [0] * 1025


@given(st.integers(0, 5000), st.integers(1, 2000))
def test_the_window_is_never_too_large(n, window):
    start = window_start(n, window)
    assert 0 <= start <= n
    assert n - start <= window


@given(st.integers(0, 3000), st.integers(0, 3000), st.integers(64, 600), st.integers(1, 64))
def test_prompt_and_output_fit_the_context(n_left, n_right, n_ctx, n_output):
    request = CompletionRequest("", max_tokens=min(n_output, n_ctx // 2))
    left, right = np.full(n_left, 40, np.int32), np.full(n_right, 41, np.int32)
    info = replace(INFO, n_ctx=n_ctx)
    context = build_context(request, left, right, info, TOKENIZER, Window(1024, 256))
    assert len(context.prompt) + request.max_tokens <= n_ctx + 16


def test_an_output_of_all_there_is_leaves_room_for_a_prompt():
    left = np.full(3000, 40, np.int32)
    info, window = replace(INFO, n_ctx=1000), Window(1024, 256)
    asked = [CompletionRequest("", max_tokens=n) for n in (500, 10_000)]
    half, all_there_is = (
        build_context(request, left, left, info, TOKENIZER, window) for request in asked
    )
    assert 300 < len(half.prompt) <= 500
    assert all_there_is.prompt.tolist() == half.prompt.tolist()


@pytest.mark.parametrize(
    ("text", "healed"),
    [
        ("x = ret", b"t"),
        ("x = ", b" "),
        ("a\n", b""),
        ("a\n\t", b"\t"),
        ("f(", b""),
        ("_", b"_"),
        ("é", "é".encode()[-1:]),
        ("", b""),
    ],
)
def test_words_are_held_back_and_nothing_else(text, healed):
    tokens = TOKENIZER.encode(text)
    kept, got = hold_back(tokens, TOKENIZER)
    assert got == healed
    assert TOKENIZER.decode(kept) + got == text.encode()


class WordTokenizer(ByteTokenizer):
    """A few words beside single letters."""

    WORDS = (b"re", b"ret", b"return", b"returns", b"rest", b"t", b"e", b"r", b" r", b"")
    n_vocab = len(WORDS)
    hash = "words"

    def piece(self, token: int) -> bytes:
        return self.WORDS[token] if token < len(self.WORDS) else b""


def allowed_words(wanted: bytes) -> set[bytes]:
    words = WordTokenizer()
    return {words.piece(int(t)) for t in vocabulary_of(words).compatible(wanted)}


def test_compatible_tokens_continue_or_begin_the_bytes():
    assert allowed_words(b"ret") == {b"ret", b"return", b"returns", b"re", b"r"}
    assert allowed_words(b"t") == {b"t"}
    assert allowed_words(b"x") == set()


@given(st.text("ret s", min_size=1, max_size=4))
def test_compatible_equals_its_definition(wanted):
    words = WordTokenizer()
    w = wanted.encode()
    naive = {p for p in words.WORDS if p and (p.startswith(w) or w.startswith(p))}
    assert allowed_words(w) == naive


def test_the_mask_lets_go_once_the_bytes_are_spelled():
    words = WordTokenizer()
    mask = HealingMask(b"ret", vocabulary_of(words), words)
    assert mask.allowed([]) is not None
    allowed = mask.allowed([7])
    assert allowed is not None
    after_r = {words.piece(int(t)) for t in allowed}
    assert after_r == {b"e"}
    assert mask.allowed([7, 6, 5]) is None
    assert mask.allowed([2]) is None


def test_a_mask_that_nothing_fits_does_not_stand_in_the_way():
    words = WordTokenizer()
    assert HealingMask(b"zz", vocabulary_of(words), words).allowed([]) is None


def test_places_count_from_one_in_characters():
    text = "añ𝒳b\nsecond\n"
    assert split_at(text, 1, 1) == ("", text)
    assert split_at(text, 1, 4) == ("añ𝒳", "b\nsecond\n")
    assert split_at(text, 2, 7) == ("añ𝒳b\nsecond", "\n")
    assert split_at(text, 3, 1) == (text, "")
    assert split_at("", 1, 1) == ("", "")


@pytest.mark.parametrize("place", [(0, 1), (4, 1), (1, 0), (1, 6), (3, 2)])
def test_places_outside_are_refused_with_the_range(place):
    with pytest.raises(InputError, match="outside"):
        split_at("añ𝒳b\nsecond\n", *place)


def test_documents(tmp_path):
    file = tmp_path / "a.py"
    file.write_bytes(b"\xef\xbb\xbfx\r\ny\n")
    assert read_document(file) == "x\ny\n"
    (tmp_path / "b.bin").write_bytes(b"\x00\x01")
    (tmp_path / "c.txt").write_bytes("é".encode("latin-1"))
    for name, what in [
        ("b.bin", "binary"),
        ("c.txt", "UTF-8"),
        ("d", "no such file"),
        ("", "directory"),
    ]:
        with pytest.raises(InputError, match=what):
            read_document(tmp_path / name)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no such files here")
def test_nobody_waits_for_a_pipe(tmp_path):
    os.mkfifo(tmp_path / "pipe.py")
    with pytest.raises(InputError, match="pipe"):
        read_document(tmp_path / "pipe.py")


def test_the_workspace_is_the_git_root_or_the_folder(tmp_path):
    (tmp_path / "repo" / "pkg").mkdir(parents=True)
    (tmp_path / "repo" / ".git").mkdir()
    assert workspace_of(tmp_path / "repo" / "pkg" / "a.py") == tmp_path / "repo"
    assert workspace_of(tmp_path / "a.py").samefile(tmp_path)
