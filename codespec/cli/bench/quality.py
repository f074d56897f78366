"""`codespec bench quality`."""

from __future__ import annotations

from pathlib import Path

import click

from codespec.cli import model_options, model_settings
from codespec.cli.bench.history import repos_argument
from codespec.cli.bench.results import can_be_written, deliver, result_options
from codespec.config import load_settings


@click.command()
@repos_argument
@click.option(
    "--places",
    default=50,
    show_default=True,
    type=click.IntRange(1),
    help="Of each kind and language in a repository.",
)
@click.option(
    "--only",
    multiple=True,
    type=click.Choice(["file", "+symbols", "+buffers", "+edits", "all"]),
    help="What the model is shown; may be given again (default: each of them in turn).",
)
@click.option(
    "--answers",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=can_be_written,
    help="Also append each place and its suggestion to a file of JSON lines; it holds source text.",
)
@click.option(
    "--kind",
    "kinds",
    multiple=True,
    help="A kind of places, as the tables name them; may be given again (default: all).",
)
@click.option(
    "--against",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Ask at the places of answers that another version kept in FILE, and compare the two.",
)
@click.option(
    "--eagerness",
    is_flag=True,
    help="Instead: how much is shown unasked at each value of completion.eagerness, and how much "
    "of that is right, beside rules by length alone.",
)
@model_options
@result_options
def command(
    repos: tuple[Path, ...],
    places: int,
    only: tuple[str, ...],
    answers: Path | None,
    kinds: tuple[str, ...],
    against: Path | None,
    eagerness: bool,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Complete places of REPOS, folders of source files, and compare with what stood there.

    Rests of lines, texts between brackets that are closed behind the cursor, and bodies of blocks
    are cut out of files that parse, the same ones each time. At ends of finished lines nothing is
    cut out: whatever is shown there is too much. Further places are inside and right before strings
    and comments, before closing brackets, and, in files without a grammar, lines that are further
    in and items of lists. "alike" is the edit similarity, 1 at most.
    "repeats suffix" and "breaks" are shares of the suggestions shown: those that say what stands
    after the cursor already, and those that leave a file that does not parse (strict: by Python's
    own parser for Python). --json and --output have more. "truth" is what post-processing leaves of
    a model that writes what stood there and then goes on; "model alone" is how often the model
    wrote just that before anything was trimmed. Gains are differences to the first configuration,
    with 95 % intervals.

    With --eagerness, "exact" is the share of what is shown that stood there, as a whole or as the
    first lines; "exact kept" and "characters" are shares of what is exact at "high".
    """
    from codespec_bench import answers as kept
    from codespec_bench import gains_table, quality_report, results

    settings = load_settings(model_settings(model, draft_model))
    if eagerness:
        from codespec_bench import eager_report

        shown = eager_report.run(repos, settings, places)
        deliver("eagerness", shown, as_json, output, eager_report.print_rows, repos)
        return
    base = kept.read(against) if against is not None else []
    rows, found = quality_report.run(repos, settings, places, only, kinds, base)
    if answers is not None:
        results.append(answers, found)
    deliver("quality", rows, as_json, output, quality_report.print_rows, repos)
    if base:
        gained = list(kept.gains(found, base))
        deliver("quality-against", gained, as_json, output, gains_table.print_gains, repos)
