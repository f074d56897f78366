"""Frames: whatever goes in comes out; whatever else comes in is a clear error."""

from __future__ import annotations

import asyncio
import contextlib
import io
import struct
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codespec.config import Settings
from codespec.daemon import payload, wire
from codespec.edit import Edit
from codespec.errors import (
    CodespecError,
    ConfigError,
    DaemonError,
    InputError,
    ModelError,
)
from codespec.next_edit import Dismissed, NextEdit, NextEditRequest, NextEdits, NoNextEdit
from codespec.requests import Completion, CompletionRequest, Progress
from codespec.types import SamplingParams, SourceStats, Trace

# All of Unicode but surrogates, which UTF-8 has no bytes for.
text = st.text(st.characters(exclude_categories=["Cs"]))
ids = st.integers(0, 2**63 - 1)
numbers = st.integers(-(2**31), 2**31 - 1)
finite = st.floats(0, 1e9, allow_nan=False)

requests = st.builds(
    CompletionRequest,
    prefix=text,
    suffix=text,
    path=text,
    max_tokens=st.integers(1, 4096),
    deadline_ms=finite,
    sampling=st.builds(SamplingParams, temperature=finite, seed=ids),
    drafters=st.none() | st.lists(text, max_size=3).map(tuple),
    multiline=st.booleans(),
    document=text,
    version=numbers,
    start=numbers,
)
edits = st.builds(Edit, text, numbers, numbers, numbers, text)
completions = st.builds(
    Completion,
    edit=st.none() | edits,
    alternatives=st.lists(edits, max_size=3).map(tuple),
    finish=st.sampled_from(["stop", "length", "deadline", "cancelled", "empty"]),
    trace=st.builds(
        Trace,
        n_tokens=st.integers(0, 999),
        ms=finite,
        by_source=st.dictionaries(text, st.builds(SourceStats, n_drafted=st.integers(0, 9))),
    ),
)
edit_requests = st.builds(
    NextEditRequest,
    text=text,
    cursor=st.integers(0, 9),
    path=text,
    document=text,
    version=numbers,
    bar=st.floats(0, 1),
    where=st.sampled_from(["line", "file", "workspace"]),
    dismissed=st.lists(st.builds(Dismissed, *[text] * 5), max_size=3).map(tuple),
    deadline_ms=finite,
)
next_edits = st.builds(
    NextEdits,
    edits=st.lists(
        st.builds(NextEdit, edits, text, text, st.integers(0, 9), st.floats(0, 1), text),
        max_size=3,
    ).map(tuple),
    why=st.none() | st.sampled_from(NoNextEdit),
    n_left=st.integers(0, 99),
    ms=finite,
)
from_client = st.one_of(
    st.builds(wire.Hello, version=text, key=text, watch=st.booleans()),
    st.builds(
        wire.Complete,
        id=ids,
        request=requests.map(payload.pack),
        document=text,
        deadline_ms=finite,
    ),
    st.builds(
        wire.FindEdits,
        id=ids,
        request=edit_requests.map(payload.pack),
        document=text,
        deadline_ms=finite,
    ),
    st.builds(wire.Cancel, id=ids),
    st.builds(wire.Status, id=ids),
    st.builds(wire.Configure, id=ids, settings=st.just(Settings())),
    st.builds(wire.Shutdown, id=ids),
)


def read_async(data: bytes, max_bytes: int = wire.MAX_FRAME_BYTES) -> list[wire.FromClient]:
    async def read() -> list[wire.FromClient]:
        stream = asyncio.StreamReader()
        stream.feed_data(data)
        stream.feed_eof()
        found: list[wire.FromClient] = []
        while (message := await wire.read(stream, wire.client_decoder, max_bytes)) is not None:
            found.append(message)
        return found

    return asyncio.run(read())


def read_blocking(data: bytes) -> list[wire.FromClient]:
    stream = io.BytesIO(data)
    found: list[wire.FromClient] = []
    while (message := wire.read_blocking(stream.read, wire.client_decoder)) is not None:
        found.append(message)
    return found


def plain(message: object) -> object:
    """Comparable: `msgspec.Raw` only knows identity."""
    return msgspec.msgpack.decode(msgspec.msgpack.encode(message))


@given(st.lists(from_client, max_size=4))
def test_messages_survive_the_way(messages: list[wire.FromClient]) -> None:
    data = b"".join(map(wire.frame, messages))
    for read in (read_async, read_blocking):
        found = read(data)
        assert [type(m) for m in found] == [type(m) for m in messages]
        assert [plain(m) for m in found] == [plain(m) for m in messages]


