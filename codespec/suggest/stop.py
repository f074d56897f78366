"""The end of a completion: where its syntactic unit ends.

Looks at the text alone and never at drafts, so it acts the same with and without drafting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, cached_property

from codespec.languages.registry import record_of
from codespec.reasons import ShapeReason
from codespec.suggest import tags, words
from codespec.suggest.candidate import Candidate
from codespec.suggest.heads import branches_of, opens_indented
from codespec.suggest.place import Place, indentation, tells
from codespec.suggest.shape import Shape
from codespec.suggest.text_blocks import goes_on_below
from codespec.suggest.unfinished import is_closed_below, must_go_on
from codespec.suggest.word_blocks import CountedBlock, is_block, is_ended
from codespec.syntax import markup
from codespec.syntax.lexer import NOTHING
from codespec.types import Tokenizer

# What continues a statement on the next line.
_MORE = ("else", "catch", "finally")
_CONTINUES = re.compile(rf"\.(?!\.\.)|->|\?|&&|\|\||:(?!:)|(?:{'|'.join(_MORE)})\b")
# On a line of its own, the beginning of the body of what stands above.
_BRACE = re.compile(r"\{[ \t]*(?:\n|\Z)")
# What stands at the margin, or further out than the block it is in.
_OUTDENTED = re.compile(r"[ \t]*(?:#[ \t]*[a-z]|(?!default\b)[A-Za-z_]\w*:(?!:))")
_MAY_BE_OUTDENTED = re.compile(r"[ \t]*(?:#[ \t]*|[A-Za-z_]\w*)\Z")
_IF = re.compile(r"\s*if\b")
# What comes before the first words of the next line, or of the one after a blank one.
_NEXT_LINE = re.compile(r"(?:[ \t]*\n){1,2}(?=[ \t]*\S)")
_CLOSING = re.compile(r"[ \t]*[)\]}]+")
_CLOSING_TAG = re.compile(r"[ \t]*(?:</[\w.:-]*>|[)\]}]+)")
_MAY_BE_TAG = re.compile(r"[ \t]*<(?:/[\w.:-]*)?\Z")


class UnitStop:
    """Ends a completion after its unit, which `Shape` names.

    The line after the cursor's, where it tells, ends it, too.

    n_healed: bytes the output repeats from before the cursor.
    """

    def __init__(self, tokenizer: Tokenizer, shape: Shape, place: Place, n_healed: int = 0) -> None:
        self._tokenizer = tokenizer
        self._shape = shape
        is_deeper = indentation(place.line_below) > indentation(place.line_prefix)
        is_filled = record_of(place.language).item != "" and is_deeper
        self._has_body = shape.body or (shape.kind == "block" and not is_filled)
        self._line_prefix = place.line_prefix
        self._language = place.language
        self._facts = record_of(place.language)
        is_tag = self._facts.elements != "none"
        self._closing = _CLOSING_TAG if is_tag else _closing(place.language)
        self._continuing = _pattern(self._facts.continues)
        # The rest of a comment is no code.
        self._in_comment = place.line.inside == "comment"
        self._has_brace = _BRACE.match(place.line_below.lstrip()) is not None
        following = place.line_below.rstrip()
        # A word that ends one block may well end the next one.
        is_told = tells(following) and not words.ends(following, place.language)
        self._following = following if is_told else ""
        self._n_healed = n_healed
        self._place = place
        self._read = Candidate(place, "")  # as far as it was looked at
        self._heads: dict[int, Candidate] = {}  # up to line ends, by length
        self._counted: dict[int, CountedBlock] = {}  # by where the line below the head begins
        self._inner = self._rest = NOTHING  # inside the block; behind what closes it
        self._first = ""  # the first line of a text
        self._is_closed = False  # there
        self._went_on: tuple[Candidate, bool] | None = None
        self._bytes = b""
        self._n_read = 0
        self._reached = ""  # a text up to a line end, before which no statement ends
        self._within = ""  # and no block
        self._opened = 0  # where it opened its last one

    def __call__(self, emitted: Sequence[int]) -> bool:
        for token in emitted[self._n_read :]:
            self._bytes += self._tokenizer.piece(token)
        self._n_read = len(emitted)
        if b"\n" not in self._bytes:
            return False  # as `end` would find, for less: most tokens come before a line end
        text = self._bytes[self._n_healed :].decode("utf-8", "replace")
        return self.end(text) is not None

    @property
    def is_in_line(self) -> bool:
        """True if only a token that ends a line is likely to end the text: no line but the first
        begins just now."""
        _, newline, line = self._bytes.rpartition(b"\n")
        return not newline or bool(line.strip())

    def candidate(self, text: str) -> Candidate:
        """The text at its place, with what was read of it already."""
        return self._read.became(text)

    def end(self, text: str) -> int | None:
        """Length of the text that belongs to the completion, once that is certain, else None."""
        if "\n" not in text:
            return None
        ends = [self._end_of_unit(text), self._end_at_suffix(text)]
        return min((end for end in ends if end is not None), default=None)

    def _end_of_unit(self, text: str) -> int | None:
        kind = self._shape.kind
        if kind == "block" and self._in_comment:
            n_comment = text.find("\n")
            text = " " * n_comment + text[n_comment:]
        if kind == "block" and not self._closes(text[: text.find("\n")]):
            return self._end_of_shape(text)
        if kind in ("statement", "block"):  # of a block that is closed in its first line
            end = self._end_of_statement(text)
            return self._end_below(text) if end is not None and not text[:end].strip() else end
        newline = text.find("\n")
        before = "" if self._shape.over_lines else self._line_prefix
        while kind == "line" and newline >= 0 and not (before + text[:newline]).strip():
            newline = text.find("\n", newline + 1)
        return newline if newline >= 0 else None

    def _end_of_shape(self, text: str) -> int | None:
        """The end of the block that the cursor is in."""
        shape = self._shape
        if self._facts.item and shape.why is ShapeReason.OPENS_BLOCK and self._is_value(text):
            return self._end_of_statement(text)
        if shape.closer:
            is_blank = not self._line_prefix.strip()
            start = 0 if is_blank else text.find("\n") + 1
            lead = self._line_prefix if is_blank else ""
            block = self._block(start, lead, shape.head, shape.closer)
            is_level = block.is_level(text)
            if is_level is not False:
                return block.end(text, closes=shape.closes) if is_level else None
        return self._end_of_block(text, 0, shape.floor, shape.branches, shape.column)

    def _block(self, start: int, lead: str, column: int, closer: str) -> CountedBlock:
        found = self._counted.get(start)
        if found is None:
            found = CountedBlock(self._read.first.upto(0), start, lead, column, closer)
            self._counted[start] = found
        return found

    def _is_value(self, text: str) -> bool:
        """True if the text gives the key at its end, or the item, a value in the cursor's line."""
        first = self._upto(text[: text.find("\n")])
        return first.text.strip() != "" and not opens_indented(first.line.code, self._language)

    def _closes(self, first: str) -> bool:
        """True if the first line of a text closes what is open before it."""
        if first != self._first:
            self._first, self._read = first, self._read.became(first)
            is_closed = bool(self._read.first.extra) or tags.closes(first, self._language)
            self._is_closed = is_closed
        return self._is_closed

    def _upto(self, text: str) -> Candidate:
        """The beginning of a text, which grows with each question."""
        head = self._heads.get(len(text))
        if head is None or head.text != text:
            head = self._heads[len(text)] = self._read = self._read.became(text)
        return head

    @cached_property
    def _below(self) -> UnitStop | None:
        """Ends the statement below the cursor's line, if one is wanted."""
        if self._shape.below < 0:
            return None
        place = self._place
        next_line = Place(f"{place.prefix}\n", place.suffix, place.language)
        next_shape = Shape("statement", self._shape.why, self._shape.below, body=True)
        return UnitStop(self._tokenizer, next_shape, next_line)

    def _end_below(self, text: str) -> int | None:
        """The end of the statement that follows in the same column, where the cursor's line was
        whole."""
        if self._below is None:
            return 0
        lead = _NEXT_LINE.match(text)
        if lead is None:
            return 0 if text.strip() or text.count("\n") > 2 else None
        if indentation(text[lead.end() :]) != self._shape.below:
            return 0
        end = self._below._end_of_statement(text[lead.end() :])
        return None if end is None else lead.end() + end

    def _end_at_suffix(self, text: str) -> int | None:
        """The end before a line that stands after the cursor already."""
        if not self._following:
            return None
        newline = text.find("\n")
        while newline >= 0:
            end = text.find("\n", newline + 1)
            if end >= 0 and text[newline + 1 : end].rstrip() == self._following:
                return len(text[:newline].rstrip())
            newline = end
        return None

    def _end_of_block(
        self, text: str, start: int, floor: int, branches: tuple[str, ...], column: int
    ) -> int | None:
        """The end before the first line after `start` that is indented less than `floor`, and
        begins in no string or comment.

        branches, column: of lines that go on with it, see `Shape`.
        """
        # Where a text grows, each of its lines is looked at once, not once with each token.
        if not text.startswith(self._within):
            self._within, self._opened = "", 0
        newline = text.find("\n", max(start, len(self._within) - 1))
        while newline >= 0:
            self._within = text[: newline + 1]
            line = text[newline + 1 :].split("\n", 1)[0]
            ends = line.strip() and indentation(line) < floor and not self._is_outdented(line)
            if ends and not self._upto(self._within).line.inside:
                going_on = branches if column in (-1, indentation(line)) else ()
                end = newline + 1 + len(line)
                if end == len(text) and self._may_go_on(line, going_on):
                    return None
                if not f"{line.strip()} ".startswith(going_on):
                    rest = self._after_closing(text, newline, line)
                    if rest is None:
                        return len(text[:newline].rstrip())
                    if end == len(text):
                        return None  # more of the line may come
                    if not self._opens(rest):
                        return len(text[:end].rstrip())
                    self._opened = end
            newline = text.find("\n", newline + 1)
        return None

    def _may_go_on(self, line: str, branches: tuple[str, ...]) -> bool:
        """True if a line that begins so far with this may come to be one that goes on with the
        block."""
        if self._facts.preprocessor and _MAY_BE_OUTDENTED.match(line) is not None:
            return True
        if self._facts.is_markup and markup.may_close(line):
            return True
        if self._closing is _CLOSING_TAG and _MAY_BE_TAG.match(line) is not None:
            return True
        if self._shape.closes and words.may_end(line.strip(), self._language):
            return True
        return any(word.startswith(line.strip()) for word in branches)

    def _is_outdented(self, line: str) -> bool:
        """True if a line is a directive of a preprocessor or a label."""
        return self._facts.preprocessor and _OUTDENTED.match(line) is not None

    def _after_closing(self, text: str, newline: int, line: str) -> str | None:
        """The rest of a line behind what closes the block in it; None where nothing does."""
        is_markup = self._facts.is_markup
        closing = (is_markup and markup.closing(line)) or self._closing.match(line)
        if not closing or not self._shape.closes:
            return None
        # What was missing may stand in the text; then this line closes what is around it.
        inner = text[self._opened : newline]
        if inner != self._inner.text:
            self._inner = self._read.first.became(inner)
        return None if self._inner.extra else line[closing.end() :]

    def _opens(self, code: str) -> bool:
        """True if the end of a line opens a block."""
        if not code.strip():
            return False
        if code != self._rest.text:
            self._rest = self._read.first.upto(0).became(code)
        found = self._rest
        return (
            found.is_open
            or words.opened(found.code, self._language) != ""
            or (self._facts.line_ends and found.code.rstrip().endswith(":"))
        )

    def _end_of_statement(self, text: str) -> int | None:
        reached = self._reached if text.startswith(self._reached) else ""
        newline = text.find("\n", max(0, len(reached) - 1))
        while newline >= 0:
            head = self._upto(text[:newline])
            if text[:newline].rpartition("\n")[2].strip():
                # What continues a statement is whole: it becomes no other word.
                self._reached = text[: newline + 1]
            if head.head.strip() and (
                not (self._goes_on(head) or self._needs_next(head))
                or self._is_left(head.head, text[newline:])
            ):
                code = head.line.code.rstrip()
                if self._has_body and opens_indented(code, self._language):
                    return self._end_of_body(text, newline, head.head.lstrip("\n"), code)
                is_level = self._is_level(text, newline, head)
                if is_level is not False:
                    return self._counted[newline + 1].end(text, closes=True) if is_level else None
                if self._facts.line_ends:
                    return newline
                after = text[newline:].lstrip()
                is_if = code.endswith(";") and _IF.match(code)
                if is_if and "else".startswith(after[:4]):
                    if len(after) < 5:
                        return None  # `else` may come
                elif self._ends_line(code) or is_ended(head):
                    return newline
                if after:
                    lead = text[newline : len(text) - len(after)].rpartition("\n")[2]
                    if not self._continues(head, code, lead + after):
                        return newline
                if not after:
                    return None  # the next line may belong to it
            newline = text.find("\n", newline + 1)
        return None

    def _end_of_body(self, text: str, newline: int, head: str, code: str) -> int | None:
        """The end of the block that the last line of `head`, whose code is `code`, opens by its
        indentation; of all of an item."""
        item = self._facts.item
        if item and head.lstrip().startswith(item):
            return self._end_of_block(text, newline, indentation(head) + 1, (), -1)
        column = indentation(head)
        branches = branches_of(code, self._language)
        return self._end_of_block(text, newline, column + 1, branches, column)

    def _is_level(self, text: str, newline: int, head: Candidate) -> bool | None:
        """True if `head` opens a block whose words are counted, see `CountedBlock`."""
        line = head.head.lstrip("\n")
        known = self._facts.words
        if not self._has_body or known is None or not known.flat or "\n" in line:
            return False
        closer = words.opened(head.line.code, self._language)
        if not closer:
            return False
        return self._block(newline + 1, "", indentation(line), closer).is_level(text)

    def _is_next(self, head: str, after: str) -> bool:
        """True if a case, as `| x`, follows another one."""
        signs = tuple(b for b in self._facts.branches if not b[0].isalpha())
        return bool(signs) and head.lstrip().startswith(signs) and after.startswith(signs)

    def _continues(self, head: Candidate, code: str, below: str) -> bool:
        """True if the lines `below` belong to the statement `head`, whose code is `code`."""
        after = below.lstrip()
        if self._is_next(head.head, after) or is_closed_below(head, below):
            return False
        if _BRACE.match(after) and not self._facts.brace_is_value:
            return not (self._has_brace or code.endswith("}"))
        if self._continuing is not None:
            if self._continuing.match(after) or after in ("|", "&"):
                return True
        elif _CONTINUES.match(after) or any(word.startswith(after) for word in _MORE):
            return True
        if any(after.startswith(word[: len(after)]) for word in self._facts.clauses):
            return True
        # Further in: the rest of an expression, or a body without braces.
        if self._facts.prose:
            return self._has_body and goes_on_below(head, below)
        is_code = code and self._has_body and self._facts.is_code
        deeper = indentation(below) - indentation(head.head.lstrip("\n"))
        if deeper == 0 and is_code and is_block(head):
            return words.may_go_on(after, self._language) or words.goes_on(after, self._language)
        return bool(is_code) and deeper > 0

    def _is_left(self, head: str, below: str) -> bool:
        """True if mark-up goes on further out: what is open there may have no last tag."""
        lead = len(below) - len(below.lstrip())
        line = below[below.rfind("\n", 0, lead + 1) + 1 :]
        is_markup = self._facts.is_markup and line.strip() != ""
        return is_markup and indentation(line) < indentation(head.lstrip("\n"))

    def _ends_line(self, code: str) -> bool:
        """True if a statement's last sign says that it is over."""
        return self._continuing is None and code.endswith((";", "{", ":", ","))

    def _needs_next(self, head: Candidate) -> bool:
        """True if the statement needs the one below it, and there is none after the cursor."""
        needs = re.search(self._facts.needs_next, head.line.code.rstrip()) is not None
        below = self._place.line_below
        return needs and indentation(below) < max(1, indentation(head.head.lstrip("\n")))

    def _goes_on(self, head: Candidate) -> bool:
        """True if a statement that reaches to the end of `head` cannot be complete there."""
        # While a line is written, the same is asked with each of its tokens.
        if self._went_on is None or self._went_on[0] is not head:
            self._went_on = head, must_go_on(head, has_body=self._has_body)
        return self._went_on[1]


@cache
def _closing(language: str) -> re.Pattern[str]:
    ends = words.ends_of(language)
    return re.compile(rf"[ \t]*(?:{words.any_of(ends)}|[)\]}}]+)") if ends else _CLOSING


@cache
def _pattern(text: str) -> re.Pattern[str] | None:
    return re.compile(text) if text else None
