"""`codespec bench`: measurements that anyone can repeat. One file per benchmark."""

from __future__ import annotations

import click

from codespec.cli import LazyGroup

_BENCHMARKS = {
    "replay": "Decode a Git history again with each way of drafting.",
    "index": "Size and speed of the workspace index.",
}


@click.group(cls=LazyGroup, package=__name__, summaries=_BENCHMARKS)
def command() -> None:
    """Measure codespec on this machine."""
