"""The model card, written from what a run recorded: nothing in it is typed by hand."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from codespec.train.corpus import HELD_OUT
from codespec.train.fim_cuts import CUTS, CUTS_OF_FINISHED, Rules
from codespec.train.recipe import Recipe

N_LISTED = 120  # packages; the smaller ones share one paragraph

TEXT = """\
# {names}: code completion models trained from scratch

A target model and a draft model of the same tokenizer, for completion with fill-in-the-middle on
any machine. They are small: they know the shape of code, Python above all, and little of its
meaning. The weights are under the Apache License 2.0, as the project is; the source they were
trained on is listed below with its licences. They may repeat passages of it.

## Models

{models}

Architecture `llama` (pre-norm RMSNorm, interleaved rotary embedding, grouped-query attention,
SwiGLU, tied embeddings), byte-level BPE with {n_vocab:,} tokens and the pre-tokenizer `qwen2`,
matrices in q8_0.

Prompts, both orders trained with equal chance; the metadata key `codespec.fim_order` names the one
that serves better:

    PSM  <|fim_prefix|> lines before <|fim_suffix|> suffix <|fim_middle|> line before the cursor
    SPM  <|fim_prefix|> <|fim_suffix|> suffix <|fim_middle|> all before the cursor

The middle ends with `<|endoftext|>`. The parts are tokenised apart. Text of other files goes first:
`<|repo_name|>` name, newline, and for each file `<|file_sep|>` path, newline, text, newline; last
`<|file_sep|>`, the path of the cursor's file and a newline.

## Results on packages never trained on

{held_out}.

{results}

Bits per byte: {n_files} Python files, {n_bytes:,} bytes, chunks of 1,024 tokens. Line: the rest of
a line of code from a random word in it, greedy, up to 768 tokens before and 192 after; exact match,
edit similarity, and the share that wrote the end token rather than a newline, over {n_lines} lines.
An order that completes no line exactly should not be used.{pair}

## Training

{training}

{phases}

Fill-in-the-middle as in Bavarian et al. 2022, middles cut {cuts};
where a line is finished, {finished}.
{optimisers}{notes}

## torch and llama.cpp

Largest difference of any logit over the same {n_agreement} held-out tokens, and share of positions
with the same top token. float32 KV cache, no flash attention; "own weights" compares with the
file's weights dequantised in torch, so that only the arithmetic differs.

{agreement}

## Corpus

{corpus}

{packages}

Smaller ones: {small}.

Refused, because their metadata does not show a permissive licence, or because they carry a
held-out package: {refused}. Files skipped:
{skipped}.

## Train again

    python -m pip install 'codespec[train]'
    python -m pip install --no-deps --only-binary :all: --target corpus-env \\
        -r codespec/train/corpus_packages.txt
    python -m pip install --no-deps --target heldout-env {held_out_names}
    npm install --prefix npm-env --ignore-scripts --legacy-peer-deps \\
        $(grep -v '#' codespec/train/npm_packages.txt)
    python -m codespec.train.more_sources extra-env
    python -m codespec.train corpus --out run --package-mb 5 --env heldout-env --env corpus-env \\
        --npm npm-env/node_modules $(cat extra-env/extras)
    python -m codespec.train all --minutes 90 --out run

