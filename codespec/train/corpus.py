"""The corpus: permissively licensed source that is already on the machine, filtered, deduplicated
and split.

Layout on disk: `text.bin` (all files, UTF-8, one after the other), `documents.npz` (offset, length,
split, package, language of each, and their paths) and `manifest.json` (packages with licence and
bytes, what was refused and why). Lines and values that name people, and e-mail addresses, are taken
out (`scrub`). No text of the held-out packages, nor a near-copy of one, is ever
in the training split.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from codespec.errors import InputError
from codespec.train.corpus_sources import LANGUAGE_NAMES, LANGUAGES, CorpusSource
from codespec.train.scrub import without_people
from codespec.training.dedup import DuplicateFilter

# httpx2 continues httpx: a successor is a copy that no file comparison finds whole.
HELD_OUT = frozenset(
    [
        "attrs",
        "click",
        "flask",
        "httpx",
        "httpx2",
        "itsdangerous",
        "lsprotocol",
        "pygls",
        "requests",
        "rich",
        "starlette",
        "werkzeug",
    ]
)
# Packages that carry a held-out one in altered form, which no file comparison finds whole.
DERIVED = frozenset(["quart", "typer"])  # of flask, of click
SPLITS = ("train", "validation", "heldout")
VALIDATION_PERCENT = 1

# Folders whose text is somebody else's (another licence), or data in the shape of code.
SKIPPED_FOLDERS = frozenset(
    [
        "_vendor",
        "_vendored",
        "vendor",
        "vendored",
        "third_party",
        "thirdparty",
        "extern",
        "externals",
        "node_modules",
        "site-packages",
        "lib2to3",
        "testdata",
        "test_data",
        "fixtures",
        "locale",
        "locales",
        "dist",
        "build",
        "umd",
        "esm5",
        "cjs",
        "__pycache__",
        "idlelib",
        "turtledemo",
    ]
)
GENERATED = re.compile(
    rb"(?i)\b(auto-?\s?generated|generated (by|from|with)|do not edit|@generated)\b"
)
MIN_BYTES, MAX_BYTES = 256, 150_000
MAX_LINE, MAX_MEAN_LINE = 1_000, 100


@dataclass(slots=True)
class Package:
    """The manifest's entry of an admitted source."""

    licence: str
    version: str
    held_out: bool
    n_files: int = 0
    n_bytes: int = 0
    by_language: dict[str, int] = field(default_factory=dict)


def why_skipped(path: Path, raw: bytes) -> str | None:
    """Reason not to train on this file (a word for the manifest), None to keep it. path is relative
    to its source.
    """
    if SKIPPED_FOLDERS & set(path.parts[:-1]) or path.name.endswith((".min.js", ".d.ts")):
        return "folder"
    if not MIN_BYTES <= len(raw) <= MAX_BYTES:
        return "size"
    if GENERATED.search(raw[:2048]):
        return "generated"
    lines = raw.splitlines()
    if max(map(len, lines)) > MAX_LINE or len(raw) / max(1, len(lines)) > MAX_MEAN_LINE:
        return "minified"
    letters = sum(map(len, re.findall(rb"[A-Za-z_ ]+", raw)))
    if b"\0" in raw or letters < 0.5 * len(raw):
        return "data"
    return None


