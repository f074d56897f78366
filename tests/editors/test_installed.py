from __future__ import annotations

import pytest

from .chromium import install as install_chromium
from .conftest import installed
from .install import run


def test_the_browser_runs() -> None:
    assert installed(install_chromium).program.is_file()


def test_what_cannot_be_installed_says_why() -> None:
    def install() -> None:
        run(["sh", "-c", "echo no such mirror >&2; exit 3"])

    with pytest.raises(pytest.skip.Exception, match="no such mirror"):
        installed(install)
