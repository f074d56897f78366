"""A workspace to distil from, and the least that a distillation may do."""

from __future__ import annotations

import sysconfig
from pathlib import Path

import pytest

from codespec.config import Settings, load_settings
from codespec.distill.job import DistillJob
from codespec.distill.plan import DistillPlan

LIBRARY = Path(sysconfig.get_paths()["stdlib"])
QUICK = DistillPlan(n_tokens=1_000, tokens=6_000, n_places=2)


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "workspace"
    root.mkdir()
    for name in ("decoder", "encoder", "scanner", "tool"):
        (root / f"{name}.py").write_text((LIBRARY / "json" / f"{name}.py").read_text())
    (root / ".env").write_text("TOKEN = 'not to be learned'\n" * 100)
    (root / "README.md").write_text("Not code.\n" * 100)
    return root


def stage_of(job: DistillJob) -> str:
    status = job.status()
    assert status is not None
    return status.stage


def settings(**model: object) -> Settings:
    small = {"completion": {"n_prefix_tokens": 192, "n_suffix_tokens": 64}}
    return load_settings({"model": {"n_threads": 1, **model}, **small}, env={})
