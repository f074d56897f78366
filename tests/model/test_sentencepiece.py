"""A vocabulary as Code Llama's, which puts a blank before each text it is given."""

from __future__ import annotations

from pathlib import Path

import gguf
import pytest

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.documents.live import LiveDocument
from codespec.syntax.text import safe_cuts

_CONTROL, _NORMAL, _UNKNOWN, _BYTE = 3, 1, 2, 6
_WORDS = [
    "▁",
    "import",
    "▁import",
    "a",
    "b",
    "▁a",
    "▁b",
    "def",
    "▁def",
    "f",
    "▁f",
    "(",
    ")",
    ":",
    "x",
    "▁x",
    "▁▁",
    "▁▁▁▁",
    "return",
    "▁return",
    "\n",
]
_LETTERS = sorted(set("importdefreturn") - set(_WORDS))
TEXT = "import a\nimport b\n\ndef f(x):\n    return x\n"


@pytest.fixture(params=[None, True, False], ids=["unsaid", "blank", "none"])
def tokenizer(request: pytest.FixtureRequest, tmp_path: Path) -> LlamaTokenizer:
    words = [*_WORDS, *_LETTERS]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{i:02X}>" for i in range(256)), *words]
    path = tmp_path / "words.gguf"
    writer = gguf.GGUFWriter(str(path), "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([token.encode() for token in tokens])
    writer.add_token_scores([0.0] * 259 + [-float(i) for i in range(len(words))])
    writer.add_token_types([_UNKNOWN, _CONTROL, _CONTROL, *[_BYTE] * 256, *[_NORMAL] * len(words)])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_unk_token_id(0)
    if request.param is not None:
        writer.add_add_space_prefix(request.param)
    writer.add_context_length(512)
    writer.add_embedding_length(32)
    writer.add_block_count(1)
    writer.add_head_count(1)
    writer.add_feed_forward_length(32)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return LlamaTokenizer(load_model(path, vocab_only=True))


@pytest.mark.parametrize("text", ["", "x", " x", "\n", "(x)\n", TEXT])
def test_no_text_gains_a_blank(tokenizer: LlamaTokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == text.encode()


def test_a_document_is_read_as_it_is(tokenizer: LlamaTokenizer) -> None:
    document = LiveDocument(tokenizer, safe_cuts(tokenizer))
    for text in (TEXT, TEXT * 3, "import a\nimport a\nimport a\n"):
        for at in range(0, len(text), 5):
            document.update(text[:at], text[at:])
            assert tokenizer.decode(document.left) == text[:at].encode()
            assert tokenizer.decode(document.right) == text[at:].encode()
