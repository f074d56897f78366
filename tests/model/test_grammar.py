"""Output under a grammar and stop texts, with and without drafts."""

from __future__ import annotations

import json
import os
import re
from typing import Any

import numpy as np
import pytest

from codespec.backends.llama import GrammarMask, LlamaTokenizer, load_model, loader
from codespec.errors import InputError
from codespec.http.json_schemas import normal_schema
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import CompletionRequest
from codespec.types import SamplingParams

LIST = r"""
root ::= "[" item (", " item){0,3} "]"
item ::= [0-9]+ | "\"" [a-z]{1,6} "\""
"""
MATCHES = re.compile(r'\[(\d+|"[a-z]{1,6}")(, (\d+|"[a-z]{1,6}")){0,3}\]')


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_the_text_follows_the_grammar_and_drafts_change_nothing(engine, temperature):
    n_whole = n_accepted = 0
    for seed in range(8):
        prefix = f'names = ["a", "b", "c"]\nothers = ["a", "b"]\nx{seed} = '
        sampling = SamplingParams(temperature=temperature, seed=seed, grammar=LIST)
        made = {}
        for drafters in ((), ("lookup",)):
            request = CompletionRequest(
                prefix, "\n", max_tokens=40, sampling=sampling, drafters=drafters
            )
            completion = engine.complete(request)
            made[drafters] = completion.text
            n_accepted += completion.trace.n_accepted
        assert made[()] == made[("lookup",)]
        if completion.finish == "stop":
            assert MATCHES.fullmatch(completion.text), completion.text
            n_whole += 1
    assert n_whole
    assert n_accepted or temperature


def test_the_text_follows_a_json_schema_and_drafts_change_nothing(engine):
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 12}, "size": {"enum": [1, 2]}},
        "required": ["name", "size"],
    }
    sampling = SamplingParams(json_schema=normal_schema("json_schema", schema))
    texts = set()
    for drafters in ((), ("lookup",)):
        request = CompletionRequest(
            'a = {"name": "x", "size": 1}\nb = ',
            max_tokens=60,
            sampling=sampling,
            drafters=drafters,
            verbatim=True,
        )
        completion = engine.complete(request)
        assert completion.finish == "stop"
        texts.add(completion.text)
    [text] = texts
    value = json.loads(text)
    assert value.keys() == {"name", "size"}
    assert value["size"] in (1, 2)
    assert len(value["name"]) <= 12


def test_what_is_listed_is_what_is_permitted():
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    try:
        mask = GrammarMask(model, LIST)
        rng = np.random.default_rng(2)
        emitted: list[int] = []
        for _ in range(6):
            allowed = mask.allowed(emitted)
            assert len(allowed)
            assert (np.diff(allowed) > 0).all()
            listed = set(allowed.tolist())
            tried = [*rng.integers(0, model.n_vocab, 200).tolist(), *allowed[:50].tolist()]
            assert all(mask.permits(emitted, t) == (t in listed) for t in tried)
            emitted.append(int(rng.choice(allowed)))
            if emitted[-1] in model.info.eog:
                break
        # An output cut back, as after a rejected branch, is read again.
        first = GrammarMask(model, LIST).allowed(emitted[:1])
        np.testing.assert_array_equal(mask.allowed(emitted[:1]), first)
        # What the grammar forbids ends it, and not the process.
        assert set(mask.allowed([5000, 5001]).tolist()) == set(model.info.eog)
    finally:
        model.close()


@pytest.mark.parametrize("second", ["<[%d]>", "!<[7]>"])
def test_a_token_that_is_allowed_but_not_taken_ends_the_text_and_not_the_process(second):
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    try:
        [token] = LlamaTokenizer(model).encode("re")
        grammar = f'root ::= "r" {second.replace("%d", str(token))} "x"'
        mask = GrammarMask(model, grammar)
        assert mask.permits([], token)
        assert set(mask.allowed([token]).tolist()) == set(model.info.eog)
        [begin] = LlamaTokenizer(model).encode("r")
        assert token in mask.allowed([begin])
    finally:
        model.close()


@pytest.mark.parametrize("bad", ["root ::= nowhere", "root ::= (", "other ::= [a]"])
def test_a_bad_grammar_is_an_error_in_words(bad):
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    try:
        with pytest.raises(InputError, match="grammar"):
            GrammarMask(model, bad)
    finally:
        model.close()


@pytest.mark.parametrize(
    "bad", ['root ::= "WOMBAT" nowhere', 'root ::= "WOMBAT" (', "root ::= root"]
)
def test_what_a_bad_grammar_says_is_printed_nowhere(bad, capfd):
    """The model worker's descriptor 2 is a log."""
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    try:
        with pytest.raises(InputError, match="grammar"):
            GrammarMask(model, bad)
        os.write(2, b"heard again")
        assert capfd.readouterr().err == "heard again"
    finally:
        model.close()


def test_a_grammar_is_read_where_nobody_listens():
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    heard = os.dup(2)
    os.close(2)
    try:
        assert len(GrammarMask(model, LIST).allowed([]))
        with pytest.raises(OSError, match="descriptor"):
            os.fstat(2)
    finally:
        os.dup2(heard, 2)
        os.close(heard)
        model.close()


def test_the_cause_is_that_of_the_grammar():
    model = load_model(bundled(BUNDLED_TARGET), vocab_only=True)
    try:
        loader._on_log(0, b"graph_compute: failed with error 1", None)
        with pytest.raises(InputError, match="failed to parse"):
            GrammarMask(model, "root ::= nowhere")
    finally:
        model.close()


def test_stop_texts_end_the_output_the_same_with_drafts(engine):
    prefix = "def area(width, height):\n    return width * height\n\n\ndef volume(width"
    asked: dict[str, Any] = {"max_tokens": 40, "multiline": True}
    whole = engine.complete(CompletionRequest(prefix, "\n", drafters=(), **asked)).text
    assert len(whole) > 4
    for stop in (whole[2:4], whole[-1], whole[1:]):
        texts = {
            engine.complete(
                CompletionRequest(prefix, "\n", drafters=drafters, stop=(stop,), **asked)
            ).text
            for drafters in ((), ("lookup", "model"))
        }
        assert len(texts) == 1
        assert stop not in texts.pop()
