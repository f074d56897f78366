"""Forms of prompts that clients write, and that are not written here: known, so that they reach a
model that speaks them, and no other.

Sources: Zed, crates/zeta_prompt, formats V0113Ordered, V0114180EditableRegion and
V0120GitMergeMarkers, zeta1.rs; crates/edit_prediction/src/mercury.rs.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

from codespec.edits.formats.base import PromptForm


class PromptOnly(PromptForm):
    """A form that is told by texts that stand in its prompts in this order, the first of them at
    their beginning."""

    def __init__(self, name: str, title: str, names: str, texts: Sequence[str]) -> None:
        self.name, self.title = name, title
        self._names = re.compile(names, re.IGNORECASE)
        self._texts = texts

    def speaks(self, names: str, vocabulary: Collection[str]) -> bool:
        return self._names.search(names) is not None

    def is_prompt(self, text: str) -> bool:
        if not text.startswith(self._texts[0]):
            return False
        place = 0
        for expected in self._texts:
            place = text.find(expected, place)
            if place < 0:
                return False
            place += len(expected)
        return True


_FILE, _PREFIX, _MIDDLE = "<|file_sep|>", "<|fim_prefix|>", "<|fim_middle|>"
_CURSOR = "<|user_cursor|>"
FORMS = (
    PromptOnly(
        "zeta-merge-markers",
        "Zeta with merge markers",
        r"zeta.*v?0120",
        (_FILE, _PREFIX, f"{_MIDDLE}<<<<<<< CURRENT\n", _CURSOR, "=======\n"),
    ),
    PromptOnly(
        "zeta-ordered",
        "Zeta with ordered parts",
        r"zeta.*v?011[34]",
        (_FILE, f"{_PREFIX}\n", f"{_MIDDLE}current\n", _CURSOR, f"{_MIDDLE}updated\n"),
    ),
    PromptOnly(
        "zeta1",
        "Zeta 1",
        r"(?<![a-z])zeta(?![-_ .]?\d)",
        (
            "### Instruction:\n",
            "### User Edits:\n",
            "### User Excerpt:\n",
            "<|editable_region_start|>",
            "### Response:",
        ),
    ),
    PromptOnly(
        "mercury",
        "Mercury",
        r"\bmercury\b",
        ("<|recently_viewed_code_snippets|>", "<|current_file_content|>", "<|code_to_edit|>"),
    ),
)
