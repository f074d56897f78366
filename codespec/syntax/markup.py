"""Elements and blocks of templates that are left open in HTML and what is like it (Vue, Svelte,
HEEx, ERB, Django's and Jinja's templates, Handlebars, XML), told by text alone."""

from __future__ import annotations

import re
from functools import cache

from codespec.languages import javascript
from codespec.languages.base import NEVER, Section
from codespec.syntax.lexer import CLOSER_OF, IN_TAG, OPENER_OF, Open
from codespec.syntax.lexis import token_patterns

BRANCHES = ("{:", "{% el", "{%- el", "<% el", "{{else")
"""Text that begins lines which go on with a template's block."""
_CLOSING = re.compile(
    r"[ \t]*(?:</[\w.:-]*>?|\{/\w+\}?|\{\{~?/[^{}\n]*\}{0,2}|\{%[-+]?\s*end[^%\n]*(?:%\})?"
    r"|<%-?\s*end\b[^%\n]*(?:%>)?)"
)
_MAY_CLOSE = re.compile(r"[ \t]*(?:<(?:/[\w.:-]*|%[^%\n]*)?|\{(?:[/%:{][^%{}\n]*)?)\Z")
# Names of elements that have no last tag, and those that HTML lets go without one.
_VOID = frozenset(
    (
        *("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param"),
        *("source", "track", "wbr"),
    )
)
_OPTIONAL = frozenset(
    f"</{name}>"
    for name in (
        *("li", "p", "td", "th", "tr", "dt", "dd", "option", "optgroup", "thead", "tbody"),
        *("tfoot", "colgroup", "body", "head", "html", "rt", "rp"),
    )
)
# What `{% endX %}` ends.
_OF_BLOCKS = frozenset(
    (
        *("if", "ifchanged", "unless", "for", "block", "with", "autoescape", "filter", "spaceless"),
        *("blocktrans", "blocktranslate", "comment", "verbatim", "macro", "call", "raw", "case"),
        *("capture", "tablerow", "form", "cache", "embed", "apply"),
    )
)
_OPENS_CODE = re.compile(
    r"[=-]*\s*(?:(?:if|unless|case|for|while)\b(?s:.*)|(?s:.*)(?:\bdo(?:\s*\|[^|]*\|)?|->))\s*-?\Z"
)
_ENDS_CODE = re.compile(r"[=-]*\s*end\b")
_QUOTED = r"\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)"
_IN_TAG = re.compile(rf"{_QUOTED}|\{{|/?>")
_IN_CODE = re.compile("|".join((*token_patterns(javascript.LANGUAGE), r"[()\[\]{}]")))
_IN_TEXT = re.compile(
    r"<!--(?s:.*?)(?:-->|\Z)|<!\[CDATA\[(?s:.*?)(?:\]\]>|\Z)|<[!?][^>]*>?"
    r"|(?P<last></[\w.:-]*\s*>?)|<(?P<first>[A-Za-z.:][\w.:-]*)"
    r"|\{%[-+]?\s*(?P<block>\w+)[^%]*(?:%(?!\})[^%]*)*(?:%\}|\Z)"
    r"|<%(?P<code>[^%]*(?:%(?!>)[^%]*)*)(?:%>|\Z)"
    r"|\{\{(?![#^/~])[^{}\n]{0,300}\}\}"
    r"|\{\{~?(?P<helper>[#^/]\s*\w*)(?:[^{}\n]{0,300}\}\})?"
    r"|\{(?P<svelte>[#/]\w+)(?:[^{}\n]{0,300}\})?"
)
_RAW = {name: re.compile(rf"</{name}\b", re.IGNORECASE) for name in ("script", "style")}
_MAX_WITHIN = 40
"""Elements left open that a last tag may close."""


def read(text: str) -> tuple[tuple[Open, ...], int]:
    """(what is left open, outermost first; how much is closed that is not open, or left open where
    what is around it is closed) of text that starts between tags."""
    stack: list[Open] = []
    n_wrong = at = 0
    while True:
        top = stack[-1].closer if stack else ""
        pattern = _IN_TAG if top == IN_TAG else _IN_CODE if top in OPENER_OF else _IN_TEXT
        m = pattern.search(text, at)
        if m is None:
            return tuple(stack), n_wrong
        token, at = m.group(), m.end()
        if pattern is not _IN_TEXT:
            if top == IN_TAG and token in (">", "/>"):
                at = _after_tag(text, stack, token, at)
            elif token in CLOSER_OF:
                stack.append(Open(CLOSER_OF[token], m.start(), at))
            elif token == top:
                stack.pop()
        elif m["first"]:
            stack.append(Open(IN_TAG, m.start(), at))
        elif closer := _opened(m):
            stack.append(Open(closer, m.start(), at))
        elif closer := _closed(m):
            n_wrong += _close(stack, closer)