def build(
    sources: list[CorpusSource], out: Path, report: Callable[[str], None] = lambda _: None
) -> dict[str, object]:
    """Writes the corpus folder and returns its manifest. Cost: about 5 MB/s of admitted text.

    Held-out packages go first, so that copies of their files elsewhere count as duplicates and fall
    out. The files of a package are taken in the order of a hash of their path until its byte limit:
    a sample, the same on every machine.
    """
    out.mkdir(parents=True, exist_ok=True)
    packages: dict[str, Package] = {}
    refused: dict[str, str] = {}
    skipped: Counter[str] = Counter()
    duplicates = DuplicateFilter()
    with (out / "text.bin").open("wb") as blob:
        writer = Writer(blob)
        for source in sorted(sources, key=lambda s: s.name not in HELD_OUT):
            report(source.name)
            if source.licence is None:
                refused[source.name] = "licence unknown or not permissive"
                continue
            if source.name in DERIVED:
                refused[source.name] = "derived from a held-out package"
                continue
            if source.name in packages or not source.files:
                continue
            package = packages[source.name] = Package(
                source.licence, source.version, source.name in HELD_OUT
            )
            for path, text in kept_files(source, skipped):
                if package.n_bytes >= source.max_bytes:
                    break
                if duplicates.add(text):
                    writer.add(text, source.name, len(packages) - 1, path, package)
                else:
                    skipped["duplicate"] += 1
    table = writer.table()
    np.savez_compressed(out / "documents.npz", table=table, paths=writer.paths())
    by_split = {name: int(table[table[:, 2] == i, 1].sum()) for i, name in enumerate(SPLITS)}
    manifest: dict[str, object] = {
        "bytes_by_split": by_split,
        "languages": LANGUAGE_NAMES,
        "packages": {name: asdict(p) for name, p in packages.items()},
        "refused": refused,
        "skipped_files": dict(skipped),
        "without_people": True,
    }
    (out / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    return manifest


class Writer:
    """Appends documents to text.bin and keeps their rows of the table."""

    def __init__(self, blob: BinaryIO) -> None:
        self._blob = blob
        self._rows: list[tuple[int, int, int, int, int]] = []
        self._paths: list[str] = []
        self._offset = 0

    def add(self, text: str, name: str, number: int, path: Path, package: Package) -> None:
        """Appends a text of the package with this name and number and counts it there. path: in its
        source.
        """
        raw = text.encode()
        self._blob.write(raw)
        language = LANGUAGES[path.suffix]
        self._paths.append(path.as_posix().replace("\n", " "))
        where = split_of(name, raw), number, LANGUAGE_NAMES.index(language)
        self._rows.append((self._offset, len(raw), *where))
        self._offset += len(raw)
        package.n_files += 1
        package.n_bytes += len(raw)
        package.by_language[language] = package.by_language.get(language, 0) + len(raw)

    def table(self) -> npt.NDArray[np.int64]:
        """(n, 5): offset, length, split, package, language."""
        return np.array(self._rows, np.int64).reshape(-1, 5)

    def paths(self) -> npt.NDArray[np.uint8]:
        """UTF-8, a line each."""
        return np.frombuffer("\n".join(self._paths).encode("utf-8", "replace"), np.uint8)


def kept_files(source: CorpusSource, skipped: Counter[str]) -> Iterator[tuple[Path, str]]:
    """(path in its source, text without people) of the files worth training on; skipped counts the
    others by reason.
    """

    def order(path: Path) -> bytes:
        return hashlib.sha256(str(path.relative_to(source.root)).encode()).digest()

    for path in sorted(source.files, key=order):
        inside = path.relative_to(source.root)
        try:
            raw = path.read_bytes()
            reason = why_skipped(inside, raw)
            text = raw.decode("utf-8-sig").replace("\r\n", "\n")
        except (OSError, UnicodeDecodeError):
            reason, text = "unreadable", ""
        if reason is None:
            yield inside, without_people(text, path.name)
        else:
            skipped[reason] += 1


def split_of(package: str, raw: bytes) -> int:
    """Index into SPLITS; within the training packages a hash of the content decides."""
    if package in HELD_OUT:
        return SPLITS.index("heldout")
    return int(hashlib.sha256(raw).digest()[0] * 100 // 256 < VALIDATION_PERCENT)


class Corpus:
    """A corpus folder, memory-mapped for reading.

    Raises: InputError if another version of this package built it.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifest: dict[str, object] = json.loads(
            (folder / "manifest.json").read_text(encoding="utf-8")
        )
        with np.load(folder / "documents.npz") as documents:
            if "paths" not in documents:
                raise InputError(
                    f"{folder} is of an older version", "Delete it and build it again."
                )
            self.table: npt.NDArray[np.int64] = documents["table"]
            self._paths = documents["paths"].tobytes().decode().split("\n")
        packages = self.manifest["packages"]
        assert isinstance(packages, dict)
        self._packages = [str(name) for name in packages]
        path = folder / "text.bin"
        empty = not path.stat().st_size  # which cannot be mapped
        self._blob = np.zeros(0, np.uint8) if empty else np.memmap(path, np.uint8, "r")

    def documents(self, split: str) -> npt.NDArray[np.intp]:
        """Indices of the documents of one split, in corpus order."""
        return np.flatnonzero(self.table[:, 2] == SPLITS.index(split))

    def text(self, document: int) -> str:
        offset, length = self.table[document, :2]
        return self._blob[offset : offset + length].tobytes().decode()

    def path(self, document: int) -> str:
        """Its path in its package, with slashes."""
        return self._paths[document]

    def package(self, document: int) -> str:
        return self._packages[self.table[document, 3]]

    def language(self, document: int) -> str:
        names = self.manifest["languages"]
        assert isinstance(names, list)
        return str(names[self.table[document, 4]])
