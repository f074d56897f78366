"""Elements that tags open and close, in JSX and in mark-up, told by a few lines of text alone."""

from __future__ import annotations

import re
from functools import cache

from codespec.languages.base import Language
from codespec.languages.registry import record_of
from codespec.syntax import markup
from codespec.syntax.lexer import CLOSER_OF, IN_TAG, OPENER_OF, Open
from codespec.syntax.lexis import token_patterns

# Types are no tags: `<T,>`, `<T extends X>`, `<T>(`.
_TAG = r"<(?:(?![A-Z]\w*>\()[A-Za-z][\w.:-]*(?:<[^<>\n]*>)?(?=[\s/>]|\Z)(?!\s+extends\b)|(?=>))"
_TAG_IN_CODE = rf"(?<![\w)\]$]){_TAG}"  # a comparison or a type has a name in front of it
_LAST_TAG = r"</[\w.:-]*[ \t]*>?"
_ANY = re.compile(rf"{_TAG_IN_CODE}|{_LAST_TAG}")
_IN_TAG = re.compile(r"//[^\n]*|/\*(?s:.*?)(?:\*/|\Z)|\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|\{|/?>")
_IN_TEXT = re.compile(rf"{_LAST_TAG}|{_TAG}|\{{")
_ENDS_TAG = re.compile(r"(?:^[ \t]*|[\"'}])>[ \t]*\Z", re.MULTILINE)


def _has_tags(language: str) -> bool:
    return record_of(language).elements != "none"


def open_in(text: str, language: str) -> tuple[Open, ...] | None:
    """Elements and brackets left open, outermost first, in text that starts in code or with a tag;
    None where it has no tags."""
    if record_of(language).is_markup:
        return markup.read(text)[0]
    return _open_in(text, language) if _has_tags(language) and _ANY.search(text) else None


def opened(code: str, language: str) -> str:
    """The last tag of the element that code ends with the first tag of; "" where it ends with
    none."""
    return last_opened(open_in(code, language), code)


def last_opened(found: tuple[Open, ...] | None, code: str) -> str:
    """`opened` of code, in which `open_in` found this."""
    last = (found or (None,))[-1]
    is_last = last is not None and last.end == len(code.rstrip())
    return last.closer if last is not None and is_last and last.is_whole else ""


def closes(line: str, language: str, closer: str = "") -> bool:
    """True if a line begins by closing the element around it. closer: by which tag."""
    if record_of(language).is_markup:
        is_own = line.strip().lower().startswith(closer.rstrip(">").lower())
        return markup.closing(line) is not None and (is_own or not closer.startswith("</"))
    return _has_tags(language) and line.lstrip().startswith("</")


def ends_tag(code: str, language: str) -> bool:
    """True if code ends with the end of a tag that begins above it."""
    is_end = _has_tags(language) and _ENDS_TAG.search(code) is not None
    return is_end and not opened(code, language)


@cache
def _in_code(record: Language) -> re.Pattern[str]:
    tokens = (*token_patterns(record), r"[()\[\]{}]", _LAST_TAG, _TAG_IN_CODE)
    return re.compile("|".join(tokens))


def _open_in(text: str, language: str) -> tuple[Open, ...]:
    in_code = _in_code(record_of(language))
    stack: list[Open] = []
    at = 0
    while True:
        top = stack[-1].closer if stack else ""
        pattern = _IN_TAG if top == IN_TAG else _IN_TEXT if top.startswith("</") else in_code
        m = pattern.search(text, at)
        if m is None:
            return tuple(stack)
        token, at = m.group(), m.end()
        if top == IN_TAG and token in (">", "/>"):
            start, end = stack.pop()[1:]
            if token == ">":
                name = text[start + 1 : end].partition("<")[0]
                stack.append(Open(f"</{name}>", start, at))
        elif token in CLOSER_OF:
            stack.append(Open(CLOSER_OF[token], m.start(), at))
        elif token in OPENER_OF:
            if top == token:
                stack.pop()
        elif token.startswith("</"):
            if top.startswith("</"):
                stack.pop()
        elif token.startswith("<"):
            stack.append(Open(IN_TAG, m.start(), at))
