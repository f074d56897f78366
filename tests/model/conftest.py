"""Engines with the bundled pair, and our own kernels by each instruction set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from codespec.backends.llama import kernels
from codespec.config import Settings
from codespec.engine.local import LocalEngine


@pytest.fixture(scope="module")
def engine(
    tmp_path_factory: pytest.TempPathFactory, model_options: Settings
) -> Iterator[LocalEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        engine = LocalEngine(model_options)
        yield engine
        engine.close()


@pytest.fixture(params=kernels.NAMES)
def instructions(request: pytest.FixtureRequest) -> Iterator[str]:
    kernels.use(True, request.param)
    yield request.param
    kernels.use(True)
