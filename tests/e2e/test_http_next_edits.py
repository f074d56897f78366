"""Prompts of next-edit models over HTTP: each reaches a model that speaks its form, with the tokens
that llama.cpp reads in it, or is refused."""

from __future__ import annotations

import asyncio
import ctypes
import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import llama_cpp
import pytest

from codespec.backends.llama import load_model
from codespec.config import load_settings
from codespec.daemon.async_client import AsyncClient, OnLeft
from codespec.edits.formats.registry import form_of, forms
from codespec.engine.local import LocalEngine
from codespec.http.access import Access
from codespec.http.front import HttpFront
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.requests import Completion, CompletionRequest, OnProgress
from tests.e2e.conftest import Home
from tests.engines import strict_engine
from tests.families import model_file
from tests.golden.edited_documents import MODE
from tests.http_client import front_of, refusal

SEED = ("<[fim-suffix]>", "<[fim-prefix]>", "<[fim-middle]>", "<filename>")
QWEN = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>", "<|repo_name|>", "<|file_sep|>")
FILE = "main.py"
CURRENT = "def add(a, b):\n    return a"
DIFF = "--- a/main.py\n+++ b/main.py\n-    return\n+    return a\n"
PROMPTS = {
    "sweep": (
        "<|file_sep|>util.py\nX = 1\n<|file_sep|>main.py.diff\noriginal:\n    return\nupdated:\n"
        f"    return a\n<|file_sep|>original/{FILE}\n{CURRENT}\n<|file_sep|>current/{FILE}\n"
        f"{CURRENT}\n<|file_sep|>updated/{FILE}\n"
    ),
    "zeta2": (
        f"<[fim-suffix]>print(1)\n<[fim-prefix]><filename>edit_history\n{DIFF}\n<filename>{FILE}\n"
        f"<<<<<<< CURRENT\n{CURRENT}<|user_cursor|>\n=======\n<[fim-middle]>"
    ),
    "zeta2.1": (
        f"<[fim-suffix]>print(1)\n<[fim-prefix]><filename>edit_history\n{DIFF}\n<filename>{FILE}\n"
        f"<|marker_1|>{CURRENT}<|user_cursor|>\n<|marker_2|>\n<[fim-middle]>"
    ),
    "zeta-merge-markers": (
        f"<|file_sep|>edit history\n{DIFF}<|file_sep|>{FILE}\n<|fim_prefix|>import os\n\n"
        f"<|fim_suffix|>print(1)\n<|fim_middle|><<<<<<< CURRENT\n{CURRENT}<|user_cursor|>\n"
        "=======\n"
    ),
    "zeta-ordered": (
        f"<|file_sep|>{FILE}\n<|fim_prefix|>\nimport os\n\n<|fim_middle|>current\n{CURRENT}"
        "<|user_cursor|>\n<|fim_suffix|>\nprint(1)\n<|fim_middle|>updated\n"
    ),
    "zeta1": (
        "### Instruction:\nYou are ...\n\n### User Edits:\n\n\n### User Excerpt:\n\n```main.py\n"
        f"<|start_of_file|>\n<|editable_region_start|>\n{CURRENT}<|user_cursor_is_here|>\n"
        "<|editable_region_end|>\n```\n\n### Response:\n"
    ),
    "mercury": (
        "<|recently_viewed_code_snippets|>\n<|/recently_viewed_code_snippets|>\n"
        f"<|current_file_content|>\n<|code_to_edit|>\n{CURRENT}<|user_cursor|>\n<|/code_to_edit|>\n"
    ),
}
"""A prompt of each form, as its clients write it."""


class Front:
    """The HTTP front over an engine in this process."""

    def __init__(self, engine: LocalEngine) -> None:
        self.engine = engine
        self.requests: list[CompletionRequest] = []

    def post(self, path: str = "/v1/completions", **body: object) -> tuple[int, dict[str, Any]]:
        sent: list[Any] = []
        parts = [json.dumps({"max_tokens": 8, **body}).encode()]

        async def receive() -> Any:
            if not parts:
                await asyncio.Event().wait()
            return {"type": "http.request", "body": parts.pop()}

        async def send(message: Any) -> None:
            sent.append(message)

        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "POST", "path": path, "headers": headers}
        asyncio.run(HttpFront(self.engine.settings, Access())(scope, receive, send))
        return sent[0]["status"], json.loads(sent[1]["body"])

    def prompt(self, engine: LocalEngine) -> list[int]:
        """Tokens that `engine` reads for the last request."""
        return engine.context(self.requests[-1]).prompt.tolist()


