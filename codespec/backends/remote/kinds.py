"""Kinds of servers, in the order in which an unknown one is taken for them; one line each."""

from __future__ import annotations

from codespec.backends.remote.codespec_server import OtherCodespec
from codespec.backends.remote.inquiry import Inquiry
from codespec.backends.remote.llama_cpp_server import LlamaCppServer
from codespec.backends.remote.ollama_server import OllamaServer
from codespec.backends.remote.openai_server import OpenAIServer, SglangServer, VllmServer
from codespec.backends.remote.server_address import ServerAddress
from codespec.backends.remote.server_kind import Served, ServerKind
from codespec.errors import ModelError

KINDS: tuple[tuple[str, ServerKind], ...] = (
    ("codespec", OtherCodespec()),
    ("vllm", VllmServer()),
    ("llama-server", LlamaCppServer()),
    ("sglang", SglangServer()),
    ("ollama", OllamaServer()),
    ("openai", OpenAIServer()),
)
"""Kind by the name that addresses use."""


def recognised(inquiry: Inquiry, address: ServerAddress) -> tuple[ServerKind, Served]:
    """The kind of the server, and what it says of its model.

    Raises: ModelError where it is of no known kind, or has no such model; as `Inquiry.ask`.
    """
    for name, kind in KINDS:
        if address.kind in ("", name):
            served = kind.served(inquiry, address.model)
            if served is not None:
                return kind, served
    named = f"the model {address.model}" if address.model else "a model"
    raise ModelError(
        f"{address.url}: no server that codespec knows answers there with {named}",
        "See its address and the model's name: curl ADDRESS/v1/models lists what it has.",
    )
