"""What is taken away from a generated text before it is shown. Each rule returns the text, whole or
shorter or mended, and knows nothing of the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from codespec.engine.postprocess.place import Place, decorates, has_words, indentation, tells
from codespec.engine.postprocess.scan import scan

# Controls that reorder text (Boucher and Anderson 2023, "Trojan Source"), characters without width,
# and control characters: what the user sees must be what is inserted.
_INVISIBLE = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Some of them are seen where they belong: how an emoji looks, what joins several to one, digits on
# keys, flags of countries in a country (of which three are in use), and what joins or parts letters
# in scripts from Arabic to Sinhala.
_EMOJI = (
    "[\xa9\xae\u203c\u2049\u2122\u2139\u2194-\u21aa\u231a-\u23ff\u24c2\u25aa-\u25fe\u2600-\u27bf"
    "\u2934\u2935\u2b05-\u2b55\u3030\u303d\u3297\u3299\U0001f000-\U0001faff]"
)
_ONE = f"{_EMOJI}[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
_FLAG = "\U0001f3f4(?:{})\U000e007f".format(
    "|".join("".join(chr(0xE0000 + ord(c)) for c in name) for name in ("gbeng", "gbsct", "gbwls"))
)
_LETTER = "[\u0620-\u08ff\u0900-\u0dff\ufb50-\ufdff\ufe70-\ufefc]"
_SEEN = (
    f"{_FLAG}|{_ONE}(?:\u200d{_ONE})*|[0-9#*]\ufe0f\u20e3|(?<={_LETTER})[\u200c\u200d](?={_LETTER})"
)
_SEEN_OR_NOT = re.compile(f"(?P<seen>{_SEEN})|{_INVISIBLE}")
_MAX_BEFORE = 32
"""Characters before the cursor that may be parts of one with the first ones after it."""
_IN_LINE_LOOP = re.compile(r"(?P<unit>[^\n]{1,40}?)(?P=unit){4,}(?P<tail>[^\n]{0,40})\Z")
_OPENERS = frozenset("([{")
# Lines that end a string or comment, which nothing ends twice.
_TEXT_ENDS = ('"""', "'''", "*/")
MAX_CYCLE = 8
"""Lines of a loop that is recognised as one."""


def without_invisible(text: str, line_prefix: str = "") -> str:
    before = line_prefix[-_MAX_BEFORE:]
    whole = before + text.replace("\r\n", "\n").replace("\r", "\n")

    def kept(m: re.Match[str]) -> str:
        return m.group() if m.start() < len(before) else m["seen"] or ""

    return _SEEN_OR_NOT.sub(kept, whole)[len(before) :]


def without_loops(text: str, line_prefix: str, *, finished: bool) -> str:
    """Once what a model says again and again: a line that comes three times in a row, or several
    that come twice, what nests in itself, and, where the text was cut off, the end of a line that
    repeats itself."""
    lines = text.split("\n")
    whole = [line_prefix + lines[0], *lines[1:]]
    for i in range(len(lines)):
        for period in range(1, MAX_CYCLE + 1):
            is_loop = _comes_again(whole[i:], period)
            if is_loop or (has_words(whole[i]) and _nests(whole[i:], period)):
                return "\n".join(lines[: i + period]).rstrip()
    loop = None if finished else _IN_LINE_LOOP.search(text)
    if loop and has_words(loop["unit"]) and loop["unit"].startswith(loop["tail"]):
        return text[: loop.start() + len(loop["unit"])]
    return text


def _comes_again(lines: list[str], period: int) -> bool:
    """Whether the first `period` lines, up to blank ones at their end, come twice, a single one
    three times."""
    cycle = lines[:period]
    if period == 1:
        return has_words(cycle[0]) and lines[:3] == 3 * cycle
    while cycle and not cycle[-1].strip():
        cycle.pop()
    begins = len(cycle) >= 2 and lines[0].strip()[:1] not in ("", ")", "]", "}")
    return begins and lines[period : period + len(cycle)] == cycle and any(map(has_words, cycle))


def _nests(lines: list[str], period: int) -> bool:
    """Whether the first `period` lines come four times, each time as much further in: less often is
    how data and mark-up may well look."""
    n = 4 * period
    if len(lines) < n or lines[0].lstrip() != lines[period].lstrip():
        return False
    step = indentation(lines[period]) - indentation(lines[0])
    return step > 0 and all(
        later.lstrip() == line.lstrip()
        and (not line.strip() or indentation(later) - indentation(line) == step)
        for line, later in zip(lines, lines[period:n], strict=False)
    )


def without_suffix(text: str, place: Place) -> str:
    """Drop what stands after the cursor already: the rest of its line, or lines below it.

    Words and the lines that hold them are compared, white space within lines is not.
    """
    rest, lines = place.rest, text.split("\n")
    if has_words(rest):
        # Text after the cursor stays in the cursor's line: what repeats it is in the first.
        return _without_tail(lines[0], rest)
    if rest.strip():
        return text if len(lines) > 1 else _without_punctuation(text, place)
    below = (line for line in place.below if line.strip())
    following = [_squeezed(line) for line in islice(below, len(lines))]
    if not following:
        return text
    whole = [place.line_prefix + lines[0], *lines[1:]]
    indent = indentation(whole[0])
    for i, line in enumerate(whole):
        is_own = i == 0 or indentation(line) > indent
        # The cursor's line, where the text adds nothing to it, is the user's.
        if lines[i].strip() and _repeats([s for s in whole[i:] if s.strip()], following, is_own):
            return "\n".join(lines[:i]).rstrip()
    return text


