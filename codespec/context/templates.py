"""FIM prompts as clients write them: for a model that need not be the one that answers.

Read as plain text, markers would be continued with more markers, so the parts between them are told
apart, and the model that answers gets them in its own format. `families` has the spellings.

Documents name markers, too. Of several places of one marker, the one is taken on whose either side
markers stand in pairs, as documents name them, all alike. Else one that begins a line or a part is,
as templates write them, else one that stands in no quotes, and of equals the last.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from codespec.context import families
from codespec.context.families import Family, Spelling

_MOST_PLACES = 1024
"""Places of one marker that are compared; the last ones."""
_LINE_CHARS = 256
"""Characters of a marker's line that are looked at on either side, for quotes."""
_NAME = re.compile(r"[^\s()]*[./\\][^\s()]* ?\r?\n")
"""A line that is a file's name, at the beginning of a text."""
_ENDED = re.compile(r"<\|endoftext\|>\s*\Z")
"""The token that ends a file, which few clients write."""
_DIFF = "diff --git "
"""The beginning of a diff, which Continue puts among files without a heading."""
_QUOTED, _WITHIN, _BEGINS, _ENDS = range(4)
"""Strengths of a marker's place: in quotes, within a line, at the beginning of a line or a part, at
the end of the prompt."""
_MARKED, _HEADED, _UNMARKED = range(3)
"""Kinds of readings: markers begin the prompt; other text does; no marker stands before the
prefix."""


class PromptParts(NamedTuple):
    """A prompt's parts. files: (name or "", text) of other files in it."""

    prefix: str
    suffix: str = ""
    files: tuple[tuple[str, str], ...] = ()


class _Reading(NamedTuple):
    """A prompt by one spelling. The least one is right.

    is_doubtful: True if the marker between prefix and suffix stands in quotes, and none begins the
        prompt.
    kind:  `_MARKED`, `_HEADED` or `_UNMARKED`.
    start: the place of its first FIM marker.
    lacks: True if no marker of the spelling's files stands before that.
    weak:  less for a stronger place of the marker between prefix and suffix.
    early: less for a later one.
    short: less for longer markers, blanks around them included.
    """

    is_doubtful: bool
    kind: int
    start: int
    lacks: bool
    weak: int
    early: int
    short: int
    prefix: str
    suffix: str
    family: Family
    template: Spelling

    def parts(self, prompt: str) -> PromptParts:
        """The parts of the prompt that was read."""
        head, inner, prefix = _after_beginning(prompt[: self.start]), (), self.prefix
        if self.family.files and self.family.files.heading:
            inner, prefix = _headed_files(prefix, self.family.files.heading)
        if self.kind == _MARKED:
            files = _files(head, self.template)
        else:  # Text before the first marker is one file without a name.
            files = (("", head),) if head.strip() else ()
        return PromptParts(prefix, self.suffix, files + inner)


def parted(prompt: str) -> PromptParts:
    """Split a prompt that follows a known template. Any other prompt is all prefix."""
    text = _without_beginning(prompt)
    found = min(_readings(text), key=lambda reading: reading[:7], default=None)
    return found.parts(text) if found else _of_files(text) or PromptParts(prompt)


def has_markers(text: str) -> bool:
    """True if a text that follows no template uses markers of one, outside quotes: two different
    ones, or one at either end."""
    return any(_uses(text, spelling) for family in families.FAMILIES for spelling in family.spelled)


def _uses(text: str, spelling: Spelling) -> bool:
    markers = (marker.strip() for marker in spelling[:3])
    used = [m for m in markers if m and _place(text, m, 0, len(text)) is not None]
    return len(used) > 1 or any(text.startswith(m) or text.endswith(m) for m in used)


def _without_beginning(prompt: str) -> str:
    """The prompt without the token that begins a text, where a marker follows it."""
    rest = _after_beginning(prompt)
    return rest if rest.startswith(_firsts()) else prompt


def _after_beginning(text: str) -> str:
    """A text without the token that begins it, and blanks after that."""
    token = next(filter(text.startswith, families.BEGINNINGS), "")
    return text.removeprefix(token).lstrip(" ") if token else text


def _firsts() -> tuple[str, ...]:
    """Markers that a prompt may begin with."""
    spellings = (spelling for family in families.FAMILIES for spelling in family.spelled)
    return tuple(text for s in spellings for text in (s.prefix, s.suffix, *s[3:]) if text)


def _readings(prompt: str) -> Iterator[_Reading]:
    for family in families.FAMILIES:
        for spelling in family.spelled:
            for is_suffix_first in (False, True):
                found = _read(prompt, family, spelling, is_suffix_first)
                if found is not None:
                    yield found


