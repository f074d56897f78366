"""People in a text: names in lines and values that say whose a text is, and addresses.

Found by the text alone, in any language: the holder of a copyright or licence, an author,
maintainer or contributor, who signed a change off, the licence that a comment declares.
Placeholders and words that are nobody's name are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias

from codespec.rules.addresses import addresses
from codespec.rules.person_names import AROUND, names_in

MAX_LINE = 1_000
"""Characters of a line in which names are looked for; addresses are found further on, too."""
MAX_LISTED = 60
"""Lines of a list of people, below the line that says that it is one."""

Kind: TypeAlias = Literal["names", "full names", "strings", "licence"]


class Mention(NamedTuple):
    """A name or address in a text, from `start` to `end`."""

    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Label:
    """Pattern of what stands before people; its group `v` is what names them.

    kind: "names" where all that stands there does, "full names" where only names of two words and
    more do, "strings" for those in quotes.
    """

    pattern: re.Pattern[str]
    kind: Kind


def _label(pattern: str, kind: Kind = "names", flags: int = re.IGNORECASE) -> _Label:
    return _Label(re.compile(pattern, flags), kind)


_WHO = ("author", "maintain", "contribut", "developer", "creator", "credits", "contact")
_WHOSE = ("holder", "owner", "copyright", "\u00a9", "&copy;", "(c)", "licen", "spdx-")
_TOLD_BY = (*_WHO, *_WHOSE, "-by:", "d by ", "n by ")
_ADDRESS = re.compile(r"\w@\w")

# Signs of comments, strings and lists that a line begins with, or a comment behind code.
_LEAD = r"^[^\w\n]{0,120}"
_SIGN = (
    r"(?:^[^\w\n]{0,120}(?:[#*/;%!'\"<>|.({-][^\w\n]{0,40}|(?:rem|dnl)\b[ \t]{0,40})"
    r"|(?:#|//|/\*|--|;)[ \t]{0,40})"
)
_PEOPLE = (
    r"(?:(?:original|main|lead|primary|principal|current|co-?)[ \t-]*)?"
    r"(?:authors?(?:\(s\))?|maintainers?|contributors?|creators?|developers?|"
    r"copyright[ \t]holders?)"
)
_DONE = r"(?:written|created|developed|coded|programmed|maintained|contributed|authored)[ \t]+by\b"
_TRAILER = (
    r"(?:signed-off|co-authored|co-developed|authored|committed|reviewed|acked|tested|reported|"
    r"suggested|helped|mentored|requested|diagnosed|reported-and-tested)-by"
)
_NO_RULE = r"(?![^\n]*[;{][ \t]*\Z)"  # as a style sheet has for what is called by such a word
_V = r"(?P<v>[^\n]*)"
_LABELS = (
    _label(
        rf"{_SIGN}[@\\](?:co-?)?(?:author|maintainer|contributor|creator)s?\b[ \t]*:?[ \t]+{_V}"
    ),
    _label(rf"^[ \t]*[@\\]author[ \t]*:?[ \t]+{_V}", "full names"),
    _label(r"\\author[ \t]*(?:\[[^\]\n]*\])?\{(?P<v>[^}\n]*)"),
    _label(rf"{_LEAD}:(?:authors?|copyright|maintainers?|contact|organi[sz]ation):[ \t]+{_V}"),
    _label(rf"{_LEAD}\.\.[ \t]*(?:code|module|section)author::[ \t]*{_V}"),
    _label(rf"{_LEAD}{_TRAILER}:[ \t]*{_V}"),
    _label(rf"spdx-(?:file|snippet)(?:copyrighttext|contributor):[ \t]*{_V}"),
    # In small letters, both the label and what it labels, they are names of values.
    _label(rf"{_SIGN}(?=(?-i:[A-Z])){_PEOPLE}[ \t]*:[ \t]+{_NO_RULE}{_V}"),
    _label(rf"{_SIGN}{_PEOPLE}[ \t]*:[ \t]+(?=(?-i:[A-Z])){_NO_RULE}{_V}"),
    _label(rf"{_LEAD}{_PEOPLE}[ \t]*:[ \t]+{_V}", "full names"),
    _label(rf"{_SIGN}(?:\w+[ \t]+){{0,4}}{_DONE}:?[ \t]+{_V}", "full names"),
    _label(rf"{_LEAD}{_DONE}:?[ \t]+{_V}", "full names"),
    _label(rf"\blicensed[ \t]+to[ \t]+(?:the[ \t]+)?{_V}", "full names"),
    _label(rf"{_LEAD}maintainer[ \t]+{_V}", "names", re.MULTILINE),
    _label(rf"^MAINTAINER[ \t]+{_V}", "names", 0),
    _label(
        r"\b__(?:authors?|emails?|maintainers?|contact|credits|copyright|license|licence)__[ \t]*"
        rf"(?::[^=\n]*)?=[ \t]*{_V}",
        "strings",
    ),
    _label(
        r"\b(?:author_email|maintainer(?:_email)?|module_author|assembly(?:copyright|company))"
        rf"\b[\"']?[ \t]*(?:=>|[:=(])[ \t]*{_V}",
        "strings",
    ),
    _label(rf"\bAUTHORS?\b[\"']?[ \t]*[:=(][ \t]*{_V}", "strings", 0),
    _label(rf"\bcopyright[\"']?[ \t]*(?:=>|[:=])[ \t]*{_V}", "strings"),
    _label(rf"name=[\"']author[\"'][ \t]+content={_V}", "strings"),
    _label(
        r"\b(?:[Ll]icen[cs]ed|[Rr]eleased|[Dd]istributed)[ \t]+under[ \t]+(?:the[ \t]+)?"
        r"(?:terms[ \t]+of[ \t]+)?(?:the[ \t]+)?(?P<v>[A-Z][\w.+-]*(?:[ \t]+[A-Z0-9][\w.+-]*)*)",
        "licence",
        0,
    ),
    _label(r"spdx-license-identifier:[ \t]*(?P<v>[\w.+-]*)", "licence"),
    _label(rf"{_SIGN}[@\\]?licen[cs]e[ \t]*:?[ \t]+(?P<v>[A-Z][\w.+-]*)[ \t]*$", "licence"),
)
# In files that describe a package, where other values by these names would not be people.
_KEYS = (
    r"(?:authors?|maintainers?|contributors?|creators?|developers?|owners?|holder|"
    r"author[_-]?emails?|maintainer[_-]?emails?)"
)
_IN_MANIFEST = (
    _label(rf"\b{_KEYS}[\"']?[ \t]*(?:=>|[:=])[ \t]*{_V}", "strings"),
    _label(r"<(?:authors?|owners?|company|copyright)>(?P<v>[^<\n]*)"),
)
_OF_LINES = _label(rf"{_LEAD}{_KEYS}[ \t]*[:=][ \t]*(?![\"'\[({{]){_V}")
_MANIFEST = re.compile(
    r"(?:setup\.(?:py|cfg)|pyproject\.toml|conf\.py|package\.(?:json|yaml)|composer\.json|"
    r"bower\.json|cargo\.toml|description|control|pubspec\.yaml|mix\.exs|pom\.xml|shard\.yml|"
    r"build\.gradle(?:\.kts)?|galaxy\.yml|meta\.yaml|(?:manifest|plugin|info|jsr|deno)\.json|"
    r"dune-project|.*\.(?:gemspec|podspec|cabal|nuspec|csproj|fsproj|rockspec|opam))\Z",
    re.IGNORECASE,
)
_MANIFEST_OF_LINES = re.compile(
    r"(?:setup\.cfg|package\.yaml|description|control|pubspec\.yaml|shard\.yml|galaxy\.yml|"
    r"meta\.yaml|.*\.(?:cabal|opam))\Z",
    re.IGNORECASE,
)
# Lists of people over lines: in brackets, or below a line of a comment.
_OPENS_LIST = re.compile(
    rf"(?:\b{_KEYS}|__(?:authors?|maintainers?|credits)__)[\"']?[ \t]*(?:=>|[:=])[ \t]*"
    r"[\[({][\[({ \t]*\Z",
    re.IGNORECASE,
)
_OPENS_COMMENT = re.compile(
    rf"{_SIGN}(?:head1[ \t]+)?(?:{_PEOPLE}|{_DONE})[ \t]*:?[ \t]*\Z", re.IGNORECASE
)
_CLOSES_LIST = re.compile(r"[ \t]*[\])}]")

_YEARS = (
    r"(?:19|20)\d\d(?:[ \t]*(?:-|\u2013|\u2014|,|/|&|and|to)[ \t]*"
    r"(?:(?:19|20)?\d\d\b|present|now|today))*"
    r"|[<\[{(]*(?:yyyy|year)[>\]})]*"
)
_COPY = r"\(c\)|\u00a9|&copy;"
_COPYRIGHT = re.compile(
    rf"(?:\bcopyright(?:ed)?\b|\u00a9|&copy;|\(c\)(?=[ \t]*(?:19|20)\d\d))"
    rf"(?P<more>[ \t]*(?:[:,][ \t]*)?(?:(?:{_COPY}|copyright\b|by\b|{_YEARS})[ \t:,.]*)*){_V}",
    re.IGNORECASE,
)
_DATED = re.compile(rf"\d|{_COPY}|\bby\b|year|yyyy", re.IGNORECASE)
_ABOUT = re.compile(
    r"(?:notices?|laws?|holders?|owners?|acts?|info|years?|licen[cs]es?|statements?)\b",
    re.IGNORECASE,
)
_ENDS_NAMES = re.compile(
    r"\b(?:all|some)[ \t]+rights\b|\b(?:licen[cs]ed|released|distributed|published|portions|"
    r"see|under|subject|redistribution)\b|\bon[ \t]+\d|\bin[ \t]+\d|https?:|\*/|-->|</?\w|\{\{|#\}|"
    r"\"\"\"|'''|[\"'`](?=[ \t]*[,;)\]}]*[ \t]*\Z)",
    re.IGNORECASE,
)
_STRING = re.compile(
    r"(?:(?P<key>[\w-]+)[\"']?[ \t]*(?:=>|[:=])[ \t]*)?[rubfRUBF]?(?P<q>[\"'])"
    r"(?P<s>(?:\\.|(?!(?P=q)).)*)(?P=q)?(?P<colon>[ \t]*(?::|=>))?"
)
_BEGINS_STRING = re.compile(r"[ \t\[({]*(?:[\w-]+[\"']?[ \t]*[:=][ \t]*)?[rubfRUBF]?[\"']")
_NAMED_BY = re.compile(
    rf"(?:{_KEYS}|(?:full|first|last)?[_-]?name|e?mail|contact|copyright)?\Z", re.IGNORECASE
)


def may_name(text: str) -> bool:
    """False where `mentions` finds nothing; a few microseconds a thousand characters."""
    lower = text.lower()
    return any(word in lower for word in _TOLD_BY) or (
        "@" in text and _ADDRESS.search(text) is not None
    )


def may_list(text: str) -> bool:
    """False where no line of a text begins a list of people in the lines below it."""
    if not may_name(text):
        return False
    lines = (line[:MAX_LINE] for line in text.split("\n"))
    return any(may_name(line) and _opens_list(line) for line in lines)


def _opens_list(line: str) -> Literal["brackets", "comment", ""]:
    """The kind of a list of people that a line begins, as in `_Listed`."""
    if _OPENS_LIST.search(line):
        return "brackets"
    return "comment" if _OPENS_COMMENT.search(line) else ""


def _labels_of(path: str) -> tuple[_Label, ...]:
    """Labels of people in a file, by its name."""
    name = re.split(r"[/\\]", path)[-1]
    if _MANIFEST.match(name) is None:
        return _LABELS
    of_lines = _MANIFEST_OF_LINES.match(name) is not None
    return (*_LABELS, *_IN_MANIFEST, *((_OF_LINES,) if of_lines else ()))


def mentions(text: str, path: str = "") -> list[Mention]:
    """The people in a text, in its order, addresses among them; some more than once.

    path: of the file, where its name says more.
    """
    found = [Mention(start, end) for start, end in addresses(text)]
    labels, listed, at = _labels_of(path), _Listed(), 0
    for whole in text.split("\n"):
        line = whole[:MAX_LINE]
        may = may_name(line)
        listed.before(line)
        ours = list(_in_line(line, labels, listed.kind)) if may or listed.kind else []
        found += [Mention(at + m.start, at + m.end) for m in ours]
        listed.after(line, may, bool(ours))
        at += len(whole) + 1
    return sorted(set(found))


class _Listed:
    """The list of people that a line is in.

    kind: "brackets"; "comment" below a line that says that it is one; "" for none.
    """

    def __init__(self) -> None:
        self.kind = ""
        self._n_lines = 0
        self._has_names = False

    def before(self, line: str) -> None:
        """Note that `line` comes next."""
        self._n_lines += 1
        is_closed = self.kind == "brackets" and _CLOSES_LIST.match(line) is not None
        if is_closed or self._n_lines > MAX_LISTED:
            self.kind = ""

    def after(self, line: str, may: bool, has_names: bool) -> None:
        """Note what was found in the line. may: see `may_name`."""
        kind = _opens_list(line) if may else ""
        if kind:
            self.kind, self._n_lines, self._has_names = kind, 0, False
        elif self.kind == "comment" and not has_names and (line.strip(AROUND) or self._has_names):
            self.kind = ""
        self._has_names |= has_names


def _in_line(line: str, labels: tuple[_Label, ...], listed: str) -> Iterator[Mention]:
    """People in a line, without bare addresses. listed: the kind of a list that the line is in."""
    for label in labels:
        m = label.pattern.search(line)
        if m is not None:
            yield from _named(line, m.start("v"), m.end("v"), label.kind)
    m = _COPYRIGHT.search(line)
    if m is not None and m["v"][:1] not in ('"', "'", "`"):
        yield from _named(line, m.start("v"), m.end("v"), _kind_of_holder(line, m))
    if listed == "brackets":
        yield from _in_strings(line, 0, len(line))
    elif listed == "comment":
        yield from _named(line, 0, len(line), "full names")


def _kind_of_holder(line: str, m: re.Match[str]) -> Kind:
    """The kind of what stands behind the mark of a copyright."""
    if _DATED.search(line, m.start(), m.start("v")):
        return "names"
    is_begin = not line[: m.start()].strip(AROUND) and _ABOUT.match(m["v"]) is None
    return "names" if is_begin and m["v"][:1].isupper() else "strings"


def _named(line: str, start: int, end: int, kind: Kind) -> Iterator[Mention]:
    if kind == "strings":
        if _BEGINS_STRING.match(line, start):
            yield from _in_strings(line, start, end)
        return
    if kind == "licence":
        if line[start:end].strip(AROUND).lower() not in ("", "license", "licence"):
            yield Mention(start, end)
        return
    ends = _ENDS_NAMES.search(line, start, end)
    end = ends.start() if ends is not None else end
    yield from _people(line, start, end, is_full=kind == "full names")


def _in_strings(line: str, start: int, end: int) -> Iterator[Mention]:
    key = ""
    for m in _STRING.finditer(line, start, end):
        key = m["key"] or key
        is_other = m["colon"] is not None or _NAMED_BY.match(key) is None
        if not is_other and _COPYRIGHT.search(m["s"]) is None:
            yield from _people(line, m.start("s"), m.end("s"))
        key = m["s"] if m["colon"] is not None else ""


def _people(line: str, start: int, end: int, *, is_full: bool = False) -> Iterator[Mention]:
    yield from (Mention(*span) for span in names_in(line, start, end, is_full=is_full))
