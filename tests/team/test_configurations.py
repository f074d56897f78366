"""The files of docs/team are taken by the programs that they are written for."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.editors import debian, install
from tests.editors.install import Unavailable

from .engine_routers import (
    HAPROXY_FILE,
    VLLM_ROUTER_OPTIONS,
    certificate_in,
    check_haproxy,
    haproxy,
)

UNIT = HAPROXY_FILE.parent / "codespec-vllm@.service"


def test_haproxy_takes_its_file(tmp_path: Path) -> None:
    try:
        haproxy()
        certificate = certificate_in(tmp_path)
    except Unavailable as e:
        pytest.skip(str(e))
    text = HAPROXY_FILE.read_text()
    assert text.count("/etc/haproxy/team.pem") == 1
    text = text.replace("/etc/haproxy/team.pem", str(certificate))
    text = text.replace("user haproxy", "user root").replace("group haproxy", "group root")
    (tmp_path / "haproxy.cfg").write_text(text)
    assert "WARNING" not in check_haproxy(tmp_path / "haproxy.cfg")


def analyze() -> str:
    """systemd-analyze: this machine's, or Debian's in the cache folder."""
    if found := shutil.which("systemd-analyze"):
        return found
    try:
        folder = install.cached("systemd", debian, lambda into: debian.unpack(["systemd"], into))
    except Unavailable as e:
        pytest.skip(str(e))
    return str(folder / "usr" / "bin" / "systemd-analyze")


def test_systemd_takes_the_unit_and_finds_it_hardened(tmp_path: Path) -> None:
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    unit = tmp_path / "codespec-vllm@8001.service"
    text = UNIT.read_text()
    assert text.count("/opt/codespec/venv/bin/python") == 1
    unit.write_text(text.replace("/opt/codespec/venv/bin/python", str(program)))

    def said(*command: str) -> str:
        done = subprocess.run([analyze(), *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout + done.stderr

    about_it = [line for line in said("verify", str(unit)).splitlines() if unit.name in line]
    assert about_it == []
    # Exposure in tenths, of 100: see systemd-analyze(1), "security".
    said("security", "--offline=true", "--threshold=45", str(unit))


def test_the_page_has_the_options_of_vllm_router_that_were_tried() -> None:
    page = (HAPROXY_FILE.parents[1] / "team-operation.md").read_text()
    words = (
        page[page.index("    vllm-router --policy") :].replace("\\\n", " ").split("\n\n")[0].split()
    )
    at = words.index("--worker-urls")
    del words[at : at + 3]
    assert words == ["vllm-router", *VLLM_ROUTER_OPTIONS]
