"""Checks of everything but the model. Each is independent of the others."""

from __future__ import annotations

import os
import platform
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from codespec import __version__
from codespec.backends.registry import backend_of
from codespec.cli.doctor.findings import Finding
from codespec.config import Settings, config_path, origins
from codespec.daemon import control
from codespec.errors import CodespecError, ConfigError
from codespec.index import upkeep
from codespec.index.indexed_file import why_left_out
from codespec.index.parsers import ParserDiedError, Parsers
from codespec.index.selection import LeftOut, select
from codespec.index.walk import is_text_name, read_file
from codespec.rules.ignore import IGNORE_FILES
from codespec.rules.open_files import OpenFileRules
from codespec.syntax.text import normalise
from codespec.system import llama_place, programs
from codespec.system.files import relative
from codespec.system.folders import cache_dir, data_dir, log_dir, runtime_dir
from codespec.usage.statistics import Stats

_PATIENCE_S = 10
_PROBE_BYTES = 1 << 20
_MIN_NEOVIM = (0, 10)


def build(settings: Settings) -> Iterator[Finding]:
    """Findings on versions, and on the device: the model may run on a slower one than it could."""
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    yield Finding("build", "ok", f"codespec {__version__} on {system}")
    try:
        remarks = list(backend_of(settings.model.target).remarks())
    except CodespecError as e:
        yield Finding("build", "error", e.message, e.hint)
    except (ImportError, OSError) as e:
        why = type(e).__name__
        yield Finding(
            "build",
            "error",
            f"llama.cpp cannot be loaded: {why}",
            f"Install it again: {llama_place.repair()}",
        )
    else:
        yield from (Finding("build", *remark) for remark in remarks)


def settings_in_force(
    settings: Settings, options: Mapping[str, Mapping[str, object]]
) -> Iterator[Finding]:
    """Every setting that a file, a variable or a flag sets, and its origin. options: from flags."""
    path = config_path()
    exists = "" if path.is_file() else ", which does not exist; none is needed"
    yield Finding("settings", "ok", f"settings file: {path}{exists}")
    values: dict[str, dict[str, object]] = msgspec.to_builtins(settings)
    for (section, key), origin in sorted(origins(options).items()):
        value = msgspec.json.encode(values[section][key]).decode()
        yield Finding("settings", "ok", f"{section}.{key} = {value}, from {origin}")
    if not settings.completion.enabled:
        yield Finding(
            "settings", "warning", "completion is switched off", "Set completion.enabled = true."
        )


def folders() -> Iterator[Finding]:
    """Findings on the folders in use. Only writing tells that one can be written: a disk may be
    full, or a quota used up."""
    said: dict[str, str] = {}  # one folder may be for two things
    for folder in (cache_dir, data_dir, log_dir, runtime_dir):
        try:
            path = folder()
        except ConfigError as e:
            said[e.message] = e.hint
            continue
        try:
            with tempfile.TemporaryFile(dir=path) as probe:
                probe.write(bytes(_PROBE_BYTES))
                probe.flush()
                os.fsync(probe.fileno())
        except OSError as e:
            hint = "Make room there, e.g. with codespec index --prune."
            said[f"the folder {path} cannot be written: {e.strerror}"] = hint
    for message, hint in said.items():
        yield Finding("folders", "error", message, hint)


def index(settings: Settings, workspace: Path, tokenizer_hash: str) -> Iterator[Finding]:
    """Findings on the workspace's index. tokenizer_hash: of the model in use, "" if it cannot be
    told."""
    if not settings.index.enabled:
        yield Finding(
            "index", "warning", "indexing is switched off", "Set index.enabled = true to draft."
        )
        return
    root = os.path.realpath(workspace)
    quoted = shlex.quote(root)
    try:
        # An index that is being built, or whose first build was interrupted, is none yet.
        found = [s for s in upkeep.all_status(root) if s.is_built]
    except ConfigError as e:
        yield Finding("index", "error", e.message, e.hint)
        return
    mine = [s for s in found if s.problem or s.tokenizer == tokenizer_hash or not tokenizer_hash]
    if not mine:
        other = " for this model's tokenizer" if found else ""
        yield Finding(
            "index",
            "note",
            f"{root} has no index{other} yet",
            f"Editors build it by themselves; at once: codespec index {quoted}",
        )
    for status in mine:
        if status.problem:
            yield Finding(
                "index",
                "error",
                f"the index of {root}: {status.problem}",
                f"Mend it: codespec index {quoted} --verify",
            )
        else:
            size = f"{status.n_files} files, {status.n_tokens:,} tokens"
            yield Finding("index", "ok", f"{root}: {size}, {status.n_bytes / 1e6:.1f} MB")
    total = sum(s.n_bytes for s in upkeep.all_status())
    if total > settings.index.max_cache_bytes:
        yield Finding(
            "index",
            "warning",
            f"all indexes take {total / 1e6:.0f} MB, more than index.max_cache_bytes",
            "Make room: codespec index --prune",
        )


