"""Training on a machine without a network: what goes there, and what comes back.

`pack` makes folders of the corpus, compressed, and the wheels that such a machine may lack; with a
checkout of this repository and a Python that has torch, tokenizers and click they are all that
`there.py` needs. Each folder is small enough for one transfer. `send` writes a model in parts of a
size that travels; `receive` joins them.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from codespec.errors import InputError

TEXT, DOCUMENTS, MANIFEST, WORDS = "text.bin", "documents.npz", "manifest.json", "tokenizer.json"
PACKED = TEXT + ".xz"
N_COMPRESSORS = 2  # at once: each takes ten times its dictionary of memory
PART_TEXT = 256 << 20  # of text in one folder: source shrinks to a sixth, or less
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
    """Fills folder/0, folder/1 and so on from a run's corpus and tokenizer; the size of all in
    bytes. Cost: 1.5 MB a second on each core.

    python: version of the other machine's. wheels: whether to get wheels for it.

    Raises: InputError if there is no corpus, the wheels cannot be had, or a folder becomes too
    large for one transfer.
    """
    source, words = run / "corpus", run / WORDS
    if not (source / MANIFEST).exists() or not words.exists():
        raise InputError(f"{run} has no corpus and tokenizer yet", "Make both first.")
    size = (source / TEXT).stat().st_size
    starts = range(0, max(1, size), PART_TEXT)
    parts = [folder / str(number) for number in range(len(starts))]
    for old in folder.glob("[0-9]"):
        shutil.rmtree(old)  # of a corpus in more parts
    for part in parts:
        part.mkdir(parents=True)
    for path in (source / DOCUMENTS, source / MANIFEST, words):
        shutil.copy(path, parts[0] / path.name)
    if wheels:
        download(parts[0] / "wheels", python)
    done = [0] * len(parts)

    def report(number: int, n_bytes: int) -> None:
        done[number] = n_bytes
        on_progress(sum(done) / max(1, size))

    with ThreadPoolExecutor(N_COMPRESSORS) as pool:
        made = [
            pool.submit(compress, source / TEXT, start, part / PACKED, partial(report, number))
            for number, (start, part) in enumerate(zip(starts, parts, strict=True))
        ]
    for future in made:
        future.result()
    sizes = [sum(f.stat().st_size for f in part.rglob("*") if f.is_file()) for part in parts]
    if max(sizes) > MAX_BYTES:
        raise InputError(
            f"{parts[sizes.index(max(sizes))]} has {max(sizes) / 2**20:.1f} MiB, more than "
            f"{MAX_BYTES >> 20}",
            "Build the corpus with a smaller --package-mb.",
        )
    return sum(sizes)


def compress(source: Path, start: int, target: Path, on_progress: Callable[[int], None]) -> None:
    """PART_TEXT bytes of a file, or what is left of it, from start on."""
    # A dictionary as long as the text: packages quote one another.
    exponent = min(28, max(16, (PART_TEXT - 1).bit_length()))
    filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 1 << exponent}]
    with source.open("rb") as text, lzma.open(target, "wb", filters=filters) as packed:
        text.seek(start)
        left = PART_TEXT
        while left and (chunk := text.read(min(_CHUNK, left))):
            packed.write(chunk)
            left -= len(chunk)
            on_progress(PART_TEXT - left)


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
