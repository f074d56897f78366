"""Clients of HTTP APIs from npm and PyPI, in folders of their own: what they bring along is large,
and of other versions than the tests' environment."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.editors import node
from tests.editors.install import cached, run

_NPM = ("openai@7.59.0", "ollama@0.6.4", "@continuedev/openai-adapters@1.37.0")
_LITELLM = "litellm==1.110.2"


def node_clients() -> Path:
    """A folder whose node_modules have the clients. Raises: Unavailable."""
    return cached("http-node", [*_NPM, _with_npm], _with_npm)


def litellm() -> Path:
    """A Python that has LiteLLM. Raises: Unavailable."""
    version = ".".join(map(str, sys.version_info[:2]))
    folder = cached("http-litellm", [_LITELLM, version, _with_pip], _with_pip)
    return folder / "venv" / "bin" / "python"


def _with_npm(folder: Path) -> None:
    (folder / "package.json").write_text('{"private": true}\n')
    node.npm("install", "--silent", "--ignore-scripts", *_NPM, cwd=folder)


def _with_pip(folder: Path) -> None:
    python = folder / "venv" / "bin" / "python"
    run([sys.executable, "-m", "venv", str(folder / "venv")])
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", _LITELLM])
