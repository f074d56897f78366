"""Answers of the HTTP front: real sockets, a real daemon and model."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from codespec.config import load_settings
from codespec.daemon import control
from codespec.daemon.client import DaemonEngine
from codespec.requests import Completion, CompletionRequest
from codespec.suggest.until import Until
from tests.e2e.conftest import Home, cheapen_passes, daemon_of, report_of, until
from tests.engines import strict_engine
from tests.http_client import Front, events, front_of, refusal

PREFIX = "import os\n\n\ndef read_file(path):\n    with open("
SUFFIX = "\n\n\ndef main():\n    pass\n"
# Any model goes on with this, for longer than it is asked to.
PATTERN = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(8)) + "def f8(x):\n"
REQUEST = CompletionRequest(PREFIX, SUFFIX, max_tokens=24, verbatim=True, drafters=())


@pytest.fixture
def front(home: Home) -> Iterator[Front]:
    with front_of(home.path) as found:
        yield found


@pytest.fixture(scope="module")
def plain() -> Iterator[Callable[[CompletionRequest], Completion]]:
    """The model's own completion, without drafts."""
    engine = strict_engine(load_settings())
    yield engine.complete
    engine.close()


@pytest.mark.parametrize("request_", [REQUEST, replace(REQUEST, prefix=PATTERN, suffix="")])
def test_openai_completions_say_what_plain_decoding_says(front, plain, home, request_) -> None:
    body = {"prompt": request_.prefix, "suffix": request_.suffix, "max_tokens": 24, "model": "any"}
    expected = plain(request_)
    n_tokens = expected.trace.n_tokens
    status, answer = front.ask("/v1/completions", body)
    assert status == 200
    assert answer["object"] == "text_completion"
    assert answer["model"] == report_of(home.settings).model
    [choice] = answer["choices"]
    assert choice["text"] == expected.text != ""
    assert choice["finish_reason"] == expected.finish
    assert answer["usage"]["completion_tokens"] == n_tokens
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + n_tokens
    timings = answer["timings"]
    assert timings["predicted_n"] == n_tokens
    assert timings["draft_n"] >= timings["draft_n_accepted"] >= n_tokens - timings["passes_n"]

    streamed = front.stream("/v1/completions", {**body, "stream_options": {"include_usage": True}})
    assert streamed.pop() == "[DONE]"
    assert streamed.pop()["usage"]["completion_tokens"] == n_tokens
    assert "".join(event["choices"][0]["text"] for event in streamed) == expected.text
    assert streamed[-1]["choices"][0]["finish_reason"] == expected.finish
    assert len({event["id"] for event in streamed}) == 1


def test_no_more_tokens_are_counted_than_were_asked_for(front) -> None:
    """If the prompt ends in a word, the first tokens only repeat it."""
    body = {"prompt": PATTERN + "    return", "max_tokens": 24}
    _, answer = front.ask("/v1/completions", body)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["completion_tokens"] == 24 < answer["timings"]["predicted_n"]


def test_of_no_probability_at_all_the_likeliest_is_left(front) -> None:
    likeliest = front.text(prompt=PATTERN, max_tokens=16)
    assert front.text(prompt=PATTERN, max_tokens=16, temperature=1.5, top_p=0, seed=3) == likeliest


def test_the_servers_workspace_drafts(home, monkeypatch, tmp_path) -> None:
    """It is the workspace of requests that name none; a request may do without one."""
    monkeypatch.setenv("CODESPEC_CACHE_DIR", str(tmp_path / "cache"))
    library = Path(json.__file__).parent
    (home.workspace / "encoder.py").write_text((library / "encoder.py").read_text())
    subprocess.run([sys.executable, "-m", "codespec", "index", str(home.workspace)], check=True)
    cheapen_passes(home.settings, tmp_path / "cache")
    body = {
        "prompt": '"""Implementation of JSONEncoder\n"""\nimport re\n\ntry:\n',
        "max_tokens": 24,
    }
    with front_of(home.path, "--workspace", str(home.workspace)) as front:
        _, without = front.ask("/v1/completions", {**body, "workspace": ""})
        _, within = front.ask("/v1/completions", body)
    assert "repository" not in without["timings"]["drafts"]
    assert within["timings"]["drafts"]["repository"]["draft_n"] > 0
    assert within["choices"][0]["text"] == without["choices"][0]["text"]


