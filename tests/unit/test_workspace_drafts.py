"""Which draft model a workspace gets: by costs, or a distilled one, and what goes when that is
replaced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from codespec.config import ModelSettings
from codespec.cost.cost_curve import CostCurve
from codespec.engine.draft_models import Choice, WorkspaceDrafts, dearest
from codespec.errors import ModelError
from codespec.models import distilled, resolve
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET
from codespec.models.resolve import TIMES_DEARER, draft_paths
from codespec.rules.secrets import VERSION
from tests.drafters import ScriptedDrafter


class Shelf:
    """Draft models as they lie on disk, and those that are loaded."""

    def __init__(self, home: Path) -> None:
        self.target = home / "target.gguf"
        self.target.write_bytes(b"weights")
        self.workspace = str(home / "w")
        self.loaded: list[Path] = []
        self.n_loads = 0
        self.drafts = WorkspaceDrafts(self.target, self._load)

    def _load(self, path: Path) -> tuple[ScriptedDrafter, Callable[[], None]]:
        self.n_loads += 1
        if path.read_bytes() == b"damaged":
            raise ModelError(f"{path}: it is damaged")
        self.loaded.append(path)
        return ScriptedDrafter(), lambda: self.loaded.remove(path)

    def put(
        self, name: str, content: bytes = b"draft", workspace: str = "", secrets: int = VERSION
    ) -> Path:
        where = workspace or self.workspace
        folder = distilled.draft_folder(distilled.fingerprint(self.target), where)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)
        after = distilled.DraftFigures(acceptance=0.5, speed=1.5, n_drafted=100)
        record = distilled.DraftRecord(
            file=name,
            target="t",
            target_path=str(self.target),
            workspace=where,
            n_params=1,
            n_vocab=1,
            n_places=1,
            n_draft=1,
            before=None,
            after=after,
            secrets=secrets,
        )
        (folder / distilled.RECORD).write_bytes(msgspec.json.encode(record))
        return folder / name


@pytest.fixture
def shelf(tmp_path: Path) -> Shelf:
    return Shelf(tmp_path)


def test_a_draft_of_other_rules_of_secrets_is_not_used(shelf: Shelf) -> None:
    shelf.put("draft.gguf", secrets=VERSION - 1)
    assert shelf.drafts.get(shelf.workspace) is None
    shelf.put("draft.gguf")
    assert shelf.drafts.get(shelf.workspace) is not None


def test_a_draft_that_is_replaced_is_unloaded(shelf: Shelf) -> None:
    other = shelf.put("other.gguf", workspace="/other")
    assert shelf.drafts.get("/other") is not None
    for i in range(3):
        path = shelf.put(f"draft-{i}.gguf")
        assert shelf.drafts.get(shelf.workspace) is shelf.drafts.get(shelf.workspace + "/")
        assert shelf.loaded == [other, path]
    Path(shelf.loaded[-1]).unlink()
    assert shelf.drafts.get(shelf.workspace) is None
    assert shelf.loaded == [other]


def test_what_a_request_uses_stays_loaded(shelf: Shelf) -> None:
    old = shelf.put("old.gguf")
    in_use = shelf.drafts.get(shelf.workspace)
    new = shelf.put("new.gguf")
    for _ in range(2):
        assert shelf.drafts.get(shelf.workspace) is not in_use
        assert shelf.loaded == [old, new]
    del in_use
    shelf.drafts.get(shelf.workspace)
    assert shelf.loaded == [new]


def test_a_draft_that_cannot_be_used_is_tried_again_when_it_changes(shelf: Shelf) -> None:
    shelf.put("draft.gguf", b"damaged")
    for _ in range(3):
        assert shelf.drafts.get(shelf.workspace) is None
    assert shelf.n_loads == 1
    path = shelf.put("draft.gguf", b"mended")
    assert shelf.drafts.get(shelf.workspace) is not None
    assert shelf.loaded == [path]
    assert shelf.n_loads == 2


class StubPace:
    def __init__(self, ms: float) -> None:
        self.curve = CostCurve({1: ms})
        self.is_measured = False


def test_the_best_draft_model_is_asked_whose_passes_are_cheap() -> None:
    target = CostCurve({1: TIMES_DEARER * 2.0})
    for n_cheap, costs in (
        (1, [1.0, 2.1]),
        (2, [1.0, 2.0]),
        (3, [1.0, 1.5, 1.9]),
        (1, [5.0, 9.0]),
        (1, [0.1]),
    ):
        assert dearest(target, [CostCurve({1: ms}) for ms in costs]) == n_cheap - 1


def test_load_that_one_of_them_met_does_not_choose():
    target, small = CostCurve({1: 100.0}), [CostCurve({1: ms}) for ms in (0.1, 3.0)]
    for _ in range(100):
        target.observe(1, 300.0)
    assert target.pass_ms(1) > 200.0
    assert dearest(target, small) == 0
    guess = CostCurve({1: 100.0}, is_prior=True)
    guess.observe(1, 300.0)
    assert dearest(guess, small) == 1


def test_the_choice_is_for_good_once_all_is_measured() -> None:
    target, cheap, dear = StubPace(TIMES_DEARER), StubPace(0.1), StubPace(0.9)
    small = [(ScriptedDrafter(), cheap), (ScriptedDrafter(), dear)]
    choice = Choice(target, small)  # pyright: ignore[reportArgumentType]
    assert choice.get() is small[1][0]
    for tuner in (target, cheap):
        tuner.is_measured = True
    dear.curve = CostCurve({1: 1.1})
    assert choice.get() is small[0][0]
    dear.curve = CostCurve({1: 0.9})
    dear.is_measured = True
    assert choice.get() is small[1][0]
    dear.curve = CostCurve({1: 1.1})
    assert choice.get() is small[1][0]
    assert Choice(target, []).get() is None  # pyright: ignore[reportArgumentType]


def test_the_bundled_target_is_one_of_several_for_large_targets_of_auto_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    auto, none = ModelSettings(), ModelSettings(draft="")
    given = ModelSettings(draft=str(tmp_path / "draft.gguf"))
    enough = TIMES_DEARER * resolve.bundled(BUNDLED_TARGET).stat().st_size
    assert [p.name for p in draft_paths(auto, enough - 1)] == [BUNDLED_DRAFT]
    assert [p.name for p in draft_paths(auto, enough)] == [BUNDLED_DRAFT, BUNDLED_TARGET]

    def missing(name: str) -> Path:
        raise ModelError(f"{name} is missing from this installation")

    monkeypatch.setattr(resolve, "bundled", missing)
    assert draft_paths(given, enough) == (tmp_path / "draft.gguf",)
    assert draft_paths(none, enough) == ()
