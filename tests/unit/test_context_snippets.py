"""Context beyond the file: what is found, what may be shown, and that prompts share beginnings."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.backends.fake import ByteTokenizer, FakeTarget
from codespec.config import ContextSettings
from codespec.context.retrieval import AUTO_MIN_PARAMS, Gatherer
from codespec.context.snippets import Shelf, render
from codespec.documents.open_documents import OpenDocuments
from codespec.requests import CompletionRequest
from codespec.syntax.names import NameScanner, names_in
from codespec.syntax.text import safe_cuts
from codespec.syntax.trees import TreeCache
from codespec.types import ModelInfo, Snippet
from tests.index_support import Workspace, isolate

TOKENIZER = ByteTokenizer()
INFO = FakeTarget().info
ON = ContextSettings(symbols="on", buffers="on", edits="on")
MOST = 600  # tokens
MAIN = "import shapes\n\n\ndef main():\n    area = circle_area(2)\n    print(area)\n    "


@pytest.fixture
def workspace(tmp_path, monkeypatch):
    isolate(monkeypatch, tmp_path)
    w = Workspace(tmp_path / "project")
    w.write("shapes.py", "def circle_area(radius, precision=2):\n    return 3.14 * radius**2\n")
    w.write("main.py", MAIN)
    w.build()
    return w


class Editor:
    """Documents and the gatherer over them, as an engine holds them."""

    def __init__(
        self,
        workspace: Workspace,
        settings: ContextSettings = ON,
        info: ModelInfo = INFO,
        root: Path | None = None,
    ) -> None:
        self.workspace = workspace
        self.documents = OpenDocuments(TOKENIZER, safe_cuts(TOKENIZER))
        self.trees = TreeCache()
        self.gatherer = Gatherer(
            settings, info, TOKENIZER, self.documents, lambda _: workspace.open(), self.trees
        )

        self.root = workspace.root if root is None else root
        """The workspace's path in the editor's spelling."""

    def request(self, path: str, prefix: str, suffix: str = "") -> CompletionRequest:
        root = self.root
        return CompletionRequest(prefix, suffix, path=str(root / path), workspace=str(root))

    def open(self, path: str, text: str, suffix: str = "") -> None:
        self.documents.update(self.request(path, text, suffix))
        self.trees.update(str(self.root / path), "", (text + suffix).encode())

    def snippets(self, path: str, prefix: str, suffix: str = "") -> tuple[Snippet, ...]:
        request = self.request(path, prefix, suffix)
        self.documents.update(request)
        return self.gatherer.snippets(request, MOST)


def test_documents_of_one_path_are_shown_what_each_of_them_asks_for(workspace):
    editor = Editor(workspace)
    assert editor.snippets("main.py", MAIN)
    request = replace(editor.request("main.py", MAIN.replace("circle_area", "x")), lends=False)
    assert editor.gatherer.snippets(request, MOST, editor.documents.name_of(request)) == ()


WORDS = st.text(alphabet="abc_1 .", max_size=40)


@given(WORDS)
def test_names_are_whole_words_the_last_first(text):
    said = [w for w in re.findall(r"\w+", text) if len(w) >= 3]
    assert names_in(text) == list(dict.fromkeys(reversed(said)))


@given(st.sets(st.text(alphabet="abc_1", min_size=1, max_size=6)), WORDS)
def test_given_names_are_found_as_a_naive_search_finds_them(names, text):
    said = [w for w in re.findall(r"\w+", text) if len(w) >= 3 and w in names]
    assert NameScanner(names).find(text) == list(dict.fromkeys(reversed(said)))


def test_given_names_may_be_of_any_characters():
    assert NameScanner(["operator==", "to-list"]).find("(to-list a.operator==(b)") == [
        "operator==",
        "to-list",
    ]


def test_names_that_are_no_words_in_some_languages():
    assert names_in("a.empty?() #count = save!") == [
        "save",
        "save!",
        "count",
        "#count",
        "empty",
        "empty?",
    ]


def test_of_many_words_those_that_are_defined(workspace):
    index = workspace.index()
    assert index.defined(["print", "circle_area", "circle_are", "", "é"]) == ["circle_area"]
    assert index.defined([]) == []


def test_a_definition_of_a_name_near_the_cursor(workspace):
    (found,) = Editor(workspace).snippets("main.py", MAIN)
    assert found.source == "symbols"
    assert found.text == "def circle_area(radius, precision=2)"
    assert found.path == str(workspace.root / "shapes.py")
    assert "defines circle_area" in found.why


def test_no_definition_of_what_the_file_defines_itself(workspace):
    workspace.write("main.py", "def circle_area(x):\n    pass\n")
    workspace.build()
    assert Editor(workspace).snippets("main.py", MAIN) == ()


def test_definitions_of_open_documents_override_their_files(workspace):
    editor = Editor(workspace)
    editor.open("shapes.py", "\n\ndef circle_area(diameter):\n    return diameter\n")
    found = [s for s in editor.snippets("main.py", MAIN) if s.source == "symbols"]
    assert [s.text for s in found] == ["def circle_area(diameter)"]
    assert found[0].why.endswith("in line 3")
    editor = Editor(workspace)
    editor.open("shapes.py", "\n")
    assert not any(s.source == "symbols" for s in editor.snippets("main.py", MAIN))


def test_what_an_open_document_defines_and_has_not_saved_is_shown(workspace):
    editor = Editor(workspace)
    text = "def square_area(side):\n    return side**2\n"
    editor.open("shapes.py", text)
    editor.open("fresh.py", text.replace("square", "cube"))
    found = editor.snippets("main.py", "import shapes\nsquare_area(cube_area(")
    shown = [(s.path.rpartition("/")[2], s.text) for s in found if s.source == "symbols"]
    assert shown == [
        ("fresh.py", "def cube_area(side)"),
        ("shapes.py", "def square_area(side)"),
    ]


def test_links_in_the_paths_of_an_editor_lead_to_the_files_of_the_index(workspace):
    link = workspace.root.parent / "link"
    link.symlink_to(workspace.root)
    (workspace.root / "linked.py").symlink_to("shapes.py")

    def definitions(editor: Editor, path: str, prefix: str) -> list[str]:
        return [s.text for s in editor.snippets(path, prefix) if s.source == "symbols"]

    editor = Editor(workspace, root=link)
    assert [s.path for s in editor.snippets("main.py", MAIN)] == [str(link / "shapes.py")]
    for root, name in ((link, "shapes.py"), (workspace.root, "linked.py")):
        editor = Editor(workspace, root=root)
        assert definitions(editor, name, "x = circle_area(") == []  # its own
        editor.open(name, "def circle_area(diameter):\n    return diameter\n")
        assert definitions(editor, "main.py", MAIN) == ["def circle_area(diameter)"]


def test_what_one_workspace_is_shown_another_is_not(workspace):
    editor = Editor(workspace)
    assert editor.snippets("main.py", MAIN)
    inner = replace(editor.request("main.py", MAIN), workspace=str(workspace.root / "inner"))
    editor.gatherer._index = lambda _: None
    editor.documents.update(inner)
    assert editor.gatherer.snippets(inner, MOST) == ()


def test_a_like_part_of_another_document(workspace):
    editor = Editor(workspace)
    other = "def report(items):\n    total = sum_prices(items)\n    print_total(total)\n"
    editor.open("other.py", other)
    found = editor.snippets("new.py", "def bill(items):\n    total = sum_prices(items)\n    ")
    assert [(s.source, s.path) for s in found] == [("buffers", str(workspace.root / "other.py"))]
    assert found[0].text == other.strip("\n")


def test_lines_that_were_lost_lately(workspace):
    editor = Editor(workspace)
    editor.open("shapes.py", "a = 1\nold_name(first, second)\n")
    editor.open("shapes.py", "a = 1\nnew_thing(first)\n")
    found = editor.snippets("main.py", "x = 1\n")
    assert [s.text for s in found if s.source == "edits"] == ["old_name(first, second)"]


def test_an_edit_that_grows_is_shown_anew_when_it_is_twice_as_long(workspace):
    lines = [f"old_name_{i}(first, second)" for i in range(9)]
    editor, shown = Editor(workspace), set[str]()
    editor.open("shapes.py", "a = 1\n" + "\n".join(lines) + "\nb = 2\n")
    for n in range(1, 9):
        editor.open("shapes.py", "a = 1\n" + "\n".join(lines[n:]) + "\nb = 2\n")
        found = editor.snippets("main.py", "x = 1\n" * n)
        shown.update(s.text for s in found if s.source == "edits")
    assert [text.count("\n") + 1 for text in sorted(shown)] == [1, 2, 4, 8]


@pytest.mark.parametrize("source", ["symbols", "buffers", "edits"])
def test_each_source_can_be_switched_off(workspace, source):
    def sources(settings):
        editor = Editor(workspace, settings)
        editor.open("other.py", "def main():\n    area = circle_area(2)\n    lost_line(area)\n")
        editor.open("other.py", "def main():\n    area = circle_area(2)\n    kept_line(area)\n")
        return {s.source for s in editor.snippets("main.py", MAIN)}

    assert sources(ON) == {"symbols", "buffers", "edits"}
    switches = dict.fromkeys(("symbols", "buffers", "edits"), "on") | {source: "off"}
    off = msgspec.convert(switches, ContextSettings)
    assert sources(off) == {"symbols", "buffers", "edits"} - {source}


def test_the_clients_own_snippets_come_first_and_the_newest_have_room(workspace):
    given = tuple(Snippet("buffers", f"{n}.py", f"text = {n}\n" * 20) for n in range(9))
    request = replace(Editor(workspace).request("main.py", MAIN), extra=given)
    for settings in (ON, ContextSettings(buffers="off", symbols="on")):
        editor = Editor(workspace, settings)
        chosen = editor.gatherer.snippets(request, MOST)
        if settings is ON:
            assert 0 < len(chosen) < len(given)
            assert chosen == given[-len(chosen) :]
            shown = bytes(editor.gatherer.render(chosen, request).inside.tolist()).decode()
            assert shown.startswith(f"# Path: {chosen[0].path}\n# text = ")
        else:
            assert chosen == ()


def test_what_is_shown_follows_the_request(workspace):
    editor = Editor(workspace)
    one, two = (Snippet("buffers", str(workspace.root / f"{n}.py"), f"x = {n}\n") for n in (1, 2))

    def shown(*snippets: Snippet, path: str = "main.py") -> str:
        rendered = editor.gatherer.render(snippets, editor.request(path, MAIN))
        assert not len(rendered.before)
        return bytes(rendered.inside.tolist()).decode()

    assert [shown(one), shown(one)] == ["# Path: 1.py\n# x = 1\n#\n"] * 2
    assert shown(two) == "# Path: 2.py\n# x = 2\n#\n"
    assert shown(two, path="main.go").startswith("// Path: 2.py\n")
    assert shown(two, one) == shown(two) + shown(one)
    assert shown() == ""


def test_automatic_shows_small_models_recent_edits_alone(workspace):
    def sources(info):
        editor = Editor(workspace, ContextSettings(), info)
        editor.open("other.py", "def main():\n    area = circle_area(2)\n    lost_line(area)\n")
        editor.open("other.py", "def main():\n    area = circle_area(2)\n    kept_line(area)\n")
        return {s.source for s in editor.snippets("main.py", MAIN)}

    assert sources(INFO) == {"edits"}
    large = replace(INFO, n_params=AUTO_MIN_PARAMS)
    assert sources(large) == {"buffers", "edits", "symbols"}


@pytest.mark.parametrize("why", ["ignored", "deleted"])
def test_text_that_may_not_be_shown_any_more_goes_at_once(workspace, why):
    """Even while the cursor stays in its line, where nothing is looked for anew."""
    editor = Editor(workspace)
    assert editor.snippets("main.py", MAIN)
    if why == "ignored":
        workspace.write(".codespecignore", "shapes.py\n")
    else:
        (workspace.root / "shapes.py").unlink()
    assert editor.snippets("main.py", MAIN + "x") == ()


def test_values_of_open_documents_are_not_shown_and_the_rest_is(workspace):
    editor = Editor(workspace)
    token = "ghp_" + "aB3dE6gH9jK2" * 3
    code = f"KEY = '{token}'\n\n\ndef circle_area(radius, key='{token}'):\n    return area\n"
    editor.open("shapes.py", code)
    shown = editor.snippets("main.py", MAIN)
    assert {s.source for s in shown} == {"symbols", "buffers"}
    assert not any(token[4:12] in s.text for s in shown)


def test_a_window_that_turned_out_to_hold_a_secret_goes_at_once(workspace):
    editor = Editor(workspace)
    token = "ghp_" + "aB3dE6gH9jK2" * 3
    typed = "def main():\n    area = circle_area(2)\n    print(area)\nKEY = '"
    editor.open("other.py", f"{typed}{token[4:18]}'\n")  # which may be anything so far
    assert any(token[4:18] in s.text for s in editor.snippets("main.py", MAIN))
    editor.open("other.py", f"{typed}{token}'\n")
    shown = editor.snippets("main.py", MAIN + "x")  # in the same line
    assert any(s.source == "buffers" for s in shown)
    assert not any(token[4:18] in s.text for s in shown)


def test_what_a_client_gives_is_shown_without_secrets(workspace):
    editor = Editor(workspace)
    token = "ghp_" + "aB3dE6gH9jK2" * 3
    given = Snippet("buffers", "a.py", f"key = '{token}'\nx = 1\n")
    request = replace(editor.request("main.py", MAIN), extra=(given,))
    (shown,) = editor.gatherer.snippets(request, MOST)
    assert shown.text == "key = ''\nx = 1\n"


def test_typing_in_a_line_changes_nothing_before_it(workspace):
    editor = Editor(workspace)
    first = editor.snippets("main.py", MAIN)
    editor.open("other.py", MAIN)  # would be found, too
    assert editor.snippets("main.py", MAIN + "circle") == first
    further = editor.snippets("main.py", MAIN + "circle_area(3)\n    ")
    assert further[: len(first)] == first
    assert len(further) > len(first)


SNIPPETS = st.lists(
    st.builds(
        Snippet, st.just("symbols"), st.sampled_from("abc"), st.text("xy", min_size=1, max_size=6)
    ),
    max_size=6,
)


@given(st.lists(SNIPPETS, max_size=5), st.integers(1, 20))
def test_the_shelf_keeps_its_budget_and_its_order(rounds, budget):
    shelf = Shelf()
    before: tuple[Snippet, ...] = ()
    for wanted in rounds:
        now = shelf.choose(wanted, lambda s: len(s.text), budget)
        assert sum(len(s.text) for s in now) <= budget
        fits = [s for s in wanted if len(s.text) <= budget]
        if now[: len(before)] != before:
            assert fits[0] in now  # begun again, for the best
        if wanted and fits and fits[0] is wanted[0]:
            assert any(s.path == fits[0].path and fits[0].text in s.text for s in now)
        before = now


def test_what_is_defined_since_the_index_changed_is_shown_at_once(workspace):
    editor = Editor(workspace)
    assert editor.snippets("other.py", "perimeter(") == ()
    workspace.write("more.py", "def perimeter(x):\n    pass\n")
    workspace.build()
    assert [s.text for s in editor.snippets("other.py", "\nperimeter(")] == ["def perimeter(x)"]


def test_without_snippets_nothing_is_rendered():
    assert render((), INFO, TOKENIZER, "/w/a.py", "/w").n_tokens == 0
