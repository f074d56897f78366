"""The stages from source on disk to two GGUF files. Each skips itself when its result is there, so
a run can go on.
"""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path

import torch
from rich.console import Console
from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from tokenizers import Tokenizer

from codespec.errors import InputError
from codespec.system.progress import BarOrLines
from codespec.train import bpe, bundle, corpus, evaluate
from codespec.train.corpus import Corpus
from codespec.train.corpus_sources import CorpusSource
from codespec.train.recipe import Recipe
from codespec.train.train import State, Trainer, TrainingBudget, load_model
from codespec.training import export
from codespec.training.network import Llama

N_AGREEMENT_TOKENS = 512

console = Console(stderr=True)


def progress_bar() -> BarOrLines:
    return BarOrLines(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        transient=False,
    )


def build_corpus(sources: Iterable[CorpusSource], out: Path) -> Corpus:
    """out/corpus. Raises: InputError if no source is admitted."""
    folder = out / "corpus"
    if not (folder / "manifest.json").exists():
        listed = list(sources)
        with progress_bar() as bar:
            task = bar.add_task("corpus", total=len(listed))

            def report(line: str) -> None:
                bar.update(task, advance=1, description=f"corpus  {line}")
                bar.say(f"corpus  {line}")

            corpus.build(listed, folder, report)
    result = Corpus(folder)
    if not len(result.documents("train")):
        raise InputError(
            f"{folder} has nothing to train on: no source of known permissive licence was found",
            "Name more with --env, --npm or --extra.",
        )
    return result


def make_tokenizer(data: Corpus, out: Path, start: Path | None = None) -> Tokenizer:
    """out/tokenizer.json; start: a GGUF file whose tokenizer to take instead of a new one."""
    path = out / "tokenizer.json"
    if not path.exists() and start is not None:
        export.read_gguf(start)[1].save(str(path))
    if not path.exists():
        with progress_bar() as bar:
            bar.add_task("tokenizer: learning the merges", total=None)
            bpe.train(bpe.sample(data)).save(str(path))
    return bpe.load(path)


def train_model(
    recipe: Recipe,
    data: Corpus,
    out: Path,
    budget: TrainingBudget,
    device: str,
    n_workers: int,
    start: Path | None = None,
    stop_after_s: float | None = None,
    to: Path | None = None,
) -> State | None:
    """out/<recipe name>/final.pt; None if it was there already.

    start: a GGUF file whose weights to begin with. stop_after_s: see `Trainer.run`. to: a folder
    that gets the model as it is at every checkpoint, in parts that travel.
    """
    folder = out / recipe.name
    if (folder / "final.pt").exists():
        return None
    words = bpe.load(out / "tokenizer.json")

    def on_save(model: Llama, state: State) -> None:
        if to is not None:
            path = folder / f"{recipe.name}.gguf"
            export.write_gguf(path, model, words, "q8_0", recipe.name)
            bundle.send(path, json.dumps(asdict(state)), to)

    trainer = Trainer(
        recipe,
        data,
        words,
        folder,
        device,
        n_workers,
        start=None if start is None else export.read_gguf(start)[0],
        on_save=on_save,
        teacher=load_model(out / recipe.teacher / "final.pt") if recipe.teacher else None,
    )
    console.print(
        f"{recipe.name}: {recipe.model.n_params:,} parameters, from step {trainer.state.step}"
    )
    with progress_bar() as bar:
        task = bar.add_task(recipe.name, total=1.0)

        def on_step(state: State, progress: float) -> None:
            speed = state.tokens / max(state.seconds, 1e-9)
            line = f"{recipe.name}  step {state.step}  loss {state.loss:.3f}  {speed:,.0f} tokens/s"
            bar.update(task, completed=progress, description=line)
            bar.say(f"{line}  {progress:.1%}")

        return trainer.run(budget, on_step, stop_after_s)


def export_model(name: str, out: Path, quantisation: str = "q8_0", fim_order: str = "spm") -> Path:
    """out/<name>.gguf from out/<name>/final.pt."""
    path = out / f"{name}.gguf"
    model = load_model(out / name / "final.pt")
    export.write_gguf(path, model, bpe.load(out / "tokenizer.json"), quantisation, name, fim_order)
    return path


def measure(
    path: Path,
    data: Corpus,
    n_files: int,
    n_lines: int,
    progress: Callable[[str], None] = lambda done: None,
    device: str = "cpu",
) -> dict[str, object]:
    """Bits per byte on n_files held-out Python files, and n_lines line completions in either order,
    of a GGUF file. progress: told what was done, often.
    """

    def tick(what: str, unit: str) -> evaluate.Tick:
        done = itertools.count(1)
        return lambda: progress(f"{path.name}  {what}: {next(done):,} {unit}")

    model, words = export.read_gguf(path)
    model.to(device)
    cases = evaluate.line_cases(evaluate.held_out_texts(data, sys.maxsize), n_lines)
    texts = evaluate.held_out_texts(data, n_files)
    return {
        "model": path.name,
        "n_params": model.config.n_params,
        "file_bytes": path.stat().st_size,
        "n_files": len(texts),
        "n_bytes": sum(len(text.encode()) for text in texts),
        "bits_per_byte": evaluate.bits_per_byte(
            model, words, texts, tick("bits per byte", "chunks")
        ),
        **{
            order: asdict(
                evaluate.line_completion(
                    model,
                    words,
                    cases,
                    psm=order == "psm",
                    tick=tick(f"lines, {order.upper()}", f"of {len(cases):,}"),
                )
            )
            for order in ("psm", "spm")
        },
    }


def measure_pair(
    target: Path,
    draft: Path,
    data: Corpus,
    n_files: int,
    progress: Callable[[str], None] = lambda done: None,
) -> float:
    """Share of held-out positions where both models' top tokens are equal."""
    model, words = export.read_gguf(target)
    done = itertools.count(1)
    return evaluate.greedy_agreement(
        model,
        export.read_gguf(draft)[0],
        words,
        evaluate.held_out_texts(data, n_files),
        lambda: progress(f"agreement of the pair: {next(done):,} chunks"),
    )


def measure_agreement(name: str, data: Corpus, out: Path) -> dict[str, object]:
    """torch against llama.cpp on the same held-out tokens, through files of f32 and q8_0 written
    for the purpose.

    The f32 file is compared with the trained weights, the q8_0 file with the trained weights and
    with its own weights, dequantised: the former is what quantisation costs, the latter what
    llama.cpp's arithmetic does. Where training was elsewhere, only the exported weights are here:
    quantised already.
    """
    from codespec.train import agreement

    final = out / name / "final.pt"
    model, words = (
        (load_model(final), bpe.load(out / "tokenizer.json"))
        if final.exists()
        else export.read_gguf(out / f"{name}.gguf")
    )
    joined = "".join(evaluate.held_out_texts(data, 4))
    chunk = next(evaluate.chunks(words, [joined], min(N_AGREEMENT_TOKENS, model.config.n_ctx)))
    ids: list[int] = chunk[:-1].tolist()
    result: dict[str, object] = {}
    for quantisation in ("f32", "q8_0"):
        path = out / f"{name}.{quantisation}.check.gguf"
        export.write_gguf(path, model, words, quantisation, name)
        result[quantisation] = asdict(agreement.compare(model, path, ids))
        if quantisation == "q8_0":
            own, _ = export.read_gguf(path)
            result["q8_0_own_weights"] = asdict(agreement.compare(own, path, ids))
        path.unlink()
    return result


def write_report(out: Path, report: dict[str, object]) -> None:
    report["torch"] = torch.__version__
    (out / "report.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
