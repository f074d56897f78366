"""Code of ours in VS Code's extension host, beside the extension: `exthost/index.js`."""

from __future__ import annotations

from pathlib import Path

from playwright.sync_api import Browser

from . import install
from .app import Code, until

_TESTS = Path(__file__).parent / "exthost" / "index.js"


def test_in_the_extension_host(code: Code, browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("import os\n")
    payload = [
        ["extensionDevelopmentPath", code.remote(install.PLUGIN)],
        ["extensionTestsPath", code.remote(_TESTS)],
        ["skipWelcome", "true"],
    ]
    context = browser.new_context()
    try:
        context.new_page().goto(code.url(tmp_path, payload))
        result = tmp_path / "result"
        until(result.exists, "the tests to end")
        assert result.read_text() == "passed"
    finally:
        context.close()
