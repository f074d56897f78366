"""Programming languages the index parses, and their grammars, loaded when first needed."""

from __future__ import annotations

import importlib
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import cast

from tree_sitter import Language, Parser, Point, Tree

from codespec import pulse

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
    "csharp": ("tree_sitter_c_sharp", "language", ".cs .csx"),
    "php": ("tree_sitter_php", "language_php", ".php .phtml"),
    "ruby": ("tree_sitter_ruby", "language", ".rb .rake .gemspec .ru"),
    "swift": ("tree_sitter_swift", "language", ".swift"),
    "lua": ("tree_sitter_lua", "language", ".lua"),
}
# What has no grammar here, but words or tags that end blocks: extensions, and editors' names.
_NOTATIONS = {
    "shell": (".sh .bash .zsh .ksh .bats", "shellscript sh bash zsh ksh"),
    "elixir": (".ex .exs", "elixir"),
    "markup": (
        ".html .htm .xhtml .vue .svelte .heex .eex .leex .erb .hbs .handlebars .njk .jinja .j2"
        " .liquid .twig .xml .svg",
        "html vue svelte heex eelixir eruby erb handlebars htmldjango jinja jinja-html liquid twig"
        " xml svg django-html",
    ),
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


NOTATIONS = tuple(_NOTATIONS)
_NOTATION_BY_EXTENSION = {e: name for name, (exts, _) in _NOTATIONS.items() for e in exts.split()}
_NOTATION_BY_ID = {id_: name for name, (_, ids) in _NOTATIONS.items() for id_ in ids.split()}


def notation_of(path: str, language_id: str) -> str:
    """Of a file without a grammar here, what its blocks end with, by its extension, else by an
    editor's language identifier; `TEXT` for all others."""
    extension = PurePosixPath(path).suffix.lower()
    if extension in _BY_EXTENSION:
        return TEXT
    return _NOTATION_BY_EXTENSION.get(extension) or _NOTATION_BY_ID.get(language_id, TEXT)


@cache
def grammar(language: str) -> Language:
    """The tree-sitter grammar. Raises: KeyError for a language not in `LANGUAGES`."""
    module, function, _ = _GRAMMARS[language]
    load = cast(Callable[[], object], getattr(importlib.import_module(module), function))
    return Language(load())


_local = threading.local()  # parsers keep state: one each a thread
_N_LENT = 65536
"""Bytes of a text that a parser gets at a time."""


def syntax_tree(
    language: str,
    text: bytes,
    old: Tree | None = None,
    interrupted: Callable[[], bool] = lambda: False,
) -> Tree | None:
    """The text's tree, or None when it takes too long, or `interrupted` turns true.

    old: the tree of the text before an edit, told of the edit; what it shares is not parsed again.

    Raises: KeyError for a language not in `LANGUAGES`.
    """
    parsers: dict[str, tuple[Parser, bytearray]] = _local.__dict__.setdefault("parsers", {})
    if language not in parsers:
        parsers[language] = Parser(grammar(language)), bytearray()
    parser, lent = parsers[language]
    # tree-sitter calls back every 100 steps, which is 50 to 200 bytes of ordinary code. A limit on
    # steps, not on time: the same text must give the same tree on a busy machine. But there are
    # grammars whose steps may take a hundred times as long, in text that is none. A request may
    # parse a whole text three times, and has five seconds for that.
    budget = 1000 + len(text) // 5
    latest = time.thread_time() + 0.25 + 1.5e-6 * len(text)

    def read(offset: int, _: Point) -> bytearray:
        # The binding never lets go of what it was given to read, so it is always given the same.
        lent[:] = text[offset : offset + _N_LENT]
        return lent

    def stop(_offset: int, _has_error: bool) -> bool:
        nonlocal budget
        pulse.step()
        budget -= 1
        return budget < 0 or time.thread_time() > latest or interrupted()

    try:
        if old is None:
            return parser.parse(read, progress_callback=stop)
        return parser.parse(read, old, progress_callback=stop)
    except ValueError:  # stopped
        parser.reset()
        return None
    finally:
        lent.clear()
