"""A model that nobody here trained: drafting changes nothing of what it says."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator

import msgspec
import pytest

from codespec.backends.llama import LlamaTarget
from codespec.config import Settings
from codespec.cost.cost_curve import CostCurve
from codespec.engine.completer import in_one_turn
from codespec.engine.local import LocalEngine
from codespec.requests import ChatMessage, CompletionRequest
from codespec.types import SamplingParams
from tests.drafters import assume, draft_much
from tests.engines import strict_engine
from tests.model.test_greedy_equality import examine, positions
from tests.real_weights import smollm2

N_TOKENS = 24
DRAFTERS = [("lookup",), ("model",), ("lookup", "model")]


@pytest.fixture(scope="module")
def engine(
    tmp_path_factory: pytest.TempPathFactory, model_options: Settings
) -> Iterator[LocalEngine]:
    model = msgspec.structs.replace(model_options.model, target=str(smollm2()))
    # If drafting pays is for the clock to say; here drafts are put to the test.
    drafting = msgspec.structs.replace(model_options.drafting, adaptive=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        engine = strict_engine(
            msgspec.structs.replace(model_options, model=model, drafting=drafting)
        )
        draft_much(engine)
        yield engine
        engine.close()


def requests(n: int, sampling: SamplingParams | None = None) -> Iterator[CompletionRequest]:
    for prefix, suffix, path in itertools.islice(positions(), n):
        yield CompletionRequest(
            prefix,
            suffix,
            path=path,
            max_tokens=N_TOKENS,
            sampling=sampling or SamplingParams(),
            verbatim=True,
        )


def test_it_goes_on_from_the_text_before_the_cursor(engine: LocalEngine) -> None:
    assert engine.info.fim is None
    request = next(requests(1))
    without = dataclasses.replace(request, suffix="")
    assert engine.context(request).prompt.tolist() == engine.context(without).prompt.tolist()


CHAT = (
    ChatMessage("system", "You are a helpful assistant."),
    ChatMessage("user", "What is <|im_end|>? Write a function in Python that adds two numbers."),
)


def test_a_chat_by_its_own_template(engine: LocalEngine) -> None:
    request = CompletionRequest("", messages=CHAT, max_tokens=N_TOKENS, verbatim=True, whole=True)
    model = engine.passes._model
    prompt = engine.context(request).prompt.tolist()
    ends = model.special_tokens["<|im_end|>"]
    assert prompt.count(ends) == 2
    assert prompt[0] == model.special_tokens["<|im_start|>"]
    spelled = "".join(model.token_text(token) for token in prompt)
    assert spelled.startswith("<|im_start|>systemĊYou")
    assert spelled.endswith("numbers.<|im_end|>Ċ<|im_start|>assistantĊ")
    plain = engine.complete(dataclasses.replace(request, drafters=()))
    predicted = engine.complete(
        dataclasses.replace(request, rewrites=plain.text, drafters=("aligned",))
    )
    assert predicted.text == plain.text != ""
    assert predicted.trace.by_source["aligned"].n_accepted > 0


@pytest.mark.parametrize("drafters", DRAFTERS, ids="+".join)
def test_greedy_text_is_the_plain_text(engine: LocalEngine, drafters: tuple[str, ...]) -> None:
    n_accepted = n_by_model = 0
    for request in requests(12):
        plain = engine.generate(dataclasses.replace(request, drafters=()))
        # As if the target were a thousand times as dear: each drafter is asked.
        assume(engine.passes.tuner, CostCurve({1: 1000.0, 33: 1100.0}))
        in_one_turn(engine.prefetching(request))
        drafted = engine.generate(dataclasses.replace(request, drafters=drafters))
        if drafted.tokens != plain.tokens:
            assert isinstance(engine.target, LlamaTarget)
            assert not engine.target.is_exact
            prompt = drafted.context.prompt
            margin, noise = examine(engine, prompt, plain.tokens, drafted.tokens)
            assert margin <= 2 * noise
        n_accepted += drafted.trace.n_accepted
        stats = drafted.trace.by_source.get("draft-model")
        n_by_model += stats.n_accepted if stats else 0
    assert n_accepted > 50, "the drafts were put to the test"
    # Its tokens are of another vocabulary.
    assert n_by_model > 20 or drafters != ("model",)


def test_sampled_text_is_the_plain_text(engine: LocalEngine) -> None:
    assert isinstance(engine.target, LlamaTarget)
    if not engine.target.is_exact:
        pytest.skip("logits differ in the last digits here")
    n_drafted = 0
    for seed, request in enumerate(requests(8)):
        sampling = SamplingParams(temperature=0.8, seed=seed)
        request = dataclasses.replace(request, sampling=sampling)
        plain = engine.generate(dataclasses.replace(request, drafters=()))
        assume(engine.passes.tuner, CostCurve({1: 1000.0, 33: 1100.0}))
        drafted = engine.generate(request)
        assert drafted.tokens == plain.tokens
        n_drafted += drafted.trace.n_drafted
    assert n_drafted > 50
