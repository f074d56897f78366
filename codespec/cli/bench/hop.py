"""`codespec bench hop`."""

from __future__ import annotations

from pathlib import Path

import click
from rich.console import Console

from codespec.cli import FiniteRange, draft_model_option, model_settings
from codespec.cli.bench.results import deliver, result_options


@click.command()
@click.argument(
    "file", type=click.Path(path_type=Path, exists=True, dir_okay=False), required=False
)
@click.option(
    "--workspace", type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Index this folder first. Without FILE, its file with nearest to 2,000 lines is taken.",
)  # fmt: skip
@click.option(
    "--lines", "n_lines", default=12, show_default=True, type=click.IntRange(1),
    help="Lines to type again.",
)  # fmt: skip
@click.option(
    "--edits", "n_edits", default=30, show_default=True, type=click.IntRange(0),
    help="Then so many places of one name in FILE are changed; each change asks for the next edit.",
)  # fmt: skip
@click.option(
    "--key-ms", default=120.0, show_default=True, type=FiniteRange(0), help="Time between keys."
)
@click.option(
    "--rest-ms", default=500.0, show_default=True, type=FiniteRange(0),
    help="How long the cursor rests in a line before it is typed in, which editors tell.",
)  # fmt: skip
@click.option(
    "--threads", "n_threads", default=0, show_default=True, type=click.IntRange(0),
    help="Threads of the model; 0: one per core.",
)  # fmt: skip
@click.option(
    "--storm", "n_storm", default=0, show_default=True, type=click.IntRange(0),
    help="Then so many requests as fast as they go, some cancelled: are all answered once?",
)  # fmt: skip
@click.option(
    "--model",
    metavar="FILE",
    help="GGUF of the target model (default: the bundled one, whatever the settings say).",
)
@draft_model_option
@result_options
def command(
    file: Path | None,
    workspace: Path | None,
    n_lines: int,
    n_edits: int,
    key_ms: float,
    rest_ms: float,
    n_threads: int,
    n_storm: int,
    model: str | None,
    draft_model: str | None,
    as_json: bool,
    output: Path | None,
) -> None:
    """Type lines of FILE again through a language server and a daemon of their own, and measure
    what lies between a key and its suggestion, beside the model; and between a change and the next
    edit.

    Without FILE and --workspace: in an indexed workspace of a million tokens, made of the standard
    library.
    """
    from codespec_bench import hop

    # Without --model it is the bundled one, whatever the settings say.
    chosen = {"target": "", **model_settings(model, draft_model).get("model", {})}
    with Console(stderr=True).status("starting") as status:
        rows = hop.run(
            file.resolve() if file else None,
            workspace.resolve() if workspace else None,
            n_lines, key_ms, rest_ms, {**chosen, "n_threads": n_threads}, n_edits, n_storm,
            status.update,
        )  # fmt: skip
    deliver("hop", rows, as_json, output, hop.print_rows)
