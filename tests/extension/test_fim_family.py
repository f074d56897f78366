"""A FIM family is one record: models whose vocabulary has its markers are asked in its order, and
clients may write prompts in it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from codespec.backends.llama import load_model
from codespec.config import Settings, load_settings
from codespec.context import families
from codespec.context.families import Family, Files, Spelling
from codespec.daemon.async_client import AsyncClient, OnLeft
from codespec.engine.local import LocalEngine
from codespec.http.access import Access
from codespec.http.front import HttpFront
from codespec.requests import Completion, CompletionRequest, OnProgress
from codespec.types import Context, Snippet
from tests.engines import strict_engine
from tests.families import model_file

FAMILY = Family(
    "<before>", "<after>", "<here>", "suffix-first",
    files=Files("<project>", "<path>"),
    ends=("<issue>",),
    spellings=(Spelling("{before} ", " {after}", " {here}"),),
)  # fmt: skip
MARKERS = (*FAMILY.markers, "<project>", "<path>", "<issue>")
PREFIX, SUFFIX, OTHER = "a = 1\nb = ", "\nc = 3\n", "x = 9"


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(families, "FAMILIES", (*families.FAMILIES, FAMILY))


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[LocalEngine]:
    path = model_file(tmp_path, "Newcomer 1B", MARKERS)
    settings = {"model": {"target": str(path)}, "context": {"buffers": "on"}}
    engine = strict_engine(load_settings(settings, env={}))
    yield engine
    engine.close()


def read(context: Context, engine: LocalEngine) -> str:
    """The prompt, its markers by their names."""
    text = {t: engine.tokenizer.piece(t).decode() for t in set(context.prompt.tolist())}
    fim = engine.info.fim
    assert fim is not None
    assert fim.files is not None
    ids = (*fim.markers, fim.files.repository, fim.files.file)
    text |= dict(zip(ids, MARKERS, strict=False))
    return "".join(text[t] for t in context.prompt.tolist())


def post(body: dict[str, object]) -> dict[str, Any]:
    """The answer of the HTTP front to a client's prompt."""
    sent: list[Any] = []

    async def receive() -> Any:
        if not parts:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": parts.pop()}

    async def send(message: Any) -> None:
        sent.append(message)

    parts = [json.dumps(body).encode()]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/completions",
        "headers": [(b"host", b"localhost")],
    }
    asyncio.run(HttpFront(Settings(), Access())(scope, receive, send))
    assert sent[0]["status"] == 200, sent
    return json.loads(sent[1]["body"])


def test_the_model_is_asked_in_its_order_and_shown_other_files_in_its_way(
    engine: LocalEngine,
) -> None:
    shown = (Snippet("buffers", "/w/x.py", OTHER),)
    request = CompletionRequest(PREFIX, SUFFIX, "/w/a.py", "/w", max_tokens=8, extra=shown)
    context = engine.context(request)
    written = FAMILY.prompt(PREFIX, SUFFIX, [("x.py", OTHER)], "a.py", "w")
    assert written == (
        "<project>w\n<path>x.py\nx = 9\n<path>a.py\n<after>\nc = 3\n<before>a = 1\n<here>b = "
    )
    assert read(context, engine) + context.healed.decode() == written
    model = load_model(Path(engine.info.path), vocab_only=True)
    ends = {model.token_text(t) for t in engine.info.eog}
    model.close()
    assert ends == {"<|endoftext|>", *MARKERS}


@pytest.mark.parametrize(
    "prompt",
    [
        FAMILY.prompt(PREFIX, SUFFIX, [("x.py", OTHER)], "a.py", "w"),
        f"{{before}} {PREFIX} {{after}}{SUFFIX} {{here}}",
    ],
)
def test_a_client_writes_in_it_over_http(
    prompt: str, engine: LocalEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    requests: list[CompletionRequest] = []

    async def ask(
        _client: AsyncClient,
        request: CompletionRequest,
        on_progress: OnProgress | None = None,
        on_left: OnLeft | None = None,
    ) -> Completion:
        del on_progress, on_left
        requests.append(request)
        return engine.complete(request)

    def connect(_client: AsyncClient) -> None:
        pass

    monkeypatch.setattr(AsyncClient, "connect", connect)
    monkeypatch.setattr(AsyncClient, "ask", ask)
    answer = post({"prompt": prompt, "max_tokens": 4})
    [request] = requests
    assert (request.prefix, request.suffix) == (PREFIX, SUFFIX)
    assert [s.text.strip() for s in request.extra] == ([OTHER] if "x.py" in prompt else [])
    assert answer["usage"]["completion_tokens"] > 0
    assert answer["model"] == "Newcomer 1B"
    context = engine.context(request)
    assert read(context, engine).endswith("<after>\nc = 3\n<before>a = 1\n<here>b =")
