"""`codespec bench edits`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli import model_settings
from codespec.cli.bench.history import commits_option, repos_argument, until_option
from codespec.cli.bench.results import can_be_written, deliver, result_options
from codespec.config import load_settings
from codespec.next_edit import BARS


@click.command()
@repos_argument
@click.option(
    "--order",
    "orders",
    multiple=True,
    type=click.Choice(["diff", "shuffled"]),
    help="Order in which a commit's hunks are made; may be given again (default: each in turn).",
)
@commits_option(100, "Last commits of each repository to make again.")
@until_option
@click.option(
    "--paths",
    multiple=True,
    metavar="GLOB",
    help="Files that count; may be given again (default: source files, by their endings).",
)
@click.option(
    "--config",
    "configs",
    multiple=True,
    metavar="NAME",
    help="One way to propose: rule, repeats, model or all; may be given again (default: each that "
    "needs no model, all four with one).",
)
@click.option(
    "--model",
    metavar="FILE",
    help="GGUF of a next-edit model, for the configurations model and all.",
)
@click.option(
    "--bar",
    default=BARS["medium"],
    show_default=True,
    type=click.FloatRange(0, 1),
    help="Least probability of what is shown; edits.eagerness has other ones.",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=can_be_written,
    help="Also append each ask to a file of JSON lines; it holds source text.",
)
@result_options
def command(
    repos: tuple[Path, ...],
    orders: tuple[str, ...],
    commits: int,
    until: str,
    paths: tuple[str, ...],
    configs: tuple[str, ...],
    model: str | None,
    bar: float,
    answers: Path | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Make the last commits of each REPO again, hunk by hunk, and ask for the next edit after each.

    Files are the parent's with the hunks so far. Those changed already are open, the others are the
    workspace. Right is a proposal that makes a hunk that is still outstanding, or one of its runs
    of lines, to the space. One that was wrong is dismissed: it counts once, and is not made again
    in that commit. "of repeatable" is the recall where something outstanding makes a substitution
    that the commit made before; "quiet" is the share of silence after a commit's last hunk; "by
    accept" the share of hunks that need no hand where right proposals are accepted at once.
    Intervals hold 95 %, over commits.

    The order of a diff is not that in which people work: it alone teaches that nothing above the
    cursor is ever outstanding. So the hunks are also made in a shuffled order, the same each time.
    Commits of more than 400 hunks, files that a commit adds or deletes, and merges are left out.
    """
    from codespec.errors import InputError
    from codespec_bench import edit_answers
    from codespec_bench import edits as bench

    for name in configs:
        if name not in bench.CONFIGS:
            raise InputError(
                f"{name}: no such configuration", f"Known: {', '.join(bench.CONFIGS)}."
            )
    settings = None if model is None else load_settings(model_settings(model, "none"))
    without = [name for name in bench.CONFIGS if name not in bench.WITH_MODEL]
    plan = bench.EditsPlan(
        repos=repos,
        configs=configs or (without if settings is None else bench.CONFIGS),
        orders=[order for order in bench.ORDERS if order in orders] or bench.ORDERS,
        n_commits=commits,
        paths=paths,
        until=until,
        bar=bar,
        settings=settings,
    )
    found = bench.run(plan)
    if answers is not None:
        edit_answers.write(answers, found)
    deliver("edits", bench.rows(found), as_json, output, bench.print_rows, repos)
