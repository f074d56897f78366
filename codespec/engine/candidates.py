"""Further suggestions beside the best one: each begins with another token and goes on greedily, or
however the request samples. They are decoded side by side over one prompt, a token of each a pass.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence

import numpy as np
import numpy.typing as npt

from codespec.backends.base import CancelledError, Target
from codespec.edit import Edit
from codespec.engine.generation import Generation
from codespec.engine.output import Output, OutputLimits
from codespec.engine.step import step
from codespec.native import Vocabulary
from codespec.types import Draft, LogitsRows, Tokenizer, Tokens
from codespec.verify.sampling import Sampler, TokenMask


class OtherFirstToken:
    """`sampling.TokenMask` that keeps the output from beginning with a token in `taken`."""

    def __init__(
        self,
        taken: Collection[int],
        n_vocab: int,
        also: TokenMask | None,
        lead: Sequence[int] = (),
    ) -> None:
        """also: a further mask that applies, to an output that begins with the tokens `lead`."""
        self._lead = lead
        self._taken = np.asarray(sorted(taken), np.int32)
        self._n_vocab = n_vocab
        self._also = also

    @property
    def is_empty(self) -> bool:
        """True if no token may come first any more."""
        ids = self.allowed(())
        return ids is not None and not len(ids)

    def allowed(self, emitted: Sequence[int]) -> npt.NDArray[np.int32] | None:
        ids = None if self._also is None else self._also.allowed([*self._lead, *emitted])
        if emitted:
            return ids
        if ids is None:
            ids = np.arange(self._n_vocab, dtype=np.int32)
        return np.setdiff1d(ids, self._taken, assume_unique=True)

    def is_done(self, emitted: Sequence[int]) -> bool:
        return bool(emitted) and (self._also is None or self._also.is_done([*self._lead, *emitted]))


def alternatives(
    target: Target,
    tokenizer: Tokenizer,
    best: Generation,
    edit: Edit | None,
    mask: Callable[[], TokenMask | None],
    vocabulary: Vocabulary,
    late: Callable[[], bool],
) -> tuple[Edit, ...]:
    """Up to `n_candidates` - 1 alternatives to `edit`, the best suggestion, as time permits.

    mask: makes the constraint of one output, a grammar or healing; masks hold its state.
    vocabulary: the bytes of the target's tokens.
    """
    request = best.request
    n_more = request.n_candidates - 1
    if n_more < 1 or not best.tokens:
        return ()
    lead, blanks = _blanks_of(best, tokenizer, vocabulary)
    if len(lead) == len(best.tokens):
        return ()
    prompt = np.concatenate([best.context.prompt, np.asarray(lead, np.int32)])
    taken = {*target.info.eog, best.tokens[len(lead)], *blanks}
    found: dict[str, Edit | None] = {_told_by(edit): edit}

    def make(others: frozenset[int]) -> Output | None:
        first = OtherFirstToken(taken | others, target.info.n_vocab, mask(), lead)
        if first.is_empty:
            return None
        sampler, ends = Sampler(request.sampling, first), best.anew(tokenizer).ends(tokenizer)
        return Output(sampler, limits, target.info.eog, lambda said: ends([*lead, *said]))

    n_repeating = best.n_repeating(tokenizer)
    limits = OutputLimits(
        request.max_tokens, n_free=lambda said: n_repeating([*lead, *said]) - len(lead)
    )
    # Twice as many as are wanted: some come to the same text, or to none.
    for _ in range(2 * n_more):
        made = decode_side_by_side(target, prompt, 2 * n_more, make, late)
        for branch in made:
            taken.update(branch.tokens[:1])
            raw, ended = tokenizer.decode([*lead, *branch.tokens]), branch.finish or "deadline"
            other = best.anew(tokenizer).finished(raw, ended).edit
            found.setdefault(_told_by(other), other)
        if len(made) > 1 or not made or late() or len(found) > n_more:
            break
    others = [other for text, other in list(found.items())[1:] if other is not None and text]
    return tuple(others[:n_more])


def _blanks_of(
    best: Generation, tokenizer: Tokenizer, vocabulary: Vocabulary
) -> tuple[list[int], set[int]]:
    """(first tokens of the best output that only spell blanks before the cursor, all tokens that
    spell more blanks behind them).

    Alternatives begin with the ones, too, and go on with none of the others: they would be the same
    text further in.
    """
    healed = best.context.healed
    if not healed.isspace():
        return [], set()
    lead = best.tokens[: best.n_repeating(tokenizer)(best.tokens)]
    left = healed[sum(len(tokenizer.piece(token)) for token in lead) :]
    more = {i for blank in (b" ", b"\t") for i in vocabulary.compatible(left + blank).tolist()}
    return lead, set() if more.intersection(best.tokens[len(lead) :][:1]) else more


def _told_by(edit: Edit | None) -> str:
    """Text by which suggestions are told apart: they differ in more than blanks."""
    return "" if edit is None else "".join(edit.text.split())


def decode_side_by_side(
    target: Target,
    prompt: Tokens,
    n_branches: int,
    make: Callable[[frozenset[int]], Output | None],
    late: Callable[[], bool],
) -> list[Output]:
    """Up to `n_branches` outputs after one prompt, in the order of their first tokens' draws.

    make: an output that begins with none of these tokens, None where nothing else may come.
    late: True to stop where they are; their `finish` is "deadline" then.
    """
    n_branches = min(n_branches, target.can.max_branches)
    branches: list[Output] = []

    def different() -> Iterator[Output]:
        """Outputs, each made once the one before has its first token."""
        taken: set[int] = set()
        while len(branches) < n_branches and (output := make(frozenset(taken))) is not None:
            branches.append(output)
            yield output
            taken.update(output.tokens or output.eog)

    try:
        target.prefill(prompt, late)
        step(target, prompt[target.n_cached :], different())
    except CancelledError:
        return []
    room = (target.info.n_ctx - len(prompt)) // max(1, n_branches) - 1
    target.fork()
    try:
        while alive := [i for i, output in enumerate(branches) if output.finish is None]:
            if late() or len(branches[alive[0]].tokens) >= room:
                for i in alive:
                    branches[i].finish = "deadline"
                break
            growing = [branches[i] for i in alive]
            last = np.array([output.tokens[-1] for output in growing], np.int32)
            step(_SideBySide(target, alive), last, growing, row=lambda i: i)
    finally:
        target.join()
    return branches


class _SideBySide:
    """`Verifier` that reads one more token of each of some branches; all of it stays."""

    def __init__(self, target: Target, branches: Sequence[int]) -> None:
        self._target = target
        self._branches = branches

    def decode(self, tokens: Tokens, draft: Draft) -> LogitsRows:
        return self._target.decode_branches(self._branches, tokens.tolist())

    def keep(self, path: Sequence[int]) -> None:
        pass
