"""Training on a machine without a network: what goes there, and what comes back.

`pack` makes a folder of the corpus, compressed, and the wheels that such a machine may lack; with a
checkout of this repository and a Python that has torch, tokenizers and click it is all that
`there.py` needs. `send` writes a model in parts of a size that travels; `receive` joins them.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from codespec.errors import InputError

TEXT, DOCUMENTS, MANIFEST, WORDS = "text.bin", "documents.npz", "manifest.json", "tokenizer.json"
PACKED = TEXT + ".xz"
MAX_BYTES = 48 << 20  # with a checkout of 14 MB, what a transfer of 64 MiB holds
PART_BYTES = 15 << 20
_CHUNK = 4 << 20
WHEELS = (
    "gguf",
    "tree-sitter",
    *(
        f"tree-sitter-{language}"
        for language in ("c", "cpp", "go", "java", "javascript", "python", "rust", "typescript")
    ),
)
PLATFORMS = ("2_28", "2_27", "2_24", "2_17", "2_5")
CONSTRAINTS = Path(__file__).parents[2] / ".ci" / "constraints.txt"


def pack(
    run: Path,
    folder: Path,
    python: str,
    wheels: bool,
    on_progress: Callable[[float], None] = lambda _: None,
) -> int:
    """Fills folder from a run's corpus and tokenizer; its size in bytes. Cost: a MB a second.

    python: version of the other machine's. wheels: whether to get wheels for it.

    Raises: InputError if there is no corpus, the wheels cannot be had, or it becomes too large.
    """
    source, words = run / "corpus", run / WORDS
    if not (source / MANIFEST).exists() or not words.exists():
        raise InputError(f"{run} has no corpus and tokenizer yet", "Make both first.")
    folder.mkdir(parents=True, exist_ok=True)
    for path in (source / DOCUMENTS, source / MANIFEST, words):
        shutil.copy(path, folder / path.name)
    compress(source / TEXT, folder / PACKED, on_progress)
    if wheels:
        download(folder / "wheels", python)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    if size > MAX_BYTES:
        raise InputError(
            f"{folder} has {size / 2**20:.1f} MiB, more than {MAX_BYTES >> 20}",
            "Build the corpus with a smaller --package-mb.",
        )
    return size


def compress(source: Path, target: Path, on_progress: Callable[[float], None]) -> None:
    size = max(1, source.stat().st_size)
    # A dictionary as long as the text: packages quote one another.
    exponent = min(28, max(16, (size - 1).bit_length()))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << exponent}]
    partial = target.with_suffix(".part")
    with source.open("rb") as text, lzma.open(partial, "wb", filters=filters) as packed:
        while chunk := text.read(_CHUNK):
            packed.write(chunk)
            on_progress(text.tell() / size)
    partial.replace(target)


def download(folder: Path, python: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "download"]
    command += ["--no-deps", "--only-binary", ":all:", f"--python-version={python}"]
    command += ["--implementation=cp", *(f"--platform=manylinux_{p}_x86_64" for p in PLATFORMS)]
    command += ["--platform=manylinux2014_x86_64", "--dest", str(folder)]
    if CONSTRAINTS.exists():
        command += ["--constraint", str(CONSTRAINTS)]
    if subprocess.run([*command, *WHEELS], check=False).returncode:
        raise InputError("the wheels could not be downloaded", "See pip's message above.")


def send(path: Path, state: str, to: Path) -> None:
    """Writes a file into a folder in parts of at most PART_BYTES, and the run's state beside it."""
    to.mkdir(parents=True, exist_ok=True)
    content = path.read_bytes()
    starts = range(0, len(content), PART_BYTES)
    for number, start in enumerate(starts):
        partial = to / f"{path.name}.tmp"
        partial.write_bytes(content[start : start + PART_BYTES])
        partial.replace(to / f"{path.name}.{number}")
    for old in to.glob(f"{path.name}.[0-9]"):
        if int(old.suffix[1:]) >= len(starts):
            old.unlink()  # of a larger model that was here before
    (to / f"{path.stem}.json").write_text(state + "\n", encoding="utf-8")


def receive(folder: Path, name: str, run: Path) -> Path:
    """Joins what `send` wrote of a model: run/<name>.gguf, and the log of its training.

    Raises: InputError if there is nothing of that name.
    """
    parts = sorted(folder.glob(f"{name}.gguf.[0-9]"))
    if not parts:
        raise InputError(f"{folder} has no parts of {name}.gguf", "Give the folder of the results.")
    path = run / f"{name}.gguf"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(part.read_bytes() for part in parts))
    log = run / name / "log.jsonl"
    log.parent.mkdir(exist_ok=True)
    shutil.copy(folder / f"{name}.json", log)
    return path
