"""Candidates that are decoded side by side are what each would have been alone."""

from __future__ import annotations

import dataclasses
import sysconfig
from pathlib import Path

import pytest

from codespec.engine.candidates import OtherFirstToken, decode_side_by_side
from codespec.engine.completer import Completer
from codespec.engine.output import Output, OutputLimits
from codespec.requests import CompletionRequest
from codespec.verify.sampling import Sampler
from tests.drafters import combined

N_PLACES, N_TOKENS = 12, 12


@pytest.fixture(scope="module")
def requests() -> list[CompletionRequest]:
    text = Path(sysconfig.get_paths()["stdlib"], "statistics.py").read_text()[:9000]
    lines = text.split("\n")
    found = [i for i, line in enumerate(lines) if len(line.strip()) > 20][20::7][:N_PLACES]
    return [
        CompletionRequest(
            "\n".join([*lines[:i], lines[i][: len(lines[i]) // 2]]),
            "\n" + "\n".join(lines[i + 1 :]),
            path=f"/{i}.py",
            max_tokens=N_TOKENS,
            n_candidates=3,
        )
        for i in found
    ]


def test_side_by_side_is_one_after_the_other(engine, requests) -> None:
    n_equal = n = 0
    target, n_vocab = engine.target, engine.info.n_vocab
    for request in requests:
        context = dataclasses.replace(engine.context(request), healed=b"")

        limits = OutputLimits(N_TOKENS)

        def make(others: frozenset[int], params=request.sampling, limits=limits) -> Output:
            mask = OtherFirstToken(others, n_vocab, None)
            return Output(Sampler(params, mask), limits, engine.info.eog)

        branches = decode_side_by_side(target, context.prompt, 4, make, lambda: False)
        assert len(branches) == 4
        assert len({branch.tokens[0] for branch in branches if branch.tokens}) >= 3
        # The cache holds the prompt and nothing of the branches.
        assert target.cached.tolist() == context.prompt.tolist()
        taken: set[int] = set()
        for branch in branches:
            mask = OtherFirstToken(taken, n_vocab, None)
            alone = Completer(target, combined([], n_vocab, 1))
            tokens, finish = alone.run(context, Sampler(request.sampling, mask), limits)
            assert branch.finish == finish or branch.tokens != tokens
            n_equal += branch.tokens == tokens
            n += 1
            taken.update(tokens[:1] if tokens else engine.info.eog)
    # Passes of one token and of several differ in the last digits, which decides ties.
    assert n_equal >= 0.9 * n


def test_candidates_differ_and_leave_the_engine_as_it_was(engine, requests) -> None:
    n_others = 0
    for request in requests:
        alone = engine.complete(dataclasses.replace(request, n_candidates=1))
        among = engine.complete(request)
        assert among.text == alone.text
        others = [other.text for other in among.alternatives]
        texts = [among.text, *others]
        assert len({"".join(text.split()) for text in texts}) == len(texts) <= 3
        assert all(map(str.strip, others))
        n_others += len(others)
        assert engine.complete(dataclasses.replace(request, n_candidates=1)).text == alone.text
    assert n_others > N_PLACES


@pytest.mark.parametrize(
    ("path", "prefix", "suffix"),
    [
        (
            "/a.js",
            "function add(a, b) {\n  return a + b;\n}\n\nfunction sub(a, b) {\n  ",
            "\n}\n",
        ),
        ("/a.proto", 'syntax = "proto3";\n\nmessage A {\n  string name = 1;\n  ', "\n}\n"),
        ("/A.java", "class A {\n    int add(int a, int b) {\n        ", "\n    }\n}\n"),
        ("/a.py", "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    ", "\n"),
    ],
)
def test_candidates_differ_in_more_than_blanks(engine, path, prefix, suffix) -> None:
    request = CompletionRequest(prefix, suffix, path=path, n_candidates=5)
    made = engine.complete(request)
    texts = [made.text, *(other.text for other in made.alternatives)]
    assert len({"".join(text.split()) for text in texts}) == len(texts) >= 2
    assert not any(text[0].isspace() or text.rstrip(" ").endswith("\n") for text in texts)


def test_candidates_end_with_the_request(engine, requests) -> None:
    request = dataclasses.replace(requests[0], n_candidates=3)
    n_asked = 0

    def cancelled() -> bool:
        nonlocal n_asked
        n_asked += 1
        return n_asked > 40

    whole = engine.complete(dataclasses.replace(request, n_candidates=1)).text
    engine.complete(request, cancelled)
    assert engine.complete(dataclasses.replace(request, n_candidates=1)).text == whole