@given(requests)
def test_requests_survive_the_way(request: CompletionRequest) -> None:
    message = wire.Complete(id=1, request=payload.pack(request))
    (found,) = read_blocking(bytes(wire.frame(message)))
    assert isinstance(found, wire.Complete)
    assert payload.unpack_request(found.request) == request


@given(completions)
def test_completions_survive_the_way(completion: Completion) -> None:
    assert payload.unpack_completion(payload.pack(completion)) == completion


@given(edit_requests, next_edits)
def test_next_edits_survive_the_way(request: NextEditRequest, found: NextEdits) -> None:
    assert payload.unpack_edit_request(payload.pack(request)) == request
    message = wire.EditsFound(id=1, edits=payload.pack(found))
    read = wire.read_blocking(io.BytesIO(wire.frame(message)).read, wire.daemon_decoder)
    assert isinstance(read, wire.EditsFound)
    assert payload.unpack_edits(read.edits) == found


@given(st.builds(Progress, text, st.none() | edits))
def test_progress_survives_the_way(progress: Progress) -> None:
    message = wire.Partial(id=1, progress=payload.pack(progress))
    read = wire.read_blocking(io.BytesIO(wire.frame(message)).read, wire.daemon_decoder)
    assert isinstance(read, wire.Partial)
    assert payload.unpack_progress(read.progress) == progress


@given(from_client, st.data())
def test_pieces_of_any_size(message: wire.FromClient, data: st.DataObject) -> None:
    frame = wire.frame(message)
    size = data.draw(st.integers(1, len(frame)))
    stream = io.BytesIO(frame)
    found = wire.read_blocking(lambda n: stream.read(min(n, size)), wire.client_decoder)
    assert plain(found) == plain(message)


@given(st.binary(max_size=200))
def test_garbage_is_refused(garbage: bytes) -> None:
    framed = struct.pack("<I", len(garbage)) + garbage
    for data in (garbage, framed):
        for read in (read_async, read_blocking):
            with contextlib.suppress(wire.WireError):  # and nothing else
                read(data)


@given(from_client, st.data())
def test_a_cut_frame_is_refused(message: wire.FromClient, data: st.DataObject) -> None:
    frame = wire.frame(message)
    cut = frame[: data.draw(st.integers(1, len(frame) - 1))]
    for read in (read_async, read_blocking):
        with pytest.raises(wire.WireError, match="ended within a frame"):
            read(bytes(cut))


def test_a_length_beyond_the_limit_is_refused_before_it_is_read() -> None:
    for n_bytes in (wire.MAX_FRAME_BYTES + 1, 2**32 - 1):
        for read in (read_async, read_blocking):
            with pytest.raises(wire.WireError, match=str(n_bytes)):
                read(struct.pack("<I", n_bytes))
    with pytest.raises(wire.WireError, match="5000"):
        read_async(struct.pack("<I", 5000), max_bytes=wire.MAX_HELLO_BYTES)


def test_deep_nesting_is_refused() -> None:
    body = b"\x82\xa4type\xa8Complete\xa7request" + b"\x91" * 100_000
    for read in (read_async, read_blocking):
        with pytest.raises(wire.WireError):
            read(struct.pack("<I", len(body)) + body)


def test_a_request_that_is_too_large_is_refused_before_it_is_sent() -> None:
    with pytest.raises(wire.WireError, match="too large") as caught:
        payload.pack(CompletionRequest("x" * wire.MAX_REQUEST_BYTES))
    assert caught.value.hint


def test_lone_surrogates_are_refused_before_they_are_sent() -> None:
    with pytest.raises(wire.WireError, match="surrogates"):
        payload.pack(CompletionRequest("a\ud83d"))


@pytest.mark.parametrize("part", ["path", "workspace"])
def test_a_name_that_is_no_text_is_called_so(part: str) -> None:
    named: dict[str, Any] = {part: "/caf\udce9"}
    with pytest.raises(wire.WireError, match="its name is not UTF-8"):
        payload.pack(CompletionRequest("a", **named))


def test_errors_about_a_payload_do_not_quote_it() -> None:
    raw = msgspec.Raw(msgspec.msgpack.encode({"prefix": ["TOP SECRET"]}))
    with pytest.raises(wire.WireError) as caught:
        payload.unpack_request(raw)
    assert "TOP SECRET" not in str(caught.value)


@pytest.mark.parametrize("cls", [ModelError, ConfigError, InputError, DaemonError])
def test_exceptions_cross_processes(cls: type[CodespecError]) -> None:
    error = cls("what happened", "what to do")
    found = wire.error_of(wire.failure(3, error))
    assert type(found) is cls
    assert (found.message, found.hint) == ("what happened", "what to do")