def without_more(text: str, place: Place) -> str:
    """Nothing, where a line of code is whole and the text goes on in it, as small models do: after
    a semicolon, or with a comment alone."""
    here = scan(place.line_prefix, place.language)
    code, first = here.code.strip(), text.split("\n", 1)[0]
    if not code or not first.strip() or here.inside:
        return text
    is_ended = code.endswith(";") and not here.open
    is_comment = scan(place.line_prefix + text, place.language).code.strip() == code
    return "" if is_ended or is_comment else text


def without_rest(line: str, place: Place) -> str:
    """The line without its end, if that is all that stands after the cursor in its line."""
    rest = "".join(place.rest.split())
    for at in places_of(rest[:1], line):
        if "".join(line[at:].split()) == rest:
            return line[:at].rstrip() if place.rest[0].isspace() else line[:at]
    return line


def places_of(character: str, line: str) -> Iterator[int]:
    """Where it stands, none for ""."""
    at = line.find(character) if character else -1
    while at >= 0:
        yield at
        at = line.find(character, at + 1)


def _without_punctuation(line: str, place: Place) -> str:
    """The line without brackets and quotes at its end that are closed after the cursor, where one
    would be closed twice, and without a comma or semicolon that stands there."""
    rest = "".join(place.rest.split())
    if not _OPENERS.isdisjoint(rest):
        # What opens something there, with all that follows it: said again, it is that.
        without = without_rest(line, place)
        if without != line:
            return without
    without, whole = (
        scan(place.line_prefix + said + place.rest, place.language).extra for said in ("", line)
    )
    if len(whole) > len(without) or _closes_string(line, place):
        for at in places_of(rest[:1], line):
            end = "".join(line[at:].split())
            if rest.startswith(end) and not has_words(end):
                return line[:at].rstrip()
    end = line.rstrip()
    return end[:-1] if end[-1:] in (",", ";") and rest.startswith(end[-1:]) else line


def _closes_string(line: str, place: Place) -> bool:
    """Whether the line closes the string that is closed right after the cursor."""
    before, after = (
        scan(place.line_prefix + said, place.language).inside for said in ("", line.rstrip())
    )
    return before not in ("", "comment") and place.rest.startswith(before) and not after


def _repeats(lines: list[str], following: list[tuple[int, str]], is_own: bool) -> bool:
    """Whether lines are the ones that follow, or begin with one that will not stand twice: further
    in it may, if it goes on in another way, or nothing follows it.

    is_own: whether it is all that the text is, or stands in a block that the text opens.
    """
    squeezed = [_squeezed(line) for line in lines]
    if decorates(lines[0]) and lines[1:] and following[1:] and squeezed[0] == following[0]:
        return _repeats(lines[1:], following[1:], is_own)
    if tells(lines[0]) and squeezed[0][1] == following[0][1]:
        after = _first_words(squeezed[1:])
        if squeezed[0][0] <= following[0][0]:
            return True
        if after == _first_words(following[1:]) if after else not is_own:
            return True
    is_particular = any(map(has_words, lines)) or squeezed[0][1] in _TEXT_ENDS
    return following[: len(lines)] == squeezed and is_particular


def _first_words(squeezed: list[tuple[int, str]]) -> str:
    return next((text for _, text in squeezed if has_words(text)), "")


def _without_tail(line: str, rest: str) -> str:
    """The line without its end, if that is how `rest` begins (or all of it)."""
    wanted = "".join(rest.split())
    for at in places_of(wanted[0], line):
        tail = "".join(line[at:].split())
        if not wanted.startswith(tail):
            continue
        # A single word's end may be like another's beginning by chance.
        is_more = has_words(tail) and not has_words(tail[:1])
        if tail == wanted or is_more or (len(tail) >= 4 and not _inside_word(line, at)):
            return line[:at]
    return line


def _inside_word(line: str, at: int) -> bool:
    return at > 0 and has_words(line[at - 1]) and has_words(line[at])


def _squeezed(line: str) -> tuple[int, str]:
    return indentation(line), "".join(line.split())


def with_indentation_of(text: str, place: Place) -> str:
    """Leading white space as the document has it: tabs, or blanks of its unit. Lines that begin
    inside a string stay as they are."""
    unit = indentation_unit(place) if "\n" in text else ""
    if not unit:
        return text
    first, *others = text.split("\n")
    lines, before = [first], place.line_prefix + first
    for line in others:
        inside = scan(f"{before}\n", place.language).inside
        lines.append(line if inside not in ("", "comment") else _reindented(line, unit))
        before = f"{before}\n{line}" if inside else line
    return "\n".join(lines)


def _reindented(line: str, unit: str) -> str:
    body = line.lstrip(" \t")
    lead = line[: len(line) - len(body)]
    if unit == "\t":
        # Blanks behind tabs align a line with the one above.
        if not lead.startswith("  "):
            return line
        width = indentation(lead + "x")
        return "\t" * (width // 4) + " " * (width % 4) + body
    if "\t" not in lead:
        return line
    return lead.replace("\t", unit) + body


def indentation_unit(place: Place) -> str:
    """A tab, or the blanks of one level; "" where the document does not tell."""
    near = place.prefix[-20_000:].split("\n")[1:] + place.suffix[:5_000].split("\n")
    n_tabs = sum(line.startswith("\t") for line in near)
    widths = [len(line) - len(line.lstrip(" ")) for line in near if line.startswith("  ")]
    if n_tabs > len(widths):
        return "\t"
    if 10 * n_tabs > len(widths):  # text in strings, or people who do not agree
        return ""
    for width in (2, 4, 8):
        if widths and min(widths) <= width:
            return " " * width
    return ""
