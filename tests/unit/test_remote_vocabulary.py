"""Vocabularies of tokenizer.json: bytes in and out, and no special token from a text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codespec.backends.remote.beginnings import Beginnings
from codespec.backends.remote.json_vocabulary import JsonVocabulary
from codespec.errors import ModelError

tokenizers = pytest.importorskip("tokenizers")

MARKERS = ["<|endoftext|>", "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]
TEXT = "def f(x):\n    return {'ä': [x, 1_000]}\n\n\tif (a != b) {}  // λ\n" * 4


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer that learned its merges from the text, as models bring one."""
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.normalizer = tokenizers.normalizers.NFC()
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320, special_tokens=MARKERS, initial_alphabet=alphabet, show_progress=False
    )
    made.train_from_iterator([TEXT], trainer)
    path = tmp_path_factory.mktemp("words") / "tokenizer.json"
    made.save(str(path))
    about = {"bos_token": {"content": MARKERS[0]}, "add_bos_token": True}
    (path.parent / "tokenizer_config.json").write_text(json.dumps(about))
    return path


@pytest.mark.parametrize(
    "raw",
    [
        TEXT.encode(),
        b"",
        b"\xff\xfe",
        "ä".encode()[:1],
        b"a\xc3",
        "x\ny\0λ".encode(),
        "e\u0301".encode(),
    ],
)
def test_bytes_come_back(file: Path, raw: bytes) -> None:
    words = JsonVocabulary(file)
    assert words.decode(words.encode(raw)) == raw


def test_it_merges_as_its_own_library_does(file: Path) -> None:
    own = tokenizers.Tokenizer.from_file(str(file))
    assert JsonVocabulary(file).encode(TEXT).tolist() == own.encode(TEXT).ids
    assert len(JsonVocabulary(file).encode(TEXT)) < len(TEXT.encode()) / 2


@pytest.mark.parametrize("is_one_of_some", [False, True])
def test_no_blank_is_put_before_a_text(file: Path, tmp_path: Path, is_one_of_some: bool) -> None:
    """Some files say so; bytes would not come back."""
    said = json.loads(file.read_bytes())
    said["pre_tokenizer"]["add_prefix_space"] = True
    if is_one_of_some:
        digits = {"type": "Digits", "individual_digits": True}
        said["pre_tokenizer"] = {
            "type": "Sequence",
            "pretokenizers": [digits, said["pre_tokenizer"]],
        }
    spaced = tmp_path / "tokenizer.json"
    spaced.write_text(json.dumps(said))
    words = JsonVocabulary(spaced)
    assert tokenizers.Tokenizer.from_file(str(spaced)).encode("def").tokens[0][0] == "Ġ"
    assert words.decode(words.encode("def f")) == b"def f"
    assert words.encode("def f").tolist() == JsonVocabulary(file).encode("def f").tolist()


def test_a_text_that_spells_a_marker_is_text(file: Path) -> None:
    words = JsonVocabulary(file)
    tokens = words.encode("".join(MARKERS))
    assert not set(tokens.tolist()) & set(words.special_tokens.values())
    assert words.decode(tokens) == "".join(MARKERS).encode()


def test_its_format_and_its_ends_are_known(file: Path) -> None:
    words = JsonVocabulary(file)
    ids = words.special_tokens
    fim = words.info.fim
    assert fim is not None
    assert fim.markers == (ids[MARKERS[1]], ids[MARKERS[2]], ids[MARKERS[3]])
    assert words.info.eog == set(ids.values())
    assert words.info.bos == ids[MARKERS[0]]
    assert words.piece(ids[MARKERS[0]]) == words.piece(-1) == words.piece(1 << 20) == b""


@pytest.mark.parametrize(
    ("said", "why"),
    [("{", "not JSON"), ("[]", "byte-level"), ('{"model": {"type": "Unigram"}}', "byte-level")],
)
def test_another_file_is_refused(tmp_path: Path, said: str, why: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(said)
    with pytest.raises(ModelError, match=why):
        JsonVocabulary(path)


FAULTS: dict[str, dict[str, Any]] = {
    "no model": {"model": []},
    "no vocabulary": {"model": {"type": "BPE"}},
    "an empty vocabulary": {
        "model": {"type": "BPE", "vocab": {}, "merges": []},
        "added_tokens": [],
    },
    "ids of text": {"model": {"type": "BPE", "vocab": {"a": "x"}, "merges": []}},
    "ids below 0": {"model": {"type": "BPE", "vocab": {"a": -5}, "merges": []}},
    "unknown merges": {"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["zz yy"]}},
    "tokens without text": {"added_tokens": [{"id": 1}]},
    "ids for tokens": {"added_tokens": [1]},
    "an id without bound": {"added_tokens": [{"content": "<s>", "id": 1 << 40}]},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_is_damaged_is_refused(file: Path, tmp_path: Path, fault: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(file.read_text()) | FAULTS[fault]))
    with pytest.raises(ModelError, match=r"byte-level|cannot be read") as error:
        JsonVocabulary(path)
    assert str(path) in error.value.message


@pytest.mark.parametrize("said", ["[]", "{", "[" * 100_000])
def test_a_damaged_file_beside_it_counts_as_none(file: Path, tmp_path: Path, said: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_bytes(file.read_bytes())
    (tmp_path / "tokenizer_config.json").write_text(said)
    assert JsonVocabulary(path).info.bos is None


def test_a_half_typed_word_may_begin_with_parts_of_it_and_with_more(file: Path) -> None:
    words = JsonVocabulary(file)
    fitting = Beginnings(words.tokenizer, words.n_vocab).fitting(b"retu")
    pieces = [words.piece(token) for token in fitting]
    assert b"r" in pieces
    assert b"retu".startswith(min(pieces, key=len))
    assert all(b"retu".startswith(piece) or piece.startswith(b"retu") for piece in pieces)
    others = [words.piece(t) for t in range(words.n_vocab) if t not in fitting]
    assert not any(p and (b"retu".startswith(p) or p.startswith(b"retu")) for p in others)