def test_what_repeats_itself_takes_fewer_passes(front) -> None:
    _, answer = front.ask("/v1/completions", {"prompt": PATTERN, "max_tokens": 64})
    assert answer["timings"]["draft_n_accepted"] > 0
    assert answer["timings"]["passes_n"] < answer["timings"]["predicted_n"] == 64


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_a_predicted_output_is_drafted_from_and_changes_nothing(front, temperature) -> None:
    body = {"prompt": PREFIX, "max_tokens": 64, "temperature": temperature, "seed": 3}
    _, plain = front.ask("/v1/completions", body)
    text = plain["choices"][0]["text"]
    assert "completion_tokens_details" not in plain["usage"]
    halves = [{"type": "text", "text": part} for part in (text[:20], text[20:])]
    changed = text.replace("(", "[").replace("e", "ee", 1)
    for content in (text, halves, changed, "nothing of this is ever said\n" * 9, ""):
        prediction = {"type": "content", "content": content}
        status, answer = front.ask("/v1/completions", {**body, "prediction": prediction})
        assert status == 200
        assert answer["choices"][0]["text"] == text
        details = answer["usage"]["completion_tokens_details"]
        n_accepted = details["accepted_prediction_tokens"]
        assert (sum(details.values()) == 0) == (content == "")
        assert (n_accepted > 16) == (content in (text, halves, changed))
        if content in (text, halves):
            assert n_accepted == answer["usage"]["completion_tokens"] == sum(details.values())
            assert answer["timings"]["passes_n"] < plain["timings"]["passes_n"]


def test_a_chat_with_a_model_that_was_trained_on_none_is_refused(front) -> None:
    body = {"messages": [{"role": "user", "content": "Hello"}]}
    refusal(front.ask("/v1/chat/completions", body), 400, "no chat template", "/v1/completions")


def test_it_says_what_the_command_line_says(front, home) -> None:
    file = home.workspace / "a.py"
    file.write_text(PREFIX + SUFFIX)
    place = f"{file}:5:15"
    command = [sys.executable, "-m", "codespec", "complete", place, "--verbatim", "--no-draft"]
    done = subprocess.run(
        [*command, "--json", "--max-tokens", "24"], capture_output=True, check=True
    )
    expected = json.loads(done.stdout)["text"]
    assert front.text(prompt=PREFIX, suffix=SUFFIX, max_tokens=24) == expected


@pytest.mark.parametrize(
    "template",
    [
        "<fim_prefix>{prefix}<fim_suffix>{suffix}<fim_middle>",
        "<PRE> {prefix} <SUF>{suffix} <MID>",
        "[SUFFIX]{suffix}[PREFIX]{prefix}",
        "<|repo_name|>x\n<|file_sep|>a.py\nimport os\n<|file_sep|>b.py\n"
        "<|fim_prefix|>{prefix}<|fim_suffix|>{suffix}<|fim_middle|>",
    ],
)
def test_a_prompt_in_some_models_template_is_understood(front, plain, template) -> None:
    prompt = template.format(prefix=PREFIX, suffix=SUFFIX)
    stop = ["<fim_prefix>", "<|file_separator|>", "<PRE>", "[PREFIX]"]
    assert front.text(prompt=prompt, max_tokens=24, stop=stop) == plain(REQUEST).text


def test_infill_as_llama_vim_asks(front, plain) -> None:
    begin, line = PREFIX.rsplit("\n", 1)
    fields = ["content", "timings/prompt_n", "timings/predicted_n", "truncated", "missing/field"]
    body = {
        "id_slot": 0,
        "input_prefix": begin + "\n",
        "input_suffix": SUFFIX,
        "prompt": line,
        "input_extra": [{"text": "x = 1\n", "time": 3, "filename": "b.py"}],
        "n_predict": 24,
        "stop": [],
        "n_indent": 0,
        "top_k": 40,
        "top_p": 0.9,
        "cache_prompt": True,
        "samplers": ["top_k", "top_p", "infill"],
        "stream": False,
        "t_max_prompt_ms": 500,
        "t_max_predict_ms": 60_000,
        "response_fields": fields,
    }
    warm_up = {**body, "n_predict": 0, "response_fields": [""]}
    assert front.ask("/infill", warm_up) == (200, {})
    status, answer = front.ask("/infill", body)
    assert status == 200
    assert answer.pop("timings/prompt_n") >= 0
    expected = plain(REQUEST)
    n_tokens = expected.trace.n_tokens
    assert answer == {
        "content": expected.text,
        "timings/predicted_n": n_tokens,
        "truncated": False,
    }

    del body["response_fields"]
    status, whole = front.ask("/infill", body)
    assert (whole["content"], whole["stop"]) == (expected.text, True)
    assert whole["stop_type"] == ("limit" if expected.finish == "length" else "eos")
    streamed = front.stream("/infill", body)
    assert "".join(event["content"] for event in streamed) == expected.text
    assert [event["stop"] for event in streamed] == [False] * (len(streamed) - 1) + [True]


