"""`codespec bench models`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from codespec.cli.bench.results import deliver, result_options
from codespec.config import load_settings
from codespec.models import library
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.types import FimOrder

_ORDERS: dict[str, tuple[FimOrder, ...]] = {
    "served": (),
    "psm": ("psm",),
    "spm": ("spm",),
    "both": ("psm", "spm"),
}


@click.command()
@click.argument("models", nargs=-1)
@click.option(
    "--package",
    "packages",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Folder of Python source to measure on; may be given again (default: packages that the "
    "bundled models never saw, fetched once).",
)
@click.option(
    "--places",
    default=40,
    show_default=True,
    type=click.IntRange(1),
    help="Lines in each package, and half as many pieces inside lines and blocks.",
)
@click.option(
    "--order",
    type=click.Choice(list(_ORDERS)),
    default="served",
    show_default=True,
    help="Of prefix, suffix and middle in the prompt.",
)
@result_options
def command(
    models: tuple[str, ...],
    packages: tuple[Path, ...],
    places: int,
    order: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure MODELS (names of `codespec models list`, or files; default: the bundled pair) alone,
    without drafts and index: bits per byte of text; lines, pieces inside lines and blocks filled
    in, exactly and by edit similarity, and the share that leaves a file that parses; tokens a
    second of plain decoding. Of several models, what each gains over the first at the same places,
    and the standard error of that.
    """
    from codespec_bench import models as bench

    files = [library.find(m) for m in models] or [bundled(BUNDLED_TARGET), bundled(BUNDLED_DRAFT)]
    with Console(stderr=True).status("measuring") as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"measuring {what}, {done} of {total}")

        rows = bench.run(files, packages, load_settings(), places, _ORDERS[order], progress)
    deliver("models", rows, as_json, output, bench.print_rows)
