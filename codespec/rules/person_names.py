"""Names of people, firms and projects in a part of a line that names some, and where they stand in
other texts."""

from __future__ import annotations

import re
from collections.abc import Iterator

_BETWEEN = re.compile(r"[ \t]*(?:[,;|+]|&(?!\w+;)|\band\b|[ \t]/[ \t]|\bet[ \t]al\b)[ \t]*")
_PLACEHOLDER = re.compile(r"[{}$%#/\[\]\\]|<[^@>\s]*>|\.\.\.|\byour?\b", re.IGNORECASE)
_NUMBER_OR_WORD = re.compile(r"\w+")
_WORD = re.compile(r"[^\W\d_][\w.'\u2019-]*")
AROUND = " \t\r\"'`.:,;*#(){}[]<>=!-\u2013\u2014/\\|~"
_PARTICLES_LISTED = """
    of the and for de del della der den di da do dos du la le van von zu zum bin ibn al el y e af av
    ter ten at in
"""
_FUNCTION_LISTED = """
    of the a an is was are who that this to in on for with by or if not be as from and it its which
    when where unless return self
"""
_AROUND_LISTED = """
    the a an author authors contributor contributors maintainer maintainers developer developers
    holder holders owner owners respective original others other team project community inc ltd llc
    gmbh corp co sa ag bv plc limited incorporated corporation affiliates subsidiaries its present
"""
_NOBODY_LISTED = """
    anonymous unknown none null nil todo tbd fixme me myself you yourself us we n na n/a name names
    user username email admin person people company organization organisation string str text int
    number object any true false date year id list array optional required
"""
_PARTICLES, _FUNCTION, _AROUND_NAMES, _NOBODY = (
    frozenset(words.split())
    for words in (_PARTICLES_LISTED, _FUNCTION_LISTED, _AROUND_LISTED, _NOBODY_LISTED)
)
_MAX_WORDS = 10


def stands_in(name: str, text: str) -> bool:
    """True if a text has the name or address: all its words, one after the other, whatever signs
    are between them. Small and capital letters are the same, but in a name of one word, which may
    be a word of the language."""
    words = _NUMBER_OR_WORD.findall(name)
    is_address = "@" in name
    ignores_case = is_address or len(words) > 1
    searched, parts = (text.lower(), [w.lower() for w in words]) if ignores_case else (text, words)
    if not words or any(word not in searched for word in parts):
        return False
    if is_address:
        wanted = rf"(?<![\w.%+-]){re.escape(name.lower())}(?![\w-]|\.\w)"
    else:
        whole = r"\W{1,3}".join(map(re.escape, parts))
        wanted = rf"(?<!\w){whole}(?!\w)"
    return re.search(wanted, searched) is not None


def names_in(
    line: str, start: int, end: int, *, is_full: bool = False
) -> Iterator[tuple[int, int]]:
    """(start, end) of each name in a part of a line, which commas and the like divide. is_full:
    only names of two words and more."""
    for begin, stop in _divided(line, start, end):
        begin = stop - len(line[begin:stop].lstrip(AROUND))
        item = re.split(r"[<(]|\S*@", line[begin:stop], maxsplit=1)[0]
        begin, name = _without_nobody(begin, item.rstrip(AROUND))
        if name and not _PLACEHOLDER.search(line, begin, stop) and _is_name(name, is_full):
            yield begin, begin + len(name)


def _divided(line: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    for m in _BETWEEN.finditer(line, start, end):
        yield start, m.start()
        start = m.end()
    yield start, end


def _without_nobody(begin: int, name: str) -> tuple[int, str]:
    """(its place, the name) without words around it that are nobody's name."""
    words = [(w, w[0].lower().rstrip(".")) for w in _WORD.finditer(name)]
    kept = [w for w, small in words if small not in _AROUND_NAMES]
    if all(small in _NOBODY or small in _AROUND_NAMES for _, small in words):
        return begin, ""
    first, last = kept[0].start(), kept[-1].end()
    return begin + first, name[first:last].rstrip(AROUND)


def _is_name(name: str, is_full: bool) -> bool:
    words = [m[0] for m in _WORD.finditer(name)]
    capital = [word for word in words if word[0].isupper() or not word[0].islower()]
    others = [word for word in words if word not in capital]
    if len(words) > _MAX_WORDS or max(map(len, words), default=0) > 40:
        return False
    if words and words[0] in capital and all(word in _PARTICLES for word in others):
        return not is_full or len(capital) > 1
    return not is_full and len(words) <= 3 and _FUNCTION.isdisjoint(others)
