"""Text that open documents lend one another, and for how long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from codespec.backends.fake import ByteTokenizer
from codespec.documents import past_output as answers_module
from codespec.documents.live import LiveDocument
from codespec.documents.open_documents import MAX_DOCUMENTS, MAX_PRIVATE, OpenDocuments
from codespec.documents.recent_edits import MAX_TOKENS
from codespec.documents.sources import ANSWERS, BUFFERS, EDITS
from codespec.requests import CompletionRequest
from codespec.syntax.text import safe_cuts
from codespec.types import Context, Source
from tests.index_support import KEY, KEY_LINES, isolate

TOKENIZER = ByteTokenizer()
BODY = "def first(a):\n    return old_name(a)\n\n\ndef second(b):\n    return 2\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    isolate(monkeypatch, tmp_path)
    root = tmp_path / "w"
    root.mkdir()
    return root


class Engine:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.documents = OpenDocuments(TOKENIZER, safe_cuts(TOKENIZER))

    def see(self, name: str, text: str, workspace: str | None = None, lends: bool = True) -> str:
        where = str(self.root) if workspace is None else workspace
        path = str(self.root / name) if name else ""
        request = CompletionRequest(text, path=path, workspace=where, lends=lends)
        why = self.documents.why_excluded(request)
        if not why:
            self.documents.update(request)
        return why

    def drafts(self, name: str, context: str) -> dict[Source, str]:
        found = {}
        path = str(self.root / name)
        where = Context(TOKENIZER.encode(""), path=path, workspace=str(self.root))
        for source, automaton in self.documents.neighbours(where):
            proposal = automaton.draft(TOKENIZER.encode(context), 12, 4)
            if len(proposal):
                found[source] = TOKENIZER.decode(proposal.tokens).decode()
        return found


def test_clients_that_send_no_path_do_not_disturb_each_other(home: Path) -> None:
    documents = OpenDocuments(TOKENIZER, safe_cuts(TOKENIZER))

    def see(prefix: str, suffix: str = "", workspace: str = "") -> tuple[str, LiveDocument]:
        request = CompletionRequest(prefix, suffix, workspace=workspace)
        name = documents.name_of(request)
        return name, documents.update(request, name)

    texts = ["".join(f"line {i} of client {c}\n" for i in range(20)) for c in range(3)]
    begun = [see(text[:200], text[200:]) for text in texts]
    assert len({name for name, _ in begun}) == 3
    for n in range(200, 300, 10):  # typed on, moved on, changed in the middle: in turns
        for (name, document), text in zip(begun, texts, strict=True):
            for prefix, suffix in [
                (text[:n] + "typed", text[n:]),
                (text[: n - 90], text[n - 90 :]),
                (text[: n - 30], text[n:]),
            ]:
                assert see(prefix, suffix) == (name, document)
                assert document.text == prefix + suffix
                assert documents.get(name) is document
    # Of another workspace, or another text: another document.
    assert see(texts[0], workspace=str(home))[0] not in {name for name, _ in begun}
    name, _ = see("something else\n" * 20)
    assert name not in {name for name, _ in begun}
    # They lend each other nothing, are a few, and take the place of none that has a path.
    for path in ("", str(home / "a.py")):
        assert not documents.neighbours(Context(TOKENIZER.encode(""), path=path, workspace=""))
    known = documents.update(CompletionRequest("x", path=str(home / "a.py")))
    for i in range(MAX_DOCUMENTS + MAX_PRIVATE):
        see(f"{i} " * 50)
    assert documents.get(str(home / "a.py")) is known
    with pytest.raises(KeyError):
        documents.get(name)


def test_what_was_said_serves_its_own_document_while_it_is_open(home: Path) -> None:
    documents = OpenDocuments(TOKENIZER, safe_cuts(TOKENIZER))

    def at(path: str, left: str = "", name: str = "") -> Context:
        tokens = TOKENIZER.encode(left)
        return Context(tokens, left=tokens, path=path, workspace=str(home), document=name)

    def said(path: str, context: str, name: str = "") -> str:
        automata = dict(documents.neighbours(at(path, name=name)))
        if ANSWERS not in automata:
            return ""
        found = automata[ANSWERS].draft(TOKENIZER.encode(context), 64, 2)
        return TOKENIZER.decode(found.tokens).decode()

    def see(path: str, lends: bool = True) -> str:
        request = CompletionRequest("a = ", path=path, workspace=str(home), lends=lends)
        name = documents.name_of(request)
        documents.update(request, name)
        return name

    a, b = (str(home / name) for name in ("a.py", "b.py"))
    (home / "a.py").write_text("a = ")
    see(a)
    private = see(a, lends=False)
    assert said(a, "a = ") == ""
    documents.answered(at(a, "a = "), list(b"first(value)\n"))
    documents.answered(at(a, "a = th"), list(b"at(value)\n"))
    documents.answered(at(a, "x"), [])
    assert said(a, "a = fi") == "rst(value)\n"
    assert said(a, "a = th") == "at(value)\n"
    assert said(b, "a = th") == ""  # of another document, or nobody's
    assert said(a, "a = th", private) == ""
    documents.answered(at(a, "a = th", private), list(b"ese\n"))
    assert said(a, "a = th", private) == ""  # who asks next may be somebody else
    assert said(a, "a = th") == "at(value)\n"
    documents.close(a)  # saved as it may be
    see(a)
    assert said(a, "a = th") == ""
    # The newest stay.
    for n in range(1000):
        documents.answered(at(a, f"n{n:04} = "), list(f"answer{n:04}\n".encode()))
        answers = dict(documents.neighbours(at(a)))[ANSWERS]
        assert len(answers) < answers_module.MAX_TOKENS + 32
        assert said(a, f"n{n:04} = ") == f"answer{n:04}\n"
    answers = dict(documents.neighbours(at(a)))[ANSWERS]
    assert answers.match(TOKENIZER.encode("answer0000")) < len("answer0000")
    documents.answered(at(a, "long = "), list(b"x" * 10_000))
    assert len(dict(documents.neighbours(at(a)))[ANSWERS]) < 1.5 * answers_module.MAX_TOKENS


def test_what_is_not_lent_serves_no_other(home: Path) -> None:
    engine = Engine(home)
    other = str(home / "b.py")
    (home / "a.py").write_text("saved\n")
    for text in ("sent_name = private(value)\nlast\n", "last\n"):
        engine.see("a.py", text, lends=False)
        engine.see("b.py", "")
        assert engine.drafts("b.py", "sent_name =") == {}
        assert engine.drafts("b.py", "las") == {}
        assert engine.documents.texts(other, str(home)) == []
        assert engine.documents.lost(str(home)) == []
        assert engine.documents.overridden(other, str(home)) == (other,)
    # It borrows as any other does.
    engine.see("b.py", "buffer_name = unsaved(value)\n")
    assert engine.drafts("a.py", "buffer_name =") == {BUFFERS: " unsaved(val"}


def test_what_is_not_lent_is_no_document_of_the_editors(home: Path) -> None:
    """Though it has the path of one."""
    engine = Engine(home)
    path, other = str(home / "a.py"), str(home / "b.py")
    engine.see("a.py", "lost_name = edited(value)\nbuffer_name = unsaved(value)\n")
    engine.see("a.py", "buffer_name = unsaved(value)\n")
    mine = engine.documents.get(path)
    (home / ".codespec.toml").write_text('disabled_languages = ["sql"]\n')
    sent = CompletionRequest("sent\n", path=path, workspace=str(home), lends=False)
    names = [engine.documents.name_of(sent)]
    for i in range(2 * MAX_PRIVATE):
        request = replace(sent, prefix=f"{i} sent {i}\n" * 20)
        names.append(engine.documents.name_of(request))
        assert not engine.documents.why_excluded(request)
        assert engine.documents.update(request, names[-1]) is not mine
        assert engine.documents.name_of(request) == names[-1]
        assert engine.documents.name_of(replace(request, path=other)) != names[-1]
        assert engine.documents.name_of(replace(request, path="")) != names[-1]
    assert path not in names
    assert len(names) == len(set(names))
    assert engine.documents.why_excluded(replace(sent, language_id="sql"))
    assert engine.documents.get(path) is mine
    assert engine.documents.texts(other, str(home)) == [(path, mine.text)]
    assert engine.drafts("b.py", "lost_name =")[EDITS] == " edited(valu"


@pytest.mark.parametrize("end", ["stay", "close"])
def test_a_document_that_came_to_hold_a_key_lends_none_of_its_edits(home: Path, end: str) -> None:
    engine = Engine(home)
    engine.see("b.py", "")
    rest = "\n\n\nlast\n"
    for text in ("lost_name = edited(value)\n" + rest, rest):
        engine.see("a.py", text)
    assert engine.drafts("b.py", "lost_name =") == {EDITS: " edited(valu"}
    engine.see("a.py", rest + KEY)
    assert engine.documents.lost(str(home))
    if end == "close":
        (home / "a.py").write_text(rest + KEY)
        assert engine.documents.close(str(home / "a.py"))
    else:
        assert engine.drafts("b.py", "lost_name =") == {}
    assert engine.documents.lost(str(home)) == []


def test_lines_of_a_key_are_lent_to_no_other(home: Path) -> None:
    engine = Engine(home)
    engine.see("a.py", KEY)
    engine.see("a.py", KEY.replace("\n".join(KEY_LINES[1:4]), ""))
    engine.see("b.py", "")
    assert engine.drafts("b.py", KEY_LINES[2][:-4]) == {}
    (home / "a.py").write_text("saved meanwhile")
    engine.documents.close(str(home / "a.py"))
    assert engine.documents.lost(str(home)) == []
    assert engine.drafts("b.py", KEY_LINES[2][:-4]) == {}


def test_open_documents_draft_for_one_another(home: Path) -> None:
    engine = Engine(home)
    (home / "a.py").write_text("old text on disk\n")
    engine.see("a.py", "buffer_name = unsaved(value)\n")
    engine.see("b.py", "")
    assert engine.drafts("b.py", "buffer_name =") == {BUFFERS: " unsaved(val"}
    assert engine.drafts("a.py", "buffer_name =") == {}
    engine.see("a.py", "other\n")
    assert engine.drafts("b.py", "buffer_name =") == {EDITS: " unsaved(val"}


def test_buffers_override_their_files_for_every_document(home: Path) -> None:
    engine = Engine(home)
    for name in ("a.py", "b.py", "c.py"):
        (home / name).write_text("stored\n")
        engine.see(name, "buffer\n")
    engine.see("other.py", "", workspace="")
    engine.see("", "nameless\n")

    def overridden(name: str) -> list[str]:
        found = engine.documents.overridden(str(home / name), str(home))
        return [Path(p).name for p in found]

    assert overridden("b.py") == ["a.py", "b.py", "c.py"]
    assert overridden("new.py") == ["a.py", "b.py", "c.py", "new.py"]
    (home / "a.py").write_text("saved by somebody\n")
    (home / "b.py").write_text("saved by somebody\n")
    assert overridden("b.py") == ["b.py", "c.py"]


def test_a_file_changed_on_disk_since_is_no_buffer(home: Path) -> None:
    engine = Engine(home)
    (home / "a.py").write_text("x")
    engine.see("a.py", "buffer_name = unsaved(value)\n")
    engine.see("b.py", "")
    (home / "a.py").unlink()
    assert engine.drafts("b.py", "buffer_name =") == {}


@pytest.mark.parametrize("saved", [False, True])
def test_a_closed_buffer_counts_only_as_far_as_it_was_saved(home: Path, saved: bool) -> None:
    engine = Engine(home)
    (home / "a.py").write_text("stored_name = stored(value)\r\n")
    for text in ("stored_name = stored(value)\n", "wholly_new = typed(value)\n", "last = 1\n"):
        engine.see("a.py", text)
    if saved:
        (home / "a.py").write_text("last = 1\n")
    engine.see("b.py", "")
    path, workspace = str(home / "a.py"), str(home)
    assert engine.drafts("b.py", "stored_name =") == {EDITS: " stored(valu"}
    assert bool(engine.drafts("b.py", "last =")) != saved  # a file that changed is no buffer
    assert engine.documents.close(path) is not saved
    assert path not in engine.documents.overridden(str(home / "b.py"), workspace)
    assert engine.documents.texts(str(home / "b.py"), workspace) == []
    assert engine.drafts("b.py", "last = ") == {}
    assert engine.drafts("b.py", "wholly_new =") == {}
    lost = engine.drafts("b.py", "stored_name =")
    assert lost == ({EDITS: " stored(valu"} if saved else {})
    engine.documents.close(path)
    engine.documents.close("never seen")
    engine.see("a.py", "again = 1\n")
    assert engine.drafts("b.py", "again") == {BUFFERS: " = 1\n"}


@pytest.mark.parametrize("closed", ["before", "after"])
def test_a_file_that_is_gone_leaves_no_edits(home: Path, closed: str) -> None:
    """Nor does the next one of that name bring them back."""
    engine = Engine(home)
    file, path = home / "a.py", str(home / "a.py")
    file.write_text("lost_name = edited(value)\n")
    for text in ("lost_name = edited(value)\n", "last = 1\n"):
        engine.see("a.py", text)
    engine.see("b.py", "")
    if closed == "before":
        file.write_text("last = 1\n")
        engine.documents.close(path)
    file.unlink()
    if closed == "after":
        assert engine.drafts("b.py", "lost_name =") == {EDITS: " edited(valu"}
        assert engine.documents.close(path)
        file.write_text("last = 1\n")
    assert engine.drafts("b.py", "lost_name =") == {}


@pytest.mark.parametrize("when", ["before", "after"])
def test_excluded_documents_lend_nothing(home: Path, when: str) -> None:
    engine = Engine(home)
    rules = home / ".gitignore"
    if when == "before":
        rules.write_text("a.py\n")
    text = "buffer_name = unsaved(value)\nlast\n"
    assert bool(engine.see("a.py", text)) == (when == "before")
    engine.see("a.py", "last\n")
    engine.see("b.py", "")
    assert bool(engine.drafts("b.py", "buffer_name =")) == (when == "after")
    rules.write_text("a.py\n\n")
    assert engine.drafts("b.py", "buffer_name =") == {}
    assert engine.see("a.py", text) == "ignored by .gitignore: a.py"
    rules.unlink()
    assert engine.drafts("b.py", "buffer_name =") == {}
    assert engine.see("a.py", text) == ""


def test_secrets_workspaces_and_nameless_documents_are_kept_apart(home: Path) -> None:
    engine = Engine(home)
    assert engine.see(".env", "SECRET_NAME = secret_value\n") != ""
    engine.see("key.py", "SECRET_NAME = 'ghp_" + "x" * 36 + "'\n")
    engine.see("other.py", "SECRET_NAME = secret_value\n", workspace="")
    engine.see("", "SECRET_NAME = secret_value\n")
    engine.see("b.py", "")
    assert "ghp" not in str(engine.drafts("b.py", "SECRET_NAME ="))
    assert engine.drafts("b.py", "= 'ghp_") == {}


def test_a_document_with_a_secret_lends_the_rest(home: Path) -> None:
    engine = Engine(home)
    token = "ghp_" + "aB3dE6gH9jK2" * 3
    engine.see("a.py", f"buffer_name = unsaved('{token}')\nlast_name = other(value)\n")
    engine.see("b.py", "")
    assert engine.drafts("b.py", "last_name =") == {BUFFERS: " other(value"[:12]}
    assert engine.drafts("b.py", "buffer_name = uns") == {BUFFERS: "aved('"}
    assert engine.drafts("b.py", token[:20]) == {}
    ((_, text),) = engine.documents.texts(str(home / "b.py"), str(home))
    assert text == "buffer_name = unsaved('')\nlast_name = other(value)\n"


def test_only_so_many_documents_are_kept(home: Path) -> None:
    engine = Engine(home)
    for i in range(MAX_DOCUMENTS + 1):
        engine.see(f"{i}.py", f"buffer_{i} = unsaved_{i}(value)\n")
    assert engine.drafts("b.py", "buffer_0 = unsaved_0") == {}
    assert BUFFERS in engine.drafts("b.py", "buffer_1 = unsaved_1")


def test_what_made_room_for_others_is_forgotten_when_it_is_closed(home: Path) -> None:
    """It is not known any more if it was saved."""
    engine = Engine(home)
    (home / "a.py").write_text(BODY)
    engine.see("a.py", BODY)
    engine.see("a.py", BODY.replace("old_name", "new_name"))
    for n in range(MAX_DOCUMENTS):
        engine.see(f"other{n}.py", f"x = {n}\n")
    assert engine.drafts("other0.py", "return old")
    assert engine.documents.close(str(home / "a.py"))
    assert EDITS not in engine.drafts("other0.py", "return old")


def test_a_document_of_two_workspaces_is_kept_and_forgotten_in_both(home: Path) -> None:
    """One folder in another, each the workspace of a window."""
    engine = Engine(home)
    (home / "sub").mkdir()
    inner, path = str(home / "sub"), str(home / "sub" / "a.py")
    for last in (str(home), inner):
        engine.see("sub/a.py", BODY, str(home))
        document = engine.documents.get(path)
        changed = BODY.replace("old_name", "new_name")
        engine.see("sub/a.py", changed, str(home))
        assert engine.documents.lost(str(home))
        engine.see("sub/a.py", changed, last)
        assert engine.documents.get(path) is document
        engine.see("sub/a.py", changed.replace("second", "other"), last)
        assert {p for p, _ in engine.documents.lost(last)} == {path}
        assert engine.documents.close(path)
        assert engine.documents.lost(str(home)) == engine.documents.lost(inner) == []


def test_what_made_room_in_one_workspace_is_forgotten_when_it_is_closed_in_another(
    home: Path,
) -> None:
    engine = Engine(home)
    (home / "a.py").write_text("last = 1\n")
    path, other = str(home / "a.py"), str(home.parent)
    for text in ("unsaved = 1\n", "last = 1\n"):
        engine.see("a.py", text)
    for n in range(MAX_DOCUMENTS):
        engine.see(f"other{n}.py", f"x = {n}\n")
    engine.see("a.py", "last = 1\n", other)
    assert engine.documents.lost(str(home))
    assert engine.documents.close(path)
    assert engine.documents.lost(str(home)) == []


def test_edits_of_documents_that_made_room_are_bounded(home: Path) -> None:
    engine = Engine(home)
    for n in range(60):
        text = f"name_{n} = '{'x' * 200}'\n"
        engine.see(f"{n}.py", text)
        engine.see(f"{n}.py", "y = 1\n")
    lost = engine.documents.lost(str(home))
    assert sum(len(tokens) for _, tokens in lost) < MAX_TOKENS + MAX_DOCUMENTS * 250


def test_a_document_behind_a_link_lends_nothing_once_it_is_excluded(home: Path) -> None:
    engine = Engine(home)
    (home / "private").mkdir()
    (home / "private" / "real.py").write_text("x\n")
    (home / "link.py").symlink_to("private/real.py")
    engine.see("link.py", "buffer_name = unsaved(value)\n")
    engine.see("b.py", "")
    assert engine.drafts("b.py", "buffer_name =")
    (home / "private" / ".gitignore").write_text("*\n")
    assert engine.drafts("b.py", "buffer_name =") == {}
    assert "ignored" in engine.see("link.py", "buffer_name = unsaved(value)\n")
