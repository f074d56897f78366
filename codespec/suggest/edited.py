"""The judge of an edit of lines, as far as suggestions are judged by themselves: it names no
strangers, says nothing again and again, and adds no error to its document."""

from __future__ import annotations

from collections.abc import Sequence

from codespec.languages.registry import TEXT, parsed_as
from codespec.suggest.candidate import Candidate
from codespec.suggest.loops import without_loops
from codespec.suggest.place import Place
from codespec.suggest.strangers import Knows, nobody, without_strangers
from codespec.syntax.parse import syntax_tree
from codespec.syntax.parse_limits import is_safe_to_parse
from codespec.syntax.trees import error_spans


def fits(
    path: str,
    lines: Sequence[str],
    line: int,
    n_old: int,
    new: Sequence[str],
    language_id: str = "",
    knows: Knows = nobody,
) -> bool:
    """True for an edit that a user may be shown: lines `new` in place of `n_old` lines of the
    document from `line` on. knows: people whom the user's other texts name."""
    above, below = lines[:line], lines[line + n_old :]
    before, after = "\n".join(lines), "\n".join((*above, *new, *below))
    language = parsed_as(path, language_id, before.encode())
    if new:
        prefix = "".join(f"{row}\n" for row in above)
        suffix = "".join(f"\n{row}" for row in below)
        candidate = Candidate(Place(prefix, suffix, language, path=path), "\n".join(new))
        # What stood in the lines before is the user's own, as the whole document is.
        is_known = _names_in("\n".join(lines[line : line + n_old]), knows)
        if without_strangers(candidate, is_known) != candidate.text:
            return False
        if without_loops(candidate, finished=True) != candidate.text:
            return False
    n_errors = _n_errors(language, after)
    return n_errors is None or n_errors == 0 or n_errors <= (_n_errors(language, before) or 0)


def _names_in(text: str, knows: Knows) -> Knows:
    return lambda name: name in text or knows(name)


def _n_errors(language: str, text: str) -> int | None:
    """Errors in a text by its grammar; None where it is not parsed."""
    raw = text.encode()
    if language == TEXT or not is_safe_to_parse(language, raw):
        return None
    tree = syntax_tree(language, raw)
    return None if tree is None else len(error_spans(tree.root_node))
