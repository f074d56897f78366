"""A Neovim driven by keys, as its user interface sees it."""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import msgpack

from tests.e2e.conftest import wait_until_gone

from .install import Neovim
from .screen import GHOST_RGB, Frame, Screen

TIMEOUT_S = 60.0
LOOK_S = 0.005
"""Seconds between two looks: whoever is waited for needs the processor."""
PLUGIN = Path(__file__).parents[3] / "editor-plugins" / "neovim"
ROWS, COLUMNS = 24, 90


def command(neovim: Neovim, *more: str) -> list[str]:
    """A Neovim with the plug-in on its runtimepath and nothing of the user's."""
    return [
        str(neovim.program), "-u", "NONE", "-i", "NONE", "-n",
        "--cmd", f"set rtp^={PLUGIN}", "--cmd", "set termguicolors shortmess+=I",
        "--cmd", "runtime plugin/codespec.lua", "--cmd", "filetype plugin indent on",
        "--cmd", f"highlight CodespecGhostText guifg=#{GHOST_RGB:06x}", *more,
    ]  # fmt: skip


class Editor:
    """Keys go in as typed; what comes back are frames and the text of the buffer.

    Speaks Neovim's msgpack-RPC over its standard streams itself: the usual client leaves event
    loops and sockets open behind it, which tests here count as errors.
    """

    def __init__(
        self,
        neovim: Neovim,
        env: dict[str, str],
        cwd: Path,
        setup: str = "{}",
        *more: str,
        screen: Screen | None = None,
        size: tuple[int, int] = (COLUMNS, ROWS),
    ) -> None:
        """setup: what the plug-in's setup() is given, in Lua; "" to not call it. size: columns and
        rows."""
        self.screen = screen or Screen()
        self._ids = count(1)
        self._unpacker = msgpack.Unpacker(strict_map_key=False, unicode_errors="surrogateescape")
        if setup:
            more = (*more, "-c", f"lua require('codespec').setup({setup})")
        self._process = subprocess.Popen(
            command(neovim, "--embed", *more),
            cwd=cwd,
            env={**os.environ, **env, **neovim.env},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._process.pid
        options = {"rgb": True, "ext_linegrid": True}
        self.request("nvim_ui_attach", *size, options)
        self.read()

    # --- what goes in -----------------------------------------------------------------------

    def request(self, method: str, *arguments: object) -> Any:
        """Its result. Frames that come before it are kept."""
        number = next(self._ids)
        assert self._process.stdin is not None
        self._process.stdin.write(msgpack.packb([0, number, method, arguments]))
        self._process.stdin.flush()
        give_up_at = time.monotonic() + TIMEOUT_S
        while (message := self._take(give_up_at))[:2] != [1, number]:
            if message[1] == "redraw":
                self.screen.redraw(message[2])
        assert message[2] is None, message[2]
        return message[3]

    def _take(self, give_up_at: float) -> list[Any]:
        """The next message: [1, id, error, result] or [2, method, arguments]."""
        out = self._process.stdout
        assert out is not None
        while (message := next(self._unpacker, None)) is None:
            ready, _, _ = select.select([out], [], [], max(0.0, give_up_at - time.monotonic()))
            assert ready, "Neovim does not answer"
            received = os.read(out.fileno(), 1 << 16)
            if not received:
                raise EOFError("Neovim ended")
            self._unpacker.feed(received)
        return message

    def type(self, keys: str) -> None:
        self.request("nvim_input", keys)

    def open(self, path: Path) -> None:
        self.request("nvim_command", f"edit {path}")

    def lua(self, code: str, *arguments: object) -> Any:
        return self.request("nvim_exec_lua", code, arguments)

    # --- what comes out ---------------------------------------------------------------------

    def read(self) -> Frame:
        """The last frame that it has shown up to now."""
        self.request("nvim_get_mode")  # answered even while it waits for a key
        return self.screen.frames[-1]

    def wait(self, matches: Callable[[Frame], object], what: object = "") -> Frame:
        """The frame that is shown when `matches` says so. `what`: to say otherwise."""
        give_up_at = time.monotonic() + TIMEOUT_S
        while not matches(frame := self.read()):
            said = what() if callable(what) else what
            assert time.monotonic() < give_up_at, f"{said}\n" + "\n".join(frame.lines)
            time.sleep(LOOK_S)
        return frame

    def wait_for_ghost(self) -> Frame:
        return self.wait(lambda frame: frame.ghost, lambda: f"no ghost text: {self.status()}")

    def wait_for(self, condition: Callable[[], object], what: object = "") -> None:
        self.wait(lambda _: condition(), what)

    def status(self) -> dict[str, str]:
        return self.lua("return require('codespec').status()")

    def wait_for_status(self, kind: str) -> str:
        """Its message."""
        self.wait_for(
            lambda: self.status()["kind"] == kind, lambda: f"never {kind}: {self.status()}"
        )
        return self.status()["message"]

    def idle(self) -> Frame:
        """The frame when all keys are processed and nothing is asked or about to be."""
        self.wait_for(lambda: not self.lua("return require('codespec.inline').busy()"))
        return self.read()

    @property
    def text(self) -> str:
        return "\n".join(self.request("nvim_buf_get_lines", 0, 0, -1, True))

    @property
    def cursor(self) -> tuple[int, int]:
        """Line from 1, column in bytes from 0."""
        row, column = self.request("nvim_win_get_cursor", 0)
        return row, column

    @property
    def suggested(self) -> str:
        """The text that accepting would insert, "" if nothing is shown."""
        return self.lua("return require('codespec').text()") or ""

    @property
    def messages(self) -> str:
        return self.request("nvim_exec2", "messages", {"output": True})["output"]

    @property
    def server_pid(self) -> int:
        """Process id of its language server, 0 if there is none."""
        try:
            children = Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()
        except OSError:
            return 0
        return int(children[0]) if children else 0

    def wait_for_end(self) -> None:
        """After a key that ends it; its server ends with it."""
        server = self.server_pid
        self._process.wait(TIMEOUT_S)
        if server:
            wait_until_gone(server)

    def close(self) -> None:
        """Returns when its server has ended, too: that would start a daemon that is ended."""
        server = self.server_pid
        try:
            self.request("nvim_command", "qall!")
        except (EOFError, BrokenPipeError):
            pass  # it has ended
        except BaseException:
            self._process.kill()
            raise
        finally:
            self._process.wait(TIMEOUT_S)
            for stream in (self._process.stdin, self._process.stdout):
                assert stream is not None
                with contextlib.suppress(BrokenPipeError):  # it has ended before
                    stream.close()
        if server:
            wait_until_gone(server)
