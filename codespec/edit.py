"""A suggestion, from post-processing to the editors. It stands apart from `requests`, which needs
numpy: language servers start without that."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Edit:
    """`text` takes the place of the characters from `start` to before `end` of one version of a
    document. Line ends are \\n in the text and count as one character in the document, whatever it
    has there. An insertion has an empty range: `start` is `end`."""

    document: str
    version: int
    start: int
    end: int
    text: str
