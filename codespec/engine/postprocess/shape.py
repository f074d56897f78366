"""How much to suggest: decided from the syntax around the cursor, before anything is generated."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

from codespec.engine.postprocess import markup, tags, words
from codespec.engine.postprocess.place import Place, indentation
from codespec.engine.postprocess.readings import in_comment, opens_comment
from codespec.engine.postprocess.scan import CLOSER_OF, is_label, scan
from codespec.index.languages import LANGUAGES

Kind: TypeAlias = Literal["inline", "line", "statement", "block"]
_TEXT_NODE = re.compile(r"comment|string|char_literal|heredoc")
_CODE_IN_TEXT = re.compile(r"interpolation|substitution")
_IN_TEMPLATE = re.compile(r"`[^`]*\$\{[^`{}]*\Z")
_MAX_HEAD_LINES = 40
_SWITCH = re.compile(r"\b(?:switch|select)\b[^\n]*\Z")
PYTHON_BRANCHES = ("else", "elif ", "except", "finally")
_CASES = ("case ", "default:", "default ", "@unknown default")
_CASE = re.compile(r"\s*(?:case\b|default\s*:|(?:public|protected|private)\s*:\Z)")
_DOCUMENTATION = {
    **dict.fromkeys(("ruby", "elixir", "shell"), ("#",)),
    "python": ("#", '"""', 'r"""'),
    "lua": ("--",),
}
# What an editor may have put after the cursor by itself.
_ONLY_CLOSING = re.compile(r"[\s)\]}>\"'`;:,.]*")


@dataclass(frozen=True, slots=True)
class Shape:
    """kind: "inline", within its line; "line", to the end of the line; "statement", to the end of
    one, with its body; "block", to the end of the body the cursor stands in.
    why: for people.
    floor: indentation, in columns, that lines of the block have at least.
    closes: the bracket or word that ends the block is missing after the cursor, so it is suggested,
    too.
    branches: what lines begin with that belong to the block though they are not in as far.
    column: the indentation that those lines have, -1: any.
    over_lines: the line may be the next one, in a string or comment that goes on there.
    body: whether a statement that opens a block is completed with it; not where it has one.
    below: the column of the next statement, if the cursor's line is whole and nothing of its block
    follows; -1: nothing is suggested there.
    """

    kind: Kind
    why: str
    floor: int = 0
    closes: bool = False
    branches: tuple[str, ...] = ()
    column: int = -1
    over_lines: bool = False
    body: bool = False
    below: int = -1


def shape_at(place: Place, *, multiline: bool = True) -> Shape:
    """multiline: False where the caller wants one line."""
    line, rest, language = place.line_prefix, place.rest, place.language
    if rest.strip():
        if not _ONLY_CLOSING.fullmatch(rest):
            return Shape("inline", "there is text after the cursor in its line")
        return Shape("inline", "the line is closed after the cursor")
    if not multiline:
        return Shape("line", "one line was asked for")
    here = scan(line, language)
    # A string that ends with its line is a part of the statement, and so is code in one.
    in_text = _in_text(place)
    is_code = here.inside in ("", "'", '"') or _IN_TEMPLATE.search(line) is not None
    if not in_text and here.inside == "comment" and _opener(here.code, language):
        # It ends with its line, and then the block follows.
        is_code = not scan(f"{line}\n", language).inside
    if in_text or not is_code:
        over_lines = in_text or bool(scan(f"{line}\n", language).inside)
        return Shape("line", "the cursor is in a string or comment", over_lines=over_lines)
    if line.strip():
        if _opener(here.code, language):
            # Of a head of several lines, the first tells how far in its body is.
            indent = min(indentation(line), indentation(_head(place.prefix, language)))
            floor = indent + 1
            if indentation(place.line_below) >= floor:
                return Shape("line", "the block that the line opens has a body")
            why = "the line before the cursor opens a block"
            block = _block(place, why, here.code, indent, floor)
            # What a bracket closes that is missing may be the head of a body, or be called.
            if not block.closes or not here.code.rstrip().endswith(("(", "[")):
                return block
        has_body = indentation(place.line_below) > indentation(line)
        why = "the cursor is within a statement"
        return Shape("statement", why, indentation(line), body=not has_body, below=_below(place))
    return _on_blank_line(place)


def _below(place: Place) -> int:
    """The column of the cursor's statement, if its block ends with it; else -1."""
    line, language = place.line_prefix, place.language
    column = indentation(_head(place.prefix, language) if scan(line, language).extra else line)
    next_line = place.below[0] if place.below else ""
    return -1 if next_line.strip() and indentation(next_line) >= column else column


