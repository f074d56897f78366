"""The command line and what it is connected to: terminals, closed input, full disks."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.usage.statistics import Stats
from tests.e2e.command_line import codespec, error


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
@pytest.mark.parametrize("args", [["--help"], ["models", "list"]])
def test_output_that_cannot_be_written(args):
    with Path("/dev/full").open("w") as full:
        command = [sys.executable, "-m", "codespec", *args]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("error: No space left on device\n  Check where the output goes")
    assert "Traceback" not in done.stderr


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")
@pytest.mark.parametrize(
    ("variable", "is_plain"), [("NO_COLOR=", False), ("NO_COLOR=1", True), ("TERM=dumb", True)]
)
@pytest.mark.parametrize("args", [["index", "/nowhere"], ["doctor", "/", "--quick"]])
def test_colours_can_be_switched_off(variable, is_plain, args):
    master, slave = os.openpty()
    name, _, value = variable.partition("=")
    env = {**os.environ, "TERM": "xterm", name: value}
    command = [sys.executable, "-m", "codespec", *args]
    with subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, env=env):
        os.close(slave)
        said = os.read(master, 12)  # the first words, before what may fill the terminal
        with contextlib.suppress(OSError):  # its end
            while os.read(master, 1 << 16):
                pass
    os.close(master)
    assert said.startswith(b"\x1b[") is not is_plain


@pytest.mark.skipif(os.name != "posix", reason="closes it by a shell")
def test_a_question_with_no_input_at_all():
    stats = Stats()
    stats.typed("python", 1)
    stats.flush()
    command = f"{shlex.quote(sys.executable)} -m codespec stats --delete <&-"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "Delete all statistics? [y/N]: Aborted!\n")


@pytest.mark.skipif(os.name != "posix", reason="needs a terminal of its own")
def test_ctrl_c_ends_the_language_server_on_a_terminal():
    """A thread of the server waits for input there."""
    import tty

    master, slave = os.openpty()
    tty.setraw(slave)
    server = subprocess.Popen(
        [sys.executable, "-m", "codespec", "lsp"],
        stdin=slave,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        message = {"processId": None, "rootUri": None, "capabilities": {}}
        asked = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": message}
        body = json.dumps(asked).encode()
        os.write(master, b"Content-Length: %d\r\n\r\n" % len(body) + body)
        assert server.stdout is not None
        assert server.stdout.readline().startswith(b"Content-Length")
        server.send_signal(signal.SIGINT)
        assert server.wait(20) == -signal.SIGINT
    finally:
        server.kill()
        if server.stdout is not None:
            server.stdout.close()
        os.close(master)
        os.close(slave)


@pytest.mark.skipif(sys.platform == "win32", reason="no such names")
def test_text_of_a_repository_does_not_command_the_terminal(tmp_path):
    title = "\x1b]0;a\x07"
    file = tmp_path / f"a{title}.py"
    file.write_text(f"def f(x):\n    # {title}\u202e\n    return x\n")
    for command in ("complete", "explain"):
        said, _, _ = codespec(command, f"{file}:2:{len(title) + 7}")
        assert "\x1b]" not in said
        assert "\u202e" not in said
    assert "\x1b]" not in error("complete", tmp_path / f"b{title}.py:1:1")
    (tmp_path / ".gitignore").write_text("*.py\n")
    said, _, _ = codespec("doctor", "--quick", file)
    assert "\\x1b]0;a\\x07.py gets no completions" in said
    assert "\x1b]" not in said


_INTERRUPTED = """
import os, runpy, signal, sys

class Interrupting:
    def find_spec(self, name, path=None, target=None):
        if name == wanted:
            os.kill(os.getpid(), signal.SIGINT)

wanted = sys.argv.pop(1)
sys.meta_path.insert(0, Interrupting())
runpy.run_module("codespec", run_name="__main__", alter_sys=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="interrupts itself")
@pytest.mark.parametrize(
    "module",
    ["codespec.cli", "click", "codespec.errors", "codespec.cli.stats", "codespec.usage.statistics"],
)
def test_an_interrupt_while_it_starts_is_no_error(module):
    command = [sys.executable, "-c", _INTERRUPTED, module, "stats"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
