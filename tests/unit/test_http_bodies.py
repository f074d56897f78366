"""Bodies of HTTP requests, as clients write them, and the requests that they become."""

from __future__ import annotations

import json

import pytest

from codespec import limits
from codespec.config import CompletionSettings
from codespec.http.dialects.base import Dialect, DialectReader
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.dialects.infill import Infill
from codespec.http.field_error import FieldError
from codespec.requests import (
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    Completion,
    CompletionRequest,
)
from codespec.types import Trace


@pytest.mark.parametrize(
    ("body", "any_seed"),
    [({}, True), ({"seed": -1}, True), ({"seed": 0}, False), ({"seed": -(1 << 63)}, False)],
)
def test_only_a_seed_that_was_asked_for_binds(body: dict[str, int], any_seed: bool) -> None:
    raw = json.dumps({"prompt": "x", "temperature": 0.5, **body}).encode()
    for dialect in (Infill(raw, ""), OpenAICompletions(raw, "")):
        sampling = requested(dialect).sampling
        assert sampling.any_seed == any_seed
        assert any_seed or sampling.seed == 0
    assert requested(OpenAICompletions(b'{"prompt": "x", "seed": -7}', "")).sampling.seed > 0


def requested(asked: Dialect) -> CompletionRequest:
    [request] = asked.requests(CompletionSettings())
    return request


def request_of(**body: object) -> CompletionRequest:
    return requested(OpenAICompletions(json.dumps(body).encode(), ""))


def test_a_suggestion_is_made_from_no_more_text_than_an_editor_sends() -> None:
    code, line = "def f(x):\n    return x\n\n\n" * 20_000, "x = [" + "1, " * 200_000
    for text in (code, line):
        made = request_of(prompt=text, suffix=text, verbatim=False)
        assert MAX_PREFIX_CHARS // 2 < len(made.prefix) <= MAX_PREFIX_CHARS
        assert MAX_SUFFIX_CHARS // 2 < len(made.suffix) <= MAX_SUFFIX_CHARS
        assert text.endswith(made.prefix)
        assert text.startswith(made.suffix)
        whole = request_of(prompt=text, suffix=text)
        assert (whole.prefix, whole.suffix) == (text, text)


def test_of_long_text_whole_definitions_are_left() -> None:
    code = "def f(x):\n    return x\n\n\n" * 20_000
    made = request_of(prompt=code, suffix=code, verbatim=False)
    assert len(made.prefix) < len(code)
    assert made.prefix.startswith("def f(x):")
    assert made.suffix.endswith("return x\n\n\n")
    assert request_of(prompt=code + "a", verbatim=False).prefix == made.prefix + "a"


def test_an_empty_list_of_prompts_is_not_several() -> None:
    with pytest.raises(FieldError, match="empty") as refused:
        request_of(prompt=[])
    assert refused.value.field == "prompt"


@pytest.mark.parametrize("suffix", [None, ""])
def test_an_empty_suffix_is_none(suffix: str | None) -> None:
    made = request_of(prompt="<fim_prefix>a<fim_suffix>b<fim_middle>", suffix=suffix)
    assert (made.prefix, made.suffix) == ("a", "b")


def test_several_prompts_are_choices_of_one_answer() -> None:
    raw = {"prompt": ["a", "<fim_prefix>b<fim_suffix>c<fim_middle>"], "max_tokens": 4}
    asked = OpenAICompletions(json.dumps(raw).encode(), "")
    made = asked.requests(CompletionSettings())
    assert [(request.prefix, request.suffix) for request in made] == [("a", ""), ("b", "c")]
    traces = Trace(n_prompt_tokens=3, n_tokens=2), Trace(n_prompt_tokens=4, n_tokens=5)
    answer = asked.answer([Completion(made[0].insertion("x"), "stop", trace=t) for t in traces])
    assert [choice["index"] for choice in answer["choices"]] == [0, 1]
    usage = {"prompt_tokens": 7, "completion_tokens": 7, "total_tokens": 14}
    assert answer["usage"] == usage
    with pytest.raises(FieldError, match="stream"):
        request_of(prompt=["a", "b"], stream=True)
    assert request_of(prompt=["a"], stream=True).prefix == "a"


@pytest.mark.parametrize(
    "content", ["a\r\nb", [{"type": "text", "text": "a\r\n"}, {"text": "b", "type": None}]]
)
def test_a_predicted_output_is_what_is_rewritten(content: object) -> None:
    raw = {"prompt": ["x", "y"], "prediction": {"type": "content", "content": content}}
    asked = OpenAICompletions(json.dumps(raw).encode(), "")
    made = asked.requests(CompletionSettings())
    assert [request.rewrites for request in made] == ["a\r\nb", "a\r\nb"]
    said, nothing = Trace(n_old=9, n_old_copied=7), Trace()
    answer = asked.answer([Completion(finish="stop", trace=trace) for trace in (said, nothing)])
    details = {"accepted_prediction_tokens": 7, "rejected_prediction_tokens": 2}
    assert answer["usage"]["completion_tokens_details"] == details
    raw_prompt = request_of(prompt="x", raw=True, prediction={"content": "a"})
    assert raw_prompt.rewrites == "a"


