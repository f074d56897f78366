"""`codespec bench models`: how good a model is on packages it never saw, and how fast here.

The model alone: plain decoding, no drafts, no index, text of the one file only. Completions go
through the engine, so prompt format, token healing and the end of a suggestion are those served.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from statistics import mean
from typing import Any

import msgspec
import numpy as np
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from codespec.backends.base import Target
from codespec.backends.registry import open_vocabulary, targets_of
from codespec.config import Settings
from codespec.cost.measure import measure
from codespec.engine.local import LocalEngine
from codespec.errors import InputError
from codespec.index.walk import as_text
from codespec.requests import CompletionRequest
from codespec.types import Draft, FimOrder, Tokens

from .demo import fetch
from .judge import breaks_strictly, similarity
from .places import KINDS, CutPlace, places_in
from .results import Row

# None of the bundled models' training text, see their card.
HELD_OUT = ("flask==3.1.2", "click==8.3.1", "attrs==25.4.0", "requests==2.32.5")
N_CHUNK = 1024
N_FILES = 20
MIN_FILE_BYTES, MAX_FILE_BYTES = 500, 60_000
MAX_LINE_TOKENS, MAX_BLOCK_TOKENS = 48, 160

Progress = Callable[[str, int, int], None]


def run(
    models: Sequence[Path],
    packages: Sequence[Path],
    settings: Settings,
    n_places: int,
    orders: Sequence[FimOrder] = (),
    progress: Progress = lambda what, done, total: None,
) -> list[Row]:
    """A row a model and order. packages: folders of source; none: HELD_OUT, fetched once.

    n_places: rests of lines of Python in each package, and half as many pieces inside lines and
    blocks. orders: of the parts of a prompt; none: the one the model is served in.

    Raises: ModelError, InputError.
    """
    for path in models:
        open_vocabulary(path).close()  # or say at once what is wrong with it
    roots = list(packages) or [fetch(package) for package in HELD_OUT]
    numbers = {"line": n_places, "inline": n_places // 2 or 1, "block": n_places // 2 or 1}
    places = {
        kind: [place for root in roots for place in _places(root, n, kind)]
        for kind, n in numbers.items()
    }
    texts = list(_texts(roots))
    if not texts:
        named = ", ".join(map(as_text, roots))
        sizes = f"{MIN_FILE_BYTES:,} to {MAX_FILE_BYTES:,} bytes"
        raise InputError(f"{named}: no Python file of {sizes}", "Give a larger package.")
    rows: list[Row] = []
    scores: dict[str | None, _Scores] = {}
    for path in models:
        chosen = msgspec.structs.replace(
            settings, model=msgspec.structs.replace(settings.model, target=str(path), draft="")
        )
        same = sum(other.stem == path.stem for other in models)
        name = path.stem if same == 1 else f"{path.parent.name}/{path.stem}"
        row: Row = {"model": name, "packages": [root.name for root in roots]}
        row |= _read(path, texts, settings, progress)
        engine = LocalEngine(chosen)
        try:
            fim = engine.info.fim
            for order in orders or [fim.order if fim else None]:
                if fim and order:
                    asked = dataclasses.replace(fim, order=order)
                    engine.info = dataclasses.replace(engine.info, fim=asked)
                made = _write(engine, places, progress, name)
                row_of_order: Row = row | {"order": order} | _means(made)
                # Of the first model, in this order.
                against = scores.setdefault(order, made)
                if against is not made:
                    row_of_order["gain"] = _gains(made, against)
                rows.append(row_of_order)
        finally:
            engine.close()
    return rows


def _read(path: Path, texts: list[str], settings: Settings, progress: Progress) -> Row:
    """Figures of the model's own next-token distributions: bits per byte, time of a pass."""
    backend, n_gpu_layers = targets_of(path), settings.model.n_gpu_layers
    with closing(backend.open(str(path), n_gpu_layers=n_gpu_layers)) as model:
        n_ctx = min(2 * N_CHUNK, model.info.n_ctx or 2 * N_CHUNK)
        n_threads = settings.model.n_threads
        with closing(model.context(n_ctx=n_ctx, n_threads=n_threads)) as target:
            tokenizer = model.tokenizer
            nats, n_bytes = 0.0, 0
            for done, text in enumerate(texts):
                progress("bits per byte", done, len(texts))
                nats += cost(target, tokenizer.encode(text))
                n_bytes += len(text.encode())
            return {
                "n_params": model.info.n_params,
                "file_bytes": model.info.file_bytes,
                "bits_per_byte": nats / math.log(2) / n_bytes,
                "n_files": len(texts),
                "n_bytes": n_bytes,
                "tok_per_s": 1e3 / measure(target).points[1],
            }


def cost(target: Target, tokens: Tokens) -> float:
    """Nats of a text's tokens (n,), in chunks without overlap; an end token precedes each text.

    A pass whose logits all count is what verifying a draft is: text is read as drafts that are all
    kept.
    """
    info = target.info
    start = min(info.eog) if info.bos is None and info.eog else info.bos
    ids = tokens if start is None else np.concatenate([np.array([start], np.int32), tokens])
    step = min(N_CHUNK, info.n_ctx - 1 - target.can.max_draft)
    total = 0.0
    for first in range(0, len(ids) - 1, step):
        chunk = ids[first : first + step + 1]
        target.prefill(chunk[:1], lambda: False)
        at = 0
        while at < len(chunk) - 1:
            tail = chunk[at : at + 1 + target.can.max_draft]
            rows = target.decode(tail[:1], Draft.chain(tail[1:]))
            for i, following in enumerate(chunk[at + 1 : at + 1 + len(tail)].tolist()):
                logits = rows.row(i).astype(np.float64)
                high = logits.max()
                total += high + math.log(np.exp(logits - high).sum()) - logits[following]
            target.keep(range(len(tail) - 1))
            at += len(tail)
    return total