def daemon(settings: Settings) -> Iterator[Finding]:
    try:
        report = control.status(settings)
    except CodespecError as e:
        yield Finding("daemon", "error", e.message, e.hint or "Restart it: codespec daemon restart")
        return
    if report is None:
        yield Finding(
            "daemon",
            "note",
            "it does not run with these settings",
            "Editors start it by themselves; at once: codespec daemon start",
        )
    elif report.state == "failed":
        yield Finding(
            "daemon",
            "error",
            f"it runs without a model: {report.reason}",
            report.hint or "See: codespec daemon logs",
        )
    else:
        memory = f", {report.memory_bytes / 1e6:.0f} MB" if report.memory_bytes else ""
        yield Finding(
            "daemon",
            "ok",
            f"{report.state}, process {report.pid}, {report.n_clients} clients{memory}",
        )
        if report.n_respawns:
            yield Finding(
                "daemon",
                "warning",
                f"the model's process ended, and was started again: {report.n_respawns} in all, "
                f"the last time because {report.last_end}",
                "See why: codespec daemon logs",
            )


def next_edits(settings: Settings) -> Iterator[Finding]:
    """Next edits by the settings, and what became of them."""
    edits = settings.edits
    if not edits.enabled:
        yield Finding("next edits", "note", "off", "Set edits.enabled = true to have them.")
        return
    counts = Stats().next_edits()
    said = "none shown yet"
    if counts:
        said = f"{counts[0].n_shown} shown, {counts[0].n_accepted} accepted"
    yield Finding("next edits", "ok", f"on, eagerness {edits.eagerness}, {edits.where}: {said}")


def editors() -> Iterator[Finding]:
    """Editors that are installed. Asks only programs of the user's own path for their version."""
    found = False
    if path := programs.find("nvim"):
        found = True
        yield _neovim(path)
    for name, what in (("code", "VS Code"), ("codium", "VSCodium")):
        if programs.find(name):
            found = True
            yield Finding(
                "editor",
                "note",
                f"{what} is there",
                "Install the extension of editor-plugins/vscode, see its README.",
            )
    if not found:
        yield Finding(
            "editor",
            "note",
            "neither Neovim nor VS Code is on the PATH",
            "Any editor with inline completion of LSP 3.18 can run: codespec lsp",
        )


def _neovim(path: str) -> Finding:
    try:
        command = [path, "--version"]
        done = subprocess.run(command, capture_output=True, timeout=_PATIENCE_S, check=False)
        said = done.stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        said = ""
    number = re.search(r"NVIM v(\d+)\.(\d+)", said)
    if number is None:
        return Finding("editor", "warning", f"{path} does not tell its version", "Update Neovim.")
    if (int(number[1]), int(number[2])) < _MIN_NEOVIM:
        return Finding(
            "editor",
            "warning",
            f"Neovim {number[1]}.{number[2]} is too old for our plug-in",
            "Install Neovim 0.10 or newer.",
        )
    return Finding(
        "editor",
        "note",
        f"Neovim {number[1]}.{number[2]} is there",
        "Install the plug-in of editor-plugins/neovim, see its README.",
    )


def rules(settings: Settings, workspace: Path, file: Path | None) -> Iterator[Finding]:
    """Rules that exclude files. file: one to be asked about, too."""
    there = [name for name in sorted(IGNORE_FILES) if (workspace / name).is_file()]
    named = ", ".join(there) or "none"
    yield Finding(
        "rules", "ok", f"ignore files in {workspace}: {named}; those in deeper folders count, too"
    )
    if settings.index.exclude:
        patterns = ", ".join(settings.index.exclude)
        yield Finding("rules", "ok", f"excluded by index.exclude: {patterns}")
    if settings.completion.disabled_languages:
        names = ", ".join(settings.completion.disabled_languages)
        yield Finding("rules", "ok", f"languages without completion: {names}")
    yield Finding(
        "rules",
        "ok",
        "files of secrets, by their names, are never read into anything; what looks like a secret "
        "is cut out of the others: codespec index --secrets",
    )
    if file is not None:
        asked = OpenFileRules(settings.index.exclude)
        why = asked.why_excluded(os.path.realpath(file), os.path.realpath(workspace))
        if why:
            yield Finding(
                "rules",
                "warning",
                f"{file} gets no completions: {why}",
                "Change that rule if the file should get them.",
            )
        elif why := _why_not_indexed(file, workspace, settings.index.max_file_bytes):
            yield Finding(
                "rules",
                "note",
                f"{file} is not indexed: {why}",
                "You need not do anything; other files get no drafts from it.",
            )
        else:
            yield Finding("rules", "ok", f"{file} is excluded by no rule")


def _why_not_indexed(file: Path, workspace: Path, max_file_bytes: int) -> str:
    """The reason why the index leaves out a file that no rule excludes, or ""."""
    real = os.path.realpath(file)
    path = Path(relative(real, os.path.realpath(workspace))).as_posix()
    if not is_text_name(path):
        return LeftOut.NAME_NOT_UTF8.text
    loaded = read_file(real, max_file_bytes)
    if loaded is None:
        return f"it cannot be read, or is larger than index.max_file_bytes = {max_file_bytes}"
    data, _ = loaded
    if why_not := why_left_out(path, data):
        return why_not.text
    source = normalise(data.decode()).encode()
    try:
        with Parsers(1) as parsers:
            why_not = parsers.select(path, source).why_not
    except ParserDiedError:
        why_not = select(path, source, parse=False).why_not
    return why_not.text if why_not else ""
