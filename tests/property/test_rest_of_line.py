"""Whatever a model says, the rest of the cursor's line stays code, string or comment as it is: in
every language, read here by the record alone, sign by sign."""

from __future__ import annotations

import re

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from codespec.engine.given_text import finish_text
from codespec.languages.base import BlockComment, Language, LineComment, Quotes
from codespec.languages.registry import records
from codespec.requests import CompletionRequest
from tests.reliability.amount import amount

BEGINS = {"php": "<?php\n"}
# Prose is not judged.
KNOWN = [record for record in records() if not record.prose]
# In JSON, nothing stays that is none.
WITH_CALLS = [record for record in KNOWN if record.json is None]
CODE = ("a", "bc(", ")", "[", "]", " + ", ", ", "1", "(x)", " = ", ";", " ")
BODY = ("a", "b c", "(", ")", " + 1", "]", "")


def strings_of(record: Language) -> tuple[Quotes, ...]:
    """None in mark-up, whose text may hold any quote."""
    return () if record.is_markup else record.strings


def kinds(line: str, record: Language) -> str:
    """The kind of each sign: "s" in a string, "#" in a comment, "c" in code."""
    found = ""
    while (at := len(found)) < len(line):
        kind, end = "c", at + 1
        for block in record.block_comments:
            if kind == "c" and begins(line, at, block):
                begin = at + len(block.opener)
                kind, end = "#", after(line, block.closer, begin, block.nests and block.opener)
        for comment in record.line_comments:
            is_one = begins(line, at, comment)
            if comment.begins_line:
                is_one = is_one and not line[:at].strip()
            unless = re.compile(comment.unless or "(?!)").match(line, at + len(comment.opener))
            if kind == "c" and is_one and not unless:
                kind, end = "#", len(line)
        for quotes in strings_of(record):
            closer = quotes.closer or quotes.opener
            begin = at + len(quotes.opener)
            is_one = begins(line, at, quotes)
            if quotes.is_character:
                is_one = is_one and line[begin + 1 : begin + 2] == closer != line[begin]
            if kind == "c" and is_one:
                kind, end = "s", after(line, closer, begin, quotes.nests and quotes.opener[-1])
                while quotes.escape == "doubled" and line.startswith(closer, end):
                    end = after(line, closer, end + len(closer), False)
                unless = re.compile(quotes.unless or "(?!)")
                while end < len(line) and (more := unless.match(line, end)):
                    end = after(line, closer, more.end(), False)
        found += kind * (end - at)
    return found


def begins(line: str, at: int, what: Quotes | LineComment | BlockComment) -> bool:
    return line.startswith(what.opener, at) and re.compile(what.after).match(line, at) is not None


def after(line: str, closer: str, begin: int, nested: str | bool) -> int:
    """The end of what begins before `begin`. nested: the opener of more in it."""
    at, depth = begin, 1
    while at < len(line):
        if line.startswith(closer, at):
            at, depth = at + len(closer), depth - 1
            if not depth:
                return at
        elif nested and line.startswith(str(nested), at):
            at, depth = at + len(str(nested)), depth + 1
        else:
            at += 1
    return len(line)


def has_quotes_in_text(line: str, record: Language) -> bool:
    """True if quotes stand between brackets that are text, which `kinds` does not know."""
    found = re.finditer(record.text or "(?!)", line)
    return any(m[0][0] in "[{" and re.search("[\"']", m[0]) for m in found)


def openers(record: Language) -> list[str]:
    kinds = (record.strings, record.line_comments, record.block_comments)
    return [what.opener for all_of_it in kinds for what in all_of_it]


def in_line(record: Language) -> list[Quotes]:
    """The strings that may end in their line; not those whose openers are code in most places, such
    as Groovy's slash and Perl's words."""
    found = (quotes for quotes in strings_of(record) if "\n" not in quotes.closer)
    return [quotes for quotes in found if quotes.opener != "/" and not quotes.opener[0].isalnum()]


def blocks_in_line(record: Language) -> list[BlockComment]:
    return [block for block in record.block_comments if "\n" not in block.closer]


