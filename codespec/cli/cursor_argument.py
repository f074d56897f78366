"""The argument FILE:LINE:COL on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeAlias

import click

from codespec.config import Settings
from codespec.documents.from_disk import read_document, split_at, workspace_of
from codespec.errors import ConfigError
from codespec.requests import CompletionRequest
from codespec.system.folders import cache_dir, cache_path

FilePlace: TypeAlias = tuple[Path, int, int]


class PlaceParam(click.ParamType[FilePlace]):
    name = "FILE:LINE:COL"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> FilePlace:
        # File names may hold colons (and drive letters do): the last two parts are the position.
        path, line, column = ([*str(value).rsplit(":", 2), "", ""])[:3]
        if not (path and _is_number(line) and _is_number(column)):
            self.fail(
                f"{value!r} is not FILE:LINE:COL, e.g. src/app.py:12:5 "
                "(line and column from 1, the column in characters)",
                param,
                ctx,
            )
        return Path(path), int(line), int(column)


def _is_number(text: str) -> bool:
    # Python converts no more than some 4,000 digits.
    return text.isdecimal() and len(text) < 20


def request_at(place: FilePlace, workspace: Path | None, settings: Settings) -> CompletionRequest:
    """A request at a place of a file. Raises: InputError for a place that does not exist."""
    path, line, column = place
    prefix, suffix = split_at(read_document(path), line, column, str(path))
    return CompletionRequest(
        prefix=prefix,
        suffix=suffix,
        path=str(path.resolve()),
        workspace=str((workspace or workspace_of(path)).resolve()),
        max_tokens=settings.completion.max_tokens,
    )


def warn_without_cache() -> None:
    """Warn if the cache folder cannot be used: completion works without it. Raises: ConfigError for
    a name that is none, with which it does not."""
    cache_path()
    try:
        cache_dir()
    except ConfigError as e:
        said = f"no index is used, and nothing learned is kept: {e.message}"
        click.secho(said, fg="yellow", err=True)
        click.echo(f"  {e.hint}", err=True)
