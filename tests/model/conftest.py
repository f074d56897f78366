"""Engines with the bundled pair, our own kernels by each instruction set, and models with a layer
of their own that drafts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from codespec.backends.llama import kernels
from codespec.config import Settings
from codespec.cost import measure
from codespec.engine.local import LocalEngine
from tests import zoo
from tests.engines import strict_engine
from tests.mtp_head import FAMILIES


@pytest.fixture(autouse=True)
def _measured_in_two_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Costs of real passes, from as many as a test needs: none judges how quick they are."""
    monkeypatch.setattr(measure, "N_ROUNDS", 2)


@pytest.fixture(scope="module")
def engine(
    tmp_path_factory: pytest.TempPathFactory, model_options: Settings
) -> Iterator[LocalEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        engine = strict_engine(model_options)
        yield engine
        engine.close()


@pytest.fixture(params=kernels.NAMES)
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    kernels.use(True, request.param)
    yield request.param
    kernels.use(True)


@pytest.fixture(scope="module", params=FAMILIES)
def mtp_family(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def mtp_file(mtp_family: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("own") / f"{mtp_family}.gguf"
    return zoo.write(path, mtp_family, mtp_head=True)
