"""Changes of a text that was parsed, told to its tree, from which tree-sitter goes on."""

from __future__ import annotations

from dataclasses import dataclass

from tree_sitter import Point, Tree

from codespec.syntax.text import common_prefix, common_suffix

_MAX_BLANK = 512
_START = Point(0, 0)


@dataclass(frozen=True, slots=True)
class TreeEdit:
    """A change of a text: its bytes start..old_end - 1 became bytes start..new_end - 1 of
    another."""

    start: int
    old_end: int
    new_end: int

    @property
    def n_bytes(self) -> int:
        """Bytes that changed, in the longer one of both texts."""
        return max(self.old_end, self.new_end) - self.start

    def then(self, start: int, end: int, new: bytes) -> TreeEdit:
        """This change followed by another one, in which bytes start..end - 1 became `new`."""
        first, last = min(self.start, start), max(self.new_end, end)
        old_end = self.old_end + last - self.new_end
        return TreeEdit(first, old_end, last - (end - start) + len(new))


def difference(old: bytes, new: bytes) -> TreeEdit:
    """The change between what two texts have in common at both ends."""
    start = common_prefix(old, new)
    n_tail = common_suffix(old, new, min(len(old), len(new)) - start)
    return TreeEdit(start, len(old) - n_tail, len(new) - n_tail)


def edited(tree: Tree, old: bytes, new: bytes, change: TreeEdit) -> Tree:
    """A copy of the tree of `old`, told which bytes are other in `new`.

    White space after the change counts as changed: ends of lines and blocks have no width, and
    stand where the change ends. tree-sitter passes over the whole statement that begins there when
    it looks for them, mostly over all that follows, and parses it again.
    """
    start = change.start
    n_blank = _n_blank(new, change.new_end)
    old_end, new_end = change.old_end + n_blank, change.new_end + n_blank
    at = _point(new, start)
    copy = tree.copy()
    ends = _point(old, old_end, at, start), _point(new, new_end, at, start)
    copy.edit(start, old_end, new_end, at, *ends)
    return copy


def _n_blank(text: bytes, at: int) -> int:
    """Bytes of white space from here on, up to a limit."""
    rest = text[at : at + _MAX_BLANK]
    return len(rest) - len(rest.lstrip())


def _point(text: bytes, offset: int, known: Point = _START, at: int = 0) -> Point:
    """Row and column of an offset. known: those of the offset `at`, which is not after `offset`."""
    row = known.row + text.count(b"\n", at, offset)
    return Point(row, offset - (text.rfind(b"\n", 0, offset) + 1))