def test_a_stream_tells_what_was_drafted_from_a_prediction() -> None:
    body = {"prompt": "x", "stream": True, "stream_options": {"include_usage": True}}
    for predicted in (None, {"content": "a"}):
        asked = OpenAICompletions(json.dumps({**body, "prediction": predicted}).encode(), "")
        usage = asked.end("", Completion(finish="stop"))[-2]
        assert isinstance(usage, dict)
        assert ("completion_tokens_details" in usage["usage"]) == bool(predicted)


@pytest.mark.parametrize(
    ("prediction", "words"),
    [
        ({"type": "diff", "content": "a"}, 'the type "content", not "diff"'),
        ({"content": [{"type": "image_url", "text": "a"}]}, 'type "text", not "image_url"'),
        ({"type": "content"}, "needs its content"),
        ({"content": [{"type": "text"}]}, "text"),
        ("a", "prediction"),
        ({"content": [{"text": "a" * limits.OLD_CHARS}, {"text": "b"}]}, str(limits.OLD_CHARS)),
    ],
)
def test_a_prediction_that_cannot_be_used_is_named(prediction: object, words: str) -> None:
    with pytest.raises(FieldError, match="prediction") as refused:
        OpenAICompletions(json.dumps({"prompt": "x", "prediction": prediction}).encode(), "")
    assert refused.value.field == "prediction"
    assert words in refused.value.message


def test_files_in_a_prompt_are_those_of_input_extra() -> None:
    files = "<|repo_name|>shop\n<|file_sep|>a.py\nimport os\r\n<|file_sep|>b.py\n"
    made = request_of(prompt=f"{files}<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>")
    extra = [{"filename": "a.py", "text": "import os\n"}]
    body = {"input_prefix": "x", "input_suffix": "y", "input_extra": extra}
    asked = requested(Infill(json.dumps(body).encode(), ""))
    assert (made.prefix, made.suffix, made.extra) == (asked.prefix, asked.suffix, asked.extra)
    assert made.extra[0].text == "import os"


def test_the_prompt_is_read_as_a_whole_unless_an_editor_waits() -> None:
    assert request_of(prompt="x").whole
    assert not request_of(prompt="x", verbatim=False).whole
    for limit, expected in ((None, True), (0, True), (500, False)):
        body = {"prompt": "x"} if limit is None else {"prompt": "x", "t_max_predict_ms": limit}
        made = requested(Infill(json.dumps(body).encode(), ""))
        assert made.whole == expected


@pytest.mark.parametrize("dialect", [Infill, OpenAICompletions])
def test_it_is_said_when_not_all_of_the_prompt_was_read(dialect: DialectReader) -> None:
    asked = dialect(b'{"prompt": "x"}', "")
    for n_left_out in (0, 7):
        said = requested(asked).insertion("y")
        completion = Completion(said, "stop", trace=Trace(n_left_out=n_left_out))
        answer = asked.answer([completion])
        assert isinstance(answer, dict)
        assert answer["truncated"] == bool(n_left_out)


DIALECTS: list[DialectReader] = [Infill, OpenAICompletions]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("field", "value", "harmless"),
    [
        ("response_format", {"type": "xml"}, {"type": "text"}),
        ("json_schema", {"pattern": "a"}, {}),
        ("logit_bias", {"15043": -100}, {}),
        ("logit_bias", [[15043, False]], []),
        ("n_probs", 3, 0),
        ("logprobs", 0, False),
    ],
)
def test_what_would_bind_the_output_is_refused(
    dialect: DialectReader, field: str, value: object, harmless: object
) -> None:
    with pytest.raises(FieldError, match=field) as refused:
        dialect(json.dumps({"prompt": "x", field: value}).encode(), "")
    assert refused.value.field == field
    for ignored in (harmless, None):
        dialect(json.dumps({"prompt": "x", field: ignored}).encode(), "")


def test_what_a_part_of_a_field_lacks_is_put_down_to_the_field() -> None:
    with pytest.raises(FieldError, match="text") as refused:
        Infill(b'{"input_extra": [{"filename": "a"}]}', "")
    assert refused.value.field == "input_extra"


@pytest.mark.parametrize("dialect", DIALECTS)
def test_null_is_the_default(dialect: DialectReader) -> None:
    fields = "input_prefix input_suffix input_extra n_indent t_max_predict_ms suffix stream stop"
    fields += " path language verbatim workspace max_tokens n_predict seed top_k grammar n"
    raw = json.dumps({"prompt": "x", "seed": 5}).encode()
    nulls = json.dumps({"prompt": "x", **dict.fromkeys(fields.split()), "seed": 5}).encode()
    assert requested(dialect(nulls, "")) == requested(dialect(raw, ""))
    assert dialect(nulls, "").document.workspace is None
    with pytest.raises(FieldError, match="prompt"):
        request_of(prompt=None)
    extra = b'{"input_extra": [{"text": "x", "filename": null}]}'
    assert requested(Infill(extra, "")).extra[0].path == ""


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", ["max_tokens", "n_predict"])
def test_how_many_tokens_has_two_names(dialect: DialectReader, name: str) -> None:
    for n, expected in ((7, 7), (-1, 1 << 20), (None, CompletionSettings().max_tokens)):
        asked = dialect(json.dumps({"prompt": "x", name: n}).encode(), "")
        assert requested(asked).max_tokens == expected
        assert not asked.only_reads
    assert dialect(json.dumps({"prompt": "x", name: 0}).encode(), "").only_reads