def _read(
    prompt: str, family: Family, template: Spelling, is_suffix_first: bool
) -> _Reading | None:
    """The prompt by one spelling in one order; None for one that does not follow it."""
    first, second = template.prefix, template.suffix
    if is_suffix_first:
        first, second = second, first
    if not second or not (template.middle or is_suffix_first):
        return None
    end = _middle(prompt, second, template)
    begins = bool(first) and prompt.startswith(first)
    opening = 0 if begins or not first or end is None else _opening(prompt, first, end)
    if end is None or opening is None:
        return None
    low = opening + len(first)
    place = among_pairs = _between_pairs(prompt, template, second, low, end)
    if place is None:
        place = _place(prompt, second, low, end, (first,), any_quotes=True)
    if place is None:
        return None
    # The cursor may stand in quotes, and a head may end in some: the last marker tells.
    is_told = bool(template.middle) and _strength(prompt, template.middle, end) != _QUOTED
    is_once = is_told and prompt.count(first) == prompt.count(second) == 1
    start = opening
    if not begins and first and among_pairs is None:
        start = _place(prompt, first, 0, place, any_quotes=is_once)
    if start is None:
        return None
    kind = _kind(prompt, start, template) if first else _UNMARKED
    before, between = prompt[start + len(first) : place], prompt[place + len(second) : end]
    prefix, suffix = (between, before) if is_suffix_first else (before, between)
    # What stands after the last marker is a middle that has begun, or all text before the cursor
    # ("<fim_prefix><fim_suffix>...<fim_middle>...").
    begun = prompt[end + len(template.middle) :]
    may_have_begun = family.middle and (template == family.spelled[-1] or not prefix)
    if begun.strip() and not (kind == _MARKED and may_have_begun):
        return None
    strength = _strength(prompt, second, place, (first,))
    is_open = kind == _HEADED and not template.middle and not prompt[:start].endswith("\n\n")
    if is_open or (kind == _UNMARKED and strength == _QUOTED and not is_told):
        return None
    lacks = start > 0 and template.file not in prompt[:start]
    early, short = -prompt.find(second.strip(), place), -len("".join(template[:3]))
    is_doubtful = kind != _MARKED and strength == _QUOTED
    rank = (is_doubtful, kind, start, lacks, -strength, early, short)
    return _Reading(*rank, prefix + begun, suffix, family, template)


def _middle(prompt: str, second: str, template: Spelling) -> int | None:
    """The place of the middle's marker, behind the first `second`; the prompt's end for a spelling
    without one. None for a prompt that lacks it."""
    if not template.middle:
        return len(prompt)
    low = prompt.find(second) + len(second)
    return _place(prompt, template.middle, low, len(prompt), template[:2], any_quotes=True)


def _opening(prompt: str, first: str, end: int) -> int | None:
    """The first place of a marker outside quotes, else the first one; None for none."""
    place = prompt.find(first, 0, end)
    for _ in range(_MOST_PLACES):
        if place < 0:
            break
        if _strength(prompt, first, place) != _QUOTED:
            return place
        place = prompt.find(first, place + len(first), end)
    place = prompt.find(first, 0, end)
    return None if place < 0 else place


def _between_pairs(prompt: str, template: Spelling, second: str, low: int, high: int) -> int | None:
    """The last place of `second` in prompt[low:high] outside quotes on whose either side markers
    before a prefix and a suffix stand in pairs, all of them alike in strength. None for none, and
    where there is no choice."""
    if not template.prefix or prompt.count(second, low, high) < 2:
        return None
    found = sorted(
        (place, sign, strength)
        for marker, sign in ((template.prefix, 1), (template.suffix, -1))
        for place, strength in _unquoted(prompt, marker, low, high)
    )
    before = _paired(sign for _, sign, _ in found)
    after = _paired(-sign for _, sign, _ in reversed(found))[::-1]
    strengths = Counter(strength for _, _, strength in found)
    places = [
        place
        for (place, _, strength), is_before, is_after in zip(found, before, after[1:], strict=False)
        if is_before and is_after and len(strengths - Counter((strength,))) == 1
    ]
    chosen = next((place for place in reversed(places) if prompt.startswith(second, place)), None)
    if chosen is None or not template.middle:
        return chosen
    # Of examples that follow one another, each with its middle, the last one is asked about.
    following = prompt.find(template.prefix, chosen, high)
    return None if template.middle in prompt[chosen : max(chosen, following)] else chosen


