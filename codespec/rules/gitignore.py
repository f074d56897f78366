"""The pattern language of .gitignore files, exactly as git reads it.

Written here rather than taken from a library for two reasons: files that git ignores must never
be indexed, in no corner case; and a hostile repository can choose patterns on which a plain
translation to a regular expression backtracks for hours. Here every pattern costs time linear in
the name it is held against, times the pattern's length, and the lines and wildcards of all files
that hold for a name are counted: where they are more than anybody writes, everything is ignored.
Patterns without any are looked up.

As for git, names are bytes: `?` is one of them, not a letter that takes two. Here they are strings
with a character a byte.

Source: gitignore(5), and the rules of git's wildmatch for `**` and bracket expressions.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

MAX_PATTERNS = 100_000
MAX_WILDCARDS = 4096
"""Most wildcards in all patterns that apply to a name, as a hundred folders may each have a file of
them. So many take half a second to translate and 20 ms a name."""
_SPECIAL = re.compile(r"[*?\[\\]")
_CLASSES = {
    "alnum": "a-zA-Z0-9",
    "alpha": "a-zA-Z",
    "blank": " \\t",
    "cntrl": "\\x00-\\x1f\\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@\\[-`{-~",
    "space": " \\t\\n\\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


_Part = re.Pattern[str] | str
"""Pattern for one component of a path."""


class _NeverMatchesError(Exception):
    """A pattern git accepts but that no path matches, such as an unclosed bracket."""


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    """One line of an ignore file. text: the line. negated: it begins with "!". dir_only: it ends
    with "/". name: the pattern of a rule that looks at the name alone, whose `parts` are empty; in
    `parts`, None stands for `**`."""

    text: str
    negated: bool
    dir_only: bool
    name: _Part | None
    parts: tuple[_Part | None, ...]

    def matches(self, path: Sequence[str], is_dir: bool) -> bool:
        """True if the rule matches. path: components below the folder of the ignore file."""
        if self.dir_only and not is_dir:
            return False
        if self.name is not None:
            return _fits(self.name, path[-1])
        return _match_parts(self.parts, path)

    @property
    def plain(self) -> str | tuple[str, ...]:
        """The only name, or path, that the rule matches; "" if there are others."""
        if self.name is not None:
            return self.name if isinstance(self.name, str) else ""
        parts = tuple(p for p in self.parts if isinstance(p, str))
        return parts if len(parts) == len(self.parts) else ""


class RuleSet:
    """Rules of one ignore file, for paths below the folder that holds it."""

    def __init__(
        self,
        lines: Iterable[str],
        is_whole: bool = True,
        ignore_case: bool = False,
        above: Sequence[RuleSet] = (),
    ) -> None:
        """is_whole: True if these are all lines of the file; otherwise everything is ignored, since
            the other lines are unknown.
        ignore_case: git's core.ignoreCase.
        above: rules of other files that apply to the same names."""
        self._ignore_case = ignore_case
        self._n_lines = self._n_wildcards = 0
        rules = self._parse(lines, above)
        self._rules = tuple(rules) if is_whole else (_everything("a file longer than is read"),)
        self._plain: dict[str | tuple[str, ...], list[int]] = {}
        wild: list[int] = []
        for i, rule in enumerate(self._rules):
            (self._plain.setdefault(rule.plain, []) if rule.plain else wild).append(i)
        names = [r.name for r in self._rules if isinstance(r.name, re.Pattern)]
        # Most names match no rule at all: one look at all of them together settles it.
        any_name = "|".join(dict.fromkeys(f"(?:{name.pattern})" for name in names))
        self._any_name = re.compile(any_name, _flags(ignore_case)) if names else None
        self._wild = tuple(wild)
        self._with_parts = tuple(i for i in wild if self._rules[i].name is None)

    def __bool__(self) -> bool:
        return bool(self._rules)

    def decide(self, path: Sequence[str], is_dir: bool) -> IgnoreRule | None:
        """The last rule that matches this path itself (not its parents), or None."""
        path = [name if name.isascii() else _in_bytes(name) for name in path]
        if self._ignore_case:
            path = [_lower(name) for name in path]
        last = -1
        for key in (path[-1], tuple(path)):
            for i in self._plain.get(key, ()):
                if i > last and (is_dir or not self._rules[i].dir_only):
                    last = i
        by_name = self._any_name is not None and self._any_name.fullmatch(path[-1]) is not None
        for i in reversed(self._wild if by_name else self._with_parts):
            if i < last:
                break
            if self._rules[i].matches(path, is_dir):
                return self._rules[i]
        return self._rules[last] if last >= 0 else None

    def _parse(self, lines: Iterable[str], above: Sequence[RuleSet]) -> Iterator[IgnoreRule]:
        n_lines = MAX_PATTERNS - sum(rules._n_lines for rules in above)
        n_wildcards = MAX_WILDCARDS - sum(rules._n_wildcards for rules in above)
        for n, raw in enumerate(lines):
            if n >= n_lines:
                yield _everything("more lines than are read")
                return
            self._n_lines += 1
            line = raw.removesuffix("\n").removesuffix("\r")
            if n == 0:
                line = line.removeprefix("\ufeff")
            if line.startswith("#"):
                continue
            text = _strip_spaces(line)
            body = text[1:] if text.startswith("!") else text
            dir_only = body.endswith("/")
            pattern = body[:-1] if dir_only else body
            if not pattern:
                continue
            self._n_wildcards += len(_SPECIAL.findall(pattern))
            if self._n_wildcards > n_wildcards:
                yield _everything("more wildcards than are read")
                return
            try:
                name, parts = _compile(_in_bytes(pattern), n, self._ignore_case)
            except (_NeverMatchesError, UnicodeEncodeError):  # the latter: what no file is called
                continue
            yield IgnoreRule(text, text.startswith("!"), dir_only, name, parts)


def _in_bytes(text: str) -> str:
    return os.fsencode(text).decode("latin-1")


def _lower(text: str) -> str:
    """The text with its ASCII letters in lower case, other letters unchanged."""
    return text.encode("latin-1").lower().decode("latin-1")


def _flags(ignore_case: bool) -> re.RegexFlag:
    return re.DOTALL | re.IGNORECASE | re.ASCII if ignore_case else re.DOTALL


def _everything(why: str) -> IgnoreRule:
    return IgnoreRule(why, False, False, _ANY, ())


def _strip_spaces(line: str) -> str:
    """The line without trailing spaces, except those that a backslash protects."""
    end = len(line)
    while end and line[end - 1] == " ":
        slashes = len(line[: end - 1]) - len(line[: end - 1].rstrip("\\"))
        if slashes % 2:
            break
        end -= 1
    return line[:end]


def _compile(
    pattern: str, n: int, ignore_case: bool
) -> tuple[_Part | None, tuple[_Part | None, ...]]:
    def part(piece: str, group: str) -> _Part:
        if _SPECIAL.search(piece):
            return re.compile(_glob(piece, group), _flags(ignore_case))
        return _lower(piece) if ignore_case else piece

    if "/" not in pattern:
        return part(pattern, f"r{n}_"), ()
    pieces = _split(pattern.removeprefix("/"))
    if "" in pieces:
        raise _NeverMatchesError
    return None, tuple(None if len(p) > 1 and not p.strip("*") else part(p, "g") for p in pieces)


def _fits(part: _Part, name: str) -> bool:
    return name == part if isinstance(part, str) else part.fullmatch(name) is not None


def _split(pattern: str) -> list[str]:
    """Cut a pattern at slashes, also escaped ones, but not at one inside brackets."""
    pieces: list[str] = []
    start = i = 0
    while i < len(pattern):
        if pattern[i] == "/" or pattern.startswith("\\/", i):
            pieces.append(pattern[start:i])
            start = i = i + (1 if pattern[i] == "/" else 2)
        elif pattern[i] == "[":
            _, i = _bracket(pattern, i + 1)
        else:
            i += 2 if pattern[i] == "\\" else 1
    return [*pieces, pattern[start:]]


def _glob(pattern: str, group: str) -> str:
    """A regular expression for one path component. A star that another follows takes the
    shortest match and never gives it back (a look-ahead group, for want of atomic groups before
    Python 3.11): with single-character pieces between stars that loses no match, and it is what
    keeps the time linear."""
    pieces: list[str] = [""]  # split at stars
    i = 0
    while i < len(pattern):
        c = pattern[i]
        i += 1
        if c == "*":
            if pieces[-1] or len(pieces) == 1:
                pieces.append("")
        elif c == "?":
            pieces[-1] += "."
        elif c == "[":
            expression, i = _bracket(pattern, i)
            pieces[-1] += expression
        elif c == "\\":
            if i == len(pattern):
                raise _NeverMatchesError
            pieces[-1] += re.escape(pattern[i])
            i += 1
        else:
            pieces[-1] += re.escape(c)
    if len(pieces) == 1:
        return pieces[0]
    middle = "".join(
        f"(?=(?P<{group}{k}>.*?{piece}))(?P={group}{k})" for k, piece in enumerate(pieces[1:-1])
    )
    return f"{pieces[0]}{middle}.*{pieces[-1]}"


def _bracket(pattern: str, i: int) -> tuple[str, int]:
    """Translate a bracket expression whose "[" stands before index `i`."""
    negated = i < len(pattern) and pattern[i] in "!^"
    i += negated
    start = i
    items: list[str] = []
    while i < len(pattern) and (pattern[i] != "]" or i == start):
        if pattern.startswith("[:", i):
            end = pattern.find(":]", i + 2)
            if end >= 0:
                if pattern[i + 2 : end] not in _CLASSES:
                    raise _NeverMatchesError
                items.append(_CLASSES[pattern[i + 2 : end]])
                i = end + 2
                continue
        low, i = _bracket_char(pattern, i)
        if i + 1 < len(pattern) and pattern[i] == "-" and pattern[i + 1] != "]":
            high, i = _bracket_char(pattern, i + 1)
            if low <= high:
                items.append(f"{re.escape(low)}-{re.escape(high)}")
        # git takes the low end for itself, too, even of a range that is upside down.
        items.append(re.escape(low))
    if i >= len(pattern):
        raise _NeverMatchesError
    return f"[{'^' if negated else ''}{''.join(items)}]", i + 1


def _bracket_char(pattern: str, i: int) -> tuple[str, int]:
    if pattern[i] == "\\":
        i += 1
        if i == len(pattern):
            raise _NeverMatchesError
    return pattern[i], i + 1


def _match_parts(parts: Sequence[_Part | None], path: Sequence[str]) -> bool:
    """Match components with `**` as the only star: on failure only the last `**` needs to take
    one component more, so the time is at most len(parts) * len(path) comparisons."""
    if len(path) != len(parts) and None not in parts:
        return False
    if parts[-1] is None:  # "a/**": everything below a, but not a itself
        parts = (*parts[:-1], None, _ANY)
    i = k = 0
    star, resume = -1, 0
    while k < len(path):
        if i < len(parts) and parts[i] is None:
            star, resume = i, k
            i += 1
            continue
        part = parts[i] if i < len(parts) else None
        if part is not None and _fits(part, path[k]):
            i += 1
            k += 1
        elif star >= 0:
            resume += 1
            i, k = star + 1, resume
        else:
            return False
    return all(part is None for part in parts[i:])


_ANY = re.compile(".*", re.DOTALL)
