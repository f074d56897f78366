"""Rules that take away from a generated text before it is shown. Each returns the text, whole or
shorter or mended, and knows nothing of the others."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from codespec.languages.registry import record_of
from codespec.suggest import words
from codespec.suggest.candidate import Candidate
from codespec.suggest.place import Place, decorates, has_words, indentation, tells
from codespec.suggest.prose import is_in_face, is_in_prose, n_unopened
from codespec.syntax.closers import closer_of_pair, place_of_closer
from codespec.syntax.lexer import OPENER_OF

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
_OPENERS = frozenset("([{")
_ENDS_LINE = re.compile(r"[\s;,:)\]}]+\Z")
_ONE_WORD = re.compile(r"\w+")
_LAST_WORD = re.compile(r"\w+\Z")
# Signs that begin a word, a string, an operand or a tag, but end nothing.
_NEW = re.compile(r"[\w\"'`(\[{$@&*!~+\-]|<(?!/)")
_OPENED = re.compile(r"(?:[(\[{]|[<{][%?!#][-=~]*|<!--|/\*+|\{-|\(\*)\Z")
_CLOSING = frozenset(")]}%?#-*")
# An entity ends with the same sign.
_ENDS_STATEMENT = re.compile(r"(?<!\w);\s*\Z|(?<![&#\w])\w+;\s*\Z")
# Lines that end a string or comment, which nothing ends twice.
_TEXT_ENDS = ('"""', "'''", "*/")


def without_invisible(text: str, line_prefix: str = "") -> str:
    before = line_prefix[-_MAX_BEFORE:]
    whole = before + text.replace("\r\n", "\n").replace("\r", "\n")

    def kept(m: re.Match[str]) -> str:
        return m.group() if m.start() < len(before) else m["seen"] or ""

    return _SEEN_OR_NOT.sub(kept, whole)[len(before) :]


def without_suffix(candidate: Candidate) -> str:
    """The text without what stands after the cursor already: the rest of its line, or lines below.

    Words and the lines that hold them are compared, white space within lines is not.
    """
    place = candidate.place
    text = _upto_closer(candidate.text, place)
    rest, lines = place.rest, text.split("\n")
    if text != candidate.text:
        return text
    if has_words(rest) or rest.lstrip().startswith("</"):
        if _begins_with_rest(text, rest) and not has_words(place.line_prefix[-1:]):
            return ""
        # Text after the cursor stays in the cursor's line: what repeats it is in the first.
        return _without_tail(lines[0], rest)
    if rest.strip():
        return text if len(lines) > 1 else _without_punctuation(candidate)
    next_one = "".join(place.line_below.split())
    if not next_one:
        return text
    whole = [place.line_prefix + lines[0], *lines[1:]]
    indent = indentation(whole[0])
    for i, line in enumerate(whole):
        # The cursor's line, where the text adds nothing to it, is the user's.
        if not lines[i].strip() or "".join(line.split()) != next_one:
            continue
        is_own = i == 0 or indentation(line) > indent
        if _ends_own(candidate, i):
            continue
        below = (line for line in place.below if line.strip())
        following = [_squeezed(line) for line in islice(below, len(lines))]
        if _repeats([s for s in whole[i:] if s.strip()], following, is_own):
            return "\n".join(lines[:i]).rstrip()
    return text


def _upto_closer(text: str, place: Place) -> str:
    """The text up to where it closes the pair of signs that is closed right after the cursor."""
    closer = closer_of_pair(place.line_prefix, place.rest, record_of(place.language))
    at = place_of_closer(text, closer) if closer else -1
    return upto(text, at, place.rest) if at >= 0 else text


def _ends_own(candidate: Candidate, n: int) -> bool:
    """True if the text's line `n` ends a block of words that a line before it opens, and that may
    stand in the column of the one around it."""
    language = candidate.place.language
    known = record_of(language).words
    if known is None or not known.flat or not words.ends(candidate.text.split("\n")[n], language):
        return False
    return bool(words.left_open(candidate.line.code_lines[:n], language, brackets=False)[0])


def _begins_with_rest(text: str, rest: str) -> bool:
    """True if a text begins with all words of the rest of the line, and goes on in another way."""
    core = "".join(_ENDS_LINE.sub("", rest).split())
    squeezed = "".join(text.split())
    if not core or not squeezed.startswith(core) or not has_words(core[-1:]):
        return False
    return text.lstrip() != rest.lstrip() and not _goes_on_in_word(text, core)


def _goes_on_in_word(text: str, core: str) -> bool:
    """True if the word that `core` ends with, blanks left out, is longer in the text."""
    n, at = 0, 0
    while n < len(core):
        n += not text[at].isspace()
        at += 1
    return has_words(text[at : at + 1])


def runs_together(candidate: Candidate, said: str = "") -> bool:
    """True if the text's last word and the first one after the cursor would become one that neither
    the document has nor the model said, whose text `said` begins with the candidate's: within a
    word, another may stand."""
    text, place = candidate.text, candidate.place
    if not (place.rest[:1].isalnum() and text[-1:].isalnum()):
        return False
    if has_words(place.line_prefix[-1:]) and _ONE_WORD.fullmatch(text):
        return False
    begun, ended = _LAST_WORD.search(candidate.head), _ONE_WORD.match(place.rest)
    going_on = _ONE_WORD.match(said, len(text)) if said.startswith(text) else None
    if going_on and ended and going_on[0] == ended[0]:
        return False
    word = (begun[0] if begun else "") + (ended[0] if ended else "")
    known = re.compile(rf"\b{re.escape(word)}\b")
    return not (known.search(place.prefix) or known.search(place.suffix))


