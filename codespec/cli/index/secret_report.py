"""`codespec index --secrets`: places that are cut out of the files of a workspace, never the
values."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import click

from codespec.cli import print_json, printable
from codespec.config import IndexSettings
from codespec.index.indexed_file import why_left_out
from codespec.index.walk import read_file, scan
from codespec.rules.ignore import IgnoreRules
from codespec.rules.secrets import find
from codespec.syntax.text import normalise


class Row(TypedDict):
    """A place that is cut out. line: from 1, where it begins. rule: name of the secrets' rule."""

    path: str
    line: int
    rule: str


def print_secrets(root: Path, settings: IndexSettings, as_json: bool) -> None:
    """Print the secrets of all files that would be indexed, as they are now, indexed or not."""
    rows = list(_rows(os.path.realpath(root), settings))
    if as_json:
        print_json(rows)
        return
    for row in rows:
        click.echo(f"{printable(row['path'])}:{row['line']}: {row['rule']}")
    by_rule = ", ".join(f"{n} {rule}" for rule, n in Counter(r["rule"] for r in rows).most_common())
    n_files = len({row["path"] for row in rows})
    click.echo(
        f"{len(rows)} cut out of {n_files} files: {by_rule}" if rows else "nothing to cut out"
    )


def _rows(root: str, settings: IndexSettings) -> Iterator[Row]:
    rules = IgnoreRules(root, exclude=settings.exclude)
    for candidate in scan(rules, settings.max_file_bytes).files:
        loaded = read_file(os.path.join(root, candidate.path), settings.max_file_bytes)
        if loaded is None or why_left_out(candidate.path, loaded[0]):
            continue
        text = normalise(loaded[0].decode())
        for start, _, rule in find(text):
            yield Row(path=candidate.path, line=text.count("\n", 0, start) + 1, rule=rule)