def test_stop_texts_indentation_and_the_end_of_the_context(front, plain) -> None:
    text = plain(replace(REQUEST, prefix=PATTERN, suffix="", max_tokens=64)).text
    stop = text[30:33]
    body = {"prompt": PATTERN, "max_tokens": 64, "stop": stop}
    expected = text[: text.index(stop)]
    status, answer = front.ask("/v1/completions", body)
    assert answer["choices"][0]["text"] == expected
    assert answer["choices"][0]["finish_reason"] == "stop"
    *streamed, _ = front.stream("/v1/completions", body)
    assert "".join(event["choices"][0]["text"] for event in streamed) == expected

    infill = {"input_prefix": PATTERN, "n_predict": 64}
    assert front.ask("/infill", {**infill, "stop": [stop]})[1]["stop_type"] == "word"
    indented = Until(min_indent=4).cut(text)
    _, answer = front.ask("/infill", {**infill, "n_indent": 4})
    assert (answer["content"], answer["stop_type"]) == (indented, "limit")
    assert indented != text
    # Already too late when the first line ends.
    _, answer = front.ask("/infill", {**infill, "t_max_predict_ms": 1e-6})
    assert answer["stop_type"] == "limit"
    assert answer["tokens_predicted"] < 64
    short = answer["content"]
    assert text.startswith(short)
    assert "\n" in short
    assert "\n" not in short.rstrip()

    status, answer = front.ask("/infill", {**infill, "n_predict": -1})
    assert status == 200
    n_ctx = load_settings().model.window(0)
    n_all = answer["tokens_evaluated"] + answer["tokens_predicted"]
    assert answer["stop_type"] == "eos" or n_all == n_ctx
    assert answer["content"].startswith(text)


def test_an_editor_does_not_wait_for_a_long_answer_which_stays_the_same(front, home) -> None:
    body = {"input_prefix": PATTERN, "n_predict": 400}
    expected = front.ask("/infill", body)[1]["content"]
    ended = threading.Event()
    n_between = n_paused = 0

    def ask_long() -> None:
        nonlocal n_paused
        try:
            while n_paused < 3:
                streamed = front.stream("/infill", body)
                assert "".join(event["content"] for event in streamed) == expected
                n_paused += streamed[-1]["timings"]["paused_ms"] > 0
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as pool, DaemonEngine(home.settings) as editor:
        asking = pool.submit(ask_long)
        while not ended.is_set():
            answer = editor.complete(replace(REQUEST, max_tokens=4, deadline_ms=9000))
            assert answer.text
            n_between += 1
        asking.result()
        assert n_between >= n_paused
        assert editor.status().n_respawns == 0


def test_a_prompt_is_read_ahead_beside_a_long_answer_which_stays_the_same(front) -> None:
    long = {"input_prefix": PATTERN, "n_predict": 1200}
    expected = front.ask("/infill", long)[1]["content"]
    ended = threading.Event()

    def ask_long() -> str:
        try:
            return front.ask("/infill", long)[1]["content"]
        finally:
            ended.set()

    with ThreadPoolExecutor(1) as pool:
        for n in range(1, 20):
            asking = pool.submit(ask_long)
            # Another file each time, and no promise says when it is read, so wait ever longer.
            lines = "".join(f"def g{n}_{i}(x):\n    return x - {i}\n\n\n" for i in range(40))
            body = {"input_prefix": lines, "n_predict": 0}
            assert front.ask("/infill", body)[0] == 200
            ended.wait(0.1 * n)
            is_beside = not ended.is_set()
            timings = front.ask("/infill", {**body, "n_predict": 1})[1]["timings"]
            assert asking.result() == expected
            ended.clear()
            if is_beside and timings["cache_n"] > 0.9 * (timings["cache_n"] + timings["prompt_n"]):
                break
        else:
            pytest.fail("no prompt was read before the long answer's end")


def test_sampling_is_as_asked(front) -> None:
    body = {"prompt": PREFIX, "max_tokens": 24, "temperature": 1.5}
    assert front.text(**body, seed=5) == front.text(**body, seed=5)
    assert len({front.text(**body) for _ in range(4)}) > 1
    assert front.text(**body, top_k=1) == front.text(prompt=PREFIX, max_tokens=24)
    assert front.text(prompt="is it?", grammar='root ::= "yes" | "no"') in ("yes", "no")
    refusal(front.ask("/infill", {"prompt": "is it?", "grammar": "yes"}), 400, "GBNF grammar")


