"""Fits the prior that codespec ships: P(accepted) of drafted tokens, on replayed edits.

    python -m codespec_bench.prior codespec/drafters/prior.bin REPO [REPO=GLOB ...]

Every place in every replayed hunk is asked, not only those where a pass would begin, once with the
session's own texts and once without. The weights of the additive tables are fitted by Adam
(Kingma and Ba 2015) on the log-loss; tables are left out at random (Srivastava et al. 2014) so that
none leans on another. Same repositories, same file.

The shipped one was fitted on the last 60 commits of werkzeug, click, pytest, black, scrapy,
aiohttp, celery, sphinx, pip, tornado, marshmallow, starlette, jinja, pylint, cobra=*.go,
vuejs/core=*.ts and ripgrep=*.rs. What is measured elsewhere is measured on others.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from codespec.backends.llama import LlamaTokenizer, load_model
from codespec.config import load_settings
from codespec.drafters.kinds import token_kinds
from codespec.drafters.lookup import LookupDrafter, Neighbour
from codespec.index.live import LiveDocument
from codespec.index.text import encode, safe_cuts
from codespec.models.registry import target_path
from codespec.native import Planner
from codespec.types import NO_TOKENS, Context, Tokenizer, Tokens

from .history import History
from .replay import MAX_LEAVES, MAX_TOKENS, MIN_TOKENS, Session, Tree, Trees

Features = npt.NDArray[np.uint16]
Accepted = npt.NDArray[np.uint8]

WIDTH = 16
N_COMMITS = 60
EPOCHS, BATCH, RATE, DROPOUT = 2, 2048, 0.01, 0.1


def examples(root: Path, glob: str, tokenizer: Tokenizer) -> Iterator[tuple[Features, Accepted]]:
    """Table entries of tokens that were weighed, and whether the text went on so."""
    history, cuts = History(root, glob), safe_cuts(tokenizer)
    trees = Trees(history, tokenizer)
    planner = Planner(token_kinds(tokenizer))
    document = LiveDocument(tokenizer, cuts)
    for commit in history.commits(N_COMMITS):
        session = Session()
        for hunk in commit.hunks:
            truth = tokenizer.encode(hunk.text)
            if not MIN_TOKENS <= len(truth) <= MAX_TOKENS:
                continue
            session.replace(encode(hunk.removed, tokenizer, cuts))
            document.update(hunk.prefix, hunk.suffix)
            context = Context(
                NO_TOKENS, document.left, document.right, path=hunk.path, workspace="."
            )
            tree = trees.of(commit, hunk.path)
            for neighbours in ([], list(session.neighbours)):
                yield from _replay(context, truth, document, tree, neighbours, planner)
            session.write(truth)


def _replay(
    context: Context,
    truth: Tokens,
    document: LiveDocument,
    tree: Tree,
    neighbours: list[Neighbour],
    planner: Planner,
) -> Iterator[tuple[Features, Accepted]]:
    drafter = LookupDrafter(
        lambda path: document,
        lambda workspace: planner,
        lambda workspace: tree,
        lambda context: neighbours,
        max_leaves=MAX_LEAVES,
    )
    drafter.begin(context)
    for t in range(len(truth) - 1):
        drafter.propose(truth[:t], min(WIDTH, len(truth) - t - 1))
        planner.learn(truth[t : t + WIDTH].tolist(), 1)
        *_, accepted, features = planner.outcomes()
        yield features.reshape(-1, Planner.n_features), accepted


def fit(features: Features, accepted: Accepted) -> npt.NDArray[np.float32]:
    """(Planner.n_weights,) by Adam with a rate that falls to zero."""
    rng = np.random.default_rng(0)
    n = Planner.n_weights
    weights, mean, square = np.zeros(n), np.zeros(n), np.zeros(n)
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


def main(output: Path, repositories: list[str]) -> None:
    tokenizer = LlamaTokenizer(load_model(target_path(load_settings().model), vocab_only=True))
    features: list[Features] = []
    accepted: list[Accepted] = []
    for name in repositories:
        root, _, glob = name.partition("=")
        found = list(examples(Path(root), glob or "*.py", tokenizer))
        features += [f for f, _ in found]
        accepted += [a for _, a in found]
        print(f"{root}: {sum(len(a) for _, a in found)} tokens weighed", flush=True)
    weights = fit(np.concatenate(features), np.concatenate(accepted))
    output.write_bytes(weights.astype("<f2").tobytes())


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
