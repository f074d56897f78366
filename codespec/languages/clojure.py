"""Clojure and EDN; codespec has no grammar of them."""

from __future__ import annotations

from dataclasses import replace

from codespec.languages import lisp
from codespec.languages.base import DOUBLE_OVER_LINES

LANGUAGE = replace(
    lisp.LANGUAGE,
    name="clojure",
    extensions=(".clj", ".cljs", ".cljc", ".cljd", ".edn", ".bb"),
    shared=(),
    ids=("clojure", "edn"),
    block_comments=(),
    strings=(DOUBLE_OVER_LINES,),
    characters=r"\\(?:[A-Za-z\d]+|(?s:.))",
)
