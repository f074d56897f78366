"""Everything that a client may say has a bound: just what is allowed is taken, and just more is
refused with the field, the bound and the next step."""

from __future__ import annotations

import asyncio
import json
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest
from msgspec import inspect

from codespec import limits
from codespec.config import CompletionSettings
from codespec.daemon import wire
from codespec.daemon.address import Address
from codespec.daemon.payload import unpack_edit_request, unpack_request
from codespec.errors import CodespecError
from codespec.http.access import Access, Refused
from codespec.http.bodies import Body, ChatBody, CompletionsBody, fields_of, read
from codespec.http.body_document import BodyDocument
from codespec.http.dialects.completions import OpenAICompletions
from codespec.http.dialects.mistral import FimBody
from codespec.http.dialects.ollama_bodies import GenerateBody, OllamaChatBody, ShowBody
from codespec.http.dialects.tabby import EventBody, TabbyBody
from codespec.http.field_error import FieldError
from codespec.http.llama_bodies import (
    CompletionBody,
    DetokenizeBody,
    InfillBody,
    TokenizeBody,
)
from codespec.next_edit import NextEditRequest
from codespec.requests import CompletionRequest
from codespec.rules.open_files import OpenFileRules
from tests.e2e.test_daemon_server import converse, hello, serving, streams
from tests.supervised import supervised

BODIES = (
    *(CompletionsBody, ChatBody, InfillBody, CompletionBody),
    *(GenerateBody, OllamaChatBody, FimBody, TabbyBody),
)
FIELDS = (TokenizeBody, DetokenizeBody, ShowBody, EventBody)
UNPACK = {CompletionRequest: unpack_request, NextEditRequest: unpack_edit_request}
SAID = (*get_args(wire.FromClient), *UNPACK, *BODIES, *FIELDS)
MIB = 1 << 20


def leaves(kind: inspect.Type, path: str = "") -> Iterator[tuple[str, inspect.Type]]:
    """(where, what) of everything that a message may hold; "[]": in a list."""
    if isinstance(kind, inspect.Metadata):
        unread = (limits.NotRead, limits.AnyTopK)
        is_unread = any(kind == inspect.type_info(other) for other in unread)
        yield from [(path, kind)] if is_unread else leaves(kind.type, path)
    elif isinstance(kind, inspect.StructType | inspect.DataclassType):
        for field in kind.fields:
            yield from leaves(field.type, f"{path}.{field.encode_name}".lstrip("."))
    elif isinstance(kind, inspect.UnionType):
        for part in kind.types:
            yield from leaves(part, path)
    else:
        yield path, kind
        if isinstance(kind, inspect.ListType | inspect.VarTupleType):
            yield from leaves(kind.item_type, f"{path}[]")


