"""The bundled draft model drafts for targets of other tokenizers, and changes nothing but time."""

from __future__ import annotations

import dataclasses
import itertools
import os
from pathlib import Path

import msgspec
import pytest
import torch

from codespec.backends.llama import LlamaTarget, load_model
from codespec.cost.cost_curve import CostCurve
from codespec.drafters.draft_model import SameVocabularyModel
from codespec.drafters.heterogeneous import HeterogeneousModel
from codespec.engine.draft_models import check_draft, shares_tokens
from codespec.engine.turns import in_one_turn
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.models.resolve import TIMES_DEARER, draft_path, target_path
from codespec.requests import CompletionRequest
from codespec.train import bpe
from codespec.training import export
from codespec.training.network import Llama, ModelConfig
from codespec.types import SamplingParams
from tests import training
from tests.drafters import assume, model_drafter_of
from tests.engines import strict_engine
from tests.model.test_greedy_equality import positions


def renamed(tmp_path):
    """The bundled target under another vocabulary, which splits text in nearly the same way."""
    path = tmp_path / "renamed.gguf"
    content = bundled(BUNDLED_TARGET).read_bytes()
    path.write_bytes(content.replace("Ġreturn".encode(), "Ġretirn".encode()))
    return path


def unlike(tmp_path):
    """A target that knows nothing, with words of its own."""
    words = bpe.train([training.source_text(i) for i in range(20)], training.N_VOCAB)
    torch.manual_seed(0)
    path = tmp_path / "unlike.gguf"
    shape = ModelConfig(training.N_VOCAB, 32, 1, 2, 1, 16, 64, 1024)
    export.write_gguf(path, Llama(shape).eval(), words, "f32", "unlike")
    return path


def padded(tmp_path):
    """The bundled target with more tokens than its draft model has, which stand for nothing."""
    model, words = export.read_gguf(bundled(BUNDLED_TARGET))
    weights = model.state_dict()
    rows = weights["embedding.weight"]
    weights["embedding.weight"] = torch.cat((rows, rows.mean(0).repeat(32, 1)))
    larger = Llama(dataclasses.replace(model.config, n_vocab=len(rows) + 32))
    larger.load_state_dict(weights)
    path = tmp_path / "padded.gguf"
    export.write_gguf(path, larger.eval(), words, "q8_0", "padded")
    return path


@pytest.fixture(params=[renamed, unlike], ids=lambda make: make.__name__)
def engine(request, tmp_path, model_options):
    target = request.param(tmp_path)
    model = msgspec.structs.replace(model_options.model, target=str(target))
    drafting = msgspec.structs.replace(model_options.drafting, adaptive=False)
    engine = strict_engine(msgspec.structs.replace(model_options, model=model, drafting=drafting))
    yield engine, request.param is renamed
    engine.close()


def complete(engine, request, *drafters):
    """Complete with passes of the target a thousand times as dear."""
    assume(engine.passes.tuner, CostCurve({1: 1000.0, 33: 1100.0}))
    return engine.generate(dataclasses.replace(request, drafters=drafters))


def asked(n):
    for prefix, suffix, path in itertools.islice(positions(), n):
        yield CompletionRequest(prefix, suffix, path=path, max_tokens=20, verbatim=True)


@pytest.mark.parametrize(
    "sampling",
    [
        SamplingParams(),
        SamplingParams(temperature=0.7, seed=3),
        SamplingParams(repetition_penalty=1.2),
        SamplingParams(grammar='root ::= "x = [" [0-9, ]+ "]\\n"'),
    ],
    ids=["greedy", "seeded", "penalties", "grammar"],
)
def test_the_text_is_the_targets_own(engine, sampling):
    engine, is_like = engine
    model = model_drafter_of(engine.drafter(""))
    n_drafted = n_accepted = 0
    for request in asked(12):
        request = dataclasses.replace(request, sampling=sampling)
        plain = complete(engine, request)
        in_one_turn(engine.prefetching(request))
        drafted = complete(engine, request, "model")
        alike = complete(engine, request, "lookup", "model")
        assert isinstance(engine.target, LlamaTarget)
        if engine.target.is_exact:
            assert drafted.tokens == alike.tokens == plain.tokens
        stats = drafted.trace.by_source.get("draft-model")
        n_drafted += stats.n_drafted if stats else 0
        n_accepted += stats.n_accepted if stats else 0
    assert model.n_cached > 0
    assert n_drafted > 100
    if is_like and not sampling.grammar:
        assert n_accepted > n_drafted / 8


def test_half_typed_words_are_gone_on_with(engine):
    engine, is_like = engine
    prefix = "class Shape:\n    def area(self):\n        return self.width\n\n    def size(self):\n"
    request = CompletionRequest(prefix + "        ret", "\n", path="a.py", max_tokens=8)
    made = complete(engine, request, "model")
    assert made.context.healed
    assert made.tokens == complete(engine, request).tokens
    if is_like:
        assert made.trace.n_accepted > 0


def test_vocabularies_are_told_apart(tmp_path):
    infos = []
    for path in (bundled(BUNDLED_TARGET), renamed(tmp_path), unlike(tmp_path)):
        loaded = load_model(path, vocab_only=True)
        infos.append(loaded.info)
        loaded.close()
    for a, b in itertools.product(infos, infos):
        assert shares_tokens(a, b) == (a is b)


def test_a_family_padded_to_other_lengths_is_one_by_ids(tmp_path, model_options):
    model = msgspec.structs.replace(model_options.model, target=str(padded(tmp_path)))
    draft = draft_path(model)
    assert draft is not None
    assert check_draft(target_path(model), draft)
    drafting = msgspec.structs.replace(model_options.drafting, adaptive=False)
    engine = strict_engine(msgspec.structs.replace(model_options, model=model, drafting=drafting))
    drafter = model_drafter_of(engine.drafter(""))
    assert isinstance(drafter._model, SameVocabularyModel)
    n_accepted = 0
    for request in asked(4):
        drafted = complete(engine, request, "model")
        assert drafted.tokens == complete(engine, request).tokens
        n_accepted += drafted.trace.n_accepted
    assert n_accepted > 20
    engine.close()


def test_the_bundled_target_drafts_for_large_ones_unless_their_passes_are_quick(
    tmp_path, model_options
):
    path = renamed(tmp_path)
    os.truncate(path, TIMES_DEARER * path.stat().st_size)  # the rest is not stored
    model = msgspec.structs.replace(model_options.model, target=str(path))
    drafting = msgspec.structs.replace(model_options.drafting, adaptive=False)
    engine = strict_engine(msgspec.structs.replace(model_options, model=model, drafting=drafting))
    request = next(asked(1))
    plain = complete(engine, request)
    drafted = complete(engine, request, "model")
    assert drafting_for(engine) == bundled(BUNDLED_TARGET)
    assert drafted.trace.n_accepted > drafted.trace.n_drafted / 2
    assert isinstance(engine.target, LlamaTarget)
    if engine.target.is_exact:
        assert drafted.tokens == plain.tokens
    engine.settle()
    assert drafting_for(engine) == bundled(BUNDLED_DRAFT)  # as quick as the larger one
    complete(engine, request)
    assert drafting_for(engine) == bundled(BUNDLED_DRAFT)  # for good
    engine.close()


def drafting_for(engine):
    drafter = model_drafter_of(engine.drafter(""))
    assert isinstance(drafter._model, (SameVocabularyModel, HeterogeneousModel))
    return Path(drafter._model._passes.model.info.path)
