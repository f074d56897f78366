"""Greedy output with drafters is greedy output without, on a real model and real files.

Floating point: a pass over several tokens may use other kernels than a pass over one, so logits can
differ in the last digits. Where two outputs part, the two best logits must have been as close as
twice the difference measured between the widths at that very place; everything else is a fault.
"""

from __future__ import annotations

import dataclasses
import itertools
import sysconfig
from pathlib import Path

import msgspec
import numpy as np
import pytest

from codespec.backends.base import CancelledError
from codespec.backends.checkpoints import Checkpoints
from codespec.backends.llama import kernels
from codespec.cost.cost_curve import CostCurve
from codespec.requests import CompletionRequest
from codespec.types import NO_DRAFT, NO_TOKENS, Draft, SamplingParams
from tests.drafters import assume, draft_much, tree
from tests.engines import strict_engine

N_POSITIONS = 120
N_TOKENS = 24
CONFIGURATIONS = [("lookup",), ("model",), ("lookup", "model"), ("model", "lookup")]
FILES = ("argparse.py", "tarfile.py", "asyncio/base_events.py", "json/decoder.py", "statistics.py")


@pytest.fixture(scope="module", params=kernels.NAMES or ["llama.cpp"])
def instructions(request):
    """Each instruction set of our own products of matrices, the best first."""
    return request.param


@pytest.fixture
def n_positions(instructions):
    return N_POSITIONS if instructions in (kernels.NAME, "llama.cpp") else N_POSITIONS // 4


@pytest.fixture(scope="module")
def engine(instructions, tmp_path_factory, model_options):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CODESPEC_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))
        kernels.use(True, instructions)
        # Whether drafting pays is for the clock to say; here drafts are put to the test.
        drafting = msgspec.structs.replace(model_options.drafting, adaptive=False)
        engine = strict_engine(msgspec.structs.replace(model_options, drafting=drafting))
        draft_much(engine)
        yield engine
        engine.close()
        kernels.use(True)


def positions(n=N_POSITIONS):
    rng = np.random.default_rng(11)
    library = Path(sysconfig.get_paths()["stdlib"])
    texts = [(library / name).read_text() for name in FILES]
    for i in range(n):
        text = texts[i % len(texts)]
        at = int(rng.integers(1000, len(text) - 500))
        yield text[max(0, at - 6000) : at], text[at : at + 1500], FILES[i % len(texts)]


def test_every_combination_of_drafters_gives_the_plain_output(engine, n_positions):
    n_equal = n_drafted = n_accepted = 0
    differences = []
    for prefix, suffix, path in positions(n_positions):
        outputs, prompt = {}, NO_TOKENS
        for drafters in [(), *CONFIGURATIONS]:
            request = CompletionRequest(
                prefix, suffix, path=path, max_tokens=N_TOKENS, drafters=drafters
            )
            made = engine.generate(request)
            outputs[drafters], prompt = made.tokens, made.context.prompt
            n_drafted += made.trace.n_drafted
            n_accepted += made.trace.n_accepted
        plain = outputs[()]
        for drafters in CONFIGURATIONS:
            if outputs[drafters] == plain:
                n_equal += 1
            else:
                margin, noise = examine(engine, prompt, plain, outputs[drafters])
                differences.append((path, drafters, margin, noise))
    for path, drafters, margin, noise in differences:
        print(f"{path} {'+'.join(drafters)}: margin {margin:.2e}, difference {noise:.2e}")
        assert margin <= 2 * noise
    print(f"{n_equal} equal, {len(differences)} at a tie; {n_accepted}/{n_drafted} accepted")
    assert n_equal + len(differences) == n_positions * len(CONFIGURATIONS)
    allowed = 0 if engine.target.is_exact else 0.05
    assert len(differences) <= allowed * n_positions * len(CONFIGURATIONS)
    assert n_accepted > n_positions  # the drafts were put to the test


