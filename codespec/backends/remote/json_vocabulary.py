"""Vocabularies of tokenizer.json, as Hugging Face's models have one: byte-level BPE.

Source: Hugging Face, tokenizers (the file's form, and the characters that stand for bytes).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codespec.backends.base import Model
from codespec.context.families import ends_in, family_in
from codespec.errors import ModelError
from codespec.types import ModelInfo, Tokens

_MOST_BYTES = 256 << 20
_MOST_TOKENS = 1 << 22
"""Most tokens: there is a text for each id, whether the file has it or not."""
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>", "</s>", "<eos>")
"""Tokens that end a text, in the vocabularies of known families."""
_NEXT_STEP = "Name a GGUF file of the model instead: its weights are not read."


class JsonVocabulary(Model):
    """`Model` with a vocabulary alone.

    Raises: ModelError where the file cannot be read, or is of another kind of tokenizer.
    """

    def __init__(self, path: Path) -> None:
        try:
            import tokenizers  # an extra: the command line starts without it
        except ImportError:
            raise ModelError(
                f"{path}: the package tokenizers, which reads it, is not installed",
                "Install codespec[remote], or name a GGUF file of the model.",
            ) from None
        said = _read(path)
        # Text of a document that spells a special token must not become it, and its bytes have to
        # come back: a normalizer, such as Qwen's, composes characters, and some files put a blank
        # before each text.
        plain = {**said, "added_tokens": [], "post_processor": None, "normalizer": None}
        plain["pre_tokenizer"] = _without_blank(said.get("pre_tokenizer"))
        try:
            added = {str(t["content"]): int(t["id"]) for t in said.get("added_tokens") or ()}
            texts: dict[str, int] = {**said["model"]["vocab"], **added}
            self._own = tokenizers.Tokenizer.from_str(json.dumps(plain))
        except Exception as e:  # tokenizers raises nothing more precise
            raise _malformed(path) from e
        if not texts or not 0 <= min(texts.values()) <= max(texts.values()) < _MOST_TOKENS:
            raise _malformed(path)
        self._own.no_truncation()
        self._own.no_padding()
        self._special = added
        self._texts = [""] * (1 + max(texts.values()))
        for text, token in texts.items():
            self._texts[token] = text
        self._pieces = [b"" if t in added else bytes_of(t) for t in self._texts]
        self._byte_ids = {p[0]: i for i, p in enumerate(self._pieces) if len(p) == 1}
        self.n_vocab = len(self._texts)
        self.hash = hash_of(self._texts)
        family = family_in(texts, str(path))
        fim = None if family is None else family.tokens(texts)
        ends = {added[text] for text in _ENDS if text in added} | ends_in(added)
        self._info = ModelInfo(
            name=path.parent.name,
            path=str(path),
            architecture="",
            n_vocab=self.n_vocab,
            n_ctx=0,
            n_params=0,
            file_bytes=0,
            fim=fim,
            eog=frozenset(ends | set(fim.markers if fim is not None else ())),
            bos=_beginning(path, added),
            tokenizer_hash=self.hash,
            backend="",
        )

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def tokenizer(self) -> JsonVocabulary:
        return self

    @property
    def special_tokens(self) -> Mapping[str, int]:
        return self._special

    def token_text(self, token: int) -> str:
        return self._texts[token]

    def encode(self, text: str | bytes) -> Tokens:
        """See `types.Tokenizer`."""
        if isinstance(text, bytes):
            try:
                text = text.decode()
            except UnicodeDecodeError as e:
                ids = [self._byte_ids[byte] for byte in text[e.start : e.end]]
                around = self.encode(text[: e.start]), self.encode(text[e.end :])
                return np.concatenate([around[0], np.array(ids, np.int32), around[1]])
        return np.array(self._own.encode(text, add_special_tokens=False).ids, np.int32)

    def piece(self, token: int) -> bytes:
        return self._pieces[token] if 0 <= token < self.n_vocab else b""

    def decode(self, tokens: Tokens | Sequence[int]) -> bytes:
        return b"".join(self.piece(int(t)) for t in tokens)


def hash_of(texts: Sequence[str]) -> str:
    """Identity of a vocabulary. texts: of its tokens, by id, "" for those without one."""
    return hashlib.blake2b("\0".join(texts).encode(), digest_size=10).hexdigest()


def _malformed(path: Path) -> ModelError:
    return ModelError(f"{path}: its vocabulary cannot be read", _NEXT_STEP)


def _read(path: Path) -> dict[str, Any]:
    """The file's content. Raises: ModelError."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise ModelError(f"{path}: too large for a vocabulary", _NEXT_STEP)
        said = json.loads(path.read_bytes())
    except (OSError, ValueError, RecursionError) as e:
        why = e.strerror if isinstance(e, OSError) else "not JSON"
        raise ModelError(f"{path}: {why}", "Name an existing tokenizer.json.") from None
    model = said.get("model") if isinstance(said, dict) else None
    kind = model.get("type") if isinstance(model, dict) else None
    if kind != "BPE" or '"ByteLevel"' not in json.dumps([said.get("decoder")]):
        raise ModelError(f"{path}: not a byte-level BPE, the only kind that is read", _NEXT_STEP)
    return said


def _without_blank(pre_tokenizer: Any) -> Any:
    """A pre-tokenizer, or a sequence of them, that puts no blank before a text."""
    if not isinstance(pre_tokenizer, dict):
        return pre_tokenizer
    made: dict[str, Any] = {**pre_tokenizer}
    if "add_prefix_space" in made:
        made["add_prefix_space"] = False
    if isinstance(parts := made.get("pretokenizers"), list):
        made["pretokenizers"] = [_without_blank(part) for part in parts]
    return made


def _beginning(path: Path, added: Mapping[str, int]) -> int | None:
    """The token that begins each text, by the file beside it."""
    try:
        said = json.loads((path.parent / "tokenizer_config.json").read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(said, dict):
        return None
    token = said.get("bos_token") if said.get("add_bos_token") else None
    return added.get(str(token.get("content") if isinstance(token, dict) else token))


def bytes_of_characters() -> dict[str, int]:
    """Byte by the character that stands for it in byte-level BPE: printable ones for themselves,
    the others moved."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = [byte for byte in range(256) if byte not in shown]
    return {chr(b): b for b in shown} | {chr(256 + i): b for i, b in enumerate(moved)}


_BYTES = bytes_of_characters()


def bytes_of(text: str) -> bytes:
    """The bytes of a token; none for one that spells no bytes."""
    try:
        return bytes([_BYTES[character] for character in text])
    except KeyError:
        return b""
