"""`codespec doctor` and `codespec explain` with a model on a server."""

from __future__ import annotations

import json
import shutil
import socket
import ssl
import subprocess
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from codespec.backends.byte_tokens import ByteTokenizer
from codespec.backends.generators import Generator, GeneratorFigures, Stream
from codespec.backends.remote.servers import BACKEND
from codespec.cli import main
from codespec.cli.doctor import model_checks, server_checks
from codespec.cli.doctor.findings import Finding
from codespec.config import load_settings
from codespec.engine.local import LocalEngine
from codespec.requests import CompletionRequest
from tests.index_support import isolate
from tests.planted import forms
from tests.scripted_server import Route, completion, models, scripted_server

COMPLETIONS = "/v1/completions"
ROUTES: dict[str, Route] = {"/v1/models": models(), COMPLETIONS: completion(["a", "b", "c\n"])}


def found(target: str, **server: object) -> list[Finding]:
    options = {"model": {"target": target, "draft": ""}, "server": server}
    findings, _ = model_checks.check(load_settings(options, env={}), measure=True)
    return findings


def error_in(findings: list[Finding]) -> Finding:
    (error,) = [f for f in findings if f.level == "error"]
    assert error.next_step
    return error


@pytest.mark.parametrize(
    ("named", "title"),
    [
        ("/srv/models/coder.gguf", "coder.gguf"),
        ("C:\\models\\coder.gguf", "coder.gguf"),
        ("Qwen/Qwen2.5-Coder-7B", "Qwen/Qwen2.5-Coder-7B"),
        ("\x1b[31mcoder\n\u202e", "[31mcoder"),
        ("c" * 100_000, "c" * 256),
    ],
)
def test_a_model_is_told_by_a_name_that_people_can_read(named: str, title: str) -> None:
    """One that is named by its path, by its file. It is asked for by its whole name."""
    with scripted_server({**ROUTES, "/v1/models": models(name=named)}) as server:
        findings = found(server.url)
        assert {body["model"] for body in server.asked(COMPLETIONS)} == {named}
    assert findings[0].message == f"{title}: OpenAI-compatible server computes it, {server.url}"


def test_it_tells_what_the_server_is_and_how_fast() -> None:
    with scripted_server(ROUTES) as server:
        findings = found(server.url)
    said = "\n".join(f.message for f in findings)
    assert f"qwen2.5-coder: OpenAI-compatible server computes it, {server.url}" in said
    assert "it can fill in the middle" in said
    assert "its tokens are not known here" in said
    assert "first token after" in said
    assert "tokens a second" in said
    assert "while it does not answer, there are no suggestions" in said
    assert {f.level for f in findings} == {"ok", "note"}


class Drafting(Generator):
    """A server that drafts for itself, and tells so last."""

    tokenizer = ByteTokenizer()

    def stream(self, prompt: object, cancelled: object) -> Stream:
        yield from ([1, 2], [3], GeneratorFigures(2, {}))
        return "stop"


def test_figures_of_a_server_are_no_tokens_of_it() -> None:
    answered = server_checks.answered(Drafting())
    assert answered
    assert answered.line_ms > answered.first_ms > 0


def test_it_warns_of_text_that_goes_unencrypted() -> None:
    """A server on this machine is none of these, whatever is allowed."""
    for where in ("http://192.0.2.1:8000", "codespec://models.example", "ollama://192.0.2.1/m"):
        (remark,) = BACKEND.remarks_on(where, "f16")
        assert remark.level == "warning"
        assert "server.allow_unencrypted" in remark.message
    for where in ("https://models.example", "http://127.0.0.1:8000", "ollama:m"):
        assert list(BACKEND.remarks_on(where, "f16")) == []


def status(code: int) -> Route:
    return lambda exchange: exchange.answer({}, code)


