"""A workspace to measure in: source files of the running Python's library, indexed."""

from __future__ import annotations

import json
import shutil
import subprocess
import sysconfig
from collections.abc import Mapping
from pathlib import Path

from codespec.backends.registry import open_vocabulary, target_of
from codespec.config import load_settings
from codespec.errors import InputError
from codespec.index.walk import is_binary
from codespec.index.word_encoder import WordEncoder
from codespec.system.processes import module_command

_SKIPPED = {"site-packages", "dist-packages", "__pycache__", "test", "tests", "idlelib"}
MAX_FILE_BYTES = 500_000


def copy_library(folder: Path, n_tokens: int) -> None:
    """Fill `folder` with modules of the standard library, whole packages in the order of their
    names, until they hold so many tokens of the configured model."""
    settings = load_settings()
    vocabulary = open_vocabulary(target_of(settings.model))
    encoder = WordEncoder(vocabulary.tokenizer)
    source = Path(sysconfig.get_paths()["stdlib"])
    n = 0
    for path in sorted(source.rglob("*.py")):
        inside = path.relative_to(source)
        if _SKIPPED & set(inside.parts) or path.stat().st_size > MAX_FILE_BYTES:
            continue
        if n >= n_tokens:
            break
        n += len(encoder.encode(path.read_bytes()))
        (folder / inside).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / inside)
    vocabulary.close()


def index(folder: Path, env: Mapping[str, str], model: str) -> int:
    """Index a workspace as users do; how many tokens that are.

    Raises: InputError where it fails.
    """
    command = module_command("codespec", "index", str(folder), "--json")
    if model:
        command += ["--model", model]
    with subprocess.Popen(
        command, env=dict(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as child:
        try:
            said, errors = child.communicate()
        except BaseException:
            child.terminate()  # it has children of its own
            raise
    if child.returncode:
        raise InputError(f"{folder}: it cannot be indexed: {errors.strip()[-300:]}")
    report = json.loads(said)
    return int(report["n_tokens"])


def file_of(folder: Path, n_lines: int) -> Path:
    """The Python file of text with nearest to so many lines. Raises: InputError where none is."""
    found = {
        path: abs(data.count(b"\n") - n_lines)
        for path in folder.rglob("*.py")
        if path.is_file() and not is_binary(data := path.read_bytes())
    }
    if not found:
        raise InputError(f"{folder}: no Python file in it", "Give the file, too.")
    return min(found, key=lambda path: (found[path], path))