def without_blank_end(candidate: Candidate) -> str:
    """The text without blanks at its end, unless they belong to it: in a string, or before a word
    or what else begins something new."""
    text, rest = candidate.text, candidate.place.rest
    if "\n" in text:
        return text.rstrip()
    is_string = candidate.line.inside not in ("", "comment")
    if rest.strip() and not rest[0].isspace() and (is_string or _begins_something(rest)):
        return text
    return text.rstrip(" \t")


def with_blank_end(text: str, said: str, place: Place) -> str:
    """The text with the blank that stood behind it in what the model said, if it begins with one,
    too: between brackets or other signs that the editor has closed."""
    stands_off = text[:1] == " " and said.startswith(f"{text} ") and "\n" not in text
    is_between = _OPENED.search(place.line_prefix) and place.rest[:1] in _CLOSING
    return f"{text} " if stands_off and is_between and place.rest else text


def _begins_something(rest: str) -> bool:
    return _NEW.match(rest) is not None


def upto(line: str, at: int, rest: str) -> str:
    """The line before `at`, where the rest begins, without blanks that do not belong to it."""
    return line[:at] if _begins_something(rest) else line[:at].rstrip()


def without_more(candidate: Candidate) -> str:
    """Nothing, where a line of code is whole and the text goes on in it, as small models do: after
    a semicolon, or with a comment alone. Only a grammar tells that a line is whole before one."""
    text, here = candidate.text, candidate.place.line
    code, first = here.code.strip(), text.split("\n", 1)[0]
    is_prose = record_of(candidate.place.language).prose
    if not code or not first.strip() or here.inside or is_prose:
        return text
    is_ended = code.endswith(";") and not here.is_open
    is_comment = candidate.line.code.strip() == code
    is_judged = record_of(candidate.place.language).grammar is not None
    return "" if is_ended or (is_comment and is_judged) else text


def without_own_line(candidate: Candidate) -> str:
    """Nothing, where the model ended its line, and a string, or a word that the text does not end
    with a part of, begins right behind the cursor: the line does not lead to that."""
    text, rest = candidate.text, candidate.place.rest
    is_word = has_words(rest[:1]) and not has_words(text[-1:])
    return "" if is_word or _begins_string(candidate.place) else text


def _begins_string(place: Place) -> bool:
    """True if a string begins right behind the cursor."""
    first = place.rest[:1]
    quotes = {quotes.opener[0] for quotes in record_of(place.language).strings}
    begins = first in quotes and place.rest.count(first) % 2 == 0  # else it ends one
    return begins and not place.line.inside


def without_code_in_text(candidate: Candidate) -> str:
    """Nothing, where a statement ends between tags in code: that is no element's text."""
    place, text = candidate.place, candidate.text
    is_text = place.line_prefix.rstrip().endswith(">") and place.rest.lstrip().startswith("</")
    ends = is_text and _ENDS_STATEMENT.search(text) is not None
    return "" if ends and record_of(place.language).elements == "in code" else text


def without_rest(line: str, place: Place) -> str:
    """The line without its end, if that is all that stands after the cursor in its line."""
    rest = "".join(place.rest.split())
    for at in places_of(rest[:1], line):
        if "".join(line[at:].split()) == rest and not is_in_face(place, line, at):
            return line[:at].rstrip() if place.rest[0].isspace() else line[:at]
    return line


def places_of(character: str, line: str) -> Iterator[int]:
    """Places where the character stands in the line, none for ""."""
    at = line.find(character) if character else -1
    while at >= 0:
        yield at
        at = line.find(character, at + 1)


def _without_punctuation(candidate: Candidate) -> str:
    """The line without brackets and quotes at its end that are closed after the cursor, where one
    would be closed twice, and without a comma or semicolon that stands there."""
    line, place = candidate.text, candidate.place
    rest = "".join(place.rest.split())
    if not _OPENERS.isdisjoint(rest) or _begins_string(place):
        # What opens something there, with all that follows it: said again, it is that.
        without = without_rest(line, place)
        if without != line:
            return without
    for at in places_of(rest[:1], line):
        end = "".join(line[at:].split())
        if rest.startswith(end) and not has_words(end):
            if _closes_string(candidate):
                return line[:at]
            if _closes_more(candidate):
                return line[:at].rstrip()
            break
    end = line.rstrip()
    return end[:-1] if end[-1:] in (",", ";") and rest.startswith(end[-1:]) else line


def _closes_more(candidate: Candidate) -> bool:
    """True if the cursor's line closes more with the candidate that it does not open."""
    place = candidate.place
    if len(candidate.whole.extra) > len(place.whole_line.extra):
        return True
    bracket = place.rest.lstrip()[:1]
    if bracket not in OPENER_OF or not is_in_prose(place, bracket):
        return False
    return n_unopened(candidate.head + place.rest, bracket) > n_unopened(
        place.line_prefix + place.rest, bracket
    )


def _closes_string(candidate: Candidate) -> bool:
    """True if the line closes the string that is closed right after the cursor."""
    before = candidate.place.line.inside
    if before in ("", "comment") or not candidate.place.rest.startswith(before):
        return False
    return not candidate.became(candidate.text.rstrip()).line.inside


def _repeats(lines: list[str], following: list[tuple[int, str]], is_own: bool) -> bool:
    """True if lines are the ones that follow, or begin with one that will not stand twice: further
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