On a machine with a large GPU and without a network (a checkout, Python, torch and tokenizers are
there), from the corpus and tokenizer of `run`; each folder of `packed` fits one transfer, and the
second command is given as often as it takes:

    python -m codespec.train pack --out run packed
    python3 codespec/train/there.py packed/* --run run --to results --large --minutes 20 \\
        --stop-after 8.5
    python -m codespec.train receive --out run results

`--extra DIR=SPDX` adds a folder of source. Newer versions of the packages give another corpus, and
so other weights; with `--tokens` instead of `--minutes` a run on the same corpus repeats itself.
"""


OPTIMISERS = """\
Muon for the matrices (Jordan et al. 2024), AdamW for the rest, arithmetic in bf16 or, where that is
quicker, in float32, warmup, stable rate, linear decay to zero."""


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)


def render(out: Path, recipes: Sequence[Recipe]) -> str:
    """The card of a finished run. Raises: OSError, KeyError if the run has no report yet."""
    manifest = json.loads((out / "corpus" / "manifest.json").read_text(encoding="utf-8"))
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    by_name = {Path(entry["model"]).stem: entry for entry in report["models"]}
    entries = [by_name[recipe.name] for recipe in recipes]
    packages: dict[str, dict[str, Any]] = {
        name: p for name, p in manifest["packages"].items() if p["n_bytes"] and not p["held_out"]
    }
    listed = sorted(packages.items(), key=lambda item: -item[1]["n_bytes"])
    small = [f"{name} ({p['licence']})" for name, p in listed[N_LISTED:]]
    pair = report.get("greedy_agreement")
    first = entries[0]
    return TEXT.format(
        names=" and ".join(recipe.name for recipe in recipes),
        models=models_table(recipes, entries),
        n_vocab=recipes[0].model.n_vocab,
        held_out=", ".join(sorted(n for n, p in manifest["packages"].items() if p["held_out"])),
        held_out_names=" ".join(sorted(HELD_OUT)),
        results=results_table(entries),
        n_files=first["n_files"],
        n_bytes=first["n_bytes"],
        n_lines=first["psm"]["n"],
        pair=f"\n\nBoth models put the same token first at {pair:.1%} of the positions."
        if pair is not None
        else "",
        training=training_table(out, recipes),
        phases=phases_table(recipes[0]),
        cuts=shares_of(CUTS),
        finished=shares_of(CUTS_OF_FINISHED),
        optimisers=OPTIMISERS,
        notes=notes(out),
        n_agreement=agreements(report, recipes)[0][1]["f32"]["n_tokens"],
        agreement=agreement_table(report, recipes),
        corpus=corpus_line(manifest, packages),
        packages=table(
            ("package", "version", "licence", "files", "MB"),
            (
                (name, p["version"], p["licence"], p["n_files"], f"{p['n_bytes'] / 1e6:.2f}")
                for name, p in listed[:N_LISTED]
            ),
        ),
        small=", ".join(small) or "none",
        refused=", ".join(sorted(manifest["refused"])) or "none",
        skipped=", ".join(f"{n} {why}" for why, n in sorted(manifest["skipped_files"].items()))
        or "none",
    )


def shares_of(cuts: Rules) -> str:
    return ", ".join(f"{share:.0%} {kind}" for share, kind, _ in cuts)


def notes(out: Path) -> str:
    """The text of NOTES.md in the run's folder, which no log knows, as a paragraph of its own."""
    path = out / "NOTES.md"
    return "\n\n" + path.read_text(encoding="utf-8").strip() if path.exists() else ""


def models_table(recipes: Sequence[Recipe], entries: Sequence[dict[str, Any]]) -> str:
    head = ("file", "parameters", "bytes", "width", "layers", "heads (KV)", "FFN", "context")
    rows: list[tuple[object, ...]] = []
    for recipe, entry in zip(recipes, entries, strict=True):
        m = recipe.model
        heads = f"{m.n_heads} ({m.n_kv_heads}) of {m.head_dim}"
        size = f"{entry['file_bytes']:,}"
        params = f"{m.n_params:,}"
        rows.append((entry["model"], params, size, m.n_embd, m.n_layers, heads, m.n_ff, m.n_ctx))
    return table(head, rows)


def results_table(entries: Sequence[dict[str, Any]]) -> str:
    head = ("model", "bits per byte", "order", "exact line", "similarity", "end token")
    rows: list[tuple[object, ...]] = []
    for entry in entries:
        for order in ("psm", "spm"):
            line = entry[order]
            scores = f"{line['exact_match']:.1%}", f"{line['edit_similarity']:.2f}"
            ended = f"{line['stopped_itself']:.0%}"
            bits = f"{entry['bits_per_byte']:.3f}"
            rows.append((entry["model"], bits, order.upper(), *scores, ended))
    return table(head, rows)


def training_table(out: Path, recipes: Sequence[Recipe]) -> str:
    head = ("model", "steps", "tokens", "minutes", "training loss", "validation loss")
    rows: list[tuple[object, ...]] = []
    for recipe in recipes:
        log = (out / recipe.name / "log.jsonl").read_text(encoding="utf-8").splitlines()
        last = json.loads(log[-1])
        losses = f"{last['loss']:.3f}", f"{last['validation']:.3f}"
        minutes = f"{last['seconds'] / 60:.0f}"
        rows.append((recipe.name, last["step"], f"{last['tokens']:,}", minutes, *losses))
    return (
        table(head, rows)
        + "\n\nLosses in nats a token; at the end the training loss is one of middles above all."
    )


def phases_table(recipe: Recipe) -> str:
    """A table of the phases: what the rows of each were made of, from the recipe."""
    head = (
        *("up to", "tokens a row", "rows a step", "FIM", "finished", "other files"),
        *("outside middles", "end"),
    )
    rows = [
        (
            f"{p.until:.0%}",
            p.n_tokens,
            p.n_rows,
            f"{p.fim_rate:.0%}",
            f"{p.finished_rate:.0%}",
            f"{p.repository_rate:.0%}",
            p.context_weight,
            p.end_weight,
        )
        for p in recipe.phases
    ]
    return (
        table(head, rows)
        + "\n\nFIM: share of sequences; finished: of these, cut where a line is finished; other"
        "\nfiles: share of rows that begin with text of other files of the package; outside"
        "\nmiddles, end: what tokens outside middles and end tokens count in the loss, where one of"
        "\na middle counts 1."
    )


def agreements(
    report: dict[str, Any], recipes: Sequence[Recipe]
) -> list[tuple[str, dict[str, dict[str, Any]]]]:
    return [(r.name, report["torch_llama_cpp"][r.name]) for r in recipes]


def agreement_table(report: dict[str, Any], recipes: Sequence[Recipe]) -> str:
    head = ("model", "file", "largest difference", "same top token", "deviation of the logits")
    rows: list[tuple[object, ...]] = []
    for name, results in agreements(report, recipes):
        for kind, r in results.items():
            numbers = f"{r['max_difference']:.2g}", f"{r['argmax']:.1%}", f"{r['logit_std']:.2f}"
            rows.append((name, kind.replace("_own", ", own"), *numbers))
    return table(head, rows)


_PEOPLE_OUT = (
    "Taken out of all texts by rule: lines that say whose they are (copyrights, licences,\n"
    "authors, who signed off), the names in such values, and e-mail addresses that are not for\n"
    "examples."
)
_PEOPLE_IN = (
    "Names and e-mail addresses of people in it were not taken out: suggestions are kept free of\n"
    "those that nothing of the user's names."
)


def corpus_line(manifest: dict[str, Any], packages: dict[str, dict[str, Any]]) -> str:
    languages: Counter[str] = Counter()
    licences: Counter[str] = Counter()
    for package in packages.values():
        languages.update(package["by_language"])
        licences[package["licence"]] += package["n_bytes"]
    split = manifest["bytes_by_split"]

    def shares(counter: Counter[str]) -> str:
        total = sum(counter.values())
        return ", ".join(f"{name} {n / total:.1%}" for name, n in counter.most_common())

    return (
        f"{split['train'] / 1e6:.1f} MB for training, {split['validation'] / 1e6:.1f} MB for "
        f"validation, {split['heldout'] / 1e6:.1f} MB held out, from {len(packages)} packages,\n"
        "after removal of exact and near copies, generated, minified and vendored files.\n\n"
        f"{_PEOPLE_OUT if manifest.get('without_people') else _PEOPLE_IN}\n\n"
        f"By language: {shares(languages)}.\n\nBy licence: {shares(licences)}."
    )
