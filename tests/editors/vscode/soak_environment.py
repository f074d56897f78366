"""The extension makes a Python environment from the source it brings, and completes with it.

That takes minutes, and packages from the index: part of `make soak`, not of `make test`.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from ..install import CACHE
from .app import Code, Window, home_in
from .conftest import Parts


@pytest.mark.timeout(1800)
def test_the_extension_makes_its_environment(
    parts: Parts, browser: Browser, tmp_path: Path, artifacts: Path
) -> None:
    env = home_in(tmp_path)
    cache = Path(env["XDG_CACHE_HOME"]) / "codespec"
    cache.mkdir()
    wheels = CACHE.parent / "wheels"
    if wheels.is_dir():
        (cache / "wheels").symlink_to(wheels)
    code = Code(parts.server_main, parts.vsix, tmp_path / "code", env, program="")
    file = tmp_path / "workspace" / "main.py"
    file.parent.mkdir()
    file.write_text("")
    window = Window(code, browser, file)
    try:
        window.wait_for_status("codespec: error", "codespec is not installed")
        window.command("codespec: Create Python Environment")
        give_up_at = time.monotonic() + 1500
        while "codespec: ready" not in window.status:
            assert time.monotonic() < give_up_at, window.status
            window.page.wait_for_timeout(500)
        made = list(tmp_path.glob("**/environment-*/.venv/bin/codespec"))
        assert len(made) == 1
        window.type("import os\n\nfor name in os.listdir(")
        window.wait_for_ghost()
    finally:
        window.screenshot(artifacts / "vscode-environment.png")
        window.close()
        code.close()
        code.codespec("daemon", "stop")
