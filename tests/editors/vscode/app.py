"""VS Code as a user meets it: a server process with a real extension host, and a window in a
browser, driven by keys and read from the screen."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Generator
from pathlib import Path
from urllib.parse import quote

import psutil
from playwright.sync_api import Browser, Page, Playwright
from playwright.sync_api import Error as PlaywrightError

from .. import node
from ..chromium import Chromium

TIMEOUT_S = 60.0
KEPT = ("PATH", "LANG", "CODESPEC_MODEL_N_THREADS")
PROGRAM = str(Path(sys.executable).parent / "codespec")
_STATUS = '[id="codespec.codespec.codespec"] a'
# After the cursor, then in lines of its own.
GHOST = """() => {
  const of = (all) => [...document.querySelectorAll(all)].map((e) => e.textContent);
  const inline = of('.monaco-editor .view-lines .ghost-text-decoration').join('');
  const lines = of('.monaco-editor .suggest-preview-text .view-line');
  return [inline, ...lines].join('\\n').replaceAll('\\u00a0', ' ');
}"""
_SETTINGS = {
    "workbench.startupEditor": "none",
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "telemetry.telemetryLevel": "off",
    "chat.disableAIFeatures": True,
    "extensions.autoUpdate": False,
    "extensions.autoCheckUpdates": False,
    "editor.quickSuggestions": {"other": "off", "comments": "off", "strings": "off"},
    "editor.suggestOnTriggerCharacters": False,
    "editor.autoClosingBrackets": "never",
    "editor.minimap.enabled": False,
    "git.enabled": False,
    # One click less; what an untrusted workspace may do is a test of its own.
    "security.workspace.trust.enabled": False,
}


def until(condition: Callable[[], object], what: str | Callable[[], str]) -> None:
    give_up_at = time.monotonic() + TIMEOUT_S
    while not condition():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"waited in vain: {what if isinstance(what, str) else what()}")
        time.sleep(0.02)


def launch(playwright: Playwright, chromium: Chromium) -> Browser:
    env: dict[str, str | float | bool] = {**os.environ, **chromium.env}
    flags = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"]
    return playwright.chromium.launch(executable_path=chromium.program, args=flags, env=env)


def home_in(folder: Path) -> dict[str, str]:
    """Environment of a user who has never used codespec."""
    env = {name: os.environ[name] for name in KEPT if name in os.environ}
    for name, path in (
        ("HOME", folder / "home"),
        ("XDG_RUNTIME_DIR", folder / "run"),
        ("XDG_CACHE_HOME", folder / "home" / ".cache"),
        ("XDG_CONFIG_HOME", folder / "home" / ".config"),
    ):
        path.mkdir(mode=0o700)
        env[name] = str(path)
    return env


class Code:
    """The server. `env`: of it, its extension host and so of our language server."""

    def __init__(
        self,
        server_main: Path,
        vsix: Path | None,
        folder: Path,
        env: dict[str, str],
        program: str = PROGRAM,
    ) -> None:
        self.folder = folder
        self.program = program
        # Nothing is looked up in a market place.
        self.env = {**env, "EXTENSIONS_GALLERY": "{}"}
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port: int = probe.getsockname()[1]
        user = folder / "user"
        (user / "User").mkdir(parents=True)
        self._user = user / "User" / "settings.json"
        self._user.write_text(json.dumps(_SETTINGS))
        # What names a program cannot come from a user who sits elsewhere, so it is set here.
        self._machine = user / "Machine" / "settings.json"
        self._machine.parent.mkdir()
        self.set_program(program)
        command = [str(node.PROGRAM), str(server_main)]
        folders = [
            *("--user-data-dir", str(user)),
            *("--extensions-dir", str(folder / "extensions")),
            *("--server-data-dir", str(folder / "server")),
        ]
        self._log = (folder / "server.log").open("w")
        if vsix:
            subprocess.run(
                [*command, *folders, "--install-extension", str(vsix)],
                env=self.env, check=True, stdout=self._log, stderr=self._log,
            )  # fmt: skip
        self._process = subprocess.Popen(
            [
                *command, *folders, "--host", "127.0.0.1", "--port", str(self.port),
                "--without-connection-token", "--accept-server-license-terms",
                "--telemetry-level", "off", "--enable-smoke-test-driver",
                "--reconnection-grace-time", "1",
            ],
            env=self.env, stdout=self._log, stderr=self._log, start_new_session=True,
        )  # fmt: skip
        until(self._answers, "VS Code's server")

    def _answers(self) -> bool:
        assert self._process.poll() is None, (self.folder / "server.log").read_text()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        with contextlib.closing(connection), contextlib.suppress(OSError):
            connection.request("GET", "/version")
            with connection.getresponse() as response:
                return response.status == 200
        return False

    def set_program(self, path: str) -> None:
        """The setting codespec.path; "" for none."""
        self._machine.write_text(json.dumps({"codespec.path": path}))

    @contextlib.contextmanager
    def settings(self, settings: dict[str, object]) -> Generator[None]:
        """The user's settings over those of all tests, for windows that are opened meanwhile."""
        self._user.write_text(json.dumps({**_SETTINGS, **settings}))
        try:
            yield
        finally:
            self._user.write_text(json.dumps(_SETTINGS))

    def url(self, folder: Path, payload: list[list[str]]) -> str:
        return (
            f"http://127.0.0.1:{self.port}/?folder={quote(str(folder))}"
            f"&payload={quote(json.dumps(payload))}"
        )

    def remote(self, path: Path) -> str:
        return f"vscode-remote://127.0.0.1:{self.port}{path}"

    def codespec(self, *arguments: str) -> str:
        """Output of the command line, in the environment of the server."""
        return subprocess.run(
            [PROGRAM, *arguments], env=self.env, check=True, capture_output=True, text=True
        ).stdout

    def servers(self) -> dict[int, int]:
        """The language servers of all windows, by the processes that started them: of each window
        its own."""
        found: dict[int, int] = {}
        for child in psutil.Process(self._process.pid).children(recursive=True):
            with contextlib.suppress(psutil.NoSuchProcess):
                if child.cmdline()[-1:] == ["lsp"]:
                    found[child.ppid()] = child.pid
        return found

    def daemon(self, n_editors: int) -> dict[str, int]:
        """The daemon's status once so many editors are connected: one that connects anew leaves
        its old connection later."""
        found: dict[str, int] = {}

        def are_connected() -> bool:
            found.update(json.loads(self.codespec("daemon", "status", "--json")))
            return found["n_clients"] == n_editors

        until(are_connected, lambda: f"{n_editors} editors at {found}")
        return found

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGTERM)
        self._process.wait(TIMEOUT_S)
        self._log.close()