def _on_blank_line(place: Place) -> Shape:
    line = place.line_prefix
    head = _head(place.prefix[: len(place.prefix) - len(line)], place.language)
    code = scan(head, place.language).code
    if not _opener(code, place.language) or (line and indentation(line) <= indentation(head)):
        why = "the cursor is on an empty line between statements"
        return Shape("statement", why, indentation(line), body=True)
    floor = indentation(line) if line else indentation(head) + 1
    if indentation(place.line_below) >= max(floor, 1):
        why = "the block has other statements already"
        return Shape("statement", why, floor, body=True)
    return _block(place, "the cursor is in an empty block", code, indentation(head), floor)


def _block(place: Place, why: str, head: str, indent: int, floor: int) -> Shape:
    """head: the code that opens it; indent: of its line."""
    opener = _opener(head, place.language)
    closes = opener != ":" and not _is_closed(place, indent, opener)
    if place.language == "python":
        return Shape("block", why, floor, closes, PYTHON_BRANCHES, indent)
    branches = _branches(head, opener, place.language) if closes or opener == "{" else ()
    return Shape("block", why, floor, closes, branches)


def _head(text: str, language: str) -> str:
    """The last statement's end, from the line that it begins in, as far as brackets tell."""
    lines = text.rstrip().rsplit("\n", _MAX_HEAD_LINES)[-_MAX_HEAD_LINES:]
    last = head = _last_line_of_code(lines, language)
    is_markup = language == "markup"
    while lines and (
        (not is_markup and scan(head, language).extra) or tags.ends_tag(head, language)
    ):
        head = f"{lines.pop()}\n{head}"
    return last if tags.ends_tag(head, language) else head


def _last_line_of_code(lines: list[str], language: str) -> str:
    """Takes it from `lines`, with all after it. Comments and documentation between code and the
    cursor are the block's beginning, too."""
    quoted = False
    while lines:
        line = lines.pop()
        stripped = line.strip()
        if language == "python" and stripped.count('"""') % 2:
            quoted = not quoted
        elif not quoted and stripped and not _is_documentation(stripped, language):
            return line
    return ""


def _is_documentation(line: str, language: str) -> bool:
    return line.startswith(_DOCUMENTATION.get(language, ("//", "/*", "* ", "*/")))


def _opener(code: str, language: str) -> str:
    """What opens a block at the end of a line, for a word the one that closes it, for a tag the
    one that closes its element, or ""."""
    last = code.rstrip()[-1:]
    if last in CLOSER_OF:
        return last
    if word := words.opened(code, language):
        return word
    if tag := tags.opened(code, language):
        return tag
    return ":" if opens_indented(code, language) else ""


def opens_indented(code: str, language: str) -> bool:
    """Whether a line of code is a head that lines which are indented more belong to: in Python, of
    the cases of a switch, and where nothing is known of a language, as in YAML."""
    line = code.rstrip().rpartition("\n")[2]
    if language == "shell":
        return is_label(line, len(line) - 1, language) if line else False
    if language == "elixir":
        return line.endswith("->") and not words.opened(line, language)
    is_indented = language == "python" or language not in (*LANGUAGES, "markup")
    return line.endswith(":") and (is_indented or _CASE.match(line) is not None)


def _branches(code: str, opener: str, language: str) -> tuple[str, ...]:
    if opener.isalpha():
        return words.branches(language)
    if language == "markup":
        return markup.BRANCHES
    return _CASES if opener == "{" and _SWITCH.search(code) else ()


def _is_closed(place: Place, indent: int, opener: str) -> bool:
    """Whether the next line that is not deeper closes the block."""
    for line in place.below:
        if line.strip() and indentation(line) <= indent:
            if opener.isalpha():
                closes = words.goes_on(line, place.language)
            elif opener in CLOSER_OF:
                closes = line.strip().startswith(CLOSER_OF[opener])
            else:
                closes = tags.closes(line, place.language, opener)
            return indentation(line) == indent and closes
    return False


def _in_text(place: Place) -> bool:
    """Whether the cursor is inside a comment or a string that began above its line."""
    if place.parsed is None:
        return in_comment(place)
    if opens_comment(place):
        return True
    if "\n" not in place.prefix:
        return False
    start = len(place.prefix[: len(place.prefix) - len(place.line_prefix)].encode())
    node = place.parsed.node_over(start - 1, start)
    while node is not None and not _CODE_IN_TEXT.search(node.type):
        if _TEXT_NODE.search(node.type) and node.start_byte < start - 1 and node.end_byte > start:
            text = place.prefix.encode()[node.start_byte :].decode()
            return bool(scan(text, place.language).inside)
        node = node.parent
    return False
