"""Lines as tokens: words, runs of white space, and single signs; and their indentation."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_SIGN = re.compile(r"\w+|[^\w\s]")
_WORD = re.compile(r"[^\W\d]\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|_+|\s+|[^\w\s]|\w")

KEYWORDS = frozenset(
    re.findall(
        r"\w+",
        """
    and any as async await bool break case catch class const continue def default do else enum
    err error except export extends false finally fn for from func function if impl implements
    import in int interface is lambda let match mod mut new nil none not null or package pass
    private protected pub public raise return self static str string struct super switch this
    throw true try type undefined use var void while with yield False None Self True
        """,
    )
)
"""Words that say nothing about what a line is for, of many languages."""
_NAME = re.compile(rf"\b(?!(?:{'|'.join(sorted(KEYWORDS))})\b)\w+")

_IMPORT = re.compile(
    r"(?:(?:from|import|use|pub use|using|package)\s|#include\b|require\b).*\w\w"
    r"|(?:\w+ )?\"[\w./-]*\w\w\"$"
    r"|export\b.*\bfrom\b"
)
"""The beginning of an import; a quoted path is a line of Go's list of them."""

_DEFINITION = re.compile(
    r"(?:(?:export|default|pub(?:\([^)]*\))?|async|static|public|private|protected|abstract|unsafe"
    r"|final|override|virtual|inline|const(?=\s+fn))\s+)*"
    r"(?:#\s*define|(?:def|class|func|fn|fun|sub|impl|struct|enum|trait|interface|type|function|const"
    r"|let|var|val|mod|module|namespace|record|union|protocol)\b)"
    r"(?:\s+mut\b|\s*\([^)]*\))?\s*(?P<name>\w+)"
)
_METHOD = re.compile(
    r"(?!(?:assert|await|case|catch|defer|delete|do|elif|else|elsif|for|foreach|go|if|in|lock|match"
    r"|new|not|print|return|switch|synchronized|throw|throws|try|unless|until|using|when|while|with"
    r"|yield)\b)"
    r"(?:[\w<>\[\],.:&*?@~]+\s+)*[&*]*(?:\w+::)*(?P<name>[^\W\d]\w+)\s*"
    r"\((?P<inside>[^;{}]*)\)[^;{}()=]*\{$"
)
"""The head of a function that no keyword begins, and its opening brace."""
_FUNCTION = re.compile(r"(?:[\w<>()]+\s+)*?(?:def|fn|fun|func|function|sub)\b")
_LIST_OF_IMPORTS = re.compile(r"(?:import|from)\b.*[({]$|export\s*(?:type\s*)?\{$")
_LISTED = re.compile(r"(?:type\s+)?\w+(?:\s+as\s+\w+)?(?:,\s*\w+)*,?$")
"""A line of a list of imported names."""


def is_import(line: str) -> bool:
    """True for a line, without indentation, that imports something."""
    return _IMPORT.match(line) is not None


def begins_imports(line: str) -> bool:
    """True for a line, without indentation, that imports something, or begins a list of names that
    are imported."""
    return is_import(line) or _LIST_OF_IMPORTS.match(line) is not None


@lru_cache(1 << 12)
def defined_name(line: str) -> str:
    """The name that a line, without indentation, defines; "" for none."""
    match = _DEFINITION.match(line)
    if match is None and line.endswith("{"):
        match = _METHOD.match(line)
        if match is not None and match["inside"].count("(") != match["inside"].count(")"):
            return ""
    return match["name"] if match is not None else ""


def begins_function(line: str) -> bool:
    """True for a line, without indentation, that is the head of a function."""
    return (
        _FUNCTION.match(line) is not None
        or line.endswith("=> {")
        or (line.endswith("{") and _METHOD.match(line) is not None)
    )


def holds_name(line: str, name: str) -> bool:
    """True if a name stands in a line as a whole word."""
    at = line.find(name)
    while at >= 0:
        end = at + len(name)
        if not (is_word_character(line[at - 1 : at]) or is_word_character(line[end : end + 1])):
            return True
        at = line.find(name, at + 1)
    return False


def is_listed_name(line: str) -> bool:
    """True for a line, without indentation, that may be one of a list of imported names."""
    return _LISTED.match(line) is not None


def raw_tokens(text: str) -> list[str]:
    """All tokens, white space included; joined they are the text."""
    return _TOKEN.findall(text)


@lru_cache(1 << 13)
def signs(text: str) -> tuple[str, ...]:
    """Tokens without white space."""
    return tuple(_SIGN.findall(text))


def word_parts(text: str) -> list[str]:
    """Tokens with words cut at changes of case, digits and underscores; joined they are the
    text."""
    return _PART.findall(text)


def words(text: str) -> list[str]:
    """Words of two characters or more that begin with no digit."""
    return _WORD.findall(text)


def has_word(text: str) -> bool:
    """True if there is a word of two characters or more: less cannot be searched for."""
    return _WORD.search(text) is not None


def is_word_character(character: str) -> bool:
    """True if the character continues a word; False for an empty string."""
    return character == "_" or character.isalnum()


def indentation(line: str) -> str:
    """White space that the line begins with; all of a blank line."""
    return line[: len(line) - len(line.lstrip())]


def dedented(lines: Iterable[str]) -> tuple[str, ...]:
    """Lines without the indentation that they share, and without white space at their ends."""
    lines = tuple(lines)
    n_shared = common_indentation(lines)
    return tuple(line[n_shared:].rstrip() for line in lines)


def common_indentation(lines: Iterable[str]) -> int:
    """Characters of the least indentation of lines that are not blank; 0 where all are."""
    return min((len(indentation(line)) for line in lines if line.strip()), default=0)


def indented(lines: Sequence[str], prefix: str) -> tuple[str, ...]:
    """Lines with `prefix` before each that is not blank."""
    return tuple(prefix + line if line.strip() else "" for line in lines)


def n_open_brackets(text: str) -> tuple[int, int, int]:
    """Brackets that are opened and not closed, of each kind; less than 0 for more that close."""
    return (
        text.count("(") - text.count(")"),
        text.count("[") - text.count("]"),
        text.count("{") - text.count("}"),
    )


@lru_cache(1 << 12)
def shape(text: str) -> str:
    """The text with all names and numbers as one: lines of one shape are built alike."""
    return _NAME.sub("a", text)
