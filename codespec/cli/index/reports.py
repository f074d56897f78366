"""Reports of `codespec index` on indexes on disk."""

from __future__ import annotations

import os
import shlex
from dataclasses import asdict
from pathlib import Path

import click

from codespec.cli import check_folder, print_json, printable
from codespec.errors import IndexCorruptError
from codespec.index import check, upkeep
from codespec.index.build import BuildReport
from codespec.index.reader import Definition, WorkspaceIndex
from codespec.index.store import MANIFEST, Store, index_folders, read_manifest
from codespec.index.walk import MAX_FILES


def print_report(path: Path, report: BuildReport, as_json: bool) -> None:
    if as_json:
        print_json(
            {**asdict(report), "why_not": {why.value: n for why, n in report.why_not.items()}}
        )
        return
    # Dead text stays on disk for a while: without any tokens there is no share.
    n = report.n_tokens
    size = f" ({report.n_index_bytes / n:.1f} bytes a token)" if n else ""
    click.echo(
        f"{printable(str(path))}: {_counted(report.n_files, 'file', 'files')}, "
        f"{report.n_tokens:,} tokens, "
        f"{report.n_index_bytes / 1e6:.1f} MB{size}, {report.seconds:.2f} s"
    )
    click.echo(f"  {report.n_tokenised} files read anew, {report.n_excluded} excluded by rules")
    for reason, n in report.why_not.most_common():
        click.echo(f"  {n} left out: {reason.text}")
    if report.truncated:
        click.echo(f"  stopped after {MAX_FILES:,} files: leave some out in .codespecignore")
    for crashed in report.crashed:
        click.echo(f"  read as plain text, since the parser crashed: {printable(crashed)}")


def print_status(path: Path | None, as_json: bool) -> None:
    """Print the status of the indexes of one workspace, or of all.

    Raises: InputError for a workspace that is no folder, unless an index of it is left.
    """
    found = upkeep.all_status(os.path.realpath(path) if path else None)
    if path and not found:
        check_folder(path)
    if as_json:
        print_json([{**asdict(s), "sound": s.is_sound} for s in found])
        return
    for s in found:
        click.echo(printable(s.root or s.folder))
        click.echo(f"  {s.problem}" if s.problem else "  sound")
        n_segments = _counted(s.n_segments, "segment", "segments")
        click.echo(
            f"  {s.n_files} files, {s.n_tokens:,} tokens, {s.n_bytes / 1e6:.1f} MB in "
            f"{n_segments}, tokenizer {s.tokenizer[:12] or 'unknown'}"
        )
        if upkeep.used_at(Path(s.folder)):
            changed = f"changed {_ago(s.age_s)}, " if s.root else ""
            click.echo(f"  {changed}used {_ago(s.unused_s)}")
    if path and not found:
        click.echo(_no_index(path))
        return
    total = sum(s.n_bytes for s in found)
    click.echo(f"{_counted(len(found), 'index', 'indexes')}, {total / 1e6:.1f} MB")


def _no_index(path: Path) -> str:
    name = str(path)
    return printable(f"{name}: no index yet: codespec index {shlex.quote(name)}")


def _counted(n: int, one: str, many: str) -> str:
    return f"{n} {one if n == 1 else many}"


def print_pruned(max_bytes: int, as_json: bool) -> None:
    removed = upkeep.prune(max_bytes)
    if as_json:
        print_json([asdict(s) for s in removed])
        return
    for s in removed:
        why = s.problem or "least recently used"
        click.echo(f"removed {printable(s.root or s.folder)}: {s.n_bytes / 1e6:.1f} MB, {why}")
    click.echo(f"{_counted(len(removed), 'index', 'indexes')} removed")


def verify(path: Path, repair: bool, as_json: bool) -> bool:
    """Report damage in the indexes of a workspace and, to repair it, take it out.

    Returns: True if there was any.
    """
    damaged: list[dict[str, str]] = []
    n_segments = 0
    n_indexes = 0
    for folder in index_folders(os.path.realpath(path)):
        try:
            manifest = read_manifest(folder)
        except IndexCorruptError as e:
            n_indexes += 1
            damaged.append({"file": str(folder / MANIFEST), "what": e.message})
            if repair:
                upkeep.remove(folder)
            continue
        if manifest is None:  # being built, or left off before there was anything
            continue
        n_indexes += 1
        store = Store(manifest.root, manifest.tokenizer_hash)
        n_segments += len(manifest.segments)
        found = check.find_damage(store)
        damaged += [{"file": str(folder / d.file), "what": d.what} for d in found]
        if found and repair:
            check.discard(store, found)
    if as_json:
        report = {"n_indexes": n_indexes, "n_segments": n_segments, "damaged": damaged}
        print_json({**report, "repaired": bool(damaged) and repair})
    elif not n_indexes:
        click.echo(_no_index(path))
    else:
        for d in damaged:
            click.echo(f"damaged: {d['file']}: {d['what']}")
        state = f"{len(damaged)} damaged" if damaged else "sound"
        indexes = _counted(n_indexes, "index", "indexes")
        segments = _counted(n_segments, "segment", "segments")
        click.echo(f"{printable(str(path))}: {indexes}, {segments}: {state}")
    return bool(damaged)


def print_symbols(path: Path, name: str, as_json: bool) -> int:
    """Print the definitions of a name in all indexes of a workspace. Returns: an exit status."""
    found: dict[Definition, None] = {}
    known = upkeep.all_status(os.path.realpath(path))
    for status in known:
        index = WorkspaceIndex.open(path, status.tokenizer)
        if index is not None:
            found |= dict.fromkeys(index.with_copies(index.definitions([name])))
    if as_json:
        print_json([asdict(d) for d in found])
    else:
        for d in found:
            lines = f"{d.first_line}-{d.last_line}"
            click.echo(f"{printable(d.path)}:{lines}: {printable(d.signature)} ({d.kind})")
        if not found:
            none = f"{printable(str(path))}: no definition of {name} in the index"
            click.echo(none if known else _no_index(path), err=True)
    return 0 if found else 1


def _ago(seconds: float) -> str:
    for size, unit in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit} ago"
    return "just now"
