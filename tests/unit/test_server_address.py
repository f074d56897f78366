"""Addresses of servers: what is one, and what is refused without a word of a password."""

from __future__ import annotations

import pytest

from codespec.backends.remote.server_address import parse
from codespec.errors import ModelError


@pytest.mark.parametrize(
    ("where", "url", "model"),
    [
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000", ""),
        ("https://host/path/v1#a/b", "https://host/path", "a/b"),
        ("http://[::1]:80", "http://[::1]", ""),
        ("ollama:qwen:7b", "http://127.0.0.1:11434", "qwen:7b"),
        ("ollama://host/qwen", "http://host:11434", "qwen"),
        ("codespec://host", "http://host:8012", ""),
        ("http://host#mödell", "http://host", "mödell"),
    ],
)
def test_an_address_names_a_server_and_its_model(where: str, url: str, model: str) -> None:
    address = parse(where)
    assert (address.url, address.model) == (url, model)


@pytest.mark.parametrize(
    "where",
    [
        "http://",
        "http://host:99999",
        "http://host:0",
        "http://[::1",
        "http://host/a b",
        "http://host/?a=b",
        "http://höst",
        "http://host/päth",
        f"http://{'a' * 64}.example",
        "http://a..example",
    ],
)
def test_what_is_no_address_is_refused(where: str) -> None:
    with pytest.raises(ModelError, match="no address of a server") as error:
        parse(where)
    assert "https://host/path#model" in error.value.hint


@pytest.mark.parametrize("password", ["s3cr3t", "s3cr3t#1", "s3cr3t/1", "[s3cr3t]", "s3cr3t℀"])
def test_a_password_is_not_quoted(password: str) -> None:
    with pytest.raises(ModelError) as error:
        parse(f"https://user:{password}@host")
    assert "s3cr3t" not in f"{error.value.message} {error.value.hint}"
