"""Engines with the bundled pair."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

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