@pytest.mark.parametrize("drafters", [("lookup",), ("model",)], ids=str)
def test_sampling_with_drafts_gives_the_plain_output(engine, drafters):
    if not engine.target.is_exact:
        pytest.skip("logits differ in the last digits here")
    n_drafted = 0
    for seed, (prefix, suffix, path) in enumerate(itertools.islice(positions(), 24)):
        request = CompletionRequest(
            prefix,
            suffix,
            path=path,
            max_tokens=60,
            sampling=SamplingParams(temperature=0.8, seed=seed),
            verbatim=True,
        )
        plain = engine.generate(dataclasses.replace(request, drafters=()))
        assume(engine.passes.tuner, CostCurve({1: 1000.0, 33: 1100.0}))  # as if drafts cost nothing
        drafted = engine.generate(dataclasses.replace(request, drafters=drafters))
        assert drafted.tokens == plain.tokens
        n_drafted += drafted.trace.n_drafted
    assert n_drafted > 100


def rewritten(plain, seed):
    """Texts that a text may be a rewriting of: other words, lines left out, lines twice, itself."""
    rng = np.random.default_rng(seed)
    lines = plain.splitlines(keepends=True)
    yield plain
    yield plain.replace("e", "ee").replace("self", "this")
    yield "".join(line for line in lines if rng.random() < 0.7)
    yield "".join(line for line in lines for _ in range(int(rng.integers(0, 3))))
    yield plain[len(plain) // 2 :] + plain


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_an_old_text_changes_nothing(engine, temperature):
    if not engine.target.is_exact:
        pytest.skip("logits differ in the last digits here")
    n_accepted = 0
    for seed, (prefix, _, path) in enumerate(itertools.islice(positions(), 5)):
        sampling = SamplingParams(temperature=temperature, seed=seed)
        request = CompletionRequest(
            prefix, path=path, max_tokens=80, sampling=sampling, verbatim=True, drafters=()
        )
        plain = engine.complete(request)
        for old in rewritten(plain.text, seed):
            assume(engine.passes.tuner, CostCurve({1: 1000.0, 65: 1100.0}))
            drafted = engine.complete(
                dataclasses.replace(request, rewrites=old, drafters=("aligned",))
            )
            assert drafted.text == plain.text
            n_accepted += drafted.trace.n_accepted
    assert n_accepted > 300


def examine(engine, prompt, plain, other):
    """(top-two margin, largest logit difference between widths) where two outputs part.

    The difference is taken over the whole output so far: keys and values that were computed at
    another width carry it on.
    """
    n_same = next(i for i, (a, b) in enumerate(zip(plain, other, strict=False)) if a != b)
    tokens = np.concatenate([prompt, np.array(plain[:n_same], np.int32)])
    single = logits_of_output(engine.target, tokens, len(prompt), 1)
    noise = max(
        float(np.abs(single - logits_of_output(engine.target, tokens, *how)).max())
        for how in itertools.product([len(prompt)], (1, 2, 3, 4, 5, 8, 16), (False, True))
    )
    best, second = np.sort(single[-1])[::-1][:2]
    return float(best - second), noise


def logits_of_output(target, tokens, n_prompt, width, together=False):
    """(n, n_vocab) logits from the prompt's last token on, in passes over `width` tokens.

    together: the prompt's last token comes in one pass with the prompt, as where nothing of it was
    cached; else alone, as where the same prompt came before.
    """
    forget(target)
    head = tokens[:n_prompt]
    target.prefill(head, lambda: False)
    if not together:
        target.decode(head[target.n_cached : -1], NO_DRAFT)
        target.keep([])
    rows = []
    start = n_prompt - 1
    while start < len(tokens):
        part = tokens[start : start + width]
        draft = Draft.chain(part[1:])
        result = target.decode(tokens[target.n_cached : start + 1], draft)
        rows += [result.row(i).copy() for i in range(len(part))]
        target.keep(range(len(draft)))
        start += width
    return np.stack(rows)


def forget(target):
    """Nothing of a prompt is left, neither in the cache nor put aside."""
    target._saved = Checkpoints(0, can_truncate=True)
    target.prefill(np.array([1, 1], np.int32), lambda: False)


def fresh(target, tokens):
    """The cache holds all of `tokens` but the last, decoded in passes of the same widths."""
    forget(target)
    target.prefill(tokens, lambda: False)
    target.decode(tokens[target.n_cached : -1], NO_DRAFT)
    target.keep([])


def test_a_tree_gives_the_logits_of_its_branches(engine):
    """Attention sees a node's ancestors and nothing else, and keeping a branch keeps its KV."""
    target, tokenizer = engine.target, engine.tokenizer
    text = (Path(sysconfig.get_paths()["stdlib"]) / "argparse.py").read_text()
    tokens = tokenizer.encode(text)[:300]
    prompt, (a, b, c) = tokens[:-3], tokens[-3:].tolist()
    # Two wrong roots, the right path, and a second child at its end.
    draft = tree([7, a, 9, b, c, 11, 12], [-1, -1, 0, 1, 3, 3, 2])
    branches = {4: [1, 3, 4], 5: [1, 3, 5], 6: [0, 2, 6]}
    for leaf, path in branches.items():
        fresh(target, prompt)
        tree_rows = target.decode(prompt[-1:], draft)
        in_tree = np.stack([tree_rows.row(node + 1) for node in path])
        target.keep([])
        assert target.n_cached == len(prompt)
        fresh(target, prompt)
        chain_rows = target.decode(prompt[-1:], Draft.chain(draft.tokens[path]))
        alone = np.stack([chain_rows.row(i + 1) for i in range(len(path))])
        target.keep([])
        np.testing.assert_allclose(in_tree, alone, atol=1e-4)
        # Keep the first two nodes of the branch; the third then sees what it would have seen.
        fresh(target, prompt)
        target.decode(prompt[-1:], draft)
        target.keep(path[:2])
        assert target.cached.tolist() == [*prompt.tolist(), *draft.tokens[path[:2]].tolist()]
        follow = np.array([draft.tokens[leaf], 5], np.int32)
        kept = target.decode(follow[:1], Draft.chain(follow[1:])).row(0).copy()
        target.keep([])
        np.testing.assert_allclose(kept, alone[2], atol=1e-4)


def test_logits_do_not_depend_on_threads(engine):
    target, tokenizer = engine.target, engine.tokenizer
    text = (Path(sysconfig.get_paths()["stdlib"]) / "argparse.py").read_text()
    tokens = tokenizer.encode(text)[:300]
    n_before = target.n_threads
    seen = []
    for n_threads in (1, 2, 3):
        target.set_threads(n_threads)
        fresh(target, tokens[:-8])
        rows = target.decode(tokens[-9:-8], Draft.chain(tokens[-8:]))
        seen.append(np.stack([rows.row(i) for i in range(9)]))
        target.keep(range(8))
    target.set_threads(n_before)
    np.testing.assert_array_equal(seen[0], seen[1])
    np.testing.assert_array_equal(seen[0], seen[2])


def test_a_second_request_reuses_the_prompt(engine):
    prefix = "def add(a, b):\n    " * 20
    request = CompletionRequest(prefix + "return", "\n", max_tokens=4)
    engine.complete(request)
    again = engine.complete(request)
    assert again.trace.n_prompt_cached >= again.trace.n_prompt_tokens - 2


def test_a_cancelled_prompt_leaves_the_cache_consistent(engine):
    target, tokenizer = engine.target, engine.tokenizer
    text = (Path(sysconfig.get_paths()["stdlib"]) / "argparse.py").read_text()
    tokens = tokenizer.encode(text)[:1900]
    fresh(target, tokens)
    expected = target.decode(tokens[-1:], NO_DRAFT).row(0).copy()
    target.keep([])
    for n_calls in (1, 2, 5, 40):
        forget(target)
        calls = iter(range(n_calls))
        with pytest.raises(CancelledError):
            # The abort callback asks between the operations of a pass, too.
            target.prefill(tokens, lambda calls=calls: next(calls, None) is None)
        assert target.cached.tolist() == tokens[: target.n_cached].tolist()
    fresh(target, tokens)
    again = target.decode(tokens[-1:], NO_DRAFT).row(0).copy()
    target.keep([])
    np.testing.assert_allclose(again, expected, atol=1e-4)


def test_a_cancelled_request_says_so(engine):
    completion = engine.complete(CompletionRequest("x = 1\n", max_tokens=8), lambda: True)
    assert (completion.text, completion.finish) == ("", "cancelled")
    assert completion.reason


def test_an_empty_document_gets_an_answer(engine):
    completion = engine.complete(CompletionRequest("", "", max_tokens=4))
    assert completion.finish in ("stop", "length", "empty")
