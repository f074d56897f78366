"""People are shown whom an open document, the index or git's settings name: with a real index, and
an engine whose model says their names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.backends import registry
from codespec.config import load_settings
from codespec.engine.known_people import KnownPeople
from codespec.engine.local import LocalEngine
from codespec.index.word_encoder import WordEncoder
from codespec.reasons import Trimming
from codespec.requests import Completion, CompletionRequest
from codespec.rules.gitfiles import git_users
from codespec.types import Snippet
from tests.engines import strict_engine
from tests.extension import scribe
from tests.index_support import Workspace

HEADER = "# Copyright (c) 2019 Jane Doe\n# All rights reserved.\n\n"
CODE = "def area(width, height):\n    return width * height\n"


def knows(workspace: Workspace, name: str, path: str = "b.py", text: str = "") -> bool:
    request = CompletionRequest(text, "", str(workspace.root / path), str(workspace.root))
    return KnownPeople(request, workspace.tokenizer, index=workspace.open)(name)


def test_git_knows_its_user(
    workspace: Workspace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    (home / ".gitconfig").write_text(
        '[user]\n\tname = "Jane Doe" ; me\n\temail = jane@doe.org\n'
        '[includeIf "gitdir:~/acme/"]\n\tpath = acme.inc\n'
    )
    (home / "acme.inc").write_text("[user]\n\temail = j.doe@acme.com\n")
    workspace.write(".git/config", "[user]\n\tname = JD of Acme\n[include]\n\tpath = ../more\n")
    workspace.write("more", "[user]\n\tname = Somebody Else\n")
    expected = ["Jane Doe", "jane@doe.org", "j.doe@acme.com", "JD of Acme"]
    assert git_users(str(workspace.root / "src")) == expected
    assert git_users("") == expected[:3]
    for name in ("Jane Doe", "jane doe", "Jane", "j.doe@acme.com", "JD"):
        assert knows(workspace, name), name
    for name in ("Doe Jane", "Somebody Else", "doe@acme.com"):
        assert not knows(workspace, name), name


@pytest.mark.parametrize(
    "text", ["# By Jane Doe.\n", '"Jane Doe",\n', "JANE DOE\n", "a(Jane Doe)\n"]
)
def test_the_index_knows_names_in_code(workspace: Workspace, text: str) -> None:
    workspace.write("a.py", CODE + text)
    assert not knows(workspace, "Jane Doe")
    workspace.build()
    assert knows(workspace, "Jane Doe")
    assert not knows(workspace, "Jane Do")
    assert not knows(workspace, "John Doe")


def test_the_index_knows_addresses(workspace: Workspace) -> None:
    workspace.write("a.py", f"{CODE}# mail to <jane@doe.org>\n")
    workspace.build()
    assert knows(workspace, "jane@doe.org")
    assert knows(workspace, "Jane@Doe.org")
    assert not knows(workspace, "jane@doe.or")


def test_headers_that_are_not_drafted_from_are_known(workspace: Workspace) -> None:
    for i in range(600):
        workspace.write(f"d{i:03}/a.py", f"{CODE}x{i} = {i}\n")
    workspace.write("d300/a.py", HEADER + CODE)
    workspace.build()
    assert "Jane" not in workspace.draft("Copyright (c) 2019 ")
    assert knows(workspace, "Jane Doe", "d301/b.py")
    assert not knows(workspace, "John Doe", "d301/b.py")


def test_ignored_files_are_not_asked(workspace: Workspace) -> None:
    workspace.write(".gitignore", "a.py\n")
    workspace.write("a.py", HEADER + CODE)
    workspace.write("c.py", CODE)
    workspace.build()
    assert not knows(workspace, "Jane Doe")


def test_the_document_and_what_a_client_sends_are_known(workspace: Workspace) -> None:
    assert knows(workspace, "Jane Doe", text=HEADER)
    sent = (Snippet("buffers", "c.py", HEADER),)
    assert KnownPeople(CompletionRequest("", extra=sent), workspace.tokenizer)("Jane Doe")


@pytest.fixture
def engine(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalEngine]:
    monkeypatch.setitem(registry.SCHEMES, "scribe", scribe.__name__)
    monkeypatch.setattr(scribe, "TEXT", "Author: Jane Doe")
    workspace.write("a.py", CODE)
    made = strict_engine(load_settings({"model": {"target": "scribe:"}}, env={}))
    yield made
    made.close()


def ask(engine: LocalEngine, workspace: Workspace, *, verbatim: bool = False) -> Completion:
    root, path = str(workspace.root), str(workspace.root / "a.py")
    return engine.complete(CompletionRequest("# ", f"\n{CODE}", path, root, verbatim=verbatim))


def test_nobody_else_is_suggested(engine: LocalEngine, workspace: Workspace) -> None:
    found = ask(engine, workspace)
    assert found.edit is None
    assert found.trace.trimmed == (Trimming.STRANGER,)
    assert "stands nowhere" in found.reason


def test_the_models_own_text_is_left_as_it_is(engine: LocalEngine, workspace: Workspace) -> None:
    found = ask(engine, workspace, verbatim=True)
    assert found.edit is not None
    assert found.edit.text == "Author: Jane Doe"


def test_who_stands_in_an_open_document_is_suggested(
    engine: LocalEngine, workspace: Workspace
) -> None:
    other = workspace.write("b.py", CODE)
    root = str(workspace.root)
    engine.open(CompletionRequest("# By Jane Doe\n", "", str(other), root))
    found = ask(engine, workspace)
    assert found.edit is not None
    assert found.edit.text == "Author: Jane Doe"
    engine.closed(str(other))
    assert ask(engine, workspace).edit is None


def test_who_stands_in_an_indexed_file_is_suggested(
    engine: LocalEngine, workspace: Workspace
) -> None:
    workspace.encoder = WordEncoder(engine.tokenizer)
    workspace.write("c.py", HEADER + CODE)
    workspace.build()
    found = ask(engine, workspace)
    assert found.edit is not None
    assert found.edit.text == "Author: Jane Doe"
