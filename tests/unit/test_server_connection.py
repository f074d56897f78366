"""Connections to a server: how often one is made, and which is ready for the next request."""

from __future__ import annotations

import json
import socket
from contextlib import closing
from threading import Event
from typing import Any

import numpy as np
import pytest

from codespec.backends.generators import Generator, GeneratorPrompt
from codespec.backends.registry import open_tokenizer
from codespec.backends.remote.codespec_server import OtherCodespec
from codespec.backends.remote.connection import ServerClient
from codespec.backends.remote.failures import ServerError, ServerFailure
from codespec.backends.remote.inquiry import Inquiry
from codespec.backends.remote.kinds import recognised
from codespec.backends.remote.openai_server import OpenAIServer
from codespec.backends.remote.served_generator import TextFromServer
from codespec.backends.remote.server_address import parse
from codespec.backends.remote.server_kind import Piece, Served
from codespec.backends.remote.servers import BACKEND
from codespec.backends.remote.trust import Trust
from codespec.config import load_settings
from codespec.errors import ModelError
from codespec.types import SamplingParams
from tests.scripted_server import Exchange, models, scripted_server

PROMPT = GeneratorPrompt(np.zeros(0, np.int32), "x = ", "x = ", "", 4, SamplingParams())


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Addresses that connections were made to, or tried."""
    addresses: list[Any] = []
    connect = socket.create_connection

    def noted(address: Any, timeout: float) -> socket.socket:
        addresses.append(address)
        return connect(address, timeout)

    monkeypatch.setattr(socket, "create_connection", noted)
    return addresses


def client_of(url: str) -> ServerClient:
    return ServerClient(parse(url), Trust())


def generator_of(client: ServerClient) -> Generator:
    return TextFromServer(client, OpenAIServer(), Served("server", "model"), None)


def test_a_server_that_is_not_there_is_tried_once_a_request(made: list[Any]) -> None:
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        client = client_of(f"http://127.0.0.1:{nobody.getsockname()[1]}")
        with closing(generator_of(client)) as generator, pytest.raises(ServerError):
            list(generator.stream(PROMPT, lambda: False))
    assert len(made) == 2, "one request, made once more"


def test_a_request_that_was_given_up_leaves_a_connection_for_the_next(made: list[Any]) -> None:
    asked = Event()

    def silent(exchange: Exchange) -> None:
        asked.set()
        exchange.wait_until_gone()

    routes = {"/v1/completions": silent, "/v1/models": models()}
    with scripted_server(routes) as server:
        client = client_of(server.url)
        with closing(generator_of(client)) as generator:
            assert list(generator.stream(PROMPT, asked.is_set)) == []
            assert len(made) == 2
            assert client.ask("/v1/models", timeout_s=30.0).status == 200
            assert len(made) == 2


@pytest.mark.parametrize("said", [b'{"data": ' + b"[" * 100_000, b'{"data": [{"id": "\xff"}]}'])
def test_what_cannot_be_read_is_no_model(said: bytes) -> None:
    with scripted_server({"/v1/models": lambda exchange: exchange.answer(said)}) as server:
        client = client_of(server.url)
        with closing(client), pytest.raises(ModelError, match="no server that codespec knows"):
            recognised(Inquiry(client), client.address)


def test_a_tokenizer_holds_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """An index needs it for hours, and nothing else of the server."""
    sockets: list[socket.socket] = []
    connect = socket.create_connection

    def kept(address: Any, timeout: float) -> socket.socket:
        sockets.append(connect(address, timeout))
        return sockets[-1]

    monkeypatch.setattr(socket, "create_connection", kept)
    with scripted_server({"/v1/models": models()}) as server:
        settings = load_settings({"model": {"target": server.url}}, env={})
        words = open_tokenizer(settings)
        assert sockets
        assert [connection.fileno() for connection in sockets] == [-1] * len(sockets)
        assert words.decode(words.encode("x = 1")) == b"x = 1"


def test_an_answer_that_trickles_is_given_up_in_time() -> None:
    """However little time passes between its bytes."""
    gone = Event()

    def trickle(exchange: Exchange) -> None:
        exchange.handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
        try:
            while True:
                exchange.handler.wfile.write(b" ")
        except OSError:
            gone.set()

    with scripted_server({"/v1/models": trickle}) as server:
        with closing(client_of(server.url)) as client, pytest.raises(ServerError) as raised:
            client.ask("/v1/models", timeout_s=0.2)
        assert raised.value.failure is ServerFailure.SILENT
        assert gone.wait(30.0)


def test_a_server_that_names_no_file_has_no_vocabulary_here() -> None:
    routes = {"/v1/models": models("vllm", root="/srv/\0model")}
    with scripted_server(routes) as server:
        generator = BACKEND.open(server.url, load_settings({}, env={}))
        generator.close()
        assert generator.info.name == "qwen2.5-coder"


@pytest.mark.parametrize("said", [-1, 10**9, 10**18, 10**30])
def test_figures_that_no_model_has_are_unknown(said: int) -> None:
    """Other processes are told them, in so many bits."""
    served = Served("server", "model", n_ctx=said, n_params=said * 10**9, n_vocab=said * 10)
    assert (served.n_ctx, served.n_params, served.n_vocab) == (0, 0, 0)


@pytest.mark.parametrize(
    "timings",
    [
        {"passes_n": 10**30},
        {"passes_n": -1},
        {"passes_n": "many"},
        {"drafts": {"x": {"draft_n": 1.5}}},
        {"drafts": {str(i): {} for i in range(1000)}},
    ],
)
def test_an_answer_stands_whatever_its_server_says_of_drafts(timings: object) -> None:
    last = {"content": "x", "stop": True, "stop_type": "eos", "timings": timings}
    piece = OtherCodespec().piece(b"data: " + json.dumps(last).encode())
    assert piece == Piece("x", (), "stop")
