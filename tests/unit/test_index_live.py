"""The open document: what a keystroke costs, and what its automata know."""

from __future__ import annotations

import numpy as np

from codespec.backends.fake import ByteTokenizer
from codespec.documents import live
from codespec.documents.live import LiveDocument
from codespec.types import Tokens
from tests.index_support import QWEN2, SplitTokenizer

FILE = "".join(f"def name_{i}(a, b):\n    x = a + {i}\n    return x\n\n\n" for i in range(400))


class CountingTokenizer(ByteTokenizer):
    def __init__(self) -> None:
        self.n_bytes = 0

    def encode(self, text: str | bytes) -> Tokens:
        self.n_bytes += len(text)
        return super().encode(text)


def text_of(tokens) -> str:
    return ByteTokenizer().decode(tokens).decode()


def test_both_sides_of_the_cursor() -> None:
    document = LiveDocument(ByteTokenizer())
    document.update("a = 1\nb", " = 2\n")
    assert text_of(document.left) == "a = 1\nb"
    assert text_of(document.right) == " = 2\n"
    assert np.array_equal(document.before.text, document.left)
    assert np.array_equal(document.after.text, document.right)
    document.update("", "")
    assert len(document.left) == len(document.before) == len(document.right) == 0


def test_typing_tokenises_the_line_and_nothing_else() -> None:
    tokenizer = CountingTokenizer()
    document = LiveDocument(tokenizer)
    at = FILE.index("\n", len(FILE) // 2) + 1
    document.update(FILE[:at], FILE[at:])
    typed = "    y = name_3(a, b)\n"
    for i in range(1, len(typed) + 1):
        tokenizer.n_bytes = 0
        document.update(FILE[:at] + typed[:i], FILE[at:])
        assert tokenizer.n_bytes <= 60
        assert text_of(document.left) == FILE[:at] + typed[:i]


def test_moving_the_cursor_tokenises_only_the_cut_lines() -> None:
    tokenizer = CountingTokenizer()
    document = LiveDocument(tokenizer)
    document.update(FILE, "")
    for at in (100, len(FILE) - 100, len(FILE) // 2, 0, len(FILE)):
        tokenizer.n_bytes = 0
        document.update(FILE[:at], FILE[at:])
        assert tokenizer.n_bytes <= 120
        assert text_of(document.left) == FILE[:at]
        assert text_of(document.right) == FILE[at:]


def test_drafts_from_both_sides() -> None:
    document = LiveDocument(ByteTokenizer())
    document.update("total = first + second\n\ntotal = ", "\nresult = compute(total)\n")
    assert text_of(document.before.draft_tail(14).tokens) == "first + second"
    context = ByteTokenizer().encode("result = ")
    assert text_of(document.after.draft(context, 7).tokens) == "compute"


def test_following_a_completion() -> None:
    tokenizer = SplitTokenizer(QWEN2)
    document = LiveDocument(tokenizer)
    prefix = "for item in items:\n    print(item)\nfor item"
    document.update(prefix, "")
    left = document.left
    emitted = tokenizer.encode(" in items")

    def follow(tokens: Tokens) -> None:
        document.before.assign(np.concatenate((left, tokens)))

    follow(emitted[:1])
    follow(emitted)
    assert np.array_equal(document.left, left)
    assert document.before.text.tolist() == [*left.tolist(), *emitted.tolist()]
    assert tokenizer.decode(document.before.draft_tail(1).tokens) == b":\n"
    follow(tokenizer.encode(" of"))
    assert document.before.text.tolist() == [*left.tolist(), *tokenizer.encode(" of").tolist()]
    follow(emitted[:0])
    assert np.array_equal(document.before.text, left)
    follow(emitted)
    document.update(prefix + " in items", "")  # accepted
    assert np.array_equal(document.before.text, document.left)
    assert len(document.left) == len(left) + len(emitted)
    follow(emitted)
    document.update(prefix, "")  # not accepted
    assert np.array_equal(document.before.text, left)


def test_huge_documents_are_cut_in_steps() -> None:
    tokenizer = CountingTokenizer()
    document = LiveDocument(tokenizer)
    prefix = "0123456789abcde\n" * (3 * live.MAX_PREFIX_CHARS // 32 + 100)
    document.update(prefix, prefix)
    assert live.MAX_PREFIX_CHARS // 2 <= len(document.left) <= live.MAX_PREFIX_CHARS
    assert prefix.endswith(text_of(document.left))
    assert prefix[: live.MAX_SUFFIX_CHARS] == text_of(document.right)
    tokenizer.n_bytes = 0
    document.update(prefix + "x", prefix)
    assert tokenizer.n_bytes <= 100
