"""llama-server's completions: prompts of all kinds, samplers, and what an answer says of its end;
the vocabulary behind its other routes."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codespec.backends import registry
from codespec.config import CompletionSettings, ModelSettings
from codespec.errors import InputError
from codespec.http.access import Refused
from codespec.http.bodies import ALL_THERE_IS
from codespec.http.dialects.llama_completion import LlamaCompletion
from codespec.http.field_error import FieldError
from codespec.http.vocabularies import Vocabularies, Vocabulary
from codespec.limits import PROMPTS
from codespec.models.resolve import target_path
from codespec.requests import ChatMessage, Completion, CompletionRequest
from codespec.types import Trace

FIM = "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"


def asked(**fields: object) -> tuple[LlamaCompletion, list[CompletionRequest]]:
    dialect = LlamaCompletion(json.dumps(fields).encode(), "m")
    return dialect, dialect.requests(CompletionSettings())


def one(**fields: object) -> CompletionRequest:
    [request] = asked(**fields)[1]
    return request


def test_a_prompt_is_read_as_it_is_unless_it_has_a_known_form() -> None:
    plain = one(prompt="<s>a\r\n")
    assert (plain.prefix, plain.raw, plain.verbatim, plain.whole) == ("<s>a\n", True, True, True)
    infill = one(prompt=FIM)
    assert (infill.prefix, infill.suffix, infill.raw) == ("a", "b", False)
    assert not one(prompt="a", verbatim=False).raw
    assert plain.max_tokens == one(prompt="a", n_predict=-1).max_tokens == ALL_THERE_IS
    assert one(prompt="a", n_predict=3).max_tokens == 3


@pytest.mark.parametrize(
    ("prompt", "parts"),
    [
        ([1, 2], [(1, 2)]),
        ([1, "a", 2], [(1, "a", 2)]),
        (["a", 1], [("a", 1)]),
        ([[1, 2]], [(1, 2)]),
        ([[1], ["a", 2]], [(1,), ("a", 2)]),
        (["a", [1]], [(), (1,)]),
        ([1, [2]], [(1,), (2,)]),
        (["a"], [()]),
        (["a", "b"], [(), ()]),
    ],
)
def test_a_list_is_one_prompt_or_several(prompt: Any, parts: list[tuple[int | str, ...]]) -> None:
    requests = asked(prompt=prompt)[1]
    assert [request.parts for request in requests] == parts
    assert all(request.raw for request in requests)
    with_text = [request for request in requests if not request.parts]
    assert [request.prefix for request in with_text] == [p for p in prompt if p in ("a", "b")][
        : len(with_text)
    ]


def test_prompts_that_cannot_be_answered_are_refused() -> None:
    for fields, words in (
        ({"prompt": []}, "empty"),
        ({"prompt": ["a", "b"], "stream": True}, "stream"),
        ({"prompt": ["a"] * (PROMPTS + 1)}, f"at most {PROMPTS}"),
        ({"prompt": [1], "verbatim": False}, "verbatim"),
        ({"prompt": "a", "n_cmpl": 2}, "n_cmpl"),
        ({"prompt": "a", "n_probs": 2}, "n_probs"),
        ({}, "prompt"),
    ):
        with pytest.raises(FieldError, match=words):
            asked(**fields)
    assert len(asked(prompt=["a"] * PROMPTS)[1]) == PROMPTS


def test_of_numbers_beyond_their_range_the_nearest_is_meant() -> None:
    request = one(prompt="a", temperature=-1, top_p=1.5, min_p=-0.1, top_k=-1, t_max_predict_ms=-1)
    sampling = request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.min_p) == (0.0, 1.0, 0.0)
    assert (sampling.top_k, request.max_line_ms, request.whole) == (0, 0.0, True)


def test_samplers_that_a_list_leaves_out_do_not_act() -> None:
    given = {"prompt": "a", "top_k": 5, "top_p": 0.5, "min_p": 0.1, "repeat_penalty": 2}
    whole = one(**given, temperature=0.5, seed=1).sampling
    for samplers in ([], ["min_p", "top_p", "top_k", "penalties", "temperature", "infill"]):
        assert one(**given, temperature=0.5, seed=1, samplers=samplers).sampling == whole
    off = {"top_k": 0, "top_p": 1.0, "repetition_penalty": 1.0}
    some = one(**given, temperature=0.5, seed=1, samplers=["min_p", "temperature"]).sampling
    assert some == replace(whole, **off)


def end(n_stop: int = -1, finish: Any = "stop", **trace: Any) -> tuple[str, str]:
    dialect, [request] = asked(prompt="x", stop=["\n\n", "", "b"])
    told = Trace(n_stop=n_stop, **trace)
    answer = dialect.answer([Completion(request.insertion("a"), finish, trace=told)])
    assert isinstance(answer, dict)
    assert answer["prompt"] == "x"
    return answer["stop_type"], answer["stopping_word"]


def test_an_answer_says_what_ended_it() -> None:
    assert end() == ("eos", "")
    assert end(0) == ("word", "\n\n")
    assert end(1) == ("word", "b")
    assert end(finish="length") == end(is_limited=True) == ("limit", "")


def test_several_prompts_have_a_list_of_answers() -> None:
    dialect, requests = asked(prompt=["a", "b"], response_fields=["content", "index"])
    said = [Completion(request.insertion(request.prefix * 2), "stop") for request in requests]
    assert dialect.answer(said) == [{"content": "aa", "index": 0}, {"content": "bb", "index": 1}]


# --- the vocabulary -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(registry.open_vocabulary(target_path(ModelSettings())))


def test_tokens_and_their_text(vocabulary: Vocabulary) -> None:
    text = "def é(\n\t🙂 <|fim_prefix|>"
    plain, special = (
        vocabulary.tokens(text, begins=False, reads_special=reads) for reads in (False, True)
    )
    assert len(special) < len(plain)
    assert vocabulary.text(plain) == vocabulary.text(special) == text
    assert vocabulary.piece(special[-1]) == b"<|fim_prefix|>"
    assert vocabulary.tokens("", begins=False, reads_special=True) == []
    assert vocabulary.text([]) == ""
    with pytest.raises(InputError, match="99999999 is no token"):
        vocabulary.text([1, 99_999_999])


def test_a_model_without_a_chat_template_says_so(vocabulary: Vocabulary) -> None:
    assert vocabulary.chat_template == ""
    with pytest.raises(InputError, match="no chat template"):
        vocabulary.chat_prompt([ChatMessage("user", "a")])


def test_a_vocabulary_is_opened_once_and_again_for_another_file(tmp_path: Path) -> None:
    file = target_path(ModelSettings())
    copy = tmp_path / "copy.gguf"
    copy.write_bytes(file.read_bytes())
    vocabularies = Vocabularies()

    async def ask(target: str) -> tuple[int, str]:
        settings = ModelSettings(target=target)
        return await vocabularies.ask(settings, lambda known: (id(known), known.file_name))

    async def run() -> None:
        first, again = await asyncio.gather(ask(""), ask(""))
        assert first == again == (first[0], file.name)
        assert (await ask(str(copy)))[1] == "copy.gguf"
        with pytest.raises(Refused, match="elsewhere") as refused:
            await ask("http://127.0.0.1:1#m")
        assert refused.value.status == 501
        assert (await ask(""))[1] == file.name

    asyncio.run(run())
    vocabularies.close()


def test_a_vocabulary_is_closed_after_the_question_under_way() -> None:
    vocabularies, names = Vocabularies(), list[str]()
    has_begun, may_end = threading.Event(), threading.Event()

    def question(vocabulary: Vocabulary) -> None:
        has_begun.set()
        may_end.wait()
        names.append(vocabulary.file_name)

    async def ask() -> None:
        await vocabularies.ask(ModelSettings(), question)

    asking = threading.Thread(target=lambda: asyncio.run(ask()))
    asking.start()
    has_begun.wait()
    threading.Timer(0.1, may_end.set).start()
    vocabularies.close()
    assert names == [target_path(ModelSettings()).name]
    asking.join()
