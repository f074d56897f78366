"""Fits the priors that codespec ships: P(accepted) of drafted tokens, on replayed edits.

    cd codespec/drafters
    python -m codespec_bench.maintainers.prior prior.bin REPO [REPO=GLOB ...]
    python -m codespec_bench.maintainers.prior prior_small.bin --model bundled REPO ...

Every place in every replayed hunk is asked, not only those where a pass would begin, once with the
session's own texts and once without. The weights of the additive tables are fitted by Adam
(Kingma and Ba 2015) on the log-loss; tables are left out at random (Srivastava et al. 2014) so that
none leans on another. Same repositories, same file.

The text is what people wrote there, or with a model what that writes in its place. The latter goes
on from the shipped weights for what people write.

The shipped one was fitted on the last 60 commits of werkzeug, click, pytest, black, scrapy,
aiohttp, celery, sphinx, pip, tornado, marshmallow, starlette, jinja, pylint, cobra=*.go,
vuejs/core=*.ts and ripgrep=*.rs; that for small models on what the bundled one wrote in
the same but ripgrep. What is measured elsewhere is measured on others.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.backends.registry import open_vocabulary
from codespec.config import load_settings
from codespec.documents.live import LiveDocument
from codespec.documents.sources import Neighbour
from codespec.drafters.lookup import LookupDrafter
from codespec.drafters.planner_weights import (
    PlannerWeights,
    source_names,
    weights_of,
    write_weights,
)
from codespec.drafters.planners import prior
from codespec.drafters.token_kinds import token_kinds
from codespec.engine.local import LocalEngine
from codespec.models.resolve import target_path
from codespec.native import Boundary, Planner
from codespec.syntax.text import encode, safe_cuts
from codespec.types import Context, PassState, Source, Tokens

from ..history import History
from ..replay import MAX_LEAVES, ReplaySession, usable
from ..replay_trees import CommitTrees, Tree
from ..writers import ModelWriter, People

Features = npt.NDArray[np.uint16]
Accepted = npt.NDArray[np.uint8]

WIDTH = 16
N_COMMITS = 60
EPOCHS, BATCH, RATE, DROPOUT = 2, 2048, 0.01, 0.1


def examples(
    root: Path, glob: str, writer: People | ModelWriter
) -> Iterator[tuple[Features, Accepted]]:
    """Table entries of tokens that were weighed, and whether the text went on so."""
    tokenizer = writer.tokenizer
    history, cuts = History(root, glob), safe_cuts(tokenizer)
    trees = CommitTrees(history, tokenizer)
    planner = Planner(token_kinds(tokenizer), Source.count())
    document = LiveDocument(tokenizer, cuts)
    for commit in history.commits(N_COMMITS):
        session = ReplaySession()
        for hunk in usable(commit, tokenizer):
            document.update(hunk.prefix, hunk.suffix)
            session.replace(document.left, encode(hunk.removed, tokenizer, cuts))
            context, truth = writer.write(hunk, document)
            tree = trees.of(commit, hunk.path)
            for neighbours in ([], list(session.neighbours)):
                drafter = _drafter(writer.boundary, document, tree, neighbours, planner)
                yield from _replay(context, truth, drafter, planner)
            session.write(tokenizer.encode(hunk.text))


def _drafter(
    boundary: Callable[[Context], Boundary] | None,
    document: LiveDocument,
    tree: Tree,
    neighbours: list[Neighbour],
    planner: Planner,
) -> LookupDrafter:
    return LookupDrafter(
        lambda path: document,
        lambda workspace: planner,
        lambda workspace: tree,
        lambda context: neighbours,
        boundary=boundary,
        max_leaves=MAX_LEAVES,
    )


def _replay(
    context: Context, truth: Tokens, drafter: LookupDrafter, planner: Planner
) -> Iterator[tuple[Features, Accepted]]:
    drafter.begin(context)
    for t in range(len(truth) - 1):
        drafter.propose(PassState(truth[:t]), min(WIDTH, len(truth) - t - 1))
        planner.learn(truth[t : t + WIDTH].tolist(), 1)
        *_, accepted, features = planner.outcomes()
        yield features.reshape(-1, Planner.n_features), accepted


def fit(
    features: Features, accepted: Accepted, start: npt.NDArray[np.float32]
) -> npt.NDArray[np.float32]:
    """(n_weights,) by Adam with a rate that falls to zero, from such weights on."""
    rng = np.random.default_rng(0)
    n = len(start)
    weights, mean, square = start.astype(np.float64), np.zeros(n), np.zeros(n)
    n_steps = EPOCHS * -(-len(accepted) // BATCH)
    step = 0
    for _ in range(EPOCHS):
        order = rng.permutation(len(accepted))
        for batch in np.split(order, range(BATCH, len(order), BATCH)):
            rows = features[batch]
            kept = rng.random(rows.shape) >= DROPOUT
            p = 1 / (1 + np.exp(-(weights[rows] * kept).sum(axis=1)))
            error = (p - accepted[batch]) / len(batch)
            gradient = np.bincount(rows.ravel(), (error[:, None] * kept).ravel(), n)
            step += 1
            mean = 0.9 * mean + 0.1 * gradient
            square = 0.999 * square + 0.001 * gradient**2
            scale = np.sqrt(square / (1 - 0.999**step)) + 1e-8
            rate = RATE * (1 - step / (n_steps + 1))
            weights -= rate * mean / (1 - 0.9**step) / scale
    return weights.astype(np.float32)


def writer_of(model: str | None) -> People | ModelWriter:
    """model: as in the command; None for people."""
    if model is None:
        target = target_path(load_settings().model)
        return People(open_vocabulary(target).tokenizer)
    target = "" if model == "bundled" else model
    return ModelWriter(LocalEngine(load_settings({"model": {"target": target, "n_threads": 1}})))


def weighed(repository: str, model: str | None) -> tuple[Features, Accepted]:
    """All examples of a repository."""
    root, _, glob = repository.partition("=")
    found = list(examples(Path(root), glob or "*.py", writer_of(model)))
    print(f"{root}: {sum(len(a) for _, a in found)} tokens weighed", flush=True)
    return np.concatenate([f for f, _ in found]), np.concatenate([a for _, a in found])


def main(output: Path, model: str | None, repositories: list[str]) -> None:
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        found = list(pool.map(weighed, repositories, repeat(model)))
    features, accepted = (np.concatenate(of_each) for of_each in zip(*found, strict=True))
    names = source_names()
    known = prior() if model else PlannerWeights(np.zeros(Planner.n_shared, np.float32), {})
    fitted = weights_of(fit(features, accepted, known.state(names)), names)
    assert fitted is not None
    write_weights(output, fitted, "<f2")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Fits the priors that codespec ships.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--model", help="a GGUF file, or bundled")
    parser.add_argument("repositories", nargs="+", metavar="REPO[=GLOB]")
    main(**vars(parser.parse_args()))
