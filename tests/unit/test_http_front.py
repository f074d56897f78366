"""Limits of the HTTP front, asked as an ASGI server asks it; no daemon is needed to refuse."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from uvicorn.server import ServerState

from codespec import limits
from codespec.config import CompletionSettings, Settings
from codespec.daemon.async_client import AsyncClient
from codespec.errors import ConfigError
from codespec.http import front
from codespec.http import server as http_server
from codespec.http.access import Access, is_loopback, listen, read_keys
from codespec.http.bodies import FieldError
from codespec.http.dialects.base import Dialect, DialectReader
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.dialects.infill import Infill
from codespec.http.front import HttpFront
from codespec.requests import (
    MAX_PREFIX_CHARS,
    MAX_SUFFIX_CHARS,
    Completion,
    CompletionRequest,
)
from codespec.types import Trace

Message = dict[str, Any]


def ask(receive: Callable[[], Awaitable[Message]], *headers: tuple[bytes, bytes]) -> list[Message]:
    """All that is sent in answer to a POST."""
    sent: list[Message] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "POST",
        "path": "/infill",
        "headers": [(b"host", b"localhost"), *headers],
    }
    asyncio.run(HttpFront(Settings(), Access())(scope, receive, send))
    return sent


async def never() -> Message:
    await asyncio.Event().wait()
    raise AssertionError


async def endless() -> Message:
    return {"type": "http.request", "body": b" " * 100_000, "more_body": True}


async def leaves() -> Message:
    return {"type": "http.disconnect"}


def refusal(sent: list[Message]) -> tuple[int, str]:
    start, body = sent
    return start["status"], json.loads(body["body"])["error"]["message"]


@pytest.mark.parametrize(
    ("body", "any_seed"), [({}, True), ({"seed": -1}, True), ({"seed": 0}, False)]
)
def test_only_a_seed_that_was_asked_for_binds(body: dict[str, int], any_seed: bool) -> None:
    raw = json.dumps({"prompt": "x", "temperature": 0.5, **body}).encode()
    for dialect in (Infill(raw, ""), OpenAICompletions(raw, "")):
        sampling = requested(dialect).sampling
        assert sampling.any_seed == any_seed
        assert any_seed or sampling.seed == 0


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
        assert asked.answer([completion])["truncated"] == bool(n_left_out)


DIALECTS: list[DialectReader] = [Infill, OpenAICompletions]


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("field", "value", "harmless"),
    [
        ("response_format", {"type": "json_object"}, {"type": "text"}),
        ("json_schema", {"type": "object"}, {}),
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


def test_a_key_that_no_header_holds_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    keys = ["a" * 32, "b" * 32]
    file.write_text(f"# für Ada\n{keys[0]}\n\n{keys[1]}\n", "utf-8")
    assert read_keys(file) == tuple(keys)
    file.write_text(f"{keys[0]}\n\n{'ü' * 32}\n", "utf-8")
    with pytest.raises(ConfigError, match=r"line 3: .*ASCII"):
        read_keys(file)


def test_a_body_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "_BODY_S", 0.01)
    assert refusal(ask(never)) == (408, "the body did not come in time")


HEAD = b"GET /health HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize("said", [b"", HEAD, HEAD + b"\r\n", HEAD + b"\r\n" + HEAD])
def test_a_head_that_does_not_come(monkeypatch: pytest.MonkeyPatch, said: bytes) -> None:
    """The first one of a connection, or the next one: it is closed."""
    monkeypatch.setattr(http_server, "_HEAD_S", 0.2)
    monkeypatch.setattr(http_server, "_KEEP_ALIVE_S", 0.0)

    async def heard() -> bytes:
        config = uvicorn.Config(HttpFront(Settings(), Access(("k" * 32,))), log_config=None)
        state = ServerState()
        server = await asyncio.get_running_loop().create_server(
            lambda: http_server.HttpProtocol(config, state, {}), "127.0.0.1", 0
        )
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(said.replace(b"health", b"infill"))
        found = await asyncio.wait_for(reader.read(), 30.0)
        writer.close()
        server.close()
        return found

    assert asyncio.run(heard()).count(b"HTTP/1.1 401") == said.count(b"\r\n\r\n")


def test_a_body_without_end_or_too_large_is_not_taken_in() -> None:
    assert refusal(ask(endless))[0] == 413
    assert refusal(ask(never, (b"content-length", b"4194305")))[0] == 413


def test_a_client_that_leaves_early_is_not_answered() -> None:
    assert ask(leaves) == []


def test_a_client_that_does_not_read_does_not_hold_up_the_servers_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(front, "_FAREWELL_S", 0.01)
    n_sent = 0

    async def stuck(_: object) -> None:
        nonlocal n_sent
        n_sent += 1
        await never()

    async def end() -> None:
        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": "/infill", "headers": headers}
        answering = asyncio.create_task(HttpFront(Settings(), Access())(scope, never, stuck))
        await asyncio.sleep(0)
        answering.cancel()
        await asyncio.wait_for(answering, 30.0)

    asyncio.run(end())
    assert n_sent == 1


def test_a_fault_in_the_servers_settings_is_not_the_requests(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said = iter([{"type": "http.request", "body": b"{}"}])

    async def once() -> Message:
        return next(said, None) or await never()

    async def fail(*_: object) -> None:
        raise ConfigError("the folder is not writable")

    monkeypatch.setattr(AsyncClient, "ask", fail)
    assert refusal(ask(once)) == (503, "the folder is not writable")


def test_more_requests_than_can_be_answered_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MAX_WAITING", 0)
    sent = ask(never)
    assert refusal(sent) == (503, "too many requests are waiting")
    assert (b"retry-after", b"1") in sent[0]["headers"]


def test_who_has_one_of_several_keys_shuts_out_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(front, "MAX_WAITING_OF_ONE", 1)

    async def answers(*keys: str) -> list[list[Message]]:
        """Immediate answers to clients that ask with these keys, one after the other."""
        app = HttpFront(Settings(), Access(("a" * 32, "b" * 32)))
        sent: list[list[Message]] = []
        tasks = list[asyncio.Task[None]]()
        for key in keys:
            said: list[Message] = []

            async def send(message: Any, said: list[Message] = said) -> None:
                said.append(message)

            headers = [(b"authorization", b"Bearer " + key.encode() * 32)]
            scope = {"type": "http", "method": "POST", "path": "/infill", "headers": headers}
            tasks.append(asyncio.create_task(app(scope, never, send)))
            await asyncio.sleep(0)
            sent.append(list(said))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks)
        return sent

    first, again, other = asyncio.run(answers("a", "a", "b"))
    assert (first, other) == ([], []), "they wait"
    assert refusal(again) == (429, "too many requests of this key are waiting")


def test_a_workspace_that_no_request_could_name_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"not UTF-8.*udcff"):
        Access(workspaces=("/home/\udcff\U0001f600",))


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "127.0.0.1", "127.8.8.8", "::1"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["", "0.0.0.0", "::", "192.168.0.1", "localhost.example", "1"])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


def test_an_address_that_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """The hint names the wrong part of the address: a taken port, else the host."""
    with listen("127.0.0.1", 0, Access()) as taken:
        with pytest.raises(ConfigError) as caught:
            listen("127.0.0.1", taken.getsockname()[1], Access())
        assert "--port" in caught.value.hint

    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    with pytest.raises(ConfigError, match="not known") as caught:
        listen("nowhere.example", 0, Access())
    assert "--host" in caught.value.hint


def test_answers_are_sent_at_once() -> None:
    """Not held back until their beginning is acknowledged."""

    async def nodelay() -> int:
        accepted = asyncio.get_running_loop().create_future()

        def accept(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            accepted.set_result(writer)

        with listen("127.0.0.1", 0, Access()) as listener:
            server = await asyncio.start_server(accept, sock=listener)
            _, client = await asyncio.open_connection(*listener.getsockname())
            writer = await accepted
            found = writer.get_extra_info("socket").getsockopt(
                socket.IPPROTO_TCP, socket.TCP_NODELAY
            )
            for end in (client, writer):
                end.close()
                await end.wait_closed()
            server.close()
            await server.wait_closed()
        return found

    assert asyncio.run(nodelay()) != 0
