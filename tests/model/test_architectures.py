"""Every architecture says with drafting, and after any history of requests, what it says without:
tiny models with random weights, see `tests.zoo`."""

from __future__ import annotations

import contextlib
import sysconfig
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codespec.backends.base import CancelledError
from codespec.backends.llama import LlamaTarget, LlamaTokenizer, kernels, load_model
from codespec.config import ModelSettings, Settings, load_settings
from codespec.cost.cost_curve import CostCurve
from codespec.models.bundled_pair import BUNDLED_DRAFT, BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from codespec.types import NO_DRAFT, Draft, SamplingParams
from tests import zoo
from tests.drafters import OracleDrafter, ScriptedDrafter, assume, draft_much, tree
from tests.engines import strict_engine
from tests.zoo.parts import N_CTX as N_LEARNED
from tests.zoo.parts import WINDOW

N_CTX, N_READ, N_PROMPT, N_MORE = 256, 200, 2 * WINDOW + 16, 20
NAMES = ("argparse.py", "tarfile.py", "statistics.py")
TEXTS = [(Path(sysconfig.get_paths()["stdlib"]) / name).read_text() for name in NAMES]


def never() -> bool:
    return False


ANIMALS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in zoo.ANIMALS},
    "gemma2-cap-unsaid": ("gemma2", {"attn_logit_softcapping": None}),
    "lfm2-sliding": ("lfm2", {"attention__sliding_window": WINDOW}),
    "olmo2-sliding": ("olmo2", {"attention__sliding_window": WINDOW}),
    "llama-f16": ("llama", {"quantised": False}),
}


@pytest.fixture(scope="module", params=ANIMALS)
def file(request, tmp_path_factory):
    name, changed = ANIMALS[request.param]
    return zoo.write(tmp_path_factory.mktemp("zoo") / "animal.gguf", name, **changed)


@pytest.fixture(scope="module", params=["ours", "llama.cpp", "q8_0"])
def way(request):
    """How it is computed: all by our own kernels where possible, or nothing, or with a quantised
    cache."""
    kernels.use(request.param != "llama.cpp")
    yield {"kv_type": "q8_0"} if request.param == "q8_0" else {}
    kernels.use(True)


class Zookeeper:
    """Contexts of one model."""

    def __init__(self, file: Path, way: dict[str, Any]) -> None:
        self.model = load_model(file, n_gpu_layers=0)
        self._way = way
        self._made = []
        tokenizer = LlamaTokenizer(self.model)
        self.documents = [tokenizer.encode(text[:1500])[:N_READ] for text in TEXTS]

    def target(self, **options: Any) -> LlamaTarget:
        made = LlamaTarget(self.model, n_ctx=N_CTX, n_threads=1, **self._way, **options)
        self._made.append(made)
        return made

    def close(self):
        for target in self._made:
            target.close()
        self.model.close()


@pytest.fixture(scope="module")
def keeper(file, way):
    keeper = Zookeeper(file, way)
    yield keeper
    keeper.close()


def in_passes(target, tokens, drafts):
    """Logits after the last of `N_PROMPT` tokens and each later one, in passes with what `drafts`
    gives for their number: (a chain or tree, the path in it that is kept)."""
    target.prefill(tokens[:N_PROMPT], never)
    rows = []
    at = N_PROMPT
    while at < len(tokens):
        draft, path = drafts(at)
        result = target.decode(tokens[target.n_cached : at], draft)
        rows += [result.row(i).copy() for i in (0, *(node + 1 for node in path))]
        target.keep(path)
        at += 1 + len(path)
    return np.stack(rows)[: len(tokens) - N_PROMPT]


def alike(target, rows, expected):
    """To the bit where that is promised. Else as far as rounding goes, which quantising amplifies,
    and now and then another expert is chosen for it."""
    assert np.isfinite(rows).all()
    if target.is_exact:
        np.testing.assert_array_equal(rows, expected)
        return
    differences = np.abs(rows - expected).max(-1) / expected.std()
    assert np.median(differences) < 0.25
    assert (differences > 0.5).mean() < 0.15


def test_drafts_change_nothing(keeper):
    """Right ones, wrong ones, and right ones with a wrong end."""
    tokens = keeper.documents[0][: N_PROMPT + N_MORE]
    plain = in_passes(keeper.target(), tokens, lambda at: (NO_DRAFT, []))
    assert len({int(row.argmax()) for row in plain}) > N_MORE // 4  # it does not say one thing
    rng = np.random.default_rng(1)

    def drafts(at):
        n = int(rng.integers(0, 1 + min(9, target.can.max_draft)))
        n_right = min(int(rng.integers(0, n + 1)), len(tokens) - at)
        chain = [*tokens[at : at + n_right], *rng.integers(10, 4000, n - n_right)]
        return Draft.chain(chain) if n else NO_DRAFT, range(n_right)

    target = keeper.target()
    alike(target, in_passes(target, tokens, drafts), plain)
    if target.can.max_leaves == 1 or target.can.max_draft < 7:
        return

    def trees(at):
        """A wrong root, the right path, another end of it, and one of the wrong root."""
        if at + 3 > len(tokens):
            return NO_DRAFT, []
        a, b, c = tokens[at : at + 3].tolist()
        draft = tree([7, a, 9, b, c, 11, 12], [-1, -1, 0, 1, 3, 3, 2])
        return draft, [1, 3, 4][: int(rng.integers(0, 4))]

    target = keeper.target()
    alike(target, in_passes(target, tokens, trees), plain)


