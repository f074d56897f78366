"""Recipes: lines below the head of a rule, each of which begins with a tab."""

from __future__ import annotations

from codespec.suggest import words
from codespec.suggest.candidate import Candidate
from codespec.suggest.heads import opens_indented
from codespec.suggest.place import Place, indentation
from codespec.syntax.lexer import Lexed


def with_tabs(candidate: Candidate) -> str:
    """The text with a tab for each level of blanks that a line of a recipe begins with."""
    place = candidate.place
    in_recipe = _ends_in_recipe(place)
    read = candidate.line.code_lines
    lines = candidate.head.split("\n")
    width, goes_on = 0, False
    for n, line in enumerate(lines):
        is_users = n == 0 and place.line_prefix != ""
        if line.startswith(" ") and line.strip() and in_recipe and not goes_on and not is_users:
            width = width or indentation(line)
            n_tabs, n_blanks = divmod(indentation(line), width)
            lines[n] = "\t" * max(1, n_tabs) + " " * (n_blanks * (n_tabs > 0)) + line.lstrip()
        elif line[:1].strip():
            in_recipe = _goes_into_recipe(read[n], in_recipe)
            goes_on = in_recipe and line.endswith("\\")  # what the rule needs
            continue
        goes_on = goes_on and line.endswith("\\")
    return "\n".join(lines)[len(place.line_prefix) :]


def _goes_into_recipe(line: Lexed, in_recipe: bool) -> bool:
    """True if a recipe may stand below a line that does not begin with a blank."""
    is_branch = words.goes_on(line.text, line.language)
    if is_branch or not line.code.strip() or words.opened(line.code, line.language):
        return in_recipe
    return opens_indented(line.code, line.language)


def _ends_in_recipe(place: Place) -> bool:
    """True if the lines above the cursor's end with a rule or its recipe."""
    for n in range(len(place.above) - 1, -1, -1):
        line = place.above[n]
        if line.startswith("\t"):
            return True
        if line[:1].strip() and (_goes_into_recipe(place.lines_above[n], in_recipe=True)):
            return True
        if line[:1].strip():
            return False
    return False
