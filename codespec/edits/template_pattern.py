"""A line of the same shape, with other names: the same change with these names.

Names are carried over one to one: where the changed line says `a` and the other line `b`, the new
text says `b`, too.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from codespec.edits.line_tokens import indentation, raw_tokens, shape, signs
from codespec.edits.pattern import FittingPlace, Making, Pattern
from codespec.edits.searched_text import SearchedText
from codespec.edits.substitutions import MAX_CONTEXT, n_equal

LEAST_SIGNS = 4
"""Tokens of a line that has a shape of its own."""


class TemplatePattern(Pattern):
    """The change of a line, carried over to lines of its shape."""

    kind: ClassVar[str] = "template"
    everywhere: ClassVar[bool] = False

    def __init__(self, making: Making) -> None:
        assert making.substitution is not None
        super().__init__(making.substitution.removed, making.substitution.added, "")

    @staticmethod
    def key(making: Making) -> tuple[object, ...]:
        """Changes with one key are the same for lines of that shape."""
        old = signs(making.old)
        novel = tuple(sign for sign in signs(making.new) if sign not in old)
        return shape(making.old), shape(making.new), novel

    def places(self, text: SearchedText, home: SearchedText | None) -> Iterator[FittingPlace]:
        making = self.makings[-1]
        ours = signs(making.old)
        for number in text.of_shape(shape(making.old)):
            line = text.lines[number]
            body = line.strip()
            theirs = signs(body)
            # Where other names are replaced, hardly ever is the same put in their place.
            names = renamed(ours, theirs) if self.removed.strip() in body else None
            if not names:
                continue
            new = "".join(names.get(token, token) for token in raw_tokens(making.new))
            if new in (body, making.new):  # nothing of what is different would be left
                continue
            n_left = n_equal(ours, theirs)
            n_right = min(n_equal(ours[::-1], theirs[::-1]), len(ours) - n_left)
            after = line[len(line.rstrip()) :]
            yield FittingPlace(
                line=number,
                n_old=1,
                new=(indentation(line) + new + after,),
                making=making,
                n_left=min(n_left, MAX_CONTEXT),
                n_right=min(n_right, MAX_CONTEXT),
            )


def renamed(ours: tuple[str, ...], theirs: tuple[str, ...]) -> dict[str, str] | None:
    """Token of one line -> token that stands for it in another, where they differ; None if one
    stands for two."""
    names: dict[str, str] = {}
    if len(ours) != len(theirs):
        return None
    for a, b in zip(ours, theirs, strict=True):
        if names.setdefault(a, b) != b:
            return None
    return {a: b for a, b in names.items() if a != b}
