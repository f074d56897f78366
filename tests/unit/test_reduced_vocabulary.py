"""A draft model of a reduced vocabulary: exact whatever it knows, and it drafts what it knows."""

from __future__ import annotations

import numpy as np
import pytest

from codespec.backends.fake import FakeTarget, hashed_logits
from codespec.drafters.model_drafter import ModelDrafter
from codespec.drafters.reduced_vocabulary import ReducedVocabularyModel, shared_ids
from codespec.engine.completer import Completer
from codespec.engine.draft_models import shares_tokens
from codespec.engine.output import OutputLimits
from codespec.types import NO_DRAFT, Context, SamplingParams, Trace
from codespec.verify.sampling import Sampler
from tests.drafters import combined, drafter_over

N_VOCAB = 30
KNOWN = np.array([1, 4, 5, 9, 12, 20, 21, 22, 28], np.int32)
PROMPT = np.array([0, 4, 5, 1, 29], np.int32)


def target() -> FakeTarget:
    return FakeTarget(hashed_logits(N_VOCAB, 3.0), N_VOCAB)


def mapped() -> ReducedVocabularyModel:
    own = FakeTarget(hashed_logits(len(KNOWN) + 1, 3.0), len(KNOWN) + 1)
    return ReducedVocabularyModel(own, KNOWN, target().info)


def complete(sampling: SamplingParams, *drafters: ModelDrafter) -> tuple[list[int], Trace]:
    trace = Trace()
    out, _ = Completer(target(), combined(drafters, N_VOCAB)).run(
        Context(PROMPT, sampling=sampling), Sampler(sampling), OutputLimits(24), trace=trace
    )
    return out, trace


def test_greedy_output_is_the_plain_one() -> None:
    plain, _ = complete(SamplingParams())
    drafted, trace = complete(SamplingParams(), drafter_over(mapped()))
    assert drafted == plain
    assert trace.n_drafted > 0


def test_sampled_drafts_are_wellformed_and_verified() -> None:
    """Rejection sampling needs the true distribution, over the target's whole vocabulary."""
    seen = 0
    for seed in range(20):
        _, trace = complete(SamplingParams(1.0, seed=seed, any_seed=True), drafter_over(mapped()))
        seen += trace.n_accepted
    assert seen > 0


def test_rows_are_the_draft_models_own_under_the_targets_ids() -> None:
    model = mapped()
    model.prefill(PROMPT, lambda: False)
    rows = model.decode(PROMPT[model.n_cached :], NO_DRAFT)
    # It reads 0 and 29, which are unknown to it, as its last token.
    expected = hashed_logits(len(KNOWN) + 1, 3.0)((2, 0, 9))
    row = rows.row(0)
    assert row[KNOWN] == pytest.approx(expected[:-1])
    assert np.isneginf(np.delete(row, KNOWN)).all()
    assert rows.argmax(0) == KNOWN[expected[:-1].argmax()]


def test_a_pair_of_equal_laws_accepts_everything_known() -> None:
    """The draft model is the target itself, less the tokens it does not know."""
    ids = np.arange(N_VOCAB, dtype=np.int32)
    table = hashed_logits(N_VOCAB, 3.0)

    def logits(context: tuple[int, ...]) -> np.ndarray:
        return np.append(table(context), np.float32(-9)).astype(np.float32)

    model = ReducedVocabularyModel(FakeTarget(logits, N_VOCAB + 1), ids, target().info)
    _, trace = complete(SamplingParams(), drafter_over(model))
    assert trace.n_accepted == trace.n_drafted > 0


def test_it_passes_for_a_model_of_the_targets_tokenizer() -> None:
    assert shares_tokens(mapped().info, target().info)
    with pytest.raises(ValueError, match="every token"):
        ReducedVocabularyModel(target(), KNOWN, target().info)


def test_ids_are_found_by_text() -> None:
    texts = ["a", "b", "c", "d"]
    found = shared_ids(texts, ["d", "b", "?"])
    assert found is not None
    assert found.tolist() == [3, 1]
    assert shared_ids(texts, ["d", "x", "?"]) is None
