"""Blocks that no bracket and no colon announces: of a model that says what stood there, and goes on
with the document, the block is kept, with the word that ends it where that is missing."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from codespec.engine.given_text import finish_text
from codespec.requests import CompletionRequest


@dataclass(frozen=True)
class Kind:
    """head: with `{}` for a number. end: "" where indentation tells. branch: "" for none."""

    head: str
    end: str = ""
    branch: str = ""


@dataclass(frozen=True)
class Notation:
    """outer: kinds of blocks at the margin. inner: of those in others. statements: with `{}` for a
    number. lead: of one level; "" for bodies in the column of their head."""

    name: str
    outer: tuple[Kind, ...]
    inner: tuple[Kind, ...]
    statements: tuple[str, ...]
    lead: str = "    "


CMAKE = (
    Kind("if(A{})", "endif()", "else()"),
    Kind("foreach(x ${{L{}}})", "endforeach()"),
    Kind("while(B{})", "endwhile()"),
    Kind("function(f{} a)", "endfunction()"),
)
VIM = (
    Kind("if a{}", "endif", "else"),
    Kind("for x in y{}", "endfor"),
    Kind("while x < {}", "endwhile"),
    Kind('try " a {}', "endtry", "catch"),
)
LATEX = tuple(
    Kind(rf"\begin{{{{{name}}}}}% {{}}", rf"\end{{{name}}}")
    for name in ("itemize", "center", "align*", "document")
)
OCAML = (Kind("if x{} then begin", "end;"), Kind("for i = 0 to {} do", "done;"))
SCALA = (
    Kind("if x{} then", branch="else"),
    Kind("for y <- ys{} do"),
    Kind("while x{} do"),
    Kind("val z{} ="),
)
JULIA = (
    Kind("if x{}", "end", "else"),
    Kind("for i in 1:{}", "end"),
    Kind("while x < {}", "end"),
    Kind("map(x{}) do y", "end"),
    Kind("try # {}", "end", "catch"),
)
FISH = (
    Kind("if test $x = {}", "end", "else"),
    Kind("for x in $y{}", "end"),
    Kind("while test $x{}", "end"),
)
MAKE = (Kind("t{}: a b"),)
IN_CMAKE = ("set(A {})", 'message("a ( {}")')
IN_VIM = ("let x = {}", "echo 'it''s ({}'")
NOTATIONS = (
    Notation(
        "a.hs",
        (Kind("f{} x = do"), Kind("class A{} where"), Kind("g{} =")),
        (Kind("when x{} $ do"), Kind("forM_ xs{} $ \\y -> do"), Kind("b{} <- h $ do")),
        ("print (g' {})", 'putStrLn "a ({}"', "x{} <- h 'a'"),
        "  ",
    ),
    Notation("a.jl", (Kind("function f{}(x)", "end"), *JULIA), JULIA, ("g({})", "x = y[end, {}]'")),
    Notation("a.ml", (Kind("let f{} x ="),), OCAML, ("g x {};", 'h\' "a ({}";'), "  "),
    Notation(
        "a.scala",
        (Kind("def f{}(x: Int) ="), Kind("class A{}:")),
        SCALA,
        ("g({})", "val y{} = '('"),
    ),
    Notation("CMakeLists.txt", CMAKE, CMAKE[:3], IN_CMAKE, "  "),
    Notation("flat.cmake", CMAKE, CMAKE[:3], IN_CMAKE, ""),
    Notation("a.fish", (Kind("function f{}", "end"), *FISH), FISH, ("echo 'a ({}'", "ls {}")),
    Notation("a.vim", (Kind("function! F{}(x)", "endfunction"), *VIM), VIM, IN_VIM, "  "),
    Notation("flat.vim", (Kind("augroup a{}", "augroup END"), *VIM), VIM, IN_VIM, ""),
    Notation("a.tex", LATEX, LATEX[:3], ("It's (one {}.", "$[0, {})$"), "  "),
    Notation("flat.tex", LATEX, LATEX[:3], ("It's (one {}.", "\\item {}"), ""),
    Notation("Makefile", MAKE, (), ("gcc -o a{}", '@echo "a ({}"'), "\t"),
    Notation("a.yaml", (Kind("a{}:"),), (Kind("b{}:"),), ("c{}: it's (", "d{}: 'a ('"), "  "),
)


@dataclass(frozen=True)
class Block:
    """Lines of a block with its branches, and what is in the body of its head."""

    head: str
    body: list[str]
    others: list[str]
    end: str

    @property
    def lines(self) -> list[str]:
        return [self.head, *self.body, *self.others, *([self.end] if self.end else [])]


def block(
    data: st.DataObject, notation: Notation, kinds: tuple[Kind, ...], lead: str, n: count[int]
) -> Block:
    kind = data.draw(st.sampled_from(kinds))
    head = lead + kind.head.format(next(n))
    body = lines_of(data, notation, lead + notation.lead, n)
    others = []
    if kind.branch and data.draw(st.booleans()):
        others = [lead + kind.branch, *lines_of(data, notation, lead + notation.lead, n)]
    return Block(head, body, others, lead + kind.end if kind.end else "")


def lines_of(data: st.DataObject, notation: Notation, lead: str, n: count[int]) -> list[str]:
    found: list[str] = []
    is_deep = len(lead) > 2 * len(notation.lead) or (not notation.lead and next(n) > 9)
    for _ in range(data.draw(st.integers(1, 3))):
        if notation.inner and not is_deep and data.draw(st.integers(0, 3)) == 0:
            found += block(data, notation, notation.inner, lead, n).lines
        else:
            found.append(lead + data.draw(st.sampled_from(notation.statements)).format(next(n)))
    return found


@pytest.mark.parametrize("notation", NOTATIONS, ids=lambda notation: notation.name)
@settings(max_examples=40)
@given(data=st.data())
def test_a_block_ends_where_it_ends(notation: Notation, data: st.DataObject) -> None:
    n = count(1)
    before = block(data, notation, notation.outer, "", n).lines
    here = block(data, notation, notation.outer, "", n)
    after = block(data, notation, notation.outer, "", n).lines
    is_ended = bool(here.end) and data.draw(st.booleans())
    on_blank_line = data.draw(st.booleans())

    own = [*here.body, *here.others]
    given_below = [here.end, *after] if is_ended else after
    prefix = "\n".join([*before, "", here.head])
    said = "\n".join(["", *here.lines[1:], "", *after, ""])
    right = "\n".join(["", *own, *([here.end] if here.end and not is_ended else [])])
    if on_blank_line:
        prefix += "\n" + notation.lead
        said, right = said[1 + len(notation.lead) :], right[1 + len(notation.lead) :]
    suffix = "\n".join(["", *([] if is_ended else [""]), *given_below, ""])
    request = CompletionRequest(prefix, suffix, f"/{notation.name}")
    found = finish_text(request, said, data.draw(st.sampled_from(["stop", "length"])))
    assert found.text == right
