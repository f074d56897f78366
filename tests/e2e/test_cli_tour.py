"""`codespec tour` on a small repository, with the bundled model."""

from __future__ import annotations

import json
import sysconfig
from pathlib import Path

import pytest

from codespec.cli.tour.tour_places import changed_lines, cut_lines, renamed_definitions
from codespec.edit import Edit
from tests.e2e.command_line import codespec, error
from tests.e2e.conftest import Home

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".git").mkdir(parents=True)
    for name in ("decoder.py", "encoder.py", "scanner.py"):
        (root / name).write_text((LIBRARY / "json" / name).read_text())
    (root / "again.py").write_text((LIBRARY / "json" / "encoder.py").read_text())
    return root


def test_a_newcomer_sees_all_of_it(home: Home, repository: Path) -> None:
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    said, _, _ = codespec("tour", repository)
    for title in ("The index", "A completion", "Why this", "A next edit", "What the doctor says"):
        assert title in said
    assert "came as drafts" in said
    assert "If you renamed" in said
    assert "likely, one of" in said
    after = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    assert after == before, "nothing in the workspace is changed"
    told = json.loads(codespec("tour", repository, "--json")[0])
    assert told["completion"]["text"]
    assert told["next_edit"]["chance"] >= 0.7
    assert told["next_edit"]["renamed"] in said
    assert told["explanation"]["passes"]
    assert {f["level"] for f in told["findings"]} <= {"ok", "note", "warning", "error"}


def test_a_repository_without_anything_to_show(home: Home, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    said, _, _ = codespec("tour", tmp_path / "empty")
    assert "No line stands here twice" in said
    assert "No definition here" in said
    assert "no such folder" in error("tour", tmp_path / "gone")


def test_places_are_whole_lines_of_their_files() -> None:
    text = "def load_all(path):\n    return [read_one(each) for each in path]\n"
    texts = [
        (Path(f"/w/{name}.py"), f"{text}\n\nx = load_all(1)\ny = load_all(2)\n") for name in "ab"
    ]
    places = list(cut_lines(texts))
    assert places
    for place in places:
        assert place.prefix + place.rest + place.suffix == texts[0][1]
        assert place.rest.strip()
    (first, _) = renamed_definitions(texts)
    assert (first.name, first.new_name, first.n_uses) == ("load_all", "load_all_again", 2)
    assert first.after == first.before.replace("load_all", "load_all_again", 1)
    assert first.after[: first.offset].endswith("load_all_again")


def lines_of(text: str, start: int, end: int, new: str) -> tuple[list[str], list[str]]:
    return changed_lines(text, Edit("", -1, start, end, new))


@pytest.mark.parametrize(
    ("text", "start", "end", "new", "expected"),
    [
        ("a = one\nb = one\n", 12, 15, "two", (["b = one"], ["b = two"])),
        ("a\nb\n", 2, 4, "", (["b"], [])),  # the last line, with its line end
        ("a\nb", 1, 3, "", (["b"], [])),  # with the one before it
        ("a\nb", 2, 3, "", (["b"], [""])),
        ("a", 0, 1, "", (["a"], [""])),
        ("a\nb\nc\n", 2, 4, "", (["b"], [])),
        ("a\nc\n", 2, 2, "b\n", ([], ["b"])),
        ("a\nb\nc\n", 0, 3, "x\ny", (["a", "b"], ["x", "y"])),
        ("", 0, 0, "a", ([""], ["a"])),
    ],
)
def test_an_edit_is_shown_in_whole_lines(
    text: str, start: int, end: int, new: str, expected: tuple[list[str], list[str]]
) -> None:
    assert lines_of(text, start, end, new) == expected
