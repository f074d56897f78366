"""One browser and one VS Code for all tests of this folder, and one window for most of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Browser, sync_playwright

from .. import chromium
from ..conftest import end_daemons, installed
from . import install
from .app import Code, Window, home_in, launch


@dataclass(frozen=True)
class Parts:
    server_main: Path
    browser: chromium.Chromium
    vsix: Path


@pytest.fixture(scope="package")
def parts() -> Parts:
    return installed(lambda: Parts(install.install(), chromium.install(), install.extension()))


@pytest.fixture(scope="package")
def browser(parts: Parts) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = launch(playwright, parts.browser)
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def code(parts: Parts, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Code]:
    """A user who has never used codespec, with a workspace that was never indexed."""
    folder = tmp_path_factory.mktemp("vscode")
    # Tests share the machine: two spinning threads on a busy core are slower than one.
    env = {**home_in(folder), "CODESPEC_MODEL_N_THREADS": "1"}
    code = Code(parts.server_main, parts.vsix, folder / "code", env)
    (folder / "workspace").mkdir()
    yield code
    code.close()
    end_daemons(folder / "run")


@pytest.fixture(scope="package")
def workspace(code: Code) -> Path:
    return code.folder.parent / "workspace"


@pytest.fixture(scope="package")
def shared_window(code: Code, browser: Browser, workspace: Path) -> Iterator[Window]:
    file = workspace / "start.py"
    file.write_text("")
    window = Window(code, browser, file)
    window.wait_for_status("ready")
    yield window
    window.close()


@pytest.fixture
def window(
    shared_window: Window, artifacts: Path, request: pytest.FixtureRequest
) -> Iterator[Window]:
    yield shared_window
    shared_window.screenshot(artifacts / f"vscode-{request.node.name}.png")
