"""A language is one file, found by its folder: Luau, with a grammar that is installed, and Crystal,
without one, from the index to what is inserted at the cursor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import codespec.languages
from codespec.backends.fake import ByteTokenizer
from codespec.index.selection import select
from codespec.languages import registry
from codespec.suggest import Candidate, UnitStop, finish, place_in, shape_at
from codespec.suggest.fit import Judge, fit
from codespec.suggest.place import Place
from codespec.suggest.shape import Shape
from codespec.syntax.lexer import scan
from codespec.syntax.trees import TreeCache

FOLDER = Path(__file__).with_name("languages")
LUAU = """\
-- Copyright 2024 Somebody. All rights reserved.

local function total(items: {number})
  return #items
end

function Cart:add(item)
  return total({item})
end
"""
DATA = "local sizes = {\n" + "  10, 20, 30, 40, 50, 60, 70,\n" * 100 + "}\n"


@pytest.fixture(autouse=True)
def found(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    paths = [*codespec.languages.__path__, str(FOLDER)]
    monkeypatch.setattr(codespec.languages, "__path__", paths)
    registry.reread()
    yield
    monkeypatch.undo()
    registry.reread()


def suggested(place: Place, said: str) -> tuple[Shape, str]:
    """The shape of a suggestion, and what is inserted of a text that a model says."""
    shape = shape_at(place)
    tokenizer = ByteTokenizer()
    stop = UnitStop(tokenizer, shape, place)
    emitted: list[int] = []
    for token in tokenizer.encode(said).tolist():
        emitted.append(token)
        if stop(emitted):
            break
    text = tokenizer.decode(emitted).decode()
    return shape, finish(Candidate(place, text), stop.end(text), "stop", shape).text


def fitting(text: str, place: Place) -> str:
    return fit(Candidate(place, text), Judge(place))


def test_files_and_editors_name_it() -> None:
    assert registry.language_of("src/cart.luau") == "luau"
    assert registry.language_of_id("luau") == "luau"
    assert registry.notation_of("cart.cr", "") == registry.notation_of("", "crystal") == "crystal"
    assert registry.language_of("cart.cr") == registry.TEXT  # nothing parses it


def test_the_index_leaves_out_its_licences_and_data_and_knows_its_symbols() -> None:
    chosen = select("cart.luau", (LUAU + DATA).encode())
    kept = b"".join((LUAU + DATA).encode()[start:end] for start, end in chosen.spans).decode()
    assert "Copyright" not in kept
    assert "local sizes = {\n}" in kept
    assert [(s.name, s.kind, s.signature) for s in chosen.symbols] == [
        ("total", "function", "local function total(items: {number})"),
        ("add", "method", "function Cart:add(item)"),
    ]
    text = b"def f(x)\n    x\nend\n"
    assert select("cart.cr", text).spans == ((0, len(text)),)


@pytest.mark.parametrize("name", ["cart.luau", "a buffer"])
def test_a_grammar_judges_what_words_delimit(name: str) -> None:
    prefix, suffix = "local function f(x)\n  if x then\n    ", "\n  end\nend\n"
    place = place_in(TreeCache(), prefix, suffix, name, "luau")
    assert place.parsed is not None
    shape, text = suggested(place, "return x\n  end\n  return nil\nend\n")
    assert (shape.kind, shape.closes) == ("block", False)
    assert text == "return x"
    assert fitting("return x)", place) == "return x"


def test_words_delimit_what_nothing_parses() -> None:
    place = place_in(TreeCache(), "def f(x)\n    ", "\n", "cart.cr")
    assert (place.language, place.parsed) == ("crystal", None)
    shape, text = suggested(place, "x.each do |y|\n        puts y\n    end\nend\n\nf(1)\n")
    assert (shape.kind, shape.closes) == ("block", True)
    assert text == "x.each do |y|\n        puts y\n    end\nend"

    inside = place_in(TreeCache(), "def f(x)\n    y = ", "\nend\n", "cart.cr")
    assert suggested(inside, "g(x,\n      1)\n    return y\nend\n")[1] == "g(x,\n      1)"
    assert fitting("g(x\nend", inside) == "g(x)"


def test_its_comments_and_strings_hold_no_code() -> None:
    crystal = scan("f('(') + %(a ] b) # (\n", "crystal")
    assert crystal.is_whole
    assert scan('"a\n(', "crystal").inside == '"'
    assert scan("x = `(` -- (", "luau").open == ()
    assert scan("--[[ (", "luau").inside == "comment"


def test_without_its_file_it_is_any_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    registry.reread()
    assert registry.language_of("cart.luau") == registry.TEXT
    assert registry.notation_of("cart.cr", "crystal") == registry.TEXT
    assert place_in(TreeCache(), "x = ", "", "cart.luau").parsed is None
