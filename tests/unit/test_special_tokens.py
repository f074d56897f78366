"""Special tokens in prompts: ids where they are meant, text where a document spells them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.context.special_tokens import Special, encoded, specials_in
from codespec.types import Tokens

FILE = Special("<filename>")
IDS = {"<filename>": 256, "<other>": 257}


class Eager(ByteTokenizer):
    """A vocabulary that finds its special tokens in any text, as those of some files do."""

    def encode(self, text: str | bytes) -> Tokens:
        parts: Sequence[str] = specials_in(text if isinstance(text, str) else text.decode(), IDS)
        found = [IDS[p] if isinstance(p, Special) else super(Eager, self).encode(p) for p in parts]
        return np.concatenate([np.atleast_1d(part) for part in found]).astype(np.int32)


def test_a_text_that_spells_a_special_token_is_text() -> None:
    text = "a <filename> b <filename><other>"
    for tokenizer in (ByteTokenizer(), Eager()):
        tokens = encoded((FILE, text), IDS, tokenizer).tolist()
        assert tokens[0] == 256
        assert 256 not in tokens[1:]
        assert tokenizer.decode([t for t in tokens if t < 256]).decode() == text.replace(
            "<other>", "" if isinstance(tokenizer, Eager) else "<other>"
        )


def test_what_a_client_spells_is_special() -> None:
    for tokenizer in (ByteTokenizer(), Eager()):
        parts = specials_in("<filename>a<filename>b", IDS)
        assert encoded(parts, IDS, tokenizer).tolist() == [256, 97, 256, 98]
