"""Messages that the protocol does not have: they are logged without source text, and no document
gets a wrong text by them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.rpc import LspClient, at, insert, span

from .conftest import texts

URI = "file:///w/a.py"
SECRET = "s3cret = 1"
HERE = {"uri": URI, "version": 2}


def suggested(client: LspClient, line: int, character: int) -> list[str]:
    return texts(client.complete(URI, line, character))


@pytest.mark.parametrize(
    "params",
    [
        {"textDocument": HERE, "contentChanges": [{"text": None}]},
        {"textDocument": HERE, "contentChanges": [{"range": span(0, 0, 1), "text": None}]},
        {"textDocument": HERE, "contentChanges": [{"text": "b\n"}, {"range": 3, "text": SECRET}]},
        {"textDocument": HERE, "contentChanges": [{"range": {}, "text": SECRET}]},
        {"textDocument": HERE, "contentChanges": [{"range": {"start": at(0, 0)}, "text": SECRET}]},
        {"textDocument": HERE, "contentChanges": [{"range": span(-1, 0, 0), "text": SECRET}]},
        {"textDocument": HERE, "contentChanges": [{"range": span(0, -1, 0), "text": SECRET}]},
        {"textDocument": HERE, "contentChanges": [insert(0, 1.5, SECRET)]},  # type: ignore[arg-type]
        {"textDocument": HERE, "contentChanges": [insert(0, 0, "x"), SECRET]},
        {"textDocument": HERE, "contentChanges": SECRET},
        {"textDocument": HERE},
    ],
)
def test_a_change_that_is_not_understood(scripted: LspClient, params: dict[str, Any]) -> None:
    scripted.open(URI, f"{SECRET}\n")
    assert suggested(scripted, 1, 0) == [f"[{SECRET}\n|]"]
    scripted.notify("textDocument/didChange", params)
    assert suggested(scripted, 1, 0) == []
    scripted.wait_for_status("Inactive", "not understood")
    scripted.change(URI, 3, insert(0, 0, "x"))  # of a text that nobody knows
    assert suggested(scripted, 1, 0) == []
    scripted.change(URI, 4, {"text": "b\n"})
    assert suggested(scripted, 1, 0) == ["[b\n|]"]
    assert scripted.close() == 0
    assert scripted.stderr.decode() == "codespec: not understood: textDocument/didChange\n"


@pytest.mark.parametrize("version", [{}, {"version": None}, {"version": 2.0}])
def test_a_change_is_understood_without_a_version(
    scripted: LspClient, version: dict[str, Any]
) -> None:
    document = {"uri": URI, **version}
    broken = {"range": {"start": at(0, 0)}, "text": SECRET}
    first = {"start": at(0.0, 0.0), "end": at(0.0, 1.0)}  # type: ignore[arg-type]
    scripted.open(URI, "a\n")
    for changes, now in (
        ([{"text": "b\n"}], "b"),
        ([{"range": None, "text": "c\n"}], "c"),
        ([insert(0, 1, "d")], "cd"),
        ([insert(0, 1, "e"), {"range": None, "text": "f\n"}, insert(0, 1, "g")], "fg"),
        # Nothing of what was before a whole text matters.
        ([broken, {"text": "h\n"}], "h"),
        ([{"range": first, "text": "i"}], "i"),
    ):
        params = {"textDocument": document, "contentChanges": changes}
        scripted.notify("textDocument/didChange", params)
        assert suggested(scripted, 1, 0) == [f"[{now}\n|]"]
    assert scripted.close() == 0
    assert scripted.stderr.decode() == ""


@pytest.mark.parametrize("version", [2.5, "2", 1 << 80])
def test_a_whole_text_is_understood_with_any_version(scripted: LspClient, version: object) -> None:
    document = {"uri": URI, "version": version}
    scripted.open(URI, "a\n")
    for change, expected in (
        ({"text": "b\n"}, ["[b\n|]"]),
        (insert(0, 1, "c"), []),
        ({"text": "d\n"}, ["[d\n|]"]),
    ):
        params = {"textDocument": document, "contentChanges": [change]}
        scripted.notify("textDocument/didChange", params)
        assert suggested(scripted, 1, 0) == expected


def test_a_suggestion_for_a_text_without_a_version_is_one_of_that_text(
    scripted: LspClient,
) -> None:
    scripted.open(URI, "until cancelled")
    request = scripted.post_completion(URI, 0, 15, invoked=False)
    params = {"textDocument": {"uri": URI}, "contentChanges": [{"text": "b\n"}]}
    scripted.notify("textDocument/didChange", params)
    assert scripted.reply(request)["result"]["items"] == []
    assert suggested(scripted, 1, 0) == ["[b\n|]"]


@pytest.mark.parametrize(
    "document",
    [
        {"uri": URI, "languageId": "python", "version": 1, "text": None},
        {"uri": URI, "languageId": "python", "text": SECRET},
    ],
)
@pytest.mark.parametrize("is_open", [True, False])
def test_an_opening_that_is_not_understood(
    scripted: LspClient, document: dict[str, Any], is_open: bool
) -> None:
    if is_open:
        scripted.open(URI, f"{SECRET}\n")
    scripted.notify("textDocument/didOpen", {"textDocument": document})
    assert suggested(scripted, 1, 0) == []
    scripted.wait_for_status("Inactive", "not understood")
    scripted.open(URI, "b\n")
    assert suggested(scripted, 1, 0) == ["[b\n|]"]
    assert scripted.close() == 0
    assert scripted.stderr.decode() == "codespec: not understood: textDocument/didOpen\n"


@pytest.mark.parametrize("language", [None, 3, "no language"])
def test_a_language_that_is_none(scripted: LspClient, language: object) -> None:
    document = {"uri": URI, "languageId": language, "version": 1, "text": "b\n"}
    scripted.notify("textDocument/didOpen", {"textDocument": document})
    assert suggested(scripted, 1, 0) == ["[b\n|]"]


def test_messages_that_are_none(scripted: LspClient) -> None:
    scripted.open(URI, "b\n")
    stdin = scripted.process.stdin
    assert stdin is not None
    for body in (
        b"{",
        b"[]",
        b"null",
        b'"s3cret"',
        b'{"method": "s3cret"}',
        b'{"jsonrpc": "2.0", "method": 3, "params": "s3cret"}',
        b'{"jsonrpc": "2.0", "method": "$/cancelRequest"}',
        b'{"jsonrpc": "2.0", "id": 99, "result": "s3cret"}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didOpen", "params": ["s3cret"]}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didChange", "params": null}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didClose", "params": {}}',
        b'{"jsonrpc": "2.0", "method": "textDocument/didFocus", "params": {"type_name": "class"}}',
        b"[" * 100_000,
    ):
        stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        stdin.flush()
        assert suggested(scripted, 1, 0) == ["[b\n|]"]
    assert scripted.close() == 0
    said = scripted.stderr.decode()
    assert "s3cret" not in said
    assert all(len(line) < 300 for line in said.split("\n"))


def test_places_that_are_not_in_the_document(scripted: LspClient) -> None:
    def after(text: str, change: dict[str, Any]) -> list[str]:
        scripted.open(URI, text)
        scripted.change(URI, 2, change)
        return suggested(scripted, 99, 99)

    outside = {"start": at(1, 99), "end": at(1 << 40, 1 << 40)}
    assert after("ab\ncd", {"range": outside, "text": "e"}) == ["[ab\ncde|]"]
    reversed_ = {"start": at(1, 1), "end": at(0, 1)}
    assert after("ab\ncd", {"range": reversed_, "text": "e"}) == ["[ab\nced|]"]
    inside_a_pair = {"start": at(0, 2), "end": at(0, 3)}
    assert after("a😀b", {"range": inside_a_pair, "text": "e"}) == ["[aeb|]"]


def test_documents_that_were_never_opened_or_closed_before(scripted: LspClient) -> None:
    close = {"textDocument": {"uri": URI}}
    scripted.change(URI, 1, {"text": "a\n"})
    assert suggested(scripted, 1, 0) == []
    scripted.open(URI, "b\n")
    scripted.open(URI, "c\n")
    assert suggested(scripted, 1, 0) == ["[c\n|]"]
    scripted.notify("textDocument/didClose", close)
    scripted.notify("textDocument/didClose", close)
    scripted.notify("textDocument/didSave", close)
    assert suggested(scripted, 1, 0) == []
    scripted.open(URI, "d\n")
    assert suggested(scripted, 1, 0) == ["[d\n|]"]


def test_tens_of_thousands_of_edits_in_one_message(scripted: LspClient) -> None:
    """A formatter sends them so for a file in one line, last ones first."""
    n = 50_000
    scripted.open(URI, "12345678901234567890" * n)
    scripted.change(URI, 2, *[insert(0, 20 * i, "\n") for i in range(n - 1, 0, -1)])
    (text,) = suggested(scripted, n, 99)
    assert text.endswith("12345678901234567890\n12345678901234567890|]")
    (text,) = suggested(scripted, 1, 4)
    assert text.startswith("[12345678901234567890\n1234|5678901234567890\n")