def test_a_mark_of_the_byte_order_means_nothing() -> None:
    """Editors and shells of Windows write it before a file."""
    raw = '\ufeff{"prompt": "x"}'.encode()
    assert requested(OpenAICompletions(raw, "")).prefix == "x"


def test_line_ends_of_stop_texts_are_those_of_the_text() -> None:
    assert request_of(prompt="a\r\nb", stop=["\r\n", "", "c\r\n\r\n"]).stop == ("\n", "c\n\n")
    assert request_of(prompt="a", stop="\r\n").stop == ("\n",)
    assert request_of(prompt="a", stop="").stop == ()


@pytest.mark.parametrize(
    ("escaped", "text"),
    [
        (r"\udc4d!", "\ufffd!"),
        (r"\uD83D", "\ufffd"),
        (r"\ud83d\ud83d\udc4d", "\ufffd\U0001f44d"),
        (r"\udc4d\ud83d", "\ufffd\ufffd"),
        (r"\ud83d\udc4d", "\U0001f44d"),
        (r"\\udc4d", r"\udc4d"),
        (r"\\\udc4d", "\\\ufffd"),
        (r"\ud83d\n", "\ufffd\n"),
    ],
)
def test_half_a_character_is_a_replacement_character(escaped: str, text: str) -> None:
    for dialect in DIALECTS:
        asked = dialect(f'{{"prompt": "{escaped}"}}'.encode(), "")
        assert requested(asked).prefix == text


@pytest.mark.parametrize(
    ("field", "asks", "harmless"),
    [
        ("min_tokens", 3, [0, 0.0]),
        ("ignore_eos", True, [False]),
        ("best_of", 2, [1]),
        ("n", 0, [1, 1.0]),
        ("stop_token_ids", [2], [[]]),
        ("top_logprobs", 2, [0]),
        ("skip_special_tokens", False, [True]),
        ("guided_regex", "a+", [""]),
        ("regex", "a+", [""]),
        ("ebnf", "root ::= x", [""]),
        ("stop_regex", "a+", [""]),
        ("no_stop_trim", True, [False]),
        ("mirostat", 2, [0]),
        ("typical_p", 0.5, [1, 1.0]),
        ("dry_multiplier", 0.8, [0]),
        ("xtc_probability", 0.5, [0]),
        ("top_n_sigma", 1.0, [-1, -1.0]),
        ("tool_choice", "required", ["auto", "none"]),
        ("modalities", ["text", "audio"], [["text"]]),
        ("chat_template", "{{ x }}", [""]),
        ("lora", [{"id": 0, "scale": 1}], [[]]),
        ("truncate_prompt_tokens", 5, [-1]),
    ],
)
def test_what_changes_the_text_is_refused_by_name(
    field: str, asks: object, harmless: list[object]
) -> None:
    def say(value: object) -> CompletionRequest:
        return request_of(prompt="x", seed=1, **{field: value})

    with pytest.raises(FieldError, match=f"{field} is not supported") as refused:
        say(asks)
    assert refused.value.field == field
    plain = request_of(prompt="x", seed=1)
    assert all(say(value) == plain for value in (*harmless, None))


def test_what_changes_no_text_is_passed_over() -> None:
    body = {
        "user": "ada",
        "metadata": {"a": "b"},
        "store": True,
        "service_tier": "auto",
        "prompt_cache_key": "k",
        "safety_identifier": "s",
        "stream_options": {"include_usage": True, "include_obfuscation": False},
        "cache_prompt": True,
        "id_slot": 0,
        "samplers": ["top_k"],
        "t_max_prompt_ms": 500,
        "timings_per_token": True,
        "request_id": "r",
        "priority": 3,
        "parallel_tool_calls": False,
    }
    assert request_of(prompt="x", seed=1, **body) == request_of(prompt="x", seed=1)


def test_penalties_of_repeats_have_two_names_and_are_for_all_that_was_written() -> None:
    for name in ("repeat_penalty", "repetition_penalty"):
        assert request_of(prompt="x", **{name: 1.5}).sampling.repetition_penalty == 1.5
        for last in (-1, 64):
            request_of(prompt="x", repeat_last_n=last, **{name: 1.5})
        with pytest.raises(FieldError, match="repeat_last_n"):
            request_of(prompt="x", repeat_last_n=8, **{name: 1.5})
    request_of(prompt="x", repeat_last_n=8)
