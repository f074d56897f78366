"""Trains from a bundle on a machine without a network:

    python3 codespec/train/there.py BUNDLE --run RUN --to OUT --minutes 20 --stop-after 8.5

The same command goes on where the last one stopped, as long as RUN is there. OUT gets the models
every two minutes, in parts, and the measurements at the end, which take minutes of their own.
Standard library only: it installs the bundle's wheels that this Python lacks into RUN, unpacks the
corpus, and hands over. What that takes counts for --stop-after.
"""

from __future__ import annotations

import argparse
import importlib.util
import lzma
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("bundle", type=Path)
    parser.add_argument("--run", type=Path, required=True)
    parser.add_argument("--stop-after", type=float, metavar="MINUTES")
    args, rest = parser.parse_known_args(arguments)
    started = time.monotonic()
    unpack(args.bundle, args.run)
    site = args.run / "site"
    install(args.bundle / "wheels", site)
    environment = dict(os.environ)
    paths = [str(ROOT), str(site.resolve()), environment.get("PYTHONPATH", "")]
    environment["PYTHONPATH"] = os.pathsep.join(path for path in paths if path)
    command = [sys.executable, "-m", "codespec.train", "all", "--out", str(args.run), *rest]
    if args.stop_after is not None:
        left = args.stop_after - (time.monotonic() - started) / 60
        command += ["--stop-after", f"{max(left, 1e-6):.6f}"]
    return subprocess.run(command, env=environment, check=False).returncode


def unpack(bundle: Path, run: Path) -> None:
    """The corpus and the tokenizer, unless they are there. The manifest comes last: it is what says
    that a corpus is whole.
    """
    corpus = run / "corpus"
    if (corpus / "manifest.json").exists():
        return
    corpus.mkdir(parents=True, exist_ok=True)
    with lzma.open(bundle / "text.bin.xz") as packed, (corpus / "text.bin").open("wb") as text:
        shutil.copyfileobj(packed, text, 4 << 20)
    shutil.copy(bundle / "documents.npz", corpus)
    shutil.copy(bundle / "tokenizer.json", run)
    shutil.copy(bundle / "manifest.json", corpus)


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
