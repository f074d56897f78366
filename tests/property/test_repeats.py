"""No suggestion says again what stands after the cursor, whatever a model says: exactly, up to
white space, or closing brackets."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from codespec.suggest import Candidate, Place, finish, shape_at
from codespec.syntax.lexer import scan
from codespec.syntax.trees import TreeCache
from codespec.types import Finish

LINES = [
    "x = compute(a, b)", "return total", "}", "{", "if (a) {", "if a:", "foo(bar);", "end()", "y",
    "", "a, b, c", "items.each(x => {", "})", "// so it is", "# so it is",
]  # fmt: skip
RESTS = ["", ")", "))", ") {", "):", "];", "});", ", b)", "b)", " = total", ";", ",", "}", '")']
EXTENSIONS = ["py", "js", "go", "c", "conf"]

lines = st.lists(
    st.builds(lambda n, s: "  " * n + s, st.integers(0, 2), st.sampled_from(LINES)), max_size=4
)
line_starts = st.sampled_from(["", "  ", "    ", "foo(", "  bar[", "x = foo((", "if (", 'x = "'])


def respaced(line: str, draw: st.DrawFn) -> str:
    """The same line with other white space in it and at its end."""
    body = line.lstrip()
    lead = line[: len(line) - len(body)]
    words = re.split(r"( )", body)
    spaces = st.sampled_from([" ", "  "])
    spaced = "".join(draw(spaces) if word == " " else word for word in words)
    return lead + spaced + draw(st.sampled_from(["", " ", "\t"]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, str, str, str]:
    """(prefix, suffix, what a model says, extension): the model likes to say what follows."""
    above, below, said = draw(lines), draw(lines), draw(lines)
    start, rest = draw(line_starts), draw(st.sampled_from(RESTS))
    prefix = "".join(f"{line}\n" for line in above) + start
    suffix = rest + "".join(f"\n{line}" for line in below)
    n = draw(st.integers(0, len(below)))
    again = "".join(f"\n{respaced(line, draw)}" for line in below[:n])
    text = draw(st.sampled_from(["", "a", "foo(1", "b, c", "[1", "'s'"])) + "".join(
        f"\n{line}" for line in said
    )
    return (
        prefix,
        suffix,
        text + draw(st.sampled_from(["", rest])) + again,
        draw(st.sampled_from(EXTENSIONS)),
    )


def squeezed(text: str) -> str:
    return "".join(text.split())


def indent_of(line: str) -> int:
    return len(line) - len(line.lstrip())


def repeats(text: str, prefix: str, suffix: str, language: str) -> str:
    """The part that repeats the text after the cursor, "" for none. A plain reading of the rule,
    apart from the rules in codespec/suggest."""
    rest, _, below = suffix.partition("\n")
    if squeezed(rest) and squeezed(text).endswith(squeezed(rest)):
        # A bracket that closes what the text or its line opened is no repetition.
        line = prefix.rsplit("\n", 1)[-1]
        closed = [len(scan(line + said + rest, language).extra) for said in ("", text)]
        if re.search(r"\w", rest) or closed[1] > closed[0] or rest.strip() in (",", ";"):
            return rest
    following = [line.rstrip() for line in below.split("\n") if line.strip()]
    said = (prefix.rsplit("\n", 1)[-1] + text).split("\n")
    said = [line.rstrip() for line in said if line.strip()]
    for i in range(len(said) if text.strip() else 0):
        end, like = said[i:], following[: len(said) - i]
        same = len(end) == len(like) and all(
            squeezed(a) == squeezed(b) and indent_of(a) == indent_of(b)
            for a, b in zip(end, like, strict=True)
        )
        if same and re.search(r"\w", "".join(end)):
            return "\n".join(end)
    return ""


@pytest.mark.parametrize("ended", ["stop", "length"])
@given(case=cases())
@example(case=("foo(", ")\nx = compute(a, b)", "a)\nx = compute(a,  b)", "py"))
@example(case=("  foo(", ");\n  return total", "a, foo(b));\n  return total ", "js"))
@example(case=("for (i = 0", "; i < n; i++)\n", "; i < n;", "c"))
@example(case=("x = [", ",\n  y]", "a,", "py"))
def test_nothing_is_said_again(case: tuple[str, str, str, str], ended: Finish):
    prefix, suffix, said, extension = case
    parsed = TreeCache().update(f"a.{extension}", "", (prefix + suffix).encode())
    place = Place(prefix, suffix, parsed.language if parsed else "", parsed)
    text = finish(Candidate(place, said), None, ended, shape_at(place)).text
    assert not repeats(text, prefix, suffix, place.language)