def is_bounded(kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        return kind.ge is not None and kind.le is not None
    if isinstance(kind, inspect.StrType | inspect.ListType | inspect.VarTupleType):
        return kind.max_length is not None
    # Metadata: of a field that is never looked at, or means the nearest that is allowed. Raw: of a
    # request on its way, in its frame.
    others = inspect.BoolType | inspect.NoneType | inspect.LiteralType
    return isinstance(kind, others | inspect.RawType | inspect.Metadata)


def edges(kind: inspect.Type) -> Iterator[tuple[Any, Any, str]]:
    """(just allowed, just refused, the bound)."""
    if isinstance(kind, inspect.IntType) and kind.ge is not None and kind.le is not None:
        yield kind.ge, kind.ge - 1, str(kind.ge)
        yield kind.le, kind.le + 1, str(kind.le)
    elif isinstance(kind, inspect.FloatType) and kind.ge is not None and kind.le is not None:
        for edge, way in ((kind.ge, -1), (kind.le, 1)):
            yield float(edge), edge + way * max(1e-3, abs(edge) * 1e-6), str(float(edge))
    elif isinstance(kind, inspect.StrType) and kind.max_length is not None:
        yield "x" * kind.max_length, "x" * (kind.max_length + 1), str(kind.max_length)
    elif isinstance(kind, inspect.ListType | inspect.VarTupleType) and kind.max_length is not None:
        item = (
            {"text": "x", "role": "user"} if isinstance(kind.item_type, inspect.StructType) else "x"
        )
        if isinstance(kind.item_type, inspect.DataclassType):
            item = {"source": "buffers", "path": "x", "text": "x", "old": "x", "role": "user"}
        if any(isinstance(leaf, inspect.IntType) for _, leaf in leaves(kind.item_type)):
            item = 0
        n = kind.max_length
        yield [item] * n, [item] * (n + 1), str(n)


def message_with(where: str, value: Any, base: dict[str, Any]) -> dict[str, Any]:
    """`base`, and the value at that place."""
    name, _, rest = where.partition(".")
    n_lists, name = name.count("[]"), name.replace("[]", "")
    inner = value if not rest else message_with(rest, value, {})
    if n_lists and rest:
        other = {"text": "x", "source": "buffers", "path": "x", "old": "x", "role": "user"}
        inner = {**other, **inner}
    for _ in range(n_lists):
        inner = [inner]
    return {**base, name: inner}


@pytest.mark.parametrize("kind", SAID, ids=lambda kind: kind.__name__)
def test_every_field_has_a_bound(kind: type) -> None:
    unbounded = [where for where, leaf in leaves(inspect.type_info(kind)) if not is_bounded(leaf)]
    assert unbounded == []


CASES = [
    (kind, where, allowed, refused, bound)
    for kind in SAID
    for where, leaf in leaves(inspect.type_info(kind))
    for allowed, refused, bound in edges(leaf)
]


@pytest.mark.parametrize(
    ("kind", "where", "allowed", "refused", "bound"),
    [pytest.param(*case, id=f"{case[0].__name__}.{case[1]}-{case[4]}") for case in CASES],
)
def test_just_what_is_allowed(
    kind: type, where: str, allowed: Any, refused: Any, bound: str
) -> None:
    is_body = kind in (*BODIES, *FIELDS)
    if is_body:
        base: dict[str, Any] = {"prompt": "x", "content": "x", "segments": {}, "type": "view"}
        base |= {"messages": [{"role": "user", "content": "x"}]}
    else:
        base = {"prefix": "", "type": kind.__name__, "id": 1, "version": "", "settings": {}}
        base |= {"document": "", "request": {}}
        if kind in UNPACK:
            base = {"prefix": "", "text": "", "cursor": 0}
        elif kind is wire.Hello:
            base.pop("prefix")

    def say(value: Any) -> None:
        message = message_with(where, value, base)
        if kind in BODIES:
            read(msgspec.json.encode(message), kind)
        elif kind in FIELDS:
            fields_of(msgspec.json.encode(message), kind)
        elif kind in UNPACK:
            UNPACK[kind](msgspec.Raw(msgspec.msgpack.encode(message)))
        else:
            wire.decode(msgspec.msgpack.encode(message), wire.client_decoder)

    def why_not(value: object) -> CodespecError | None:
        try:
            say(value)
        except (FieldError, wire.WireError) as e:
            return e
        return None

    # What is within its bound may be ruled out otherwise.
    why = why_not(allowed)
    assert why is None or any(word in str(why) for word in ("not supported", "need ", "needs "))
    why = why_not(refused)
    assert why is not None
    name = where.split(".")[-1].removesuffix("[]") if not is_body else where.split("[")[0]
    assert name in why.message
    assert bound in why.message
    assert why.hint != ""


@pytest.mark.parametrize("kind", BODIES)
def test_json_has_so_many_levels(kind: type[Body]) -> None:
    def body(n_levels: int) -> bytes:
        inner = b"[" * n_levels + b"]" * n_levels
        said = b'{"prompt": "x", "segments": {}, "messages": [{"role": "user"}], "no_such_field": '
        return said + inner + b"}"

    read(body(limits.DEPTH - 1), kind)
    for n_levels in (limits.DEPTH, 2_000_000):
        with pytest.raises(FieldError, match=f"more than {limits.DEPTH} levels"):
            read(body(n_levels), kind)


@pytest.mark.parametrize("top_k", [-(2**70), limits.VOCABULARY, 2**70])
def test_how_many_tokens_to_choose_from_means_the_nearest_number(top_k: int) -> None:
    asked = OpenAICompletions(json.dumps({"prompt": "x", "top_k": top_k}).encode(), "")
    [request] = asked.requests(CompletionSettings())
    assert request.sampling.top_k == max(0, min(top_k, limits.VOCABULARY))


def test_brackets_within_texts_are_no_levels() -> None:
    assert read(json.dumps({"prompt": "[{" * 1000}).encode(), CompletionsBody).prompt


def test_a_prompt_shows_so_many_other_files() -> None:
    def requested(n_files: int, name: str = "a.py") -> CompletionRequest:
        files = "".join(f"<|file_sep|>{name}\nx = 1\n" for _ in range(n_files))
        prompt = f"<|repo_name|>r\n{files}<|fim_prefix|>x = <|fim_suffix|><|fim_middle|>"
        asked = OpenAICompletions(json.dumps({"prompt": prompt}).encode(), "")
        return asked.requests(CompletionSettings())[0]

    assert len(requested(limits.FILES).extra) == limits.FILES
    with pytest.raises(FieldError, match=f"at most {limits.FILES} other files"):
        requested(limits.FILES + 1)
    assert requested(1, "a" * limits.PATH_CHARS).extra
    with pytest.raises(FieldError, match=f"at most {limits.PATH_CHARS} characters"):
        requested(1, "a" * (limits.PATH_CHARS + 1))


# --- paths ----------------------------------------------------------------------------------


def test_a_path_and_its_workspace_are_no_longer_than_a_path(tmp_path: Path) -> None:
    access = Access(workspaces=(str(tmp_path),))
    n = limits.PATH_CHARS - len(str(tmp_path)) - 1
    assert access.place(BodyDocument(path="a" * n))[1] == str(tmp_path / ("a" * n))
    with pytest.raises(Refused, match=f"more than {limits.PATH_CHARS} characters"):
        access.place(BodyDocument(path="a" * (n + 1)))


def test_a_deep_path_takes_no_memory(tmp_path: Path) -> None:
    """Each of its folders was looked at and kept, by name: half a gigabyte for 20,000."""
    rules = OpenFileRules()
    longest = str(tmp_path / "a" / ("b/" * limits.PATH_CHARS))[: limits.PATH_CHARS - 1] + "c"
    for path in (longest, str(tmp_path / ("a/" * 200_000)) + "c"):
        tracemalloc.start()
        why = rules.why_excluded(path, str(tmp_path))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < MIB
        assert why
        assert (str(limits.PATH_CHARS) in why) == (len(path) > limits.PATH_CHARS)


# --- counts ---------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_client_has_so_many_requests_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING", 3)
    async with supervised() as harness:
        await harness.until("ready")
        waiting = [harness.post("until cancelled") for _ in range(3)]
        refused = await harness.post("x")
        assert isinstance(refused, wire.Failed)
        assert "too many requests" in refused.message
        assert "cancel" in refused.hint
        assert (await harness.ask("x", client=2, deadline_ms=1)).text == ""  # others may ask
        harness.supervisor.cancel(1, 1)
        await waiting[0]
        harness.post("until cancelled")
        assert not any(reply.done() for reply in waiting[1:])


@pytest.mark.asyncio
async def test_requests_of_a_client_are_so_long_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WAITING_BYTES", 3 * MIB)
    async with supervised() as harness:
        await harness.until("ready")
        first = harness.post("until cancelled")
        second = harness.post("x" * (2 * MIB))
        refused = await harness.post("x" * (2 * MIB))
        assert isinstance(refused, wire.Failed)
        assert "too many requests" in refused.message
        assert not first.done()
        assert not second.done()
        # The one that takes another's place does not come on top of it.
        harness.post("x" * (2 * MIB), document="a", client=2)
        newer = harness.post("y" * (2 * MIB), document="a", client=2)
        assert not newer.done()


@pytest.mark.asyncio
async def test_a_client_has_so_many_documents_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "DOCUMENTS", 2)
    async with supervised() as harness:
        await harness.until("ready")
        for name in ("a", "b", "a"):
            assert (await harness.ask("x", document=name)).text
        refused = await harness.post("x", document="c")
        assert isinstance(refused, wire.Failed)
        assert "documents are open" in refused.message
        harness.supervisor.closed(1, "a")
        assert (await harness.ask("x", document="c")).text


@pytest.mark.asyncio
async def test_so_many_clients_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "CLIENTS", 2)
    async with serving("unix") as (_, address):
        connected = [await greeted(address) for _ in range(2)]
        answer, *_ = await converse(address, hello(address))
        assert isinstance(answer, wire.Failed)
        assert "at most 2" in answer.message
        assert answer.hint
        # As many again may be about to greet; who comes on top of those is not heard.
        silent = [await streams(address) for _ in range(2)]
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await greeted(address)
        for _, writer in (*connected, *silent):
            writer.close()


async def greeted(address: Address) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await streams(address)
    writer.write(hello(address))
    await reader.readexactly(4)
    return reader, writer
