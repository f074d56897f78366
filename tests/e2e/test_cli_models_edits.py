"""Next-edit models on the command line: known by name, chosen apart from the one that completes."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from codespec.config import load_settings
from codespec.models import catalogue, entries
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from tests.models_cli import config as config
from tests.models_cli import ok, run


@pytest.fixture
def sweep(tmp_path: Path) -> Path:
    path = tmp_path / "sweep-next-edit-tiny.gguf"
    path.write_bytes(bundled(BUNDLED_TARGET).read_bytes())
    return path


def chosen() -> str:
    return load_settings(env=dict(os.environ)).edits.model


def test_one_is_chosen_beside_the_model_that_completes(sweep: Path, config: Path) -> None:
    config.write_text('[edits]\nwhere = "file"\n')
    assert f'edits.model = "{sweep}"' in ok("default", "--edits", sweep)
    assert chosen() == str(sweep)
    settings = load_settings(env=dict(os.environ))
    assert (settings.edits.where, settings.model.target) == ("file", "")
    listed = {row["path"]: row for row in json.loads(ok("list", "--json"))["models"]}
    assert listed[str(sweep)]["default"] == "edits"
    assert json.loads(ok("show", sweep, "--no-speed", "--json"))["next_edits"] == "Sweep Next Edit"
    ok("add", sweep)
    assert "codespec models default --edits none" in ok("remove", "sweep-next-edit-tiny")
    ok("default", "--edits", "none")
    assert chosen() == ""


def test_another_model_is_refused(tmp_path: Path, config: Path) -> None:
    other = tmp_path / "other.gguf"
    other.write_bytes(bundled(BUNDLED_TARGET).read_bytes())
    refused = run("default", "bundled", "--edits", other)
    assert refused.exit_code == 1
    assert "no next-edit model" in refused.output
    assert config.read_text() == "", "nothing is written where a part is refused"
    shown = json.loads(ok("show", other, "--no-speed", "--json"))
    assert shown["next_edits"] is None


def test_they_are_known_and_never_recommended_for_completion() -> None:
    known = {entry.name: entry for entry in entries.ENTRIES if entry.for_edits}
    assert {"sweep-next-edit-0.5b", "sweep-next-edit-1.5b", "zeta-2.1-q4"} <= set(known)
    best = {catalogue.recommended(catalogue.Tier("", n << 30, "")) for n in range(64)}
    assert not best & set(known.values())
    models = json.loads(ok("recommend", "--no-speed", "--json"))["models"]
    assert {m["name"] for m in models if m["for_edits"]} == set(known)
    assert all(m["licence"] == "Apache-2.0" and m["memory_bytes"] for m in models if m["for_edits"])


def test_one_is_recommended_beside_the_model_that_completes_where_both_fit() -> None:
    found = dict[int, str]()
    for n_gib in range(1, 64):
        room = n_gib << 30
        tier = catalogue.Tier("", room, "")
        completes = catalogue.recommended(tier)
        edits = catalogue.recommended_for_edits(tier, completes)
        assert sum(e.memory_bytes for e in (completes, edits) if e) <= room
        if edits is not None:
            assert edits.for_edits
            found[n_gib] = edits.name
    assert found[63] == "zeta-2.1-q4"
    # A processor's time bounds each of them, its memory both together.
    roomy = catalogue.Tier("", 2 << 30, "", room_bytes=8 << 30)
    beside = catalogue.recommended_for_edits(roomy, catalogue.recommended(roomy))
    assert beside is not None
    assert beside.name == "sweep-next-edit-0.5b"