def _after_tag(text: str, stack: list[Open], token: str, at: int) -> int:
    """The place to read on from behind the end of a first tag."""
    _, start, end = stack.pop()
    name = text[start + 1 : end]
    if token == "/>" or name.lower() in _VOID:
        return at
    stack.append(Open(f"</{name}>", start, at))
    if raw := _RAW.get(name.lower()):
        ends = raw.search(text, at)
        return ends.start() if ends is not None else len(text)
    return at


def _opened(m: re.Match[str]) -> str:
    """Text that closes the block of a template that begins here, "" for none."""
    if m["block"] in _OF_BLOCKS:
        return f"{{% end{m['block']} %}}"
    if m["code"] is not None and _OPENS_CODE.match(m["code"]) and not _ENDS_CODE.match(m["code"]):
        return "<% end %>"
    if m["helper"] and m["helper"][0] in "#^" and m["helper"][1:].strip():
        return f"{{{{/{m['helper'][1:].strip()}}}}}"
    return f"{{/{m['svelte'][1:]}}}" if m["svelte"] and m["svelte"][0] == "#" else ""


def _closed(m: re.Match[str]) -> str:
    """The text that `_opened` gave for the block that ends here, "" for none."""
    if m["last"]:
        return f"</{m['last'][2:].rstrip('>').strip()}>"
    if m["block"] and m["block"].startswith("end"):
        return f"{{% {m['block']} %}}"
    if m["code"] is not None and _ENDS_CODE.match(m["code"]):
        return "<% end %>"
    if m["helper"] and m["helper"][0] == "/":
        return f"{{{{/{m['helper'][1:].strip()}}}}}"
    return f"{{{m['svelte']}}}" if m["svelte"] and m["svelte"][0] == "/" else ""


def _close(stack: list[Open], closer: str) -> int:
    """Close an element; count what is left open in it, and itself where it is not open."""
    n_wrong = 0
    for n, opened in enumerate(reversed(stack[-_MAX_WITHIN:]), 1):
        if opened.closer.lower() == closer.lower():
            del stack[-n:]
            return n_wrong
        n_wrong += opened.closer not in _OPTIONAL
    return int(closer not in _OPTIONAL)


def section(prefix: str, suffix: str, sections: tuple[Section, ...]) -> tuple[int, int, str] | None:
    """The place of the script or the style sheet that the cursor is in, if its last tag is there:
    (where it begins in the text before the cursor, where it ends in the text after it, the
    extension of files of its language, "" for none that is known). sections: those that may be."""
    for known in sections:
        name = known.element
        at, end = prefix.rfind(f"<{name}"), suffix.find(f"</{name}")
        if at < 0 or end < 0 or prefix.find(f"</{name}", at) >= 0 or f"<{name}" in suffix[:end]:
            continue
        if m := _first_tag(name).match(prefix, at):
            if re.search(known.unless, m["attributes"]):
                return m.end(), end, ""
            dialects = "|".join(known.dialects) or NEVER
            dialect = re.search(rf"\blang=[\"']?({dialects})\b", m["attributes"])
            return m.end(), end, f".{dialect[1]}" if dialect is not None else known.extension
    return None


@cache
def _first_tag(name: str) -> re.Pattern[str]:
    return re.compile(rf"<{name}\b(?P<attributes>(?:\"[^\"]*\"|'[^']*'|[^>\"'])*)>", re.IGNORECASE)


def closing(line: str) -> re.Match[str] | None:
    """The beginning of a line, if it closes an element or a block."""
    return _CLOSING.match(line)


def may_close(line: str) -> bool:
    """True if a line that is nothing else so far may come to close one, or to go on with one."""
    return _MAY_CLOSE.match(line) is not None


def n_unmatched(text: str) -> int:
    """Number of elements and blocks left open, or closed that are not open."""
    opened, n_wrong = read(text)
    return n_wrong + sum(found.closer not in _OPTIONAL for found in opened)
