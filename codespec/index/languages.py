"""Programming languages the index parses, and their grammars, loaded when first needed."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import cast

from tree_sitter import Language

TEXT = "text"
"""Any file without a grammar here."""

# language -> (module of the grammar's wheel, function in it, file name extensions)
_GRAMMARS = {
    "python": ("tree_sitter_python", "language", ".py .pyi .pyw"),
    "javascript": ("tree_sitter_javascript", "language", ".js .mjs .cjs .jsx"),
    "typescript": ("tree_sitter_typescript", "language_typescript", ".ts .mts .cts"),
    "tsx": ("tree_sitter_typescript", "language_tsx", ".tsx"),
    "go": ("tree_sitter_go", "language", ".go"),
    "rust": ("tree_sitter_rust", "language", ".rs"),
    "c": ("tree_sitter_c", "language", ".c .h"),
    "cpp": ("tree_sitter_cpp", "language", ".cc .cpp .cxx .c++ .hh .hpp .hxx .ipp .inl .cu .cuh"),
    "java": ("tree_sitter_java", "language", ".java"),
}
_BY_EXTENSION = {ext: name for name, (_, _, exts) in _GRAMMARS.items() for ext in exts.split()}
LANGUAGES = tuple(_GRAMMARS)


def language_of(path: str) -> str:
    """Name of the language by the file's extension; `TEXT` for all others."""
    return _BY_EXTENSION.get(PurePosixPath(path).suffix.lower(), TEXT)


_BY_ID = {
    "javascriptreact": "javascript",
    "typescriptreact": "tsx",
    "cuda-cpp": "cpp",
    **{name: name for name in _GRAMMARS},
}


def language_of_id(language_id: str) -> str:
    """As `language_of`, from an editor's language identifier."""
    return _BY_ID.get(language_id, TEXT)


@cache
def grammar(language: str) -> Language:
    """The tree-sitter grammar. Raises: KeyError for a language not in `LANGUAGES`."""
    module, function, _ = _GRAMMARS[language]
    load = cast(Callable[[], object], getattr(importlib.import_module(module), function))
    return Language(load())
