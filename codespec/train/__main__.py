"""`python -m codespec.train`: make the bundled models again, whole or stage by stage."""

from __future__ import annotations

import json
import os
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import torch
from rich.table import Table

from codespec.errors import CodespecError
from codespec.train import bundle, card, corpus_sources, evaluate, pipeline
from codespec.train.corpus import Corpus
from codespec.train.recipe import (
    DRAFT,
    FURTHER_RATE,
    LARGE_RECIPES,
    RECIPES,
    TARGET,
    further,
)
from codespec.train.train import TrainingBudget

MB = 1_000_000
DRAFT_SHARE = 0.15  # of the minutes of `all`

OUT = click.option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    required=True,
    help="Folder of the run.",
)
FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)
LARGE = click.option(
    "--large", is_flag=True, help="Larger models and batches: for half an hour of a large GPU."
)
FROM = click.option(
    "--from",
    "start",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A GGUF file that an earlier run exported: go on from there.",
)


def source_options(command: Any) -> Any:
    """The options that say what goes into the corpus."""
    for option in (
        click.option("--env", "envs", type=FOLDER, multiple=True, help="A site-packages folder."),
        click.option("--npm", "npms", type=FOLDER, multiple=True, help="A node_modules folder."),
        click.option(
            "--extra", "extras", multiple=True, metavar="DIR=SPDX", help="A folder and its licence."
        ),
        click.option(
            "--package-mb", default=6.0, show_default=True, help="Most text of one package, MB."
        ),
    ):
        command = option(command)
    return command


def run_options(command: Any) -> Any:
    """The options of anything that trains."""
    default_device = "cuda" if torch.cuda.is_available() else "cpu"
    for option in (
        click.option(
            "--minutes", type=click.FloatRange(min=0, min_open=True), help="Budget by time."
        ),
        click.option(
            "--tokens", type=click.IntRange(min=1), help="Budget by tokens, exactly repeatable."
        ),
        click.option("--device", default=default_device, show_default=True),
        click.option(
            "--workers", default=os.cpu_count() or 1, show_default=True, help="Threads, on CPU."
        ),
    ):
        command = option(command)
    return command


def measure_options(command: Any) -> Any:
    """The options of anything that measures."""
    for option in (
        click.option("--n-files", default=60, show_default=True, help="Files for bits per byte."),
        click.option("--n-lines", default=200, show_default=True, help="Line completions."),
    ):
        command = option(command)
    return command


