"""Characters that nobody sees, or that reorder what is seen: no suggestion has them. Who asks for
the model's own text gets it as it is, and no terminal obeys it."""

from __future__ import annotations

import json
import unicodedata

import pytest

from tests.e2e.command_line import codespec
from tests.e2e.conftest import CODE, CURSOR, PATIENT, Home, Spawn, texts
from tests.http_client import front_of
from tests.reliability.amount import amount, tell

UNSEEN = "a\u202eb\u2066c\u200bd\u200ee\ufefff\u00adg\u2060h\x1b[31mi\x07j\x9bk\U000e0041l"
GRAMMAR = 'root ::= "{}"'.format(
    "".join(c if c.isascii() and c.isprintable() else f"\\U{ord(c):08x}" for c in UNSEEN)
)
"""By which a model can say nothing else."""


def is_unseen(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Cf", "Co", "Cn") and character not in "\n\t"


def test_the_command_line_gives_them_to_programs_and_no_terminal(home: Home) -> None:
    (home.workspace / "a.py").write_text(CODE)
    grammar = home.path / "grammar.gbnf"
    grammar.write_text(GRAMMAR)
    place = f"{home.workspace / 'a.py'}:{CURSOR[0] + 1}:{CURSOR[1] + 1}"
    asked = ("complete", place, "--verbatim", "--grammar", grammar, "--max-tokens", 200)
    assert json.loads(codespec(*asked, "--json")[0])["text"] == UNSEEN
    shown = codespec(*asked)[0]
    assert not any(map(is_unseen, shown.replace("\n", "")))
    assert "a" in shown


def test_http_gives_them_as_the_model_said_them(home: Home) -> None:
    with front_of(home.path) as front:
        body = {"prompt": CODE, "grammar": GRAMMAR, "max_tokens": 200}
        assert front.text(**body) == UNSEEN
        events = front.stream("/v1/completions", body)
        said = "".join(event["choices"][0]["text"] for event in events[:-1])
        assert said == UNSEEN


def test_no_suggestion_has_them(home: Home, spawn: Spawn, monkeypatch: pytest.MonkeyPatch) -> None:
    """The model writes bytes at random."""
    monkeypatch.setenv("CODESPEC_MODEL_TARGET", "fake:")
    editor = spawn()
    editor.initialize(home.workspace, options=PATIENT)
    editor.wait_for_status("Normal", "ready")
    uri = (home.workspace / "a.py").as_uri()
    n_items = 0
    editor.open(uri, "")
    for n in range(amount(60)):
        editor.change(uri, n + 2, {"text": f"x{n} = "})
        items = texts(editor.complete(uri, 0, len(f"x{n} = ")))
        n_items += len(items)
        assert not [c for text in items for c in text if is_unseen(c)]
    tell(suggestions=n_items)
    assert n_items
    assert editor.close() == 0
