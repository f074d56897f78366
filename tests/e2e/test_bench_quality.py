"""`codespec bench quality`, on a small package with the bundled draft as model."""

from __future__ import annotations

import json
import os
import subprocess
import sysconfig
from pathlib import Path

from click.testing import CliRunner

from codespec.cli import main
from codespec.config import load_settings
from codespec.models.bundled_pair import BUNDLED_DRAFT, bundled
from codespec_bench import quality
from codespec_bench.places import FINISHED, KINDS, CutPlace, places_in
from codespec_bench.quality import AnswerAtPlace
from codespec_bench.quality_report import configs_of

LIBRARY = Path(sysconfig.get_paths()["stdlib"])


def test_any_model_and_chosen_contexts(tmp_path: Path) -> None:
    source, answers = tmp_path / "json", tmp_path / "answers.jsonl"
    source.mkdir()
    for name in ("decoder", "encoder"):
        (source / f"{name}.py").write_text((LIBRARY / "json" / f"{name}.py").read_text())
    args = [
        "bench",
        "quality",
        str(source),
        "--places",
        "2",
        "--model",
        str(bundled(BUNDLED_DRAFT)),
    ]
    args += ["--draft-model", "none", "--only", "file", "--only", "+symbols"]
    for kind in (*KINDS, FINISHED):
        args += ["--kind", kind]
    result = CliRunner().invoke(main, [*args, "--json", "--answers", str(answers)])
    assert result.exit_code == 0, result.output
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    assert {row["config"] for row in rows} == {"truth", "file", "+symbols"}
    assert {row["model"] for row in rows} == {"codespec-draft"}
    by = {(row["config"], row["kind"], row["language"]): row for row in rows}
    assert by["truth", "all", "all"]["exact"] == 1
    assert by["file", "all", "all"]["n"] == by["+symbols", "all", "all"]["n"] == 6
    assert by["file", "all", "all"]["with_context"] == 0
    assert "similarity_gain" in by["+symbols", "line", "python"]
    given = [json.loads(line) for line in answers.read_text().splitlines()]
    assert len(given) == 3 * (6 + 2)
    given = [row for row in given if row["kind"] != "finished"]
    shown = [row for row in given if row["config"] == "file" and row["text"]]
    assert len(shown) == by["file", "all", "all"]["shown"] * 6
    again = CliRunner().invoke(main, [*args, "--json", "--against", str(answers)])
    printed = [json.loads(line) for line in again.stdout.splitlines()]
    same = [{**row, "ms_p50": 0} for row in printed if row["bench"] == "quality"]
    assert same == [{**row, "ms_p50": 0} for row in rows]
    gained = [row for row in printed if row["bench"] == "quality-against"]
    assert {row["config"] for row in gained} == {"truth", "file", "+symbols"}
    assert all(row["exact_gain"] == row["breaks_gain"] == 0 for row in gained)


def git(folder: Path, *args: str) -> None:
    names = {
        f"GIT_{who}_{what}": "a" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
    }
    subprocess.run(["git", "-C", str(folder), *args], env={**os.environ, **names}, check=True)


def package(folder: Path) -> Path:
    folder.mkdir()
    for name in ("decoder", "encoder", "scanner"):
        (folder / f"{name}.py").write_text((LIBRARY / "json" / f"{name}.py").read_text())
    return folder


def asked_in(places: list[CutPlace], config: str) -> dict[tuple[str, str], AnswerAtPlace]:
    settings = load_settings({"model": {"target": str(bundled(BUNDLED_DRAFT)), "draft": ""}})
    _, answers = quality.run(places, {config: configs_of(settings)[config]})
    return {(a.place.prefix, a.place.truth): a for a in answers if a.config == config}


def test_what_a_place_has_cut_out_is_no_recent_edit_at_the_next(tmp_path: Path) -> None:
    places = places_in(package(tmp_path / "json"), 6)
    assert len({place.path for place in places}) < len(places)
    found = asked_in(places, "+edits")
    assert [a.n_snippets for a in found.values()] == [0] * len(places)


def test_a_place_knows_nothing_of_the_places_before_it(tmp_path: Path) -> None:
    root = package(tmp_path / "json")
    git(root, "init", "--quiet")
    for n in range(2):
        for path in root.glob("*.py"):
            lines = path.read_text().split("\n")
            lines[40 + 9 * n : 44 + 9 * n] = [f"VALUES_{n} = [1, 2]", f"OTHERS_{n} = dict()"]
            path.write_text("\n".join(lines))
        git(root, "add", ".")
        git(root, "commit", "--quiet", "--message", "change")
    for path in root.glob("*.py"):  # whole again, or there are no places
        path.write_text((LIBRARY / "json" / path.name).read_text())
    places = places_in(root, 4)
    first, second = asked_in(places, "all"), asked_in(places[::-1], "all")
    assert any(a.n_snippets for a in first.values())
    seen = [(a.text, a.said, a.n_snippets) for a in first.values()]
    assert seen == [(b.text, b.said, b.n_snippets) for b in (second[key] for key in first)]
