"""Where a completion ends, and what is trimmed from it.

Rules look at text alone and never at drafts, so they act the same with and without drafting.
"""

from __future__ import annotations

from collections.abc import Sequence

from codespec.types import Tokenizer


class BlockStop:
    """Ends a completion after its line, or after its block: before a line indented less than the
    cursor's line.

    line_prefix: text of the cursor's line before the cursor.
    n_healed:    bytes the output repeats from before the cursor.
    """

    def __init__(
        self, tokenizer: Tokenizer, line_prefix: str, n_healed: int, multiline: bool
    ) -> None:
        self._tokenizer = tokenizer
        self._indent = _indent(line_prefix)
        self._n_healed = n_healed
        self._multiline = multiline
        self._text = b""
        self._n_read = 0

    def __call__(self, emitted: Sequence[int]) -> bool:
        for token in emitted[self._n_read :]:
            self._text += self._tokenizer.piece(token)
        self._n_read = len(emitted)
        return self.end(self._text[self._n_healed :]) is not None

    def end(self, text: bytes) -> int | None:
        """Length of the text that belongs to the completion, once that is certain, else None."""
        start = 0
        while True:
            newline = text.find(b"\n", start)
            if newline < 0:
                return None
            if not self._multiline and text[:newline].strip():
                return newline
            line_start = newline + 1
            line = text[line_start:].split(b"\n", 1)[0]
            if line.strip() and _indent(line.decode("utf-8", "replace")) < self._indent:
                return len(text[:newline].rstrip())
            start = line_start


def finish_text(raw: bytes, n_healed: int, suffix: str, stop: BlockStop) -> str:
    """The text to insert: ended by the rule, cut to whole characters, not repeating the suffix."""
    raw = raw[n_healed:]
    end = stop.end(raw)
    text = (raw if end is None else raw[:end]).decode("utf-8", "ignore")
    return _without_suffix(text, suffix).rstrip(" \t")


def _without_suffix(text: str, suffix: str) -> str:
    """Drop what stands after the cursor already: the rest of its line, or whole lines after it."""
    rest = suffix.split("\n", 1)[0].strip()
    if rest and text.rstrip().endswith(rest) and "\n" not in text:
        return text.rstrip()[: -len(rest)]
    following = [line for line in suffix.split("\n")[1:] if line.strip()][:1]
    if following:
        lines = text.split("\n")
        for i, line in enumerate(lines[1:], 1):
            if line.strip() and line == following[0]:
                return "\n".join(lines[:i])
    return text


def _indent(line: str) -> int:
    """Width of the leading white space, tabs to multiples of four."""
    expanded = line.expandtabs(4)
    return len(expanded) - len(expanded.lstrip())
