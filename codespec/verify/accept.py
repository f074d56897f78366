"""Acceptance: the one place that decides which tokens are emitted.

Two rules, both exact. For a deterministic draft (any tree chosen by rank) the target samples as it
would alone, and drafted tokens are accepted as long as the draft contains the sampled one (token
trees: SpecInfer, Miao et al. 2024). For a chain truly sampled from a draft model, the rejection
rule of Leviathan et al. 2023 and Chen et al. 2023 keeps the target's distribution while accepting
as often as any rule can; the text depends on the draft then, so a request with a fixed seed gets
the first rule for every draft.

Everything here is pure: rows of logits in, tokens out.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from codespec.types import Draft, Logits, LogitsRows, Probs, Source, Verdict
from codespec.verify import sampling
from codespec.verify.sampling import Sampler

_INT32, _INT8, _FLOAT32 = np.dtype(np.int32), np.dtype(np.int8), np.dtype(np.float32)


def accept(
    draft: Draft,
    rows: LogitsRows,
    sampler: Sampler,
    emitted: Sequence[int],
    eog: Collection[int],
) -> Verdict:
    """Verify a well-formed draft (see `wellformed`) that follows `emitted`.

    Emits the accepted tokens and one more from the target; nothing follows an end-of-generation
    token.

    rows: logits of the target's pass over the draft; rows past the first rejection are never read.
    emitted: the output so far. eog: ids of end-of-generation tokens.
    """
    if draft.q is not None and sampler.params.any_seed:
        return accept_sampled(draft, rows, sampler, emitted, eog)
    if not len(draft):
        return Verdict((sampler.sample(rows, 0, emitted),), ())
    # (parent, token) identifies a node: siblings differ.
    nodes = zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True)
    child = {node: i for i, node in enumerate(nodes)}
    out: list[int] = []
    path: list[int] = []
    history = list(emitted)
    node = -1
    while True:
        token = sampler.sample(rows, node + 1, history)
        out.append(token)
        if token in eog:
            break
        node = child.get((node, token), -1)
        if node < 0:
            break
        path.append(node)
        history.append(token)
    return Verdict(tuple(out), tuple(path))


def accept_sampled(
    draft: Draft,
    rows: LogitsRows,
    sampler: Sampler,
    emitted: Sequence[int],
    eog: Collection[int],
) -> Verdict:
    """Rejection sampling of a chain whose node i was drawn from draft.q[i].

    Node i is accepted with probability min(1, p/q); at the first rejection a token is drawn from
    norm(max(p - q, 0)) instead; after a fully accepted chain, one more from p. The length of the
    chain must have been fixed before it was drawn: to drop a token after seeing it would bias the
    output's distribution. Arguments and result as of `accept`.

    Source: Leviathan, Kalman, Matias 2023, algorithm 1.
    """
    assert draft.q is not None
    seed = sampler.params.seed
    out: list[int] = []
    path: list[int] = []
    history = list(emitted)
    for i, token in enumerate(draft.tokens.tolist()):
        if token != propose(draft.q[i], sampler, len(history)):
            # Not a draw from q as claimed: it would bias the rule below.
            out.append(sampler.sample(rows, i, history))
            return Verdict(tuple(out), tuple(path))
        p = sampler.distribution(rows.row(i), history)
        q = draft.q[i].astype(np.float64)
        position = len(history)
        if sampling.uniform(seed, position, sampling.ACCEPT) * q[token] < p[token]:
            out.append(token)
            if token in eog:
                return Verdict(tuple(out), tuple(path))
            path.append(i)
            history.append(token)
            continue
        residual = np.maximum(p - q, 0.0)
        total = residual.sum()
        # p == q up to rounding leaves no residual; then a rejection has probability zero, too,
        # and p itself is the limit.
        residual = residual / total if total > 0 else p
        u = sampling.uniform(seed, position, sampling.RESIDUAL)
        out.append(sampling.draw(residual, u))
        return Verdict(tuple(out), tuple(path))
    out.append(sampler.sample(rows, len(draft.tokens), history))
    return Verdict(tuple(out), tuple(path))


def propose(q: Logits | Probs, sampler: Sampler, position: int) -> int:
    """The token a draft model must draw from its distribution `q` (n_vocab,) for a sampled draft.
    position: number of tokens emitted before it."""
    u = sampling.uniform(sampler.params.seed, position, sampling.PROPOSE)
    return sampling.draw(q.astype(np.float64), u)


def wellformed(draft: Draft, n_vocab: int, n_max: int) -> bool:
    """True if a draft may be handed to a target: at most `n_max` nodes with ids below `n_vocab`.

    Drafters are not trusted: arrays of wrong lengths and types, ids outside the vocabulary, parents
    that do not precede their children, unknown sources and probabilities outside 0..1 are refused
    here, once, so that nobody else has to check.
    """
    k = len(draft.tokens)
    if not (len(draft.parents) == len(draft.probs) == len(draft.sources) == k <= n_max):
        return False
    if k == 0:
        return True
    if draft.tokens.dtype != _INT32 or draft.parents.dtype != _INT32:
        return False
    if not draft.tokens.flags.c_contiguous:
        return False
    if draft.probs.dtype != _FLOAT32 or not all(0 <= p <= 1 for p in draft.probs.tolist()):
        return False
    n_sources = Source.count()
    if draft.sources.dtype != _INT8 or not all(0 <= s < n_sources for s in draft.sources.tolist()):
        return False
    # Drafts are short: a loop over plain integers is quicker than five calls of numpy.
    nodes = list(zip(draft.parents.tolist(), draft.tokens.tolist(), strict=True))
    for i, (parent, token) in enumerate(nodes):
        if not (0 <= token < n_vocab and -1 <= parent < i):
            return False
    if draft.q is None:
        return len(set(nodes)) == k  # siblings differ
    return (
        draft.is_chain
        and draft.q.shape == (k, n_vocab)
        and bool(np.isfinite(draft.q).all())
        and bool((draft.q >= 0).all())
        and bool(np.allclose(draft.q.sum(axis=1), 1.0, atol=1e-3))
    )
