"""The rest of a suggestion that still fits, against an editor that is typed in: the shown text and
the typed text make up the suggestion, and the model is never needed for it."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import example, given
from hypothesis import strategies as st

from codespec.edit import Edit
from codespec_lsp.documents import Document, Snapshot
from codespec_lsp.positions import DocumentPlace
from codespec_lsp.suggestions.kept import MAX_SUGGESTIONS, KeptSuggestions
from codespec_lsp.suggestions.suggestion import Suggestion
from codespec_lsp.suggestions.typed_along import rest_of

PAIRS = {"(": ")", "[": "]", "{": "}"}
texts = st.text(st.sampled_from('ab1 \n\t.,:()[]{}"é😀'), max_size=30)
some_text = texts.filter(bool)


def snapshot(prefix: str, suffix: str) -> Snapshot:
    line = prefix.count("\n")
    column = len(prefix) - prefix.rfind("\n") - 1
    document = Document("file:///a", "python", 1, prefix + suffix)
    return document.snapshot(DocumentPlace(line, column), "utf-32", 10**6, 10**6)


def suggestion(prefix: str, suffix: str, *texts: str) -> Suggestion:
    made = Suggestion(snapshot(prefix, suffix))
    made.edits, made.done = tuple(map(made.base.insertion, texts)), True
    return made


def applied(now: Snapshot, edit: Edit) -> str:
    """The document after the edit, which begins at its cursor."""
    text = now.prefix + now.suffix
    assert (edit.document, edit.version) == (now.uri, now.version)
    assert edit.start == len(now.prefix)
    return text[: edit.start] + edit.text + text[edit.end :]


@given(texts, texts, some_text)
def test_typing_along_shows_the_rest(prefix: str, suffix: str, text: str) -> None:
    made = suggestion(prefix, suffix, text)
    for n in (*range(len(text)), *reversed(range(len(text)))):  # and all the way back
        now = snapshot(prefix + text[:n], suffix)
        rest = rest_of(made, now)
        assert rest is not None
        assert rest.edits == (now.insertion(text[n:]),)
    assert rest_of(made, snapshot(prefix + text, suffix)) is None


@given(texts, texts, some_text, texts, texts)
def test_other_text_never_fits(
    prefix: str, suffix: str, text: str, before: str, after: str
) -> None:
    """Only the suggestion fits, at its place: up to indentation and brackets put after it."""
    rest = rest_of(suggestion(prefix, suffix, text), snapshot(before, after))
    if rest is not None:
        shown = applied(snapshot(before, after), rest.edits[0])
        assert "".join(shown.split()) in (
            "".join((prefix + text + c + suffix).split()) for c in closers(after)
        )


def closers(after: str) -> list[str]:
    return ["", *(after[:n] for n in range(1, 5))]


@example("x = f", "\n", "(a, [b])\n")
@example("x = ", "", "(\n  a,\n)")
@example("x = ", ")", "(\n  a,\n) + 1")
@example("", "1", "(\n1) ")
@given(texts, texts, some_text)
def test_an_editor_that_closes_brackets(prefix: str, suffix: str, text: str) -> None:
    text = balanced(text)
    made = suggestion(prefix, suffix, text)
    whole = prefix + text + suffix
    before, closed = prefix, ""
    for n, c in enumerate(text[:-1]):
        before += c
        if c in PAIRS:
            closed = PAIRS[c] + closed
        elif closed.startswith(c):
            closed = closed[1:]  # typed over
        if len(closed) > 4 or not text[n + 1 :].strip().strip(")]}"):
            return
        now = snapshot(before, closed + suffix)
        rest = rest_of(made, now)
        assert rest is not None
        # Up to blanks at the end of the text.
        assert "".join(applied(now, rest.edits[0]).split()) == "".join(whole.split())


def balanced(text: str) -> str:
    """The text with what is missing to close its brackets, without what closes nothing."""
    found, open_ = "", ""
    for c in text:
        if c in PAIRS.values():
            if not open_.startswith(c):
                continue
            open_ = open_[1:]
        open_ = PAIRS[c] + open_ if c in PAIRS else open_
        found += c
    return found + open_


def test_another_indentation_is_kept_by_the_rest() -> None:
    text = "\n    if a:\n        b()\n    return"
    for typed, left in (
        ("\n\t", "if a:\n\t    b()\n\treturn"),
        ("\n  i", "f a:\n      b()\n  return"),
        ("\n      if a:\n", "          b()\n      return"),
        ("\n    if a:\n            ", "b()\n    return"),
    ):
        now = snapshot("def f():" + typed, "\n")
        rest = rest_of(suggestion("def f():", "\n", text), now)
        assert rest is not None, typed
        assert rest.edits == (now.insertion(left),)


def test_brackets_that_the_text_lacks_stay() -> None:
    now = snapshot("f(", ")\n")
    rest = rest_of(suggestion("f", "\n", "(a, b"), now)
    assert rest is not None
    assert rest.edits == (now.insertion("a, b"),)


def test_alternatives_go_when_other_text_is_typed() -> None:
    made = suggestion("x = ", "\n", "foo()", "far", "bar")
    rest = rest_of(made, snapshot("x = f", "\n"))
    assert rest is not None
    assert [edit.text for edit in rest.edits] == ["oo()", "ar"]


def test_a_growing_suggestion_fits_as_far_as_it_is_known() -> None:
    made = Suggestion(snapshot("x = ", "\n"))
    assert rest_of(made, snapshot("x = ", "\n")) is not None
    assert rest_of(made, snapshot("x = f", "\n")) is None
    made.text, made.lines = "foo(\n    a", made.base.insertion("foo(")
    now = snapshot("x = f", "\n")
    rest = rest_of(made, now)
    assert rest is not None
    assert rest.edits == (now.insertion("oo("),)
    rest = rest_of(made, snapshot("x = foo(\n  ", "\n"))
    assert rest is not None
    assert rest.edits == ()
    assert rest_of(made, snapshot("x = g", "\n")) is None


def test_the_newest_that_fits_is_found_and_old_ones_go() -> None:
    known = KeptSuggestions()
    for n in range(MAX_SUGGESTIONS + 1):
        known.add(suggestion("x" * n, "", "y"))
    assert known.find(snapshot("", "")) is None
    rest = known.find(snapshot("x", ""))
    assert rest is not None
    newer = suggestion("x", "", "z")
    known.add(newer)
    rest = known.find(snapshot("x", ""))
    assert rest is not None
    assert rest.suggestion is newer
    known.remove(newer)
    known.forget("file:///a")
    assert known.find(snapshot("x", "")) is None
    other = replace(snapshot("x", ""), uri="file:///b")
    assert known.find(other) is None


def test_nothing_to_suggest_is_remembered_for_its_place_only() -> None:
    made = suggestion("x", "")
    rest = rest_of(made, snapshot("x", ""))
    assert rest is not None
    assert rest.edits == ()
    assert rest_of(made, snapshot("xy", "")) is None
    assert rest_of(made, snapshot("x", ")")) is None


def test_long_documents_are_compared_as_far_as_their_windows_reach() -> None:
    line = "x = 1  # something\n"
    base = snapshot(line * 400 + "a", line * 400)
    made = Suggestion(base)
    made.edits, made.done = (base.insertion("bc"),), True
    now = replace(base, prefix=base.prefix[len(line) :] + "b", suffix=base.suffix[: -len(line)])
    rest = rest_of(made, now)
    assert rest is not None
    assert rest.edits == (now.insertion("c"),)
    changed = replace(now, prefix=now.prefix.replace("something", "something else", 1))
    assert rest_of(made, changed) is None
