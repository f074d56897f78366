"""Origins of source text: the standard library, installed packages, folders of stated licence."""

from __future__ import annotations

import re
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import distributions
from pathlib import Path

from codespec.train import licences

LANGUAGES = {
    ".py": "python",
    ".c": "c",
    ".h": "c",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hpp": "cpp",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".tsx": "typescript",
    ".go": "go",
    ".java": "java",
    ".rs": "rust",
}
LANGUAGE_NAMES = sorted(set(LANGUAGES.values()))


@dataclass(frozen=True, slots=True)
class CorpusSource:
    """One package or folder: where its files lie and under what licence."""

    name: str
    version: str
    licence: str | None
    root: Path
    files: tuple[Path, ...]
    max_bytes: int


def normalised(name: str) -> str:
    """Package name as the Python packaging standards compare it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def standard_library(max_bytes: int) -> CorpusSource:
    root = Path(sysconfig.get_paths()["stdlib"])
    version = sysconfig.get_python_version()
    return CorpusSource(
        "python-standard-library", version, "PSF-2.0", root, source_files(root), max_bytes
    )


def python_environment(folder: Path, max_bytes: int) -> Iterator[CorpusSource]:
    """The distributions installed in a site-packages folder."""
    seen: set[str] = set()
    for distribution in sorted(
        distributions(path=[str(folder)]), key=lambda d: normalised(d.name or "")
    ):
        name = normalised(distribution.name or "")
        if not name or name in seen:
            continue
        seen.add(name)
        # Scripts lie outside the folder, under "..": they are no package source.
        paths = (folder / e for e in distribution.files or () if ".." not in e.parts)
        files = tuple(p for p in paths if p.suffix in LANGUAGES)
        licence = licences.of_distribution(distribution)
        yield CorpusSource(name, distribution.version, licence, folder, files, max_bytes)


def npm_environment(folder: Path, max_bytes: int) -> Iterator[CorpusSource]:
    """The packages of a node_modules folder."""
    for manifest in sorted([*folder.glob("*/package.json"), *folder.glob("@*/*/package.json")]):
        try:
            name, version, licence = licences.of_npm_package(manifest.parent)
        except (OSError, ValueError):
            continue
        files = source_files(manifest.parent)
        yield CorpusSource(f"npm:{name}", version, licence, manifest.parent, files, max_bytes)


def extra_folder(folder: Path, licence: str, max_bytes: int) -> CorpusSource:
    """A folder whose licence the caller states (an SPDX identifier)."""
    accepted = licence if licences.permissive_expression(licence) else None
    return CorpusSource(folder.name, "", accepted, folder, source_files(folder), max_bytes)


def source_files(root: Path) -> tuple[Path, ...]:
    return tuple(sorted(p for p in root.rglob("*") if p.suffix in LANGUAGES and p.is_file()))
