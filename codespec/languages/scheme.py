"""Scheme and Racket; codespec has no grammar of them."""

from __future__ import annotations

from dataclasses import replace

from codespec.languages import lisp

LANGUAGE = replace(
    lisp.LANGUAGE,
    name="scheme",
    extensions=(".scm", ".ss", ".sld", ".sps", ".rkt", ".rktl", ".rktd"),
    shared=(),
    ids=("scheme", "racket"),
)
