"""Emacs with lsp-mode, both as Debian has them."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from tests.editors import debian
from tests.editors.install import cached
from tests.editors.relocate import relocate

_SUITE = "forky"  # the first with an lsp-mode that asks for inline completions
_PACKAGES = ["emacs-nox", "elpa-lsp-mode"]


@dataclass(frozen=True)
class Emacs:
    """command: without the user's own set-up, with the packages of this installation active."""

    command: list[str]
    env: dict[str, str]


def install() -> Emacs:
    """Raises: Unavailable."""
    root = cached("emacs", [_SUITE, _PACKAGES, debian, relocate, _build], _build)
    (lisp,) = root.glob("usr/share/emacs/[0-9]*/lisp")
    (dump,) = root.glob("usr/libexec/emacs/*/*/emacs*.pdmp")
    packages = root / "usr/share/emacs/site-lisp/elpa-src"
    folders = [lisp, *(path for path in sorted(lisp.rglob("*")) if path.is_dir())]
    env = {
        "EMACSLOADPATH": os.pathsep.join(map(str, folders)),
        "EMACSDATA": str(lisp.parent / "etc"),
        "EMACSPATH": str(dump.parent),
    }
    # Nothing is compiled: the compiler was made for another place.
    set_up = (
        "(progn (setq native-comp-jit-compilation nil native-comp-enable-subr-trampolines nil "
        f'package-directory-list (list "{packages}")) (package-initialize))'
    )
    program = str(root / "usr/bin/emacs-nox")
    command = [program, "-nw", "-Q", f"--dump-file={dump}", "--eval", set_up]
    return Emacs(command, env)


def _build(into: Path) -> None:
    debian.unpack(_PACKAGES, into, _SUITE)
    relocate(into, into / "usr/bin/emacs-nox")
