"""The files for a team's server hold what the drafter's settings and the page about them say."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

from codespec.serving.vllm_drafter import VERSION, settings_from
from codespec.serving.vllm_worker import DrafterWorker

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "team-operation.md").read_text("utf-8")


def variables() -> dict[str, str]:
    lines = (DOCS / "team" / "vllm.env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def test_the_environment_is_what_the_drafter_reads():
    tenants = settings_from(variables()).tenants
    assert tenants is not None
    # The unit's own folder is all that it may write to.
    assert tenants.folder.startswith("/var/lib/codespec/")


def test_the_arguments_name_our_drafter():
    # systemd splits them as a shell does: quotes hold words together, and are removed.
    arguments = shlex.split(variables()["VLLM_ARGUMENTS"])
    drafting = json.loads(arguments[arguments.index("--speculative-config") + 1])
    module, name = drafting["model"].rsplit(".", 1)
    assert hasattr(__import__(module, fromlist=[name]), name)
    assert drafting["method"] == "custom_class"
    worker = arguments[arguments.index("--worker-extension-cls") + 1]
    assert worker == f"{DrafterWorker.__module__}.{DrafterWorker.__name__}"


def test_the_unit_starts_whatever_ended_and_keeps_keys_out_of_its_command():
    unit = (DOCS / "team" / "codespec-vllm@.service").read_text("utf-8")
    # vLLM ends with code 0 when its core dies.
    assert re.findall(r"(?m)^Restart=(.*)$", unit) == ["always"]
    assert re.findall(r"(?m)^EnvironmentFile=(.*)$", unit) == ["/etc/codespec/vllm.env"]
    (command,) = re.findall(r"(?m)^ExecStart=(.*)$", unit)
    assert "--host 127.0.0.1" in command
    assert "key" not in command


def test_nothing_but_haproxy_listens_beyond_the_machine():
    text = (DOCS / "team" / "haproxy.cfg").read_text("utf-8")
    assert re.findall(r"(?m)^ +bind (\S+) ssl ", text) == re.findall(r"(?m)^ +bind (\S+)", text)
    servers = re.findall(r"(?m)^ +server \S+ (\S+):\d+", text)
    assert servers == ["127.0.0.1"] * 6


def test_the_page_names_the_version_that_was_tested():
    assert f"vllm=={VERSION}" in PAGE
