"""How many tokens of a prompt are read at a time."""

from __future__ import annotations

from codespec.backends.llama.chunk_size import ChunkSize


def test_a_part_is_halved_where_none_was_read() -> None:
    parts = ChunkSize(16, 256)
    found = [parts.n]
    for _ in range(6):
        parts.begin()
        parts.lost()
        found.append(parts.n)
    assert found == [256, 128, 64, 32, 16, 16, 16]
    # One that was read is there the next time.
    parts.begin()
    parts.done()
    parts.lost()
    assert parts.n == 16


def test_it_is_doubled_once_a_prompt_where_two_were_read() -> None:
    parts = ChunkSize(16, 48)
    parts.lost()
    parts.lost()
    found: list[int] = []
    for _ in range(2):
        parts.begin()
        for _ in range(5):
            parts.done()
            found.append(parts.n)
        parts.lost()
        assert parts.n == found[-1]
    assert found == [16, 32, 32, 32, 32, 32, 48, 48, 48, 48]
    assert not parts.is_short


def test_what_was_tried_in_vain_is_not_tried_at_once_again() -> None:
    parts = ChunkSize(16, 256)
    for _ in range(3):
        parts.begin()
        parts.lost()
    for _ in range(3):
        parts.begin()
        parts.done()
        parts.done()
        assert parts.n == 64
        parts.lost()
        assert parts.n == 32
        assert parts.is_short


def test_no_part_is_longer_than_a_pass_may_be() -> None:
    parts = ChunkSize(16, 8)
    parts.begin()
    parts.lost()
    assert parts.n == 8