def named_sources(
    envs: tuple[Path, ...], npms: tuple[Path, ...], extras: tuple[str, ...], package_mb: float
) -> Iterator[corpus_sources.CorpusSource]:
    limit = int(package_mb * MB)
    yield corpus_sources.standard_library(5 * limit)
    for env in envs:
        yield from corpus_sources.python_environment(env, limit)
    for npm in npms:
        yield from corpus_sources.npm_environment(npm, limit // 6)
    for extra in extras:
        folder, _, licence = extra.rpartition("=")
        if not Path(folder).is_dir():
            raise click.BadParameter(
                f"{extra}: want DIR=SPDX with an existing folder", param_hint="--extra"
            )
        yield corpus_sources.extra_folder(Path(folder), licence, limit)


def budget_of(minutes: float | None, tokens: int | None) -> TrainingBudget:
    if (minutes is None) == (tokens is None):
        raise click.UsageError("give either --minutes or --tokens")
    return TrainingBudget(minutes, tokens)


@click.group(help=__doc__)
def main() -> None:
    pass


@main.command("all")
@OUT
@source_options
@run_options
@measure_options
@LARGE
@click.option(
    "--stop-after",
    type=click.FloatRange(min=0, min_open=True),
    metavar="MINUTES",
    help="Of this call; the same command goes on.",
)
@click.option(
    "--to",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder for the models at every checkpoint, in parts, and the measurements.",
)
def everything(
    out: Path,
    large: bool,
    stop_after: float | None,
    to: Path | None,
    minutes: float | None,
    tokens: int | None,
    device: str,
    workers: int,
    n_files: int,
    n_lines: int,
    **which: Any,
) -> None:
    """Everything from corpus to report. Started again, it goes on where it was.

    For a machine with a large GPU and no network, see `pack` and there.py.
    """
    stop_at = None if stop_after is None else time.monotonic() + 60 * stop_after
    recipes = LARGE_RECIPES if large else RECIPES
    whole = budget_of(minutes, tokens)
    data = pipeline.build_corpus(named_sources(**which), out)
    evaluate.held_out_texts(data, 1)  # what the report needs is asked for before hours of training
    pipeline.make_tokenizer(data, out)
    for name, share in ((TARGET.name, 1 - DRAFT_SHARE), (DRAFT.name, DRAFT_SHARE)):
        # Tokens cost the small model less, so a budget of tokens is not divided.
        part = TrainingBudget(minutes=whole.minutes * share) if whole.minutes else whole
        left = None if stop_at is None else stop_at - time.monotonic()
        state = pipeline.train_model(
            recipes[name], data, out, part, device, workers, stop_after_s=left, to=to
        )
        if state is not None and not state.is_done:
            click.echo(json.dumps(asdict(state)))
            pipeline.console.print(f"{name}: stopped in time; the same command goes on")
            return
    exported = [pipeline.export_model(name, out) for name in RECIPES]
    report(out, data, exported, n_files, n_lines, device)
    if to is not None:
        shutil.copy(out / "report.json", to)
    if find_spec("llama_cpp") is None:
        pipeline.console.print("no llama.cpp here: no comparison with it, and so no card")
        return
    (out / "CARD.md").write_text(card.render(out, list(recipes.values())), encoding="utf-8")


@main.command("pack")
@OUT
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option("--python", default="3.12", show_default=True, help="Of the other machine.")
@click.option("--wheels/--no-wheels", default=True, help="Wheels that it may lack.")
def pack_command(out: Path, folder: Path, python: str, wheels: bool) -> None:
    """Fill FOLDER/0, FOLDER/1 and so on, each for one transfer, with all that training on a machine
    without a network needs beside a checkout.

    There, several times if a command's time is limited:

    python3 codespec/train/there.py FOLDER/* --run RUN --to RESULTS --large --minutes 20
    --stop-after 8.5
    """
    with pipeline.progress_bar() as bar:
        task = bar.add_task("compressing the corpus", total=1.0)

        def show(share: float) -> None:
            bar.update(task, completed=share)
            bar.say(f"compressing the corpus  {share:.0%}")

        size = bundle.pack(out, folder, python, wheels, show)
    click.echo(f"{folder}: {size / 2**20:.1f} MiB")


@main.command("receive")
@OUT
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
def receive_command(out: Path, folder: Path) -> None:
    """Join the models that a run elsewhere left in FOLDER (its --to)."""
    sent = [name for name in RECIPES if (folder / f"{name}.json").exists()]
    for name in sent or RECIPES:
        path = bundle.receive(folder, name, out)
        state = json.loads((out / name / "log.jsonl").read_text(encoding="utf-8"))
        unfinished = (
            "" if state["is_done"] else f"   not finished: it stopped at step {state['step']}"
        )
        click.echo(f"{path}{unfinished}")


@main.command("corpus")
@OUT
@source_options
def corpus_command(out: Path, **which: Any) -> None:
    """Collect, filter and deduplicate the source text."""
    data = pipeline.build_corpus(named_sources(**which), out)
    click.echo(json.dumps(data.manifest["bytes_by_split"]))


@main.command("tokenizer")
@OUT
@FROM
def tokenizer_command(out: Path, start: Path | None) -> None:
    """Learn the tokenizer from the corpus, or take that of a model."""
    pipeline.make_tokenizer(pipeline.build_corpus((), out), out, start)


@main.command("model")
@click.argument("name", type=click.Choice(list(RECIPES)))
@OUT
@FROM
@click.option(
    "--rate",
    type=click.FloatRange(0, 1, min_open=True),
    default=FURTHER_RATE,
    show_default=True,
    help="Of the recipe's learning rates, with --from.",
)
@LARGE
@run_options
def model_command(
    name: str,
    out: Path,
    large: bool,
    rate: float,
    start: Path | None,
    minutes: float | None,
    tokens: int | None,
    device: str,
    workers: int,
) -> None:
    """Train one of the models, or go on training it."""
    data = pipeline.build_corpus((), out)
    recipe = (LARGE_RECIPES if large else RECIPES)[name]
    if start:
        recipe = further(recipe, start, device, rate)
    state = pipeline.train_model(
        recipe, data, out, budget_of(minutes, tokens), device, workers, start
    )
    click.echo(
        json.dumps(asdict(state)) if state else f"{out / name / 'final.pt'} is there already"
    )


@main.command("export")
@click.argument("name", type=click.Choice(list(RECIPES)))
@OUT
@click.option(
    "--quantisation", type=click.Choice(["f32", "f16", "q8_0"]), default="q8_0", show_default=True
)
@click.option("--fim-order", type=click.Choice(["psm", "spm"]), default="spm", show_default=True)
def export_command(name: str, out: Path, quantisation: str, fim_order: str) -> None:
    """Write the GGUF file of a trained model."""
    click.echo(pipeline.export_model(name, out, quantisation, fim_order))


@main.command("card")
@OUT
@LARGE
def card_command(out: Path, large: bool) -> None:
    """Write the model card of a measured run."""
    recipes = LARGE_RECIPES if large else RECIPES
    (out / "CARD.md").write_text(card.render(out, list(recipes.values())), encoding="utf-8")
    click.echo(out / "CARD.md")


@main.command("evaluate")
@OUT
@click.argument(
    "files", type=click.Path(path_type=Path, exists=True, dir_okay=False), nargs=-1, required=True
)
@measure_options
@click.option("--threads", type=int, default=os.cpu_count() or 1, show_default=True)
def evaluate_command(
    out: Path, files: tuple[Path, ...], n_files: int, n_lines: int, threads: int
) -> None:
    """Measure GGUF files on the held-out packages (any Llama model with a qwen2 tokenizer)."""
    torch.set_num_threads(threads)
    report(out, pipeline.build_corpus((), out), list(files), n_files, n_lines)


def report(
    out: Path, data: Corpus, files: list[Path], n_files: int, n_lines: int, device: str = "cpu"
) -> None:
    """Measures, prints a table and one line of JSON, and writes report.json."""
    with pipeline.progress_bar() as bar:
        task = bar.add_task("measuring", total=None)

        def show(done: str) -> None:
            bar.update(task, description=done)
            bar.say(done)

        models = [pipeline.measure(f, data, n_files, n_lines, show, device) for f in files]
        result: dict[str, object] = {"models": models}
        result["torch_llama_cpp"] = {
            name: pipeline.measure_agreement(name, data, out)
            for name in RECIPES
            if find_spec("llama_cpp") and (out / f"{name}.gguf").exists()
        }
        pair = [out / f"{name}.gguf" for name in (TARGET.name, DRAFT.name)]
        if all(path.exists() for path in pair):
            result["greedy_agreement"] = pipeline.measure_pair(
                pair[0], pair[1], data, n_files, show
            )
    table = Table("model", "parameters", "bits per byte", "line, PSM", "line, SPM")
    for row in models:
        psm, spm = row["psm"], row["spm"]
        assert isinstance(psm, dict)
        assert isinstance(spm, dict)
        table.add_row(
            str(row["model"]),
            f"{row['n_params']:,}",
            f"{row['bits_per_byte']:.3f}",
            f"{psm['exact_match']:.1%}",
            f"{spm['exact_match']:.1%}",
        )
    pipeline.console.print(table)
    pipeline.write_report(out, result)
    click.echo(json.dumps(result))


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except CodespecError as error:
        sys.exit(f"codespec.train: {error}")
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except click.Abort:
        sys.exit("codespec.train: stopped; start it again to go on from the last checkpoint")
