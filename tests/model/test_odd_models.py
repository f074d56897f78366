"""Model files that are damaged, odd, or of another kind: a reason in words, or they work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from codespec.backends.llama import LlamaTarget, LlamaTokenizer, load_model
from codespec.backends.llama.loader import lib
from codespec.config import ModelSettings, Settings
from codespec.errors import ModelError
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec.train import bpe
from codespec.training import export
from codespec.training.network import Llama
from tests import training
from tests.engines import strict_engine


def with_number(path: Path, key: str, number: int) -> Path:
    """The bundled draft model with another number in its metadata."""
    raw = bytearray(bundled(BUNDLED_DRAFT).read_bytes())
    at = raw.index(key.encode()) + len(key) + 4  # the number's type
    raw[at : at + 4] = number.to_bytes(4, "little")
    path.write_bytes(raw)
    return path


def test_weights_that_are_no_numbers_are_noticed_on_loading(tmp_path: Path) -> None:
    file = tmp_path / "model.gguf"
    shutil.copy(bundled(BUNDLED_DRAFT), file)
    (norm,) = [t for t in gguf.GGUFReader(file, "r+").tensors if t.name == "output_norm.weight"]
    assert isinstance(norm.data, np.memmap)
    norm.data[:] = np.nan
    norm.data.flush()
    with pytest.raises(ModelError, match="no numbers"):
        strict_engine(Settings(model=ModelSettings(target=str(file), draft="")))


def test_the_reason_is_what_failed_and_nothing_said_before(tmp_path: Path) -> None:
    wrong = with_number(tmp_path / "wrong.gguf", "llama.embedding_length", 7)
    with pytest.raises(ModelError, match=r"'token_embd\.weight' has wrong shape"):
        load_model(wrong)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="without pipes that have names")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelError, match="a pipe, not a file"):
        load_model(tmp_path / "pipe.gguf")


@pytest.mark.parametrize("number", [0, 1, 2**32 - 1])
def test_a_length_of_context_that_cannot_be_is_made_one_that_can(
    tmp_path: Path, number: int
) -> None:
    model = load_model(with_number(tmp_path / "odd.gguf", "llama.context_length", number))
    n_ctx = ModelSettings().window(model.info.n_ctx)
    assert n_ctx == (64 if number == 1 else 2048)
    LlamaTarget(model, n_ctx=n_ctx).close()
    model.close()


def test_a_model_that_writes_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)

    def looks_ahead(writer: gguf.GGUFWriter) -> None:
        writer.add_causal_attention(False)
        export.add_tokenizer(writer, words, training.N_VOCAB)

    def has_no_tokens(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("none")
        writer.add_vocab_size(training.N_VOCAB)

    for add in (looks_ahead, has_no_tokens):
        path = tmp_path / f"{add.__name__}.gguf"
        export.write_model(path, Llama(training.TINY).eval(), "f32", "odd", add)
        with pytest.raises(ModelError, match="writes no text") as refused:
            load_model(path, vocab_only=True)
        assert "codespec models recommend" in refused.value.hint
    usual = load_model(bundled(BUNDLED_DRAFT))
    monkeypatch.setattr(lib, "llama_get_memory", lambda _context: None)  # of BERT there is none
    with pytest.raises(ModelError, match="writes no text"):
        LlamaTarget(usual)
    usual.close()


@pytest.fixture
def lacking(tmp_path: Path) -> Path:
    """A model whose vocabulary lacks letters."""

    def lacks_letters(writer: gguf.GGUFWriter) -> None:
        writer.add_tokenizer_model("llama")
        writer.add_token_list([f"word{i}" for i in range(training.N_VOCAB)])
        writer.add_token_scores([0.0] * training.N_VOCAB)
        writer.add_token_types([1] * training.N_VOCAB)

    path = tmp_path / "odd.gguf"
    export.write_model(path, Llama(training.TINY).eval(), "f32", "odd", lacks_letters)
    return path


def run(*command: str, **environ: str) -> subprocess.CompletedProcess[str]:
    kept = {k: v for k, v in os.environ.items() if k != "GGML_NO_BACKTRACE"}
    return subprocess.run(
        [sys.executable, *command],
        env=kept | environ,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_tokenizer_that_fails_is_said_to(lacking: Path) -> None:
    done = run("-m", "codespec", "doctor", str(lacking.parent), CODESPEC_MODEL_TARGET=str(lacking))
    assert done.returncode == 1
    assert "the model's tokenizer fails" in done.stdout
    assert "Traceback" not in done.stderr


def test_of_an_exception_that_nobody_catches_the_reason_is_told_alone(lacking: Path) -> None:
    script = (
        "from pathlib import Path\n"
        "from codespec.backends.llama import load_model\n"
        "from codespec.backends.llama.loader import lib\n"
        f"model = load_model(Path({str(lacking)!r}), vocab_only=True)\n"
        "lib.llama_tokenize(model.vocab, b'x', 1, (lib.llama_token * 9)(), 9, False, False)\n"
    )
    done = run("-c", script)
    assert "unordered_map::at" in done.stderr
    assert done.stderr.count("\n") < 4


def test_bytes_that_are_no_text_have_tokens_too() -> None:
    model = load_model(bundled(BUNDLED_DRAFT), vocab_only=True)
    words = LlamaTokenizer(model)
    for n in (5, 5000):
        assert words.decode(words.encode(b"\xff" * n)) == "\ufffd".encode() * n
    model.close()
