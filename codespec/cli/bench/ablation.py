"""`codespec bench ablation`."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
from rich.console import Console

from codespec.cli.bench.history import commits_option, repos_argument
from codespec.cli.bench.results import deliver, result_options
from codespec.errors import ConfigError, InputError


@click.command()
@repos_argument
@click.option(
    "--target",
    "targets",
    multiple=True,
    help="One of the targets; may be given again (default: all of them).",
)
@click.option(
    "--mechanism",
    "mechanisms",
    multiple=True,
    help="What to leave out; may be given again (default: each optional part).",
)
@click.option(
    "--model",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="GGUF of SmolLM2-135M, which is measured where it is given; curves' targets speak its "
    "tokens then.",
)
@commits_option(20, "Last commits of each repository to replay.")
@click.option(
    "--places", default=20, show_default=True, type=click.IntRange(0),
    help="Places of each repository to complete by the clock.",
)  # fmt: skip
@result_options
def command(
    repos: tuple[Path, ...],
    targets: tuple[str, ...],
    mechanisms: tuple[str, ...],
    model: Path | None,
    commits: int,
    places: int,
    as_json: bool,
    output: Path | None,
) -> None:
    """Leave out each optional part of drafting, and say what that costs, by target.

    The edits of the last commits of each REPO are decoded with everything and without each part,
    on kept curves of what passes cost, and for the bundled target and SmolLM2 on what theirs cost
    here and on the clock. A part stays if leaving it out costs 3 % or more on two targets. What
    falls is left out together; where that costs more than 3 % on any target, the most valuable part
    comes back. Cells that are in the file of --output already are not measured again.
    """
    if find_spec("codespec_bench.maintainers") is None:
        raise ConfigError(
            "`codespec bench ablation` is for maintainers, and no part of the installed package",
            "Run it in a checkout of codespec's repository, after `make run` there.",
        )
    from codespec_bench import results as kept
    from codespec_bench.maintainers import ablation as bench

    for given, known in ((targets, bench.TARGETS), (mechanisms, bench.MECHANISMS)):
        for name in given:
            if name not in known:
                raise InputError(f"{name}: no such one", f"Known: {', '.join(known)}.")
    of = {"repository": " ".join(repo.resolve().name for repo in repos), "commits": commits}
    before = kept.read(output) if output is not None and output.exists() else []
    known = [row for row in before if row["bench"] == "ablation" and of.items() <= row.items()]

    def keep(rows: Sequence[dict[str, Any]]) -> None:
        if output is not None:
            kept.append(output, kept.stamped("ablation", [{**of, **row} for row in rows]))

    job = bench.AblationPlan(
        repos,
        targets or bench.TARGETS,
        mechanisms or bench.MECHANISMS,
        model,
        commits,
        places,
        known,
        keep,
    )
    with Console(stderr=True).status("measuring") as status:

        def progress(what: str, done: int, total: int) -> None:
            status.update(f"measuring {what}, {done} of {total}")

        rows = bench.run(job, progress)
    deliver("ablation", rows, as_json, None, bench.print_rows, repos)
