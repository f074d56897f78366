"""`codespec bench drafts`."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import click

from codespec.cli import model_settings
from codespec.cli.bench.results import deliver, result_options
from codespec.config import load_settings
from codespec.errors import ConfigError


@click.command()
@click.argument(
    "workspace", default=".", type=click.Path(path_type=Path, exists=True, file_okay=False)
)
@click.option(
    "--target", metavar="MODEL", help="The model to draft for, a file or a name (default: yours)."
)
@click.option(
    "--draft",
    "extra",
    multiple=True,
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A further draft model to set beside; may be given again.",
)
@click.option(
    "--curve",
    "curves",
    multiple=True,
    metavar="NAME|FILE",
    help="Cost of a larger target's passes, see `bench replay`; may be given again.",
)
@click.option(
    "--places", default=60, show_default=True, type=click.IntRange(1), help="Places to complete."
)
@result_options
def command(
    workspace: Path,
    target: str | None,
    extra: tuple[Path, ...],
    curves: tuple[str, ...],
    places: int,
    as_json: bool,
    output: Path | None,
) -> None:
    """Measure draft models for WORKSPACE: that of the settings, the one distilled for it.

    On places in files that distilling keeps aside: the share of a fixed draft of 4 that the target
    accepts; and the speed, where drafting is left to the planner, with this target by the clock,
    and computed for targets whose passes cost more. Of those only the cost of a pass is theirs:
    what is said and accepted is this target's.
    """
    if find_spec("tokenizers") is None:
        raise ConfigError("this needs what distilling needs", "pip install 'codespec[train]'")
    from codespec_bench import drafts as bench

    settings = load_settings(model_settings(target, None))
    rows = bench.run(workspace, settings, extra, curves or bench.CURVES, places)
    deliver("drafts", rows, as_json, output, bench.print_rows, [workspace])