def whole_strings(record: Language) -> st.SearchStrategy[str]:
    """Strings that are closed, which may hold the openers of others."""

    def made(quotes: Quotes) -> st.SearchStrategy[str]:
        closer = quotes.closer or quotes.opener
        if quotes.is_character:
            return st.sampled_from("a()1").map(lambda c: quotes.opener + c + closer)
        inside = [c for c in (*BODY, *openers(record)) if closer[0] not in c]
        body = st.lists(st.sampled_from(inside), min_size=1, max_size=3).map("".join)
        return body.map(lambda text: quotes.opener + text + closer)

    return st.one_of(st.just("a"), *(made(quotes) for quotes in in_line(record)))


def comments(record: Language) -> st.SearchStrategy[str]:
    blocks = [f"{block.opener} b) {block.closer}" for block in blocks_in_line(record)]
    return st.sampled_from(["", *blocks])


def line_comments(record: Language) -> st.SearchStrategy[str]:
    return st.sampled_from(
        ["", *(f"  {comment.opener} it) is" for comment in record.line_comments)]
    )


def code(record: Language) -> st.SearchStrategy[str]:
    one = st.one_of(st.sampled_from(CODE), whole_strings(record), comments(record))
    return st.lists(one, max_size=4).map(apart)


def apart(parts: list[str]) -> str:
    """Parts in a row, with a blank where two quotes would meet: with a third one they would open
    another string, which nothing closes. They may belong to a name that ends before them."""
    found = ""
    for part in parts:
        is_quote = found[-1:] in ("'", '"', "`") and found[-1:] == part[:1]
        is_quote = is_quote or (found[-1:].isalnum() and part[:2] == "''")
        found += f" {part}" if is_quote else part
    return found


def said(record: Language) -> st.SearchStrategy[str]:
    """Text of a model, which may open what it does not close."""
    one = st.one_of(st.sampled_from((*CODE, *openers(record))), whole_strings(record))
    return st.tuples(st.lists(one, min_size=1, max_size=5).map("".join), line_comments(record)).map(
        "".join
    )


def cursors(record: Language) -> st.SearchStrategy[tuple[str, str]]:
    """Text around a cursor in code or in a string."""
    around = [("", ""), ("", ""), ("", ")")]
    around += [
        (f"{quotes.opener}ab", f"cd{quotes.closer or quotes.opener}")
        for quotes in in_line(record)
        if not quotes.is_character
    ]
    return st.sampled_from(around)


@pytest.mark.parametrize("record", KNOWN, ids=lambda record: record.name)
@settings(max_examples=amount(12))
@given(data=st.data())
def test_the_rest_of_the_line_stays_what_it_is(record: Language, data: st.DataObject) -> None:
    cursor = data.draw(cursors(record))
    prefix = apart([data.draw(code(record)), cursor[0]])
    # What stands where no string begins may open another one.
    assume(kinds(f"{prefix}x", record)[-1] == ("s" if cursor[0] else "c"))
    assume(kinds(f"{prefix}{cursor[1]}x", record)[-1] == "c")
    rest = cursor[1] + data.draw(code(record)) + data.draw(line_comments(record))
    rest = apart([prefix, rest])[len(prefix) :]
    above = BEGINS.get(record.name, "") + data.draw(st.sampled_from(["", "a(1)\n", "\n"]))
    name = f"/a{record.extensions[0]}" if record.extensions else "/a"
    ids = record.ids[0] if record.ids else ""
    request = CompletionRequest(above + prefix, f"{rest}\n", name, language_id=ids)
    found = finish_text(
        request, data.draw(said(record)), data.draw(st.sampled_from(["stop", "length"]))
    )
    assert found.replaces == ""
    lines = [prefix + rest, prefix + found.text + rest]
    assume(not any(has_quotes_in_text(line, record) for line in lines))
    before, now = (kinds(line, record) for line in lines)
    shown = [at for at in range(1, len(rest) + 1) if not rest[-at].isspace()]
    assert [now[-at] for at in shown] == [before[-at] for at in shown], found.text


@pytest.mark.parametrize("record", WITH_CALLS, ids=lambda record: record.name)
def test_a_comment_of_the_model_ends_before_the_rest(record: Language) -> None:
    openers = [comment.opener for comment in record.line_comments if not comment.begins_line]
    openers += [block.opener for block in blocks_in_line(record)]
    for opener in openers:
        name = f"/a{record.extensions[0]}"
        prefix = BEGINS.get(record.name, "") + "b("
        request = CompletionRequest(prefix, ")\n", name, language_id=record.ids[0])
        assert finish_text(request, f"a)  {opener} one)\n", "stop").text == "a"
        assert finish_text(request, f"a  {opener} one", "length").text == "a"
