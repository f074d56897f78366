"""`codespec bench replay`."""

from __future__ import annotations

import math
from pathlib import Path

import click

from codespec.cli import draft_model_option, model_settings
from codespec.cli.bench.history import commits_option, paths_option, repo_argument, until_option
from codespec.cli.bench.results import can_be_written, deliver, result_options
from codespec.config import load_settings
from codespec.models.resolve import draft_paths, target_path


@click.command()
@repo_argument
@commits_option(50, "Last commits with edits to replay.")
@until_option
@paths_option
@click.option(
    "--curve",
    default="cpu-500m-q8",
    show_default=True,
    metavar="NAME|FILE",
    help="Cost of a pass: a shipped curve, or a JSON file of the same form.",
)
@click.option(
    "--width", default=16, show_default=True, type=click.IntRange(1),
    help="Most drafted tokens a pass.",
)  # fmt: skip
@click.option(
    "--vocabulary",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="GGUF in whose tokens the true text is told (default: the target of the settings); its "
    "weights need not be in it.",
)
@click.option(
    "--model",
    metavar="FILE",
    help='GGUF of a model that writes instead, or "bundled" (default: none does, see above).',
)
@click.option(
    "--keys", default=0, metavar="N", type=click.IntRange(0),
    help="With --model: type so many characters of each edit, and complete it anew whenever the "
    "suggestion in view does not go on so (default: once, before the first).",
)  # fmt: skip
@click.option(
    "--record", "record_to",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    callback=can_be_written,
    help="With --model: only keep what it writes, for --recorded.",
)  # fmt: skip
@click.option(
    "--recorded",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Replay what a model wrote, a file of --record, in place of the true text; its "
    "--vocabulary has to be named.",
)
@draft_model_option
@result_options
def command(
    repo: Path,
    commits: int,
    until: str,
    paths: str,
    curve: str,
    width: int,
    vocabulary: Path | None,
    model: str | None,
    keys: int,
    record_to: Path | None,
    recorded: Path | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Decode the edits of a Git history again, and say how fast each way of drafting is.

    The true text stands in for the model, so none is run: for each of the last commits, the index
    is the parent's tree, and each added hunk is written token by token at its place. A pass over k
    drafted tokens costs what the curve says for k + 1. Beside codespec: prompt lookup, a fixed
    draft of 8, the published suffix-trie rules for chains and for trees, and the ideal width for
    that trie's candidates. codespec-edits also has what the session holds: lines that were
    replaced, and what was written earlier in the same commit. codespec-draft, with --draft-model
    "auto" or FILE, also asks that model, at what its passes cost here on one thread. It also says
    how right codespec's probabilities were.

    With --model FILE that model completes each edit itself, with and without
    drafting, on the wall clock; --curve, --width and --vocabulary do not count then. With --keys N
    too, each edit is typed, and what was said a key before is drafted from. With --record, what
    it writes is kept instead, as ids; --recorded replays that without a clock, and where a text
    ends is not known before.
    """
    if keys and model is None:
        raise click.UsageError("--keys goes with --model, which completes what is typed")
    if record_to is not None and model is None:
        raise click.UsageError("--record goes with --model, which writes")
    if recorded is not None and model is not None:
        raise click.UsageError("--recorded is in place of --model; name its --vocabulary")
    from codespec_bench import replay_report

    if model is not None:
        settings = load_settings(model_settings(model, draft_model))
        if record_to is not None:
            n = replay_report.record(repo, settings, commits, paths, until, record_to)
            click.echo(f"{n} texts: {record_to}")
            return
        rows = replay_report.run_model(repo, settings, commits, paths, until, keys)
        deliver("replay-model", rows, as_json, output, replay_report.print_model_rows, [repo])
        return
    chosen = load_settings(model_settings(None, draft_model)).model
    # The draft model depends on the curve, whose target has no size.
    drafts = draft_paths(chosen, math.inf) if draft_model is not None else ()
    told = vocabulary or target_path(chosen)
    rows = replay_report.run(repo, told, commits, paths, curve, width, until, drafts, recorded)
    deliver("replay", rows, as_json, output, replay_report.print_rows, [repo])