def visit(keeper, target, rng):
    """Something that is done with a target: what it is to read then."""
    document = keeper.documents[int(rng.integers(3))]
    tokens = document[: int(rng.integers(40, N_READ))].copy()
    other = keeper.documents[int(rng.integers(3))][:150]
    match int(rng.integers(7)):
        case 0:  # typed over
            tokens[-1] = rng.integers(10, 4000)
        case 1:  # edited further up
            tokens[len(tokens) // 2] = rng.integers(10, 4000)
        case 2:
            asked = iter(range(int(rng.integers(1, 4))))
            with contextlib.suppress(CancelledError):
                target.prefill(other, lambda: next(asked, None) is None)
        case 3:
            before = target.cached.tolist()
            held = target.checkpoint()
            read(target, other)
            target.restore(held)
            target.release(held)
            assert target.cached.tolist() == before
        case 4:
            target.read_ahead(tokens, never)
        case 5 if target.can.max_draft:
            read(target, other, Draft.chain(rng.integers(10, 4000, 3)))
        case _:
            pass
    return tokens


def read(target, tokens, draft=NO_DRAFT):
    target.prefill(tokens, never)
    row = target.decode(tokens[target.n_cached :], draft).row(0).copy()
    target.keep([])
    return row


def test_it_does_not_matter_what_was_read_before(keeper):
    target, fresh = keeper.target(), keeper.target(max_saved_bytes=0)
    rng = np.random.default_rng(2)
    first, second, _ = keeper.documents
    reads = [first, second, first[:90], second[:120]]  # those of before, cut back
    rows, expected = [], []
    for i in range(12):
        tokens = reads[i] if i < len(reads) else visit(keeper, target, rng)
        rows.append(read(target, tokens))
        fresh.prefill(np.array([1, 1], np.int32), never)
        expected.append(read(fresh, tokens))
    alike(target, np.stack(rows), np.stack(expected))


@pytest.fixture
def make():
    made = []

    def engine(target, draft):
        settings = load_settings(
            {
                "model": {"target": str(target), "draft": str(draft), "n_threads": 1},
                "completion": {"n_prefix_tokens": N_PROMPT, "n_suffix_tokens": 32},
                "drafting": {"adaptive": False},
            },
            env={},
        )
        made.append(strict_engine(settings))
        draft_much(made[-1])
        return made[-1]

    yield engine
    for one in made:
        one.close()


REQUEST = CompletionRequest(TEXTS[0][1000:2000], TEXTS[0][2100:2300], max_tokens=16, verbatim=True)


def test_the_whole_engine(file, make):
    engine = make(file, bundled(BUNDLED_DRAFT))
    for sampling in SamplingParams(), SamplingParams(temperature=0.8, seed=3):
        request = replace(REQUEST, sampling=sampling, drafters=())
        plain = engine.generate(request).tokens
        oracle = OracleDrafter(plain)
        liar = ScriptedDrafter(lambda emitted, n: Draft.chain([*plain[len(emitted) :][:2], 7][:n]))  # noqa: B023
        for watchers, drafters in (([oracle], ()), ([liar], ()), ([], ("lookup", "model"))):
            engine.watchers[:] = watchers
            made = engine.generate(replace(request, drafters=drafters))
            assert made.tokens == plain
            if watchers and engine.target.can.max_draft:
                assert made.trace.n_accepted >= len(plain) // 2
        engine.watchers.clear()


def test_as_a_draft_model(file, make):
    engine = make(bundled(BUNDLED_TARGET), file)
    running = engine.passes.models._running[-1]
    assume(running.tuner, CostCurve({1: 0.01, 33: 0.01}))  # as if it cost nothing to ask
    plain = engine.generate(replace(REQUEST, drafters=()))
    for drafters in ("model",), ("lookup", "model"):
        made = engine.generate(replace(REQUEST, drafters=drafters))
        assert made.tokens == plain.tokens
    assert running.context.info.path == str(file)
    assert running.context.n_cached > 0  # it was asked


def test_positions_that_were_not_learned_are_not_asked_for(tmp_path):
    file = zoo.write(tmp_path / "starcoder.gguf", "starcoder")
    settings = ModelSettings(target=str(file), draft="", n_ctx=2 * N_LEARNED, n_threads=1)
    engine = strict_engine(Settings(model=settings))
    assert engine.target.info.n_ctx == N_LEARNED
    engine.close()
