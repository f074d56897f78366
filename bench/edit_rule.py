"""A plain rule for next edits, to set the product's beside: the tokens that were replaced, with two
tokens of context on both sides, get the same replacement, nearest first."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from codespec.edits.base import CursorLine, LineChange, LineEdit, Texts
from codespec.edits.dismissals import AnyDismissed

from .edit_truth import Lines, aligned, n_equal

N_CONTEXT = 2
MAX_RULES, MAX_FILES = 20, 40
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")
_WORD = re.compile(r"\w+")


@dataclass(frozen=True, slots=True)
class _Substitution:
    """Text with its context, and what it becomes; `is_first` and `is_last` where the context ends
    with the line."""

    before: str
    after: str
    is_first: bool
    is_last: bool


class RuleProposer:
    """Proposes by the rule, with a chance of 1: what was changed last first, then in its file below
    the cursor, above it, in other open files, and in the workspace."""

    def propose(
        self,
        changes: Sequence[LineChange],
        texts: Texts,
        cursor: CursorLine,
        dismissed: Collection[AnyDismissed] = (),
    ) -> list[LineEdit]:
        made = {
            (change.path, line)
            for change in changes
            for line in range(change.line, change.line + max(1, len(change.new)))
        }
        rules = [rule for change in reversed(changes) for rule in _rules(change.old, change.new)]
        for rule in list(dict.fromkeys(rules))[:MAX_RULES]:
            found = [
                LineEdit(path, line, (old,), (new,), 1.0, "rule")
                for path, text in _in_turn(rule, texts, cursor.path)
                for line, old, new in _applied(rule, text)
                if (path, line) not in made and (path, (old,), (new,)) not in dismissed
            ]
            if found:
                return [min(found, key=lambda edit: _distance(edit, cursor))]
        return []


def _in_turn(rule: _Substitution, texts: Texts, path: str) -> Iterator[tuple[str, str]]:
    words = _WORD.findall(rule.before)[1:-1] or _WORD.findall(rule.before)
    yield path, texts.open[path]
    yield from ((other, text) for other, text in texts.open.items() if other != path)
    yield from texts.holding(words, MAX_FILES)


def _distance(edit: LineEdit, cursor: CursorLine) -> tuple[bool, bool, int]:
    is_here = edit.path == cursor.path
    return not is_here, is_here and edit.line < cursor.line, abs(edit.line - cursor.line)


@lru_cache(maxsize=4096)
def _rules(old: Lines, new: Lines) -> tuple[_Substitution, ...]:
    found: list[_Substitution] = []
    for i, j in aligned(old, new):
        a, b = _TOKEN.findall(old[i].strip()), _TOKEN.findall(new[j].strip())
        n, m = n_equal(a, b)
        start, end = _moved(a, n, -1), _moved(a, len(a) - m, 1)
        before = "".join(a[start:end])
        after = "".join([*a[start:n], *b[n : len(b) - m], *a[len(a) - m : end]])
        if _WORD.search(before) and before != after:
            found.append(_Substitution(before, after, start == 0, end == len(a)))
    return tuple(found)


def _moved(tokens: Sequence[str], at: int, step: int) -> int:
    """The place `N_CONTEXT` tokens that are no white space further on."""
    n = 0
    while n < N_CONTEXT and (at > 0 if step < 0 else at < len(tokens)):
        n += bool(tokens[at - 1 if step < 0 else at].strip())
        at += step
    return at


def _applied(rule: _Substitution, text: str) -> Iterator[tuple[int, str, str]]:
    """(line, as it is, as it should be) of each line that the rule changes, at its first place
    there."""
    number, counted, at = 0, 0, text.find(rule.before)
    while at >= 0:
        number, counted = number + text.count("\n", counted, at), at
        start, stop = text.rfind("\n", 0, at) + 1, text.find("\n", at)
        line = text[start : stop if stop >= 0 else len(text)]
        end = at + len(rule.before)
        is_first, is_last = not line[: at - start].strip(), not line[end - start :].strip()
        if (
            not (_joins(text, at) or _joins(text, end))
            and (is_first or not rule.is_first)
            and (is_last or not rule.is_last)
            and not text.startswith(rule.after, at)
        ):
            yield number, line, line[: at - start] + rule.after + line[end - start :]
        at = text.find(rule.before, stop) if stop >= 0 else -1


def _joins(line: str, at: int) -> bool:
    """True where a word goes on across this place."""
    around = line[max(0, at - 1) : at + 1]
    return len(around) == 2 and all(sign.isalnum() or sign == "_" for sign in around)
