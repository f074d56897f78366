"""When a completion is complete: at the end of its syntactic unit.

Looks at the text alone and never at drafts, so it acts the same with and without drafting.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from codespec.engine.postprocess import markup, tags, words
from codespec.engine.postprocess.place import Place, indentation, tells
from codespec.engine.postprocess.scan import CLOSER_OF, scan
from codespec.engine.postprocess.shape import PYTHON_BRANCHES, Shape, opens_indented
from codespec.index.languages import LANGUAGES
from codespec.types import Tokenizer

# What a statement cannot end with, and what continues one on the next line.
_GOES_ON = re.compile(r"(?:[-+*/%&|^=<>!?.\\]|=>|->|\b(?:and|or|not|in|is))$")
_ENDS = re.compile(r"(?:\+\+|--|/|[A-Za-z_\d)\]}/\"]>)$")
_MORE = ("else", "catch", "finally")
_CONTINUES = re.compile(rf"\.(?!\.\.)|->|\?|&&|\|\||:(?!:)|(?:{'|'.join(_MORE)})\b")
# Where branches belong to blocks of words, and other signs begin a statement, or end one.
_CONTINUES_IN = {"elixir": re.compile(r"\|>|\.|when\b"), "shell": re.compile(r"\|\|?|&&")}
_CONTINUES_IN["markup"] = re.compile(r"(?!)")
# A head over lines; of these languages none has another meaning for what is not its own.
_HEAD_ENDS_NOT = re.compile(r"(?:[,\\|&=]|\b(?:and|or|not|in|when))$")
_HEAD_GOES_ON = re.compile(r"[ \t]*(?:when\b|\|\||&&)")
_GOES_ON_IN = {
    "elixir": re.compile(r"(?:[-+*/%&|^=<>.,\\]|->|\b(?:and|or|not|in|when))$"),
    "shell": re.compile(r"(?:\\|\||&&)$"),
    "markup": re.compile(r"(?!)"),
}
# On a line of its own, the beginning of the body of what stands above.
_BRACE = re.compile(r"\{[ \t]*(?:\n|\Z)")
# What is no statement, but belongs to the one below; without the brackets that it ends with.
_BELONGS = re.compile(r"(?:^|\n)[ \t]*(?:@[\w.]+|#!?|template\s*<.*>)\Z")
# What stands at the margin, or further out than the block it is in.
_OUTDENTED = re.compile(r"[ \t]*(?:#[ \t]*[a-z]|(?!default\b)[A-Za-z_]\w*:(?!:))")
_MAY_BE_OUTDENTED = re.compile(r"[ \t]*(?:#[ \t]*|[A-Za-z_]\w*)\Z")
_IF = re.compile(r"\s*if\b")
_WHERE = re.compile(r"^[ \t]*where\b[^{;]*\Z", re.MULTILINE)
_CONDITIONAL = re.compile(r"^[ \t]*#[ \t]*(if|endif)", re.MULTILINE)
# Brackets of types, which comparisons look like but for their blanks; and over lines of their own.
_OPENS_TYPES = re.compile(r"\w<(?![<=\s])|\w<$", re.MULTILINE)
_CLOSES_TYPES = re.compile(r"(?<![=-])>")
_OPENS_TYPE_LINES = re.compile(r"(?:\w|^[ \t]*)<$", re.MULTILINE)
_CLOSES_TYPE_LINES = re.compile(r"^[ \t]*>", re.MULTILINE)
# The middle of a condition, not a label.
_OR_ELSE = re.compile(r"^(?![ \t]*case\b)[^\n]*\?[^\n]*:\Z", re.MULTILINE)
_WITH_TYPES = ("typescript", "tsx", "java", "csharp", "rust", "cpp", "swift")
_CODE = {*LANGUAGES, *words.LANGUAGES}
_C_LIKE = ("c", "cpp", "csharp")
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
        self._has_body = shape.body or shape.kind == "block"
        self._line_prefix = place.line_prefix
        self._language = place.language
        is_tag = place.language in tags.LANGUAGES
        self._closing = _CLOSING_TAG if is_tag else _closing(place.language)
        self._continuing = _CONTINUES_IN.get(place.language)
        # The rest of a comment is no code.
        self._in_comment = scan(place.line_prefix, place.language).inside == "comment"
        self._has_brace = _BRACE.match(place.line_below.lstrip()) is not None
        following = place.line_below.rstrip()
        self._following = following if tells(following) else ""
        self._n_healed = n_healed
        self._below: UnitStop | None = None
        if shape.below >= 0:
            next_line = Place(f"{place.prefix}\n", place.suffix, place.language)
            next_shape = Shape("statement", shape.why, shape.below, body=True)
            self._below = UnitStop(tokenizer, next_shape, next_line)
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
        """Whether only a token that ends a line is likely to end the text: no line but the first
        begins just now."""
        _, newline, line = self._bytes.rpartition(b"\n")
        return not newline or bool(line.strip())

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
        first = text[: text.find("\n")]
        is_closed = scan(first, self._language).extra or tags.closes(first, self._language)
        if kind == "block" and not is_closed:
            shape = self._shape
            return self._end_of_block(text, 0, shape.floor, shape.branches, shape.column)
        if kind in ("statement", "block"):  # of a block that is closed in its first line
            end = self._end_of_statement(text)
            return self._end_below(text) if end is not None and not text[:end].strip() else end
        newline = text.find("\n")
        before = "" if self._shape.over_lines else self._line_prefix
        while kind == "line" and newline >= 0 and not (before + text[:newline]).strip():
            newline = text.find("\n", newline + 1)
        return newline if newline >= 0 else None

    def _end_below(self, text: str) -> int | None:
        """Where the cursor's line was whole: of the statement that follows in the same column."""
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
        """Before a line that stands after the cursor already."""
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
        """Before the first line after `start` that is indented less than `floor`, and begins in no
        string or comment.

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
            if ends and not self._inside(self._within):
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
        """Whether a line that begins so far with this may come to be one that goes on with the
        block."""
        if self._language in _C_LIKE and _MAY_BE_OUTDENTED.match(line) is not None:
            return True
        if self._language == "markup" and markup.may_close(line):
            return True
        if self._closing is _CLOSING_TAG and _MAY_BE_TAG.match(line) is not None:
            return True
        if self._shape.closes and words.may_end(line.strip(), self._language):
            return True
        return any(word.startswith(line.strip()) for word in branches)

    def _is_outdented(self, line: str) -> bool:
        """Whether a line is a directive of a preprocessor or a label."""
        return self._language in _C_LIKE and _OUTDENTED.match(line) is not None

    def _inside(self, text: str) -> str:
        """The string or comment that a line begins in which follows `text`, "" for none."""
        return scan(self._line_prefix + text, self._language).inside

    def _after_closing(self, text: str, newline: int, line: str) -> str | None:
        """What a line says after it closed the block; None where it does not."""
        is_markup = self._language == "markup"
        closing = (is_markup and markup.closing(line)) or self._closing.match(line)
        # What was missing may stand in the text; then this line closes what is around it.
        extra = scan(text[self._opened : newline], self._language).extra
        return line[closing.end() :] if closing and self._shape.closes and not extra else None

    def _opens(self, code: str) -> bool:
        """Whether the end of a line opens a block."""
        found = scan(code, self._language)
        return (
            bool(found.open)
            or words.opened(found.code, self._language) != ""
            or (self._language == "python" and found.code.rstrip().endswith(":"))
        )

    def _end_of_statement(self, text: str) -> int | None:
        reached = self._reached if text.startswith(self._reached) else ""
        newline = text.find("\n", max(0, len(reached) - 1))
        while newline >= 0:
            head = self._line_prefix + text[:newline]
            if text[:newline].rpartition("\n")[2].strip():
                # What continues a statement is whole: it becomes no other word.
                self._reached = text[: newline + 1]
            if head.strip() and (not self._goes_on(head) or self._is_left(head, text[newline:])):
                code = scan(head, self._language).code.rstrip()
                is_python = self._language == "python"
                if self._has_body and opens_indented(code, self._language):
                    column = indentation(head.lstrip("\n"))
                    branches = PYTHON_BRANCHES if is_python else ()
                    return self._end_of_block(text, newline, column + 1, branches, column)
                if is_python:
                    return newline
                after = text[newline:].lstrip()
                is_if = code.endswith(";") and _IF.match(code)
                if is_if and "else".startswith(after[:4]):
                    if len(after) < 5:
                        return None  # `else` may come
                elif self._ends_line(code) or self._is_ended(head):
                    return newline
                if after:
                    lead = text[newline : len(text) - len(after)].rpartition("\n")[2]
                    if not self._continues(head, code, lead + after):
                        return newline
                if not after:
                    return None  # the next line may belong to it
            newline = text.find("\n", newline + 1)
        return None

    def _continues(self, head: str, code: str, below: str) -> bool:
        """Whether the lines `below` belong to the statement `head`, whose code is `code`."""
        after = below.lstrip()
        if _BRACE.match(after) and self._language != "elixir":
            return not (self._has_brace or code.endswith("}"))
        if self._continuing is not None:
            if self._continuing.match(after) or after in ("|", "&"):
                return True
        elif _CONTINUES.match(after) or any(word.startswith(after) for word in _MORE):
            return True
        if self._language == "rust" and after.startswith("where"[: len(after)]):
            return True
        # Further in: the rest of an expression, or a body without braces.
        is_code = code and self._has_body and self._language in _CODE
        deeper = indentation(below) - indentation(head.lstrip("\n"))
        if deeper == 0 and is_code and self._is_block_of_words(head):
            return words.may_go_on(after, self._language) or words.goes_on(after, self._language)
        return bool(is_code) and deeper > 0

    def _is_left(self, head: str, below: str) -> bool:
        """Whether mark-up goes on further out: what is open there may have no last tag."""
        lead = len(below) - len(below.lstrip())
        line = below[below.rfind("\n", 0, lead + 1) + 1 :]
        is_markup = self._language == "markup" and line.strip() != ""
        return is_markup and indentation(line) < indentation(head.lstrip("\n"))

    def _ends_line(self, code: str) -> bool:
        """Whether a statement's last sign says that it is over."""
        return self._continuing is None and code.endswith((";", "{", ":", ","))

    def _is_block_of_words(self, head: str) -> bool:
        """Whether its first lines, up to where they balance, open a block."""
        lines = head.lstrip("\n").split("\n") if self._language in words.LANGUAGES else []
        for n in range(1, len(lines) + 1):
            found = scan("\n".join(lines[:n]), self._language)
            code = found.code.rstrip()
            if words.opened(code, self._language, begins=True):
                return True
            is_head = found.open or found.inside or _HEAD_ENDS_NOT.search(code)
            if not is_head and not _HEAD_GOES_ON.match("".join(lines[n : n + 1])):
                return False
        return False

    def _is_ended(self, head: str) -> bool:
        """Whether the last line ends a block that a word in the first ones opens."""
        first, _, last = head.lstrip("\n").partition("\n")
        last = last.rpartition("\n")[2]
        return (
            words.ends(last, self._language)
            and indentation(last) == indentation(first)
            and self._is_block_of_words(head)
        )

    def _ends_with_opener(self, head: str, code: str) -> bool:
        return code.rstrip()[-1:] in CLOSER_OF or tags.opened(head, self._language) != ""

    def _goes_on(self, head: str) -> bool:
        """Whether a statement that reaches to the end of `head` cannot be complete there."""
        found = scan(head, self._language)
        in_tags = tags.open_in(head, self._language)
        is_open = bool(found.open if in_tags is None else in_tags)
        if self._language == "markup" and found.open and not is_open:
            # An attribute's value, or code in it; not what is said in brackets.
            is_open = head.lstrip("\n").split("\n", 1)[0].rstrip().endswith(tuple(CLOSER_OF))
        if is_open and not self._has_body and self._ends_with_opener(head, found.code):
            return False  # what it opens is filled already
        if is_open or (in_tags is None and found.inside not in ("", "comment")):
            return True
        if found.inside and scan(f"{head}\n", self._language).inside:
            return True  # a comment that does not end with its line
        code = found.code.rstrip()
        if going_on := _GOES_ON_IN.get(self._language):
            is_head = opens_indented(code, self._language)
            return not is_head and going_on.search(code) is not None
        if _belongs_below(code, self._language) and self._language in LANGUAGES:
            return True
        if self._language == "ruby" and code.endswith(","):
            return True
        if self._language != "python" and _OR_ELSE.search(code):
            return True
        if self._language in _WITH_TYPES and _is_in_types(code):
            return True
        if self._language == "rust" and _WHERE.search(code):
            return True
        if self._language in _C_LIKE:
            conditionals = _CONDITIONAL.findall(head)
            if conditionals.count("if") > conditionals.count("endif"):
                return True
        return bool(_GOES_ON.search(code)) and not _ENDS.search(code)


@cache
def _closing(language: str) -> re.Pattern[str]:
    ends = words.ends_of(language)
    return re.compile(rf"[ \t]*(?:(?:{'|'.join(ends)})\b|[)\]}}]+)") if ends else _CLOSING


def _is_in_types(code: str) -> bool:
    n_lines = len(_OPENS_TYPE_LINES.findall(code)) - len(_CLOSES_TYPE_LINES.findall(code))
    n_open = len(_OPENS_TYPES.findall(code)) - len(_CLOSES_TYPES.findall(code))
    return n_lines > 0 or (code.endswith(",") and n_open > 0)


def _belongs_below(code: str, language: str) -> bool:
    """Whether balanced code ends with a decorator, an annotation, an attribute, or what makes a
    template of what follows."""
    depth, at = 0, len(code)
    while at and (depth or code[at - 1] in ")]"):
        at -= 1
        depth += (code[at] in ")]}") - (code[at] in "([{")
    if language == "csharp" and code[at:].startswith("["):
        return not code[:at].rpartition("\n")[2].strip()
    return _BELONGS.search(code[:at]) is not None