_Scores = dict[str, list[float]]
"""By name, what each place scored: 0 to 1."""


def _write(
    engine: LocalEngine, places: dict[str, list[CutPlace]], progress: Progress, model: str
) -> _Scores:
    """Scores of what users see: rests of lines, pieces inside lines, blocks."""
    scores: _Scores = {}
    for kind, asked in places.items():
        alike_name = "fim_edit_similarity" if kind == "line" else f"fim_{kind}_similarity"
        exact = scores.setdefault(f"fim_{kind}_exact", [])
        alike = scores.setdefault(alike_name, [])
        valid = scores.setdefault(f"fim_{kind}_valid", [])
        for done, place in enumerate(asked):
            progress(f"{model}, {kind}s", done, len(asked))
            text = _complete(engine, place, is_line=kind != "block")
            truth = place.truth.strip()
            exact.append(text.strip() == truth)
            alike.append(similarity(text.strip(), truth))
            valid.append(not breaks_strictly(text, place))
    return scores


def _means(scores: _Scores) -> Row:
    numbers = {f"n_{kind}s": len(scores[f"fim_{kind}_exact"]) for kind in KINDS}
    return {name: mean(found) if found else 0.0 for name, found in scores.items()} | numbers


def _gains(scores: _Scores, against: _Scores) -> dict[str, tuple[float, float]]:
    """(difference, its standard error) at the same places: what is hard is so for both."""
    gains: dict[str, tuple[float, float]] = {}
    for name, found in scores.items():
        more = np.subtract(found, against[name], dtype=np.float64)
        if len(more) > 1:
            gains[name] = float(more.mean()), float(more.std(ddof=1) / math.sqrt(len(more)))
    return gains


def _complete(engine: LocalEngine, place: CutPlace, *, is_line: bool) -> str:
    request = CompletionRequest(
        place.prefix,
        place.suffix,
        language_id=place.language,
        max_tokens=MAX_LINE_TOKENS if is_line else MAX_BLOCK_TOKENS,
        drafters=(),
        multiline=not is_line,
    )
    return engine.complete(request).text


def _places(root: Path, n: int, kind: str) -> list[CutPlace]:
    """n places of Python where there are so many, in as many files as can be."""
    per_file = 2
    while True:
        asked = places_in(root, n, (kind,), per_file=per_file)
        found = [place for place in asked if place.language == "python"]
        if len(found) >= n or per_file >= n:
            return found
        per_file *= 2


def _texts(roots: list[Path]) -> Iterator[str]:
    """Texts of an equal number of Python files of each package, the first by name; the same each
    time."""
    for root in roots:
        sizes = range(MIN_FILE_BYTES, MAX_FILE_BYTES + 1)
        files = sorted(p for p in root.rglob("*.py") if p.stat().st_size in sizes)
        for path in files[: max(1, N_FILES // len(roots))]:
            yield path.read_text("utf-8", "replace")


_SHOWN = {
    "order": ("order of the prompt", "{}"),
    "file_bytes": ("bytes", "{:,}"),
    "bits_per_byte": ("bits a byte", "{:.3f}"),
    "fim_line_exact": ("lines, exact", "{:.1%}"),
    "fim_edit_similarity": ("  similarity", "{:.3f}"),
    "fim_line_valid": ("  file parses", "{:.1%}"),
    "fim_inline_exact": ("inside lines, exact", "{:.1%}"),
    "fim_inline_similarity": ("  similarity", "{:.3f}"),
    "fim_inline_valid": ("  file parses", "{:.1%}"),
    "fim_block_exact": ("blocks, exact", "{:.1%}"),
    "fim_block_similarity": ("  similarity", "{:.3f}"),
    "fim_block_valid": ("  file parses", "{:.1%}"),
    "tok_per_s": ("tokens a second", "{:,.0f}"),
}


def print_rows(rows: list[dict[str, Any]]) -> None:
    """A column a model and order; beside the first, what each gained, and the noise of that."""
    console = Console()
    table = Table("", box=None, pad_edge=False)
    for row in rows:
        table.add_column(escape(row["model"]), justify="right", no_wrap=True)
        if "gain" in row:
            table.add_column("gained", justify="right", no_wrap=True)
    for key, (name, form) in _SHOWN.items():
        cells: list[str] = []
        for row in rows:
            cells.append(form.format(row[key]))
            if "gain" in row:
                gain, noise = row["gain"].get(key, (None, None))
                more, less = ("{:+.1%}", "{:.1%}") if "%" in form else ("{:+.3f}", "{:.3f}")
                cells.append("" if gain is None else f"{more} ± {less}".format(gain, noise))
        table.add_row(name, *cells)
    # Whole figures, even where a terminal breaks the lines.
    Console(width=400).print(table)
    if rows:
        first = rows[0]
        console.print(
            f"{first['n_lines']} rests of lines, {first['n_inlines']} pieces inside lines, "
            f"{first['n_blocks']} blocks, {first['n_bytes']:,} bytes "
            f"in {first['n_files']} files of {', '.join(first['packages'])}"
            + ("; ± is one standard error" if len(rows) > 1 else "")
        )
