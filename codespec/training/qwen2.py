"""The pre-tokenizer and the FIM markers of Qwen2.5-Coder, which our models share.

llama.cpp implements the pre-tokenizer natively (`tokenizer.ggml.pre = qwen2`): an expression of our
own would need a change of llama.cpp. Digits stand alone in it, which suits code.
"""

from __future__ import annotations

from tokenizers import Regex, Tokenizer, decoders, pre_tokenizers

QWEN2_PATTERN = "|".join(
    (
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)",
        r"[^\r\n\p{L}\p{N}]?\p{L}+",
        r"\p{N}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    )
)
PIECES = pre_tokenizers.Split(Regex(QWEN2_PATTERN), behavior="isolated")

END = "<|endoftext|>"
FIM_PREFIX = "<|fim_prefix|>"
FIM_SUFFIX = "<|fim_suffix|>"
FIM_MIDDLE = "<|fim_middle|>"
FIM_PAD = "<|fim_pad|>"
REPO_NAME = "<|repo_name|>"
FILE_SEPARATOR = "<|file_sep|>"
SPECIAL = (
    END,
    FIM_PREFIX,
    FIM_SUFFIX,
    FIM_MIDDLE,
    FIM_PAD,
    REPO_NAME,
    FILE_SEPARATOR,
)  # ids 0 to 6


def with_qwen2_splits(tokenizer: Tokenizer) -> Tokenizer:
    """The same tokenizer, cutting text by qwen2's expression and then into bytes."""
    to_bytes = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([PIECES, to_bytes])
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
