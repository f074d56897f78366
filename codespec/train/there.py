"""Trains from a packed corpus on a machine without a network:

    python3 codespec/train/there.py PACKED/* --run RUN --to OUT --minutes 20 --stop-after 8.5

The same command goes on where the last one stopped, as long as RUN is there. OUT gets the models
every two minutes, in parts, and the measurements at the end, which take minutes of their own.
Standard library only: it installs the wheels that this Python lacks into RUN, unpacks the corpus,
and hands over. What that takes counts for --stop-after.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import lzma
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", type=Path, nargs="+", help="0, 1 and so on, as packed")
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--stop-after", type=float, metavar="MINUTES")
    args, rest = parser.parse_known_args(arguments)
    started = time.monotonic()
    parts = sorted(args.parts, key=lambda part: int(part.name))
    unpack(parts, args.run)
    site = args.run / "site"
    install(parts[0] / "wheels", site)
    environment = dict(os.environ)
    paths = [str(ROOT), str(site.resolve()), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [sys.executable, "-m", "codespec.train", "all", "--out", str(args.run), *rest]
    if args.stop_after is not None:
        left = args.stop_after - (time.monotonic() - started) / 60
        command += ["--stop-after", f"{max(left, 1e-6):.6f}"]
    return subprocess.run(command, env=environment, check=False).returncode


def unpack(parts: list[Path], run: Path) -> None:
    """The corpus and the tokenizer, unless they are there. The manifest comes last: it is what says
    that a corpus is whole.
    """
    corpus = run / "corpus"
    if (corpus / "manifest.json").exists():
        return
    corpus.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor() as pool:
        list(pool.map(unpack_text, parts, [corpus / part.name for part in parts]))
    with (corpus / "text.bin").open("wb") as text:
        for part in parts:
            with (corpus / part.name).open("rb") as piece:
                shutil.copyfileobj(piece, text, 4 << 20)
            (corpus / part.name).unlink()
    packed = json.loads((parts[0] / "manifest.json").read_text(encoding="utf-8"))
    if (corpus / "text.bin").stat().st_size != sum(packed["bytes_by_split"].values()):
        sys.exit("a part of the corpus is missing: name all folders that were packed")
    shutil.copy(parts[0] / "documents.npz", corpus)
    shutil.copy(parts[0] / "tokenizer.json", run)
    shutil.copy(parts[0] / "manifest.json", corpus)


def unpack_text(part: Path, to: Path) -> None:
    with lzma.open(part / "text.bin.xz") as packed, to.open("wb") as text:
        shutil.copyfileobj(packed, text, 4 << 20)


def install(wheels: Path, site: Path) -> None:
    """Wheels of modules that this Python lacks."""
    wanted = [
        str(wheel)
        for wheel in sorted(wheels.glob("*.whl"))
        if importlib.util.find_spec(wheel.name.partition("-")[0]) is None
    ]
    if not wanted or site.exists():
        return
    # Under its name only when it is whole: a call may be ended at any time.
    partial = site.with_suffix(".part")
    shutil.rmtree(partial, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*command, "--target", str(partial), *wanted], check=True)
    partial.rename(site)


if __name__ == "__main__":
    sys.exit(main())