def test_a_grammar_is_not_too_much_for_its_reader(front, home) -> None:
    def nested(depth: int, after: str = "") -> dict[str, object]:
        opened = "(" * depth
        return {"prompt": "is it?", "grammar": f'root ::= {opened}"yes"{f"){after}" * depth}'}

    assert front.text(**nested(100)) == front.text(**nested(100, "{1}")) == "yes"
    for body in (nested(20_000), nested(16_000, "?")):
        refusal(front.ask("/v1/completions", body), 400, "GBNF grammar", "deep")
    steps = "".join(f"a{i} ::= a{i + 1} | a{i + 1}\n" for i in range(60))
    body = {"prompt": "is it?", "grammar": f'root ::= a0\n{steps}a60 ::= "yes"'}
    refusal(front.ask("/v1/completions", body), 400, "GBNF grammar", "ways")
    assert report_of(home.settings).n_respawns == 0


def test_an_editors_suggestion_on_request(front, plain) -> None:
    body = {"prompt": PATTERN, "max_tokens": 64, "language": "python"}
    request = replace(REQUEST, prefix=PATTERN, suffix="", max_tokens=64, language_id="python")
    expected = plain(replace(request, verbatim=False)).text
    assert front.text(**body, verbatim=False) == expected
    *streamed, _ = front.stream("/v1/completions", {**body, "verbatim": False})
    assert [event["choices"][0]["text"] for event in streamed] == [expected]
    assert len(expected) < len(front.text(**body))


def test_text_of_the_client_is_shown_where_buffers_are(home, monkeypatch) -> None:
    extra = [{"filename": "b.py", "text": "def open_all(paths):\n    return map(open, paths)\n"}]
    body = {"input_prefix": PREFIX, "n_predict": 4}
    for switch, is_longer in (("off", False), ("on", True)):
        monkeypatch.setenv("CODESPEC_CONTEXT_BUFFERS", switch)
        control.stop(home.settings)
        with front_of(home.path) as front:
            _, without = front.ask("/infill", body)
            _, with_extra = front.ask("/infill", {**body, "input_extra": extra})
        assert (with_extra["tokens_evaluated"] > without["tokens_evaluated"]) == is_longer


def test_a_prompt_is_read_as_a_whole_and_it_is_said_where_it_is_not(front) -> None:
    n_ctx = load_settings().model.window(0)
    lines = [f"x{i} = {i}\n" for i in range(n_ctx)]
    for n_lines, is_whole in ((n_ctx // 12, True), (n_ctx, False)):
        body = {"input_prefix": "".join(lines[:n_lines]), "n_predict": 8}
        patient, hurried = (
            front.ask("/infill", {**body, "t_max_predict_ms": limit})[1] for limit in (0, 60_000)
        )
        assert patient["truncated"] == (not is_whole)
        assert hurried["truncated"]
        assert hurried["tokens_evaluated"] < n_ctx * 3 // 4
        assert is_whole or n_ctx * 3 // 4 < patient["tokens_evaluated"] < n_ctx


def test_models_and_health(front, home) -> None:
    until(lambda: front.ask("/health")[0] == 200)
    assert front.ask("/v1/health")[1]["status"] == "ok"
    status, models = front.ask("/v1/models")
    assert (status, models["object"]) == (200, "list")
    [model] = models["data"]
    assert model["id"] == report_of(home.settings).model
    assert front.ask(f"/v1/models/{quote(model['id'], safe='')}") == (200, model)
    refusal(front.ask("/v1/models/another"), 404, "no such model", "/v1/models")


def test_clients_at_once_each_get_their_own_answer(front, plain) -> None:
    prefixes = [f"def get_{name}(self):\n    return self." for name in ("a", "size", "x_y", "id")]
    expected = [plain(replace(REQUEST, prefix=prefix, suffix="")).text for prefix in prefixes]
    assert len(set(expected)) > 1
    with ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda p: front.text(prompt=p, max_tokens=24), prefixes * 3)
        assert list(found) == expected * 3


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_clients_are_told_that_the_server_ends(home, monkeypatch, number) -> None:
    monkeypatch.setattr(subprocess.Popen, "terminate", lambda front: front.send_signal(number))
    with daemon_of(home, "ok"):
        with front_of(home.path) as front:
            stream = front.begin("/infill", {"prompt": "tell", "stream": True})
            response = stream.getresponse()
            first = response.readline()
            whole = front.begin("/infill", {"prompt": "until cancelled"})
        with closing(stream), closing(whole):
            error = events(first + response.read())[-1]["error"]
            assert (error["code"], error["message"]) == (503, "the server is stopping")
            answer = whole.getresponse()
            assert (answer.status, json.loads(answer.read())) == (503, {"error": error})
    assert "Traceback" not in front.log.read_text()