@pytest.fixture
def fronts(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Front]]:
    made: list[Front] = []

    def front(target: Path, edits: Path | None = None) -> Front:
        settings = {"model": {"target": str(target), "n_ctx": 4096}}
        settings["edits"] = {"model": str(edits or "")}
        made.append(Front(strict_engine(load_settings(settings, env={}))))
        return made[-1]

    async def ask(
        _client: AsyncClient,
        request: CompletionRequest,
        on_progress: OnProgress | None = None,
        on_left: OnLeft | None = None,
    ) -> Completion:
        del on_progress, on_left
        made[-1].requests.append(request)
        return made[-1].engine.complete(request)

    def connect(_client: AsyncClient) -> None:
        pass

    monkeypatch.setattr(AsyncClient, "connect", connect)
    monkeypatch.setattr(AsyncClient, "ask", ask)
    yield front
    for each in made:
        each.engine.close()


def a_model(folder: Path, name: str, markers: tuple[str, ...]) -> Path:
    folder = folder / name
    folder.mkdir()
    return model_file(folder, name, markers)


def tokens_of(path: Path, text: str) -> list[int]:
    """Tokens of a text as llama.cpp reads it where special tokens are read as such."""
    model = load_model(path, vocab_only=True)
    raw = text.encode()
    room = (ctypes.c_int32 * (len(raw) + 8))()
    n = llama_cpp.llama_tokenize(model.vocab, raw, len(raw), room, len(room), False, True)
    model.close()
    return list(room[:n])


def test_every_form_has_a_prompt() -> None:
    assert {name: getattr(form_of(text), "name", "") for name, text in PROMPTS.items()} == {
        form.name: form.name for form in forms()
    }


@pytest.mark.parametrize(
    ("form", "model", "markers"),
    [
        ("sweep", "Sweep Next Edit 0.5B", QWEN),
        ("zeta2", "Zeta 2", SEED),
        ("zeta2.1", "Zeta 2.1", SEED),
        ("zeta1", "Zeta", QWEN),
        ("zeta-merge-markers", "Zeta V0120", QWEN),
    ],
)
@pytest.mark.parametrize("is_beside", [True, False])
def test_a_prompt_is_answered_by_the_model_that_speaks_it(
    form: str, model: str, markers: tuple[str, ...], is_beside: bool, fronts: Any, tmp_path: Path
) -> None:
    speaking = a_model(tmp_path, model, markers)
    front = fronts(bundled(BUNDLED_TARGET), speaking) if is_beside else fronts(speaking)
    status, answer = front.post(prompt=PROMPTS[form])
    assert (status, answer["model"]) == (200, model)
    [request] = front.requests
    assert (request.form, request.prefix, request.suffix) == (form, PROMPTS[form], "")
    alone = fronts(speaking)
    alone.requests = [request]
    assert alone.prompt(alone.engine) == tokens_of(speaking, PROMPTS[form])
    assert answer["usage"]["prompt_tokens"] == len(alone.prompt(alone.engine))


@pytest.mark.parametrize("form", PROMPTS)
@pytest.mark.parametrize("has_other", [False, True])
def test_without_such_a_model_it_is_said_what_is_missing(
    form: str, has_other: bool, fronts: Any, tmp_path: Path
) -> None:
    other = a_model(tmp_path, "Qwen Coder", QWEN) if has_other else None
    status, answer = fronts(bundled(BUNDLED_TARGET), other).post(prompt=PROMPTS[form])
    assert status == 400
    said = answer["error"]["message"]
    for word in (
        f"format {form}",
        "codespec-base",
        "edits.model",
        '"raw": true to /v1/completions',
    ):
        assert word in said
    assert ("Qwen Coder" in said) == has_other


@pytest.mark.parametrize("prompt", [*PROMPTS.values(), "def f(", "a <|fim_prefix|> b  "])
def test_a_raw_prompt_is_read_by_the_model_that_completes_as_it_is(
    prompt: str, fronts: Any
) -> None:
    target = bundled(BUNDLED_TARGET)
    front = fronts(target)
    status, answer = front.post(prompt=prompt, raw=True)
    assert (status, answer["model"]) == (200, "codespec-base")
    assert front.prompt(front.engine) == tokens_of(target, prompt)
    assert front.engine.context(front.requests[-1]).healed == b""
    # As much as plain decoding after these tokens says.
    tokens = front.engine.generate(front.requests[-1]).tokens
    plain = front.engine.passes
    context = front.engine.context(front.requests[-1])
    expected, _ = plain.decode(context, 8, front.engine.drafter("", ()))
    assert tokens == expected[: len(tokens)]
    assert answer["choices"][0]["text"] == front.engine.tokenizer.decode(tokens).decode()


def test_nothing_of_a_prompt_is_left_out_and_one_too_long_is_refused(fronts: Any) -> None:
    front = fronts(bundled(BUNDLED_TARGET))
    long = "x = 1\n" * 500
    status, answer = front.post(prompt=long, raw=True, max_tokens=4)
    assert (status, answer["truncated"]) == (200, False)
    assert answer["usage"]["prompt_tokens"] == len(tokens_of(bundled(BUNDLED_TARGET), long))
    status, answer = front.post(prompt=long * 3, raw=True)
    assert status == 400
    assert "the context of codespec-base holds 4,096" in answer["error"]["message"]
    assert "model.n_ctx" in answer["error"]["message"]