@pytest.mark.parametrize(
    ("about", "answer", "words"),
    [
        (status(401), status(401), "the server does not take the key: status 401"),
        (models(), status(401), "the server does not take the key: status 401"),
        (status(404), status(404), "no server that codespec knows answers there"),
        (models(), status(404), "the server does not know this address, or the model"),
        (status(500), status(500), "the server does not work: status 500"),
        (status(302), status(302), "names another address"),
        (status(303), status(303), "names another address"),
        (status(407), status(407), "the server does not take the key: status 407"),
    ],
)
def test_it_says_what_is_wrong(about: Route, answer: Route, words: str) -> None:
    with scripted_server({"/v1/models": about, COMPLETIONS: answer}) as server:
        assert words in error_in(found(server.url)).message


def test_a_server_that_is_not_there_is_told() -> None:
    with closing(socket.socket()) as nobody:
        nobody.bind(("127.0.0.1", 0))
        port = nobody.getsockname()[1]
        error = error_in(found(f"http://127.0.0.1:{port}"))
    where = f"http://127.0.0.1:{port}"
    assert error.message == f"{where}: the server does not answer: nothing listens there"
    assert "model.target" in error.next_step


def test_plain_http_beyond_this_machine_is_an_error_until_it_is_allowed() -> None:
    error = error_in(found("http://192.0.2.1:8000"))
    assert "unencrypted" in error.message


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """A certificate for localhost that vouches for itself, and a server's context with it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl makes the certificate")
    folder = tmp_path_factory.mktemp("tls")
    key, ca = folder / "server.key", folder / "ca.pem"
    made = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2"
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"]
    files = ["-keyout", str(key), "-out", str(ca)]
    subprocess.run([openssl, *made.split(), *named, *files], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(ca, key)
    return ca, tls


def test_a_server_has_to_prove_who_it_is(certificate: tuple[Path, ssl.SSLContext]) -> None:
    ca, tls = certificate
    with scripted_server(ROUTES, tls) as server:
        error = error_in(found(server.url))
        assert error.message.startswith(f"{server.url}: the server does not prove who it is: self")
        assert "server.ca_file" in error.next_step
        assert server.exchanges == [], "it was not asked anything"
        assert not [f for f in found(server.url, ca_file=str(ca)) if f.level == "error"]
        assert server.asked(COMPLETIONS)
        # By another name it is another server.
        other = server.url.replace("localhost", "127.0.0.1")
        assert "does not prove who it is" in error_in(found(other, ca_file=str(ca))).message


def test_tls_to_a_server_without_is_told() -> None:
    with scripted_server(ROUTES) as server:
        error = error_in(found(server.url.replace("http:", "https:")))
    assert ": the server does not" in error.message


def test_explain_shows_what_is_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    isolate(monkeypatch, tmp_path)
    token, key = forms(5)["github"], "sk-0123456789abcdefghij"
    (tmp_path / "key").write_text(key)
    file = tmp_path / "a.py"
    file.write_text(f"TOKEN = '{token}'\n\n\ndef f():\n    \n")
    with scripted_server(ROUTES) as server:
        monkeypatch.setenv("CODESPEC_MODEL_TARGET", server.url)
        monkeypatch.setenv("CODESPEC_SERVER_KEY_FILE", str(tmp_path / "key"))
        done = CliRunner().invoke(main, ["explain", f"{file}:5:5", "--json"])
        assert done.exit_code == 0, done.output
        told: dict[str, Any] = json.loads(done.stdout)
        (sent,) = told["sent"]
        received = server.exchanges[-1]
        assert sent == f"POST {server.url}{COMPLETIONS}\n{received.raw.decode()}"
        assert received.headers["Authorization"].endswith(key)
        people = CliRunner().invoke(main, ["explain", f"{file}:5:5"]).stdout
    assert f"TOKEN = '{'*' * len(token)}'" in people
    for output in (done.output, people):
        assert token not in output
        assert key not in output


def test_nothing_is_watched_where_the_model_is_here() -> None:
    engine = LocalEngine(load_settings({"model": {"target": "fake:"}}, env={}))
    sent: list[str] = []
    engine.watch(sent.append, sent.append)
    engine.complete(CompletionRequest("x = ", path="/w/a.py", max_tokens=2))
    engine.close()
    assert sent == []
