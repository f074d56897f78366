"""Tests that tell a secret's value from words, a name, a path or a place holder."""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import pairwise

_PLACE_HOLDER = re.compile(
    r"""example|sample|placeholder|change[-_ ]?(?:me|it|this)|replace|your[-_ ]|dummy|fake|mock
    |redacted|insert|todo|fixme|foobar|lorem|not[-_ ]?(?:a[-_ ])?(?:real|secret)|xxxx|\*\*\*|\.\.\.
    |abcdef|123456789|qwerty|deadbeef|cafebabe|undefined|invalid|expired|wrong|bogus
    |test[-_ ]|[-_]test""",
    re.VERBOSE | re.IGNORECASE,
)
# A byte of an address, such as %2F, begins no template.
_TEMPLATE = re.compile(
    r"(?:[${<\[(]|%(?![0-9A-F]{2}))\{?[\w.\s\[\]-]*[})>%\]]"
    r"|\{\}|%[sdr]\b|#\{|\\[uU(]|<%|\{\{"
)
_NO_WORDS = re.compile(r"[^\w./:#@,+ -]|\d{5}", re.ASCII)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+")
_BETWEEN_LETTERS = re.compile(r"(?<=[a-zA-Z])\d+(?=[a-zA-Z])")
_VOWEL = re.compile(r"[aeiouy]", re.IGNORECASE)
_NO_VOWELS = frozenset(["http", "https", "html", "xhtml", "grpc", "pkcs", "ctrl", "pbkdf"])
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)
_HEX = re.compile(r"[0-9a-f]+|[0-9A-F]+")
_STRONG = frozenset("!@#$%^&*?+=~|")


def entropy(text: str) -> float:
    """Shannon entropy in bits a character, by the frequencies of characters in the text itself."""
    n = len(text)
    return -sum(k / n * math.log2(k / n) for k in Counter(text).values()) if n else 0.0


def is_place_holder(text: str) -> bool:
    """True for a text that stands for a value: a template's parameter, or `changeme`."""
    return bool(_PLACE_HOLDER.search(text) or _TEMPLATE.search(text)) or len(set(text)) < 5


def n_changes(text: str) -> int:
    """Number of neighbours of different kinds: small letters, capitals, digits, others. Random text
    changes at every other character, words hardly ever."""
    kinds = [
        "a" if c.islower() else "A" if c.isupper() else "0" if c.isdigit() else c for c in text
    ]
    return sum(a != b for a, b in pairwise(kinds))


def is_random(text: str, n_least: int = 16) -> bool:
    """True for text that nobody would take for words or a name. n_least: fewest characters."""
    if len(text) < n_least or is_place_holder(text):
        return False
    if _HEX.fullmatch(text):
        return len(text) >= 24 and entropy(text) >= 2.8 and not text.isdigit()
    has_digit = any(map(str.isdigit, text))
    if not has_digit and (len(text) < 20 or text.islower() or text.isupper()):
        return False
    return entropy(text) >= 3.2 and 4 * n_changes(text) >= len(text) and not is_wordy(text)


def is_wordy(text: str) -> bool:
    """True for words and short numbers, joined as in names, paths and sentences."""
    if _NO_WORDS.search(text, 1, len(text) - 1) or len(_BETWEEN_LETTERS.findall(text)) > 2:
        return False
    words = _WORD.findall(text)
    n_letters = sum(map(len, words))
    if not words or n_letters < 3 * len(words) or 5 * n_letters < 3 * len(text):
        return False
    return all(len(w) < 4 or _VOWEL.search(w) or w.lower() in _NO_VOWELS for w in words)


def is_password(text: str) -> bool:
    """True for a text that a person, or a generator, would choose for a password: no single
    word."""
    if len(text) < 8 or is_place_holder(text) or _UUID.fullmatch(text):
        return False
    if is_random(text, 12):
        return True
    n_kinds = len(
        {"a" if c.islower() else "A" if c.isupper() else "0" for c in text if c.isalnum()}
    )
    is_strong = not _STRONG.isdisjoint(text)
    return entropy(text) >= 2.9 and n_kinds + is_strong >= 3 and not is_wordy(text)