class Window:
    """One window with one file open."""

    def __init__(self, code: Code, browser: Browser, file: Path) -> None:
        self.file = file
        self._context = browser.new_context(viewport={"width": 1100, "height": 600})
        self._context.set_default_timeout(TIMEOUT_S * 1000)
        self.page: Page = self._context.new_page()
        payload = [["openFile", code.remote(file)], ["skipWelcome", "true"]]
        self.page.goto(code.url(file.parent, payload))
        self.page.locator(".monaco-editor .view-line").first.wait_for()
        self.page.locator(".monaco-editor .view-lines").first.click()

    @property
    def status(self) -> str:
        """State and reason, as a screen reader says them; "" before there is an item."""
        item = self.page.locator(_STATUS)
        return (item.get_attribute("aria-label") or "") if item.count() else ""

    def wait_for_status(self, *words: str) -> None:
        until(
            lambda: all(word in self.status for word in words),
            lambda: f"{words}, not {self.status}",
        )

    @contextlib.contextmanager
    def ready_again(self) -> Generator[None]:
        """Wait, after the body has started a server anew, until that one is ready.

        The status is drawn some time after it has changed: that it says ready means nothing before
        it has said something else.
        """
        self.page.evaluate(
            """(item) => {
              const look = () => {
                const label = document.querySelector(item)?.getAttribute('aria-label') ?? '';
                if (label.startsWith('codespec: thinking')) window.was_thinking = true;
              };
              window.was_thinking = false;
              window.status_seen = new MutationObserver(look);
              const what = { subtree: true, childList: true, attributeFilter: ['aria-label'] };
              window.status_seen.observe(document.body, what);
            }""",
            _STATUS,
        )
        try:
            yield
            until(
                lambda: self.page.evaluate("window.was_thinking"),
                lambda: f"another start; {self.status}",
            )
            self.wait_for_status("codespec: ready")
        finally:
            self.page.evaluate("window.status_seen.disconnect()")

    @property
    def ghost(self) -> str:
        """The text that is suggested at the cursor; "" for none."""
        return str(self.page.evaluate(GHOST))

    def wait_for_ghost(self) -> str:
        """The suggested text once it stays: an answer comes within 400 ms or not at all."""
        seen, since = "", time.monotonic()

        def is_settled() -> bool:
            nonlocal seen, since
            if self.ghost != seen:
                seen, since = self.ghost, time.monotonic()
            return bool(seen) and time.monotonic() - since > 0.5

        until(is_settled, lambda: f"ghost text; {self.status}")
        return seen

    def wait_for_no_ghost(self) -> None:
        until(lambda: not self.ghost, "no ghost text")

    def record_frames(self) -> None:
        """From the next frame on, which it waits for, the suggested text in each that the browser
        draws."""
        self.page.evaluate(f"""() => {{
          const ghost = {GHOST};
          window.frames_seen = [];
          const look = () => {{
            if (!window.frames_seen) return;
            window.frames_seen.push(ghost());
            requestAnimationFrame(look);
          }};
          requestAnimationFrame(look);
        }}""")
        self.wait_for_frame()

    def wait_for_frame(self) -> None:
        """Wait until the present content of the page is drawn."""
        self.page.evaluate("() => new Promise(requestAnimationFrame)")

    def recorded_frames(self) -> list[str]:
        """End the recording. Returns: its frames."""
        frames: list[str] = self.page.evaluate(
            "() => { const seen = window.frames_seen; window.frames_seen = null; return seen; }"
        )
        return frames

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str, delay_ms: float = 60) -> None:
        self.page.keyboard.type(text, delay=delay_ms)

    def wait_for_text(self, text: str) -> None:
        """Saves until the file has `text`, line ends included."""

        def is_saved() -> bool:
            self.press("Control+KeyS")
            return self.file.read_bytes().decode() == text

        until(is_saved, f"{text!r} in the file")

    def open(self, file: Path) -> None:
        self._choose("Control+KeyP", str(file), file.name)
        title = f'.tab.active[data-resource-name="{file.name}"]'
        self.page.locator(title).first.wait_for()
        self.page.locator(".monaco-editor.focused").first.wait_for()
        self.file = file

    def command(self, title: str) -> None:
        """Runs a command of the palette."""
        self._choose("F1", f">{title}", title)

    def _choose(self, key: str, text: str, row: str) -> None:
        """Types into the box that `key` opens, and takes the row that it finds."""
        box = self.page.locator(".quick-input-widget input").first
        row_of = f'.quick-input-list .monaco-list-row.focused:has-text("{row}")'

        def is_found() -> bool:
            # The box closes when something else takes the focus: then all of it once more.
            self.press(key)
            try:
                box.wait_for(state="visible", timeout=10_000)
                box.fill(text, timeout=3_000)
                self.page.locator(row_of).first.wait_for(timeout=10_000)
            except PlaywrightError:
                return False
            return True

        until(is_found, f"{row} in the box of {key}")
        self.press("Enter")
        # Not hidden: what was chosen may ask something itself, in the same box.
        until(lambda: not box.is_visible() or box.input_value() != text, "the choice to be taken")

    def screenshot(self, path: Path) -> None:
        self.page.screenshot(path=path)

    def close(self) -> None:
        self._context.close()