def _unquoted(text: str, marker: str, low: int, high: int) -> Iterator[tuple[int, int]]:
    """(place, strength) of the last ones of a marker in text[low:high] that stand in no quotes."""
    place = text.rfind(marker, low, high)
    for _ in range(_MOST_PLACES):
        if place < 0:
            break
        strength = _strength(text, marker, place)
        if strength != _QUOTED:
            yield place, strength
        place = text.rfind(marker, low, place)


def _paired(signs: Iterable[int]) -> list[bool]:
    """True for each number of signs from 0 on of which so many are pairs of 1 and -1."""
    found, depth, is_sound = [True], 0, True
    for sign in signs:
        depth += sign
        is_sound &= depth >= 0
        found.append(is_sound and not depth)
    return found


def _kind(prompt: str, start: int, template: Spelling) -> int:
    """The kind of a reading whose first FIM marker stands at `start`."""
    heads = tuple(filter(None, (template.repository, template.file)))
    return _MARKED if not start or prompt.startswith(heads) else _HEADED


def _place(
    text: str,
    marker: str,
    low: int,
    high: int,
    others: Sequence[str] = (),
    *,
    any_quotes: bool = False,
) -> int | None:
    """The place of a marker in text[low:high]; None for none, nor for one in quotes alone unless
    `any_quotes`. others: markers that it may follow directly."""
    best, most = None, _QUOTED - any_quotes
    place = text.rfind(marker, low, high)
    for _ in range(_MOST_PLACES):
        if place < 0:
            break
        strength = _strength(text, marker, place, others)
        if strength > most:
            best, most = place, strength
        if strength >= _BEGINS:
            break
        place = text.rfind(marker, low, place)
    return best


def _strength(text: str, marker: str, place: int, others: Sequence[str] = ()) -> int:
    """The strength of this place of a marker: `_QUOTED`, `_WITHIN`, `_BEGINS` or `_ENDS`."""
    end = place + len(marker)
    if not place or text[place - 1] == "\n":
        return _BEGINS
    before = text[max(0, place - _LINE_CHARS) : place].rpartition("\n")[2]
    after, is_whole, _ = text[end : end + _LINE_CHARS].partition("\n")
    # The last line is cut at the cursor, so its quotes may be open.
    is_cut = not is_whole and end + _LINE_CHARS >= len(text)
    for quote in "\"'`":
        if before.count(quote) % 2 and (is_cut or quote in after):
            return _QUOTED
    if end == len(text):
        return _ENDS
    return _BEGINS if before.endswith(tuple(filter(None, others))) else _WITHIN


def _of_files(prompt: str) -> PromptParts | None:
    """The parts of a prompt that has markers of a repository and its files alone: the last file is
    the document, up to the cursor. None for another prompt."""
    for family in families.FAMILIES:
        for template in family.spelled:
            if template.repository and template.file and prompt.startswith(template.repository):
                _, *files = _cut(prompt, template.file)
                if files:
                    own = files.pop().partition("\n")[2]
                    return PromptParts(own, "", _named(files))
    return None


def _files(head: str, template: Spelling) -> tuple[tuple[str, str], ...]:
    """The files before the document. They have names where their repository has one, or never
    has."""
    if not template.file:
        return ()
    repository, *files = _cut(head, template.file)
    if repository or not template.repository or all(map(_NAME.match, files)):
        return _named(files)
    return tuple(("", text) for text in files if text.strip())


def _named(files: Sequence[str]) -> tuple[tuple[str, str], ...]:
    """(name, text) of files that begin with a line of their name. The last one may be the
    document's own name, without a text."""
    pairs = [file.partition("\n") for file in files]
    texts = [(name.strip(), _ENDED.sub("", text)) for name, _, text in pairs]
    return tuple((name, text) for name, text in texts if text.strip())


def _cut(text: str, marker: str) -> list[str]:
    """The pieces of a text between markers that stand in no quotes."""
    pieces, begin = list[str](), 0
    place = text.find(marker)
    while place >= 0:
        if _strength(text, marker, place) != _QUOTED:
            pieces.append(text[begin:place])
            begin = place + len(marker)
        place = text.find(marker, place + len(marker))
    return [*pieces, text[begin:]]


def _headed_files(prefix: str, heading: str) -> tuple[tuple[tuple[str, str], ...], str]:
    """(files, the document's own part): each begins with a line of heading and name, the document
    last."""
    if not prefix.startswith((heading, _DIFF)):
        return (), prefix
    diff, *rows = re.split(rf"^{re.escape(heading)}(.*)\n", prefix, flags=re.MULTILINE)
    if not rows:
        return (), prefix
    *files, _, own = rows
    if diff:
        files = ["", diff, *files]
    return tuple(
        (name.strip(), text)
        for name, text in zip(files[::2], files[1::2], strict=True)
        if text.strip()
    ), own
