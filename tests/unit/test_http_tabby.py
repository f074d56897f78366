"""Tabby's completions: told from OpenAI's, their other files, their path, and their line ends."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from codespec.config import CompletionSettings
from codespec.http.access import Access
from codespec.http.dialects.tabby import TabbyCompletion, is_asked
from codespec.http.field_error import FieldError
from codespec.requests import Completion, CompletionRequest
from codespec.types import Trace


def asked(segments: object = None, **fields: object) -> TabbyCompletion:
    return TabbyCompletion(json.dumps({"segments": segments, **fields}).encode(), "m")


def one(segments: object = None, **fields: object) -> CompletionRequest:
    [request] = asked(segments, **fields).requests(CompletionSettings())
    return request


def test_the_body_tells_them_from_openais() -> None:
    text = json.dumps({"prompt": 'a "segments": {"prefix": ""}'})
    assert not is_asked(text.encode())
    assert not is_asked(b'{"prompt": [{"segments": 1}]}')
    assert is_asked(b'{"language": "python", "segments": {"prefix": ""}}')
    assert is_asked(b'{"debug_options": {"raw_prompt": "x"}}')


def test_segments_are_an_editors_question() -> None:
    made = one({"prefix": "a\r\n", "suffix": "b"}, language="python", temperature=0.5, seed=3)
    assert (made.prefix, made.suffix, made.language_id) == ("a\n", "b", "python")
    assert (made.verbatim, made.whole) == (False, False)
    assert (made.sampling.temperature, made.sampling.seed) == (0.5, 3)
    assert one({"prefix": "a", "suffix": None}).suffix == ""


def test_other_files_are_shown_the_most_relevant_last() -> None:
    def texts(*names: str) -> list[dict[str, Any]]:
        return [{"filepath": name, "body": f"x = {name}", "score": 1} for name in names]

    segments = {
        "prefix": "a",
        "clipboard": "c",
        "declarations": texts("1", "2"),
        "relevant_snippets_from_changed_files": texts("3", "4"),
        "relevant_snippets_from_recently_opened_files": texts("5"),
        "git_url": None,
    }
    assert [file.path for file in one(segments).extra] == ["5", "4", "3", "2", "1"]
    off = {"disable_retrieval_augmented_code_completion": True}
    assert one(segments, debug_options=off).extra == ()


def test_a_raw_prompt_is_read_as_it_is() -> None:
    made = one(debug_options={"raw_prompt": "<s>x"})
    assert (made.prefix, made.raw, made.verbatim) == ("<s>x", True, True)


@pytest.mark.parametrize(
    ("fields", "name"),
    [
        ({"mode": "next_edit_suggestion", "segments": {"prefix": ""}}, "mode"),
        ({"debug_options": {"return_prompt": True}, "segments": {"prefix": ""}}, "return_prompt"),
        ({"segments": None}, "segments"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_name(fields: dict[str, Any], name: str) -> None:
    with pytest.raises(FieldError, match=name):
        asked(**fields)


def test_an_answer_has_the_line_ends_of_the_document() -> None:
    for prefix, expected in (("a\n", "b\nc"), ("a\r\n", "b\r\nc")):
        dialect = asked({"prefix": prefix})
        [request] = dialect.requests(CompletionSettings())
        said = Completion(request.insertion("b\nc"), "stop", trace=Trace())
        answer = dialect.answer([said])
        assert answer["choices"] == [{"index": 0, "text": expected}]
        assert answer["mode"] == "standard"
        [end] = dialect.end("b\nc", said)
        assert isinstance(end, dict)
        assert end["choices"] == answer["choices"]


def test_a_path_helps_where_it_is_that_of_a_file_here(tmp_path: Path) -> None:
    inside, outside = tmp_path / "w" / "a b.py", tmp_path / "c.py"
    inside.parent.mkdir()
    inside.touch()
    outside.touch()
    workspace = str(inside.parent)
    access = Access(workspaces=(workspace,))
    for path, expected in (
        ("a b.py", str(inside)),
        (inside.as_uri(), str(inside)),
        (outside.as_uri(), ""),
        ("../c.py", ""),
        ("none.py", ""),
        ("untitled:Untitled-1", ""),
        ("file://[a", ""),
        ("x" * 4096, ""),
        (None, ""),
    ):
        document = asked({"prefix": "", "filepath": path}).document
        assert access.hinted(document) == (workspace, expected)
        assert Access().hinted(document) == ("", "")
