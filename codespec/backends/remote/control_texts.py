"""Text of documents that spells control tokens, in prompts that are sent as text.

A server reads the markers of a prompt in its text, and so would take a document that holds
"<|fim_middle|>" at its word. Such a spelling gets a blank within.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from codespec.context.families import BEGINNINGS, FAMILIES
from codespec.types import Tokenizer

_CHAT = ("<|im_start|>", "<|im_end|>", "<|eot_id|>", "</s>", "<eos>", "<|end_of_text|>")


def known_controls() -> set[str]:
    """Control tokens of all known families, for a vocabulary that is unknown."""
    spelled = {
        text.strip()
        for family in FAMILIES
        for texts in (*family.spelled, family.texts, family.ends)
        for text in texts
    }
    return {*spelled, *BEGINNINGS, *_CHAT} - {""}


class PromptSpeller:
    """Spells prompts: markers as they are, text between them without control tokens.

    markers: spelling by id. controls: spellings that a document must not hold.
    """

    def __init__(
        self, tokenizer: Tokenizer, markers: dict[int, str], controls: Iterable[str]
    ) -> None:
        self._tokenizer = tokenizer
        self._markers = markers
        # Some vocabularies write a blank as "▁"; a blank alone is no marker.
        texts = {text.replace("▁", " ").strip() for text in controls}
        longest = sorted((t for t in texts if len(t) > 1), key=len, reverse=True)
        self._controls = re.compile("|".join(map(re.escape, longest)) or r"(?!)")

    def text(self, tokens: Sequence[int]) -> str:
        """Text of a prompt."""
        parts, run = list[str](), list[int]()
        for token in tokens:
            marker = self._markers.get(token)
            if marker is None:
                run.append(token)
                continue
            parts += self._plain(run), marker
            run = []
        return "".join((*parts, self._plain(run)))

    def _plain(self, tokens: Sequence[int]) -> str:
        text = self._tokenizer.decode(tokens).decode("utf-8", "replace")
        return self._controls.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
