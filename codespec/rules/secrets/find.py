"""Search for secrets: one pass for the words that rules name, and a look around each of them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import AnyStr, NamedTuple, cast

import ahocorasick

from codespec.rules.secrets import assigned, gitleaks, keys
from codespec.rules.secrets.forms import FORMS, SecretForm

_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]")
_REST_OF_TOKEN = re.compile(r"[\w+/=~%-]*", re.ASCII)
_IN_TOKEN = re.compile(r"[\w+/=~%-]", re.ASCII)
_NOT_NEWLINE = re.compile(r"[^\n]")


class SecretValue(NamedTuple):
    """Place of a secret in a text. start, end: characters of a str, bytes of bytes. rule: the
    rule's name."""

    start: int
    end: int
    rule: str


class _Words:
    """The words that rules name, and the rules to try at each."""

    def __init__(self) -> None:
        self.rules: list[SecretForm | gitleaks.SecretRule] = [*FORMS, *gitleaks.load()]
        by_word: dict[str, list[int]] = {}
        for i, rule in enumerate(self.rules):
            for word in rule.words:
                by_word.setdefault(word, []).append(i)
        passwords = frozenset(assigned.PASSWORD_WORDS)
        names = passwords.union(assigned.SECRET_WORDS)
        self.automaton = ahocorasick.Automaton()
        for word in {*by_word, *names, *keys.WORDS}:
            kind = 0 if word not in names else 1 if word in passwords else 2
            about = len(word), kind, word in keys.WORDS, tuple(by_word.get(word, ()))
            self.automaton.add_word(word, about)
        self.automaton.make_automaton()


@cache
def _words() -> _Words:
    return _Words()


def beginnings() -> list[str]:
    """Expressions for the beginnings of tokens of gitleaks' forms that say whose they are."""
    rules = (rule for rule in _words().rules if isinstance(rule, gitleaks.SecretRule))
    return sorted({rule.beginning for rule in rules} - {""})


def find(text: AnyStr) -> list[SecretValue]:
    """Find the places of a text that look like secrets, in order, without overlaps.

    Costs some ten milliseconds a megabyte, and fifty in the first call of a process. Thread-safe.
    """
    if isinstance(text, bytes):
        return _find(text.decode("latin-1"))  # a character a byte
    return _find(text)


def _find(text: str) -> list[SecretValue]:
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters of other scripts become two
        lowered = _BEYOND_ASCII.sub("?", text).lower()
    words = _words()
    found: list[SecretValue] = []
    tried: dict[int, int] = {}  # rule -> up to where it was tried
    for last, (n, kind, is_of_key, rules) in cast(
        "Iterator[tuple[int, tuple[int, int, bool, tuple[int, ...]]]]",
        words.automaton.iter(lowered),
    ):
        start, end = last + 1 - n, last + 1
        if kind and start >= tried.get(-2, 0):
            place = assigned.value_at(text, start, end, kind == 1)
            if place is not None:
                tried[-2] = place[1]
                found.append(
                    SecretValue(*place, "assigned-password" if kind == 1 else "assigned-secret")
                )
        if is_of_key and tried.get(-1, 0) <= start:
            for place in keys.matches(text, start):
                found.append(SecretValue(*place, "private-key"))
                tried[-1] = place[1]
        for i in rules:
            rule = words.rules[i]
            if start < tried.get(i, 0):
                continue
            for first, end_of_it, is_secret in rule.matches(text, start, end, tried.get(i, 0)):
                tried[i] = max(tried.get(i, 0), end_of_it)
                if is_secret:
                    tried[i] = _whole(text, end_of_it)
                    found.append(SecretValue(first, tried[i], rule.name))
    return _merged(found)


def _whole(text: str, end: int) -> int:
    """End of the token of which a rule matched only the beginning."""
    if _IN_TOKEN.match(text, end - 1) is None:
        return end
    rest = _REST_OF_TOKEN.match(text, end)
    return rest.end() if rest is not None else end


def _merged(found: list[SecretValue]) -> list[SecretValue]:
    merged: list[SecretValue] = []
    for finding in sorted(found):
        if merged and finding.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = last._replace(end=max(last.end, finding.end))
        else:
            merged.append(finding)
    return merged


def spans_left(found: Iterable[SecretValue], start: int, end: int) -> Iterator[tuple[int, int]]:
    """Places that are left of text[start:end] without the secrets found, none of them empty."""
    for finding in found:
        if finding.end <= start:
            continue
        if finding.start >= end:
            break
        if finding.start > start:
            yield start, finding.start
        start = finding.end
    if start < end:
        yield start, end


def without_secrets(text: str) -> str:
    """The text without the values that look like secrets."""
    found = find(text)
    return "".join(text[a:b] for a, b in spans_left(found, 0, len(text))) if found else text


def masked(text: AnyStr, found: Iterable[SecretValue]) -> AnyStr:
    """The text with asterisks in the place of secrets: offsets and lines stay as they are."""
    characters = text.decode("latin-1") if isinstance(text, bytes) else text  # one a byte
    parts: list[str] = []
    done = 0
    for start, end, _ in found:
        parts += characters[done:start], _NOT_NEWLINE.sub("*", characters[start:end])
        done = end
    hidden = "".join((*parts, characters[done:]))
    return cast("AnyStr", hidden.encode("latin-1") if isinstance(text, bytes) else hidden)
