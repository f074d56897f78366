"""A repository whose settings, hooks and files are made to run something, with edits to replay: the
benchmarks read its history with git, and nothing of it runs. (`bench.history` has a test of its
own; `test_processes.py` is about what is imported, `test_programs.py` about other programs.)"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from codespec.system.processes import module_command
from tests.e2e.test_bench_cli import edited

__all__ = ["edited"]

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="programs are scripts of a shell")

SETTINGS = (
    *("core.fsmonitor", "core.sshCommand", "core.pager", "core.editor", "core.askPass"),
    *("core.gitProxy", "core.alternateRefsCommand", "core.hooksPath", "diff.external"),
    *("diff.x.textconv", "diff.x.command", "filter.x.smudge", "filter.x.clean"),
    *("filter.x.process", "gpg.program", "gpg.ssh.program", "credential.helper"),
    *("uploadpack.packObjectsHook", "interactive.diffFilter", "mergetool.x.cmd", "pager.log"),
    *("trailer.x.command", "remote.o.uploadpack", "remote.o.vcs", "pager.diff", "log.mailmap"),
)
FLAGS = {
    "log.showSignature": "true",
    "extensions.partialClone": "o",
    "remote.o.promisor": "true",
    "remote.o.url": "ext::sh -c %S",
    "protocol.ext.allow": "always",
    "diff.x.cachetextconv": "true",
    "core.untrackedCache": "true",
}
HOOKS = ("post-index-change", "post-checkout", "pre-commit", "reference-transaction", "pre-auto-gc")
MODULES = ("sitecustomize", "codespec", "codespec_bench", "llama_cpp", "numpy", "msgspec", "json")
PROGRAMS = ("git", "python3", "python", "sh", "ps", "nvidia-smi", "lscpu", "codespec", "less")


@pytest.fixture
def hostile(edited: Path, tmp_path: Path) -> Path:
    program = edited / "pwn"
    program.write_text(f"#!/bin/sh\necho \"$0\" >> '{tmp_path}/pwned'\n")
    program.chmod(0o755)

    def git(*args: str) -> None:
        subprocess.run(["git", "-C", str(edited), *args], check=True, capture_output=True)

    hooks = edited / "hooks"
    hooks.mkdir()
    for folder in (hooks, edited / ".git" / "hooks"):
        folder.mkdir(exist_ok=True)
        for name in HOOKS:
            (folder / name).symlink_to(program)
    for name in PROGRAMS:
        (edited / name).symlink_to(program)
    for name in MODULES:
        (edited / f"{name}.py").write_text(
            f"open({str(tmp_path / 'pwned')!r}, 'a').write(__name__)\n"
        )
    (edited / ".gitattributes").write_text("* filter=x diff=x\n")
    (edited / "a.py").write_text((edited / "a.py").read_text() + "\nmore = 1\n")
    for key in SETTINGS:
        git("config", key, str(hooks if key == "core.hooksPath" else program))
    for key, value in FLAGS.items():
        git("config", key, value)
    git("config", "alias.rev-list", f"!{program}")
    git("config", "alias.log", f"!{program}")
    return edited


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("replay", ".", "--json"), '"n_hunks"'),
        (("latency", ".", "--keys", "2", "--pace", "0.1", "--threads", "1", "--json"), '"n_keys"'),
    ],
)
def test_benchmarks_run_nothing_of_it(
    hostile: Path, tmp_path: Path, command: tuple[str, ...], said: str
) -> None:
    """The current folder is a part of PATH, as careless users have it."""
    env = {
        **os.environ,
        "PATH": os.environ["PATH"] + ":.:",
        "CODESPEC_CACHE_DIR": str(tmp_path / "cache"),
    }
    done = subprocess.run(
        module_command("codespec", "bench", *command),
        cwd=hostile,
        env=env,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert said in done.stdout
    assert not (tmp_path / "pwned").exists(), (tmp_path / "pwned").read_text()