def test_model_chooses_where_it_names_one(fronts: Any, tmp_path: Path) -> None:
    sweep = a_model(tmp_path, "Sweep Next Edit 0.5B", QWEN)
    named = tmp_path / "sweep-next-edit-0.5b.q8_0.gguf"
    shutil.move(sweep, named)
    front = fronts(bundled(BUNDLED_TARGET), named)

    def answers(**body: object) -> str:
        status, answer = front.post(**body)
        assert status == 200
        return answer["model"]

    for prompt in ("x = 1\ny = ", "<|fim_prefix|>a<|fim_suffix|>b<|fim_middle|>"):
        for model in ("", "gpt-4", "codespec-base", None):
            assert answers(prompt=prompt, model=model) == "codespec-base"
        assert answers(prompt=prompt, model="sweep-next-edit-0.5b.q8_0") == "Sweep Next Edit 0.5B"
    for model in ("", "zeta", "SWEEP-NEXT-EDIT-0.5b.q8_0", "Sweep Next Edit 0.5B"):
        assert answers(prompt=PROMPTS["sweep"], model=model) == "Sweep Next Edit 0.5B"
    assert answers(prompt=PROMPTS["sweep"], model="codespec-base") == "codespec-base"
    assert answers(prompt=PROMPTS["zeta2"], model="Sweep Next Edit 0.5B") == "Sweep Next Edit 0.5B"
    raw = {"prompt": PROMPTS["sweep"], "raw": True}
    assert answers(**raw) == "codespec-base"
    assert answers(**raw, model="Sweep Next Edit 0.5B") == "Sweep Next Edit 0.5B"
    status, answer = front.post("/infill", input_prefix="x = ", model="Sweep Next Edit 0.5B")
    assert (status, answer["model"]) == (200, "Sweep Next Edit 0.5B")


def test_the_next_edit_model_is_loaded_when_it_is_needed(fronts: Any, tmp_path: Path) -> None:
    gone = tmp_path / "sweep-next-edit.gguf"
    front = fronts(bundled(BUNDLED_TARGET), gone)
    assert front.post(prompt="x = ")[0] == 200
    status, answer = front.post(prompt=PROMPTS["sweep"])
    assert status == 503
    assert "no such model file" in answer["error"]["message"]
    model_file(tmp_path, "Sweep Next Edit", QWEN).rename(gone)
    assert front.post(prompt=PROMPTS["sweep"])[0] == 200


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"prompt": "x", "raw": True, "suffix": "y"}, "suffix"),
        ({"prompt": "x", "raw": True, "verbatim": False}, "verbatim"),
        ({"prompt": PROMPTS["sweep"], "verbatim": False}, "verbatim"),
    ],
)
def test_what_a_raw_prompt_cannot_have(body: dict[str, Any], field: str, fronts: Any) -> None:
    status, answer = fronts(bundled(BUNDLED_TARGET)).post(**body)
    assert (status, answer["error"]["param"]) == (400, field)


def test_a_document_in_which_a_prompt_stands_is_completed(fronts: Any) -> None:
    text = f"PROMPT = '''{PROMPTS['sweep']}'''\nx = "
    front = fronts(bundled(BUNDLED_TARGET))
    status, _ = front.post(prompt=text)
    assert status == 200
    assert not front.requests[-1].raw
    front.post(prompt=MODE, suffix=PROMPTS["zeta2"])
    assert front.requests[-1].suffix == PROMPTS["zeta2"]


def test_a_daemon_has_both_models(
    home: Home, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = a_model(tmp_path, "Sweep Next Edit 0.5B", QWEN)
    named = model.rename(tmp_path / "sweep-next-edit-0.5b.q8_0.gguf")
    monkeypatch.setenv("CODESPEC_EDITS_MODEL", str(named))
    with front_of(home.path) as front:
        body = {"prompt": PROMPTS["sweep"], "max_tokens": 8}
        status, answer = front.ask("/v1/completions", body)
        assert (status, answer["model"]) == (200, "Sweep Next Edit 0.5B")
        *streamed, last, done = front.stream("/v1/completions", body)
        text = "".join(event["choices"][0]["text"] for event in (*streamed, last))
        assert (text, done) == (answer["choices"][0]["text"], "[DONE]")
        assert front.ask("/v1/completions", {"prompt": "x = "})[1]["model"] == "codespec-base"
        _, models = front.ask("/v1/models")
        names = [each["id"] for each in models["data"]]
        assert names == ["codespec-base", "sweep-next-edit-0.5b.q8_0"]
        for name in names:
            assert front.ask("/v1/completions", {**body, "model": name})[0] == 200
        unknown = {**body, "prompt": PROMPTS["zeta2"], "stream": True}
        refusal(front.ask("/v1/completions", unknown), 400, "edits.model")
