"""The records of all languages, found in this package, and which one a file is in.

Each module here that has a `LANGUAGE` is one. They are read when somebody first asks, once.
"""

from __future__ import annotations

import os
import pkgutil
import re
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import islice
from pathlib import PurePosixPath

import codespec.languages
from codespec.languages.base import Language

MAX_BESIDE = 10_000
"""Names in a folder that are looked at."""
TEXT = "text"
"""Name of what is known of any text: of files in no language here."""


@dataclass(frozen=True, slots=True)
class _Records:
    by_name: dict[str, Language]
    by_extension: dict[str, Language]
    by_file: dict[str, Language]
    by_id: dict[str, Language]


@cache
def _records() -> _Records:
    names = sorted(module.name for module in pkgutil.iter_modules(codespec.languages.__path__))
    modules = [import_module(f"{codespec.languages.__name__}.{name}") for name in names]
    found = [getattr(module, "LANGUAGE", None) for module in modules]
    records = [record for record in found if isinstance(record, Language)]
    return _Records(
        {record.name: record for record in records},
        {extension: record for record in records for extension in record.extensions},
        {name: record for record in records for name in record.files},
        {id_: record for record in records for id_ in record.ids},
    )


def reread() -> None:
    """Look for records again: the package has others now."""
    _records.cache_clear()
    _languages_in.cache_clear()


def records() -> tuple[Language, ...]:
    """All records, by name."""
    return tuple(_records().by_name.values())


def record_of(name: str) -> Language:
    """The record of a language; that of `TEXT` where there is none of that name."""
    by_name = _records().by_name
    return by_name.get(name) or by_name[TEXT]


def record_at(path: str, language_id: str) -> Language:
    """The record of a document by its file's name, or by an editor's identifier where the name
    tells none, one that yields, or one whose extension others' files have; that of `TEXT` for all
    others."""
    by_path, said = _record_at(path), _records().by_id.get(language_id)
    if by_path is None:
        return said or record_of(TEXT)
    if said is not None and said.name in by_path.yields_to:
        return said
    is_shared = PurePosixPath(path).suffix.lower() in by_path.shared
    if language_id and is_shared and by_path.grammar is None:
        return said or record_of(TEXT)
    return by_path


def extension_of(word: str) -> str:
    """The extension of files in the language that people call so: by its name, an editor's
    identifier or an extension; "" for none."""
    known, word = _records(), word.lower()
    if f".{word}" in known.by_extension:
        return f".{word}"
    record = known.by_id.get(word) or known.by_name.get(word)
    return record.extensions[0] if record is not None and record.extensions else ""


def parsed_languages() -> tuple[str, ...]:
    """Names of the languages that have a grammar."""
    return tuple(record.name for record in records() if record.grammar is not None)


def _record_at(path: str) -> Language | None:
    """The record of a file by its name or its extension; None where neither tells."""
    known, file = _records(), PurePosixPath(path.lower())
    first = file.name.partition(".")[0]
    return (
        known.by_file.get(file.name)
        or known.by_file.get(f"{file.parent.name}/*{file.suffix}")
        or known.by_file.get(first + file.suffix)
        or known.by_extension.get(file.suffix)
        or known.by_file.get(first)
    )


def language_of(path: str) -> str:
    """Name of the language with a grammar by the file's name; `TEXT` for all others."""
    record = _record_at(path)
    return record.name if record is not None and record.grammar is not None else TEXT


def language_of_id(language_id: str) -> str:
    """Name of the language with a grammar by an editor's identifier; `TEXT` for all others."""
    record = _records().by_id.get(language_id)
    return record.name if record is not None and record.grammar is not None else TEXT


def parsed_as(path: str, language_id: str, text: bytes = b"") -> str:
    """Name of the language to parse a document in: by its path, or by the editor's identifier where
    the path tells none, or one that yields; `TEXT` for none.

    Without an identifier, a file that may be in several languages is in that of the files beside
    it; where they do not agree, its own text tells.
    """
    language, said = language_of(path), language_of_id(language_id)
    record = record_of(language)
    if language == TEXT or said in record.yields_to:
        return said
    if said == language or PurePosixPath(path).suffix.lower() not in record.shared:
        return language
    beside = _languages_beside(path) & {language, *record.yields_to}
    if len(beside) == 1:
        return next(iter(beside))
    is_other = _at_line(record.others_say).search(text) is not None
    return record.yields_to[0] if is_other else language


@cache
def _at_line(pattern: str) -> re.Pattern[bytes]:
    return re.compile(rf"^[ \t]*(?:{pattern})".encode(), re.MULTILINE)


def _languages_beside(path: str) -> frozenset[str]:
    """Names of the languages of the files with this file's name and other extensions, if any, else
    of all files in its folder."""
    folder, name = os.path.split(path)
    if not os.path.isabs(folder):
        return frozenset()
    try:
        known = _languages_in(folder, os.stat(folder).st_mtime_ns)
    except OSError:
        return frozenset()
    return known.get(PurePosixPath(name).stem) or known.get("", frozenset())


@lru_cache(maxsize=64)
def _languages_in(folder: str, mtime_ns: int) -> dict[str, frozenset[str]]:
    """Names of the languages of a folder's files, by their names without extensions, and of all of
    them by "". Files that may be in several languages do not count.

    mtime_ns: when names in the folder changed last.
    """
    found: dict[str, set[str]] = {"": set()}
    with os.scandir(folder) as entries:
        for entry in islice(entries, MAX_BESIDE):
            stem, extension = os.path.splitext(entry.name)
            record = _records().by_extension.get(extension.lower())
            if record is not None and extension.lower() not in record.shared:
                found[""].add(record.name)
                found.setdefault(stem, set()).add(record.name)
    return {stem: frozenset(names) for stem, names in found.items()}


def notation_of(path: str, language_id: str) -> str:
    """Name of the language without a grammar by the file's extension, else by an editor's
    identifier; `TEXT` for all others."""
    record = record_at(path, language_id)
    return record.name if record.grammar is None else TEXT
