"""Emacs Lisp; codespec has no grammar of it."""

from __future__ import annotations

from dataclasses import replace

from codespec.languages import lisp
from codespec.languages.base import DOUBLE_OVER_LINES

LANGUAGE = replace(
    lisp.LANGUAGE,
    name="elisp",
    extensions=(".el",),
    files=(".emacs", "_emacs", "cask"),
    shared=(),
    ids=("elisp", "emacs-lisp"),
    strings=(DOUBLE_OVER_LINES,),
    characters=r"(?<![\w?*!-])\?(?:\\(?:[CMSHAs]-)*(?s:.)|[^\s\\])",
)
