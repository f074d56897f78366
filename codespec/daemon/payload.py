"""Content of `wire` messages: requests and their answers as opaque bytes.

Kept apart from `wire` because these types need numpy, and the supervisor, which only routes, starts
faster and stays smaller without it.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from codespec.daemon.wire import MAX_REQUEST_BYTES, WireError, decode, too_large
from codespec.next_edit import NextEditRequest, NextEdits
from codespec.requests import Completion, CompletionRequest, Progress

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(CompletionRequest)
_completion_decoder = msgspec.msgpack.Decoder(Completion)
_progress_decoder = msgspec.msgpack.Decoder(Progress)
_edit_request_decoder = msgspec.msgpack.Decoder(NextEditRequest)
_edits_decoder = msgspec.msgpack.Decoder(NextEdits)

_Packed: TypeAlias = CompletionRequest | Completion | Progress | NextEditRequest | NextEdits


def pack(value: _Packed) -> msgspec.Raw:
    """Encode a value. Raises: WireError for text that is too long, or not Unicode (lone
    surrogates)."""
    try:
        encoded = _encoder.encode(value)
    except UnicodeEncodeError as e:
        is_request = isinstance(value, CompletionRequest | NextEditRequest)
        if is_request and e.object in (value.path, value.workspace):
            raise WireError(
                f"{e.object!a}: its name is not UTF-8", "Rename the file or folder."
            ) from None
        raise WireError(
            "the text contains lone surrogates", "Replace them with U+FFFD before sending."
        ) from None
    if len(encoded) > MAX_REQUEST_BYTES:
        raise too_large(len(encoded))
    return msgspec.Raw(encoded)


def unpack_request(raw: msgspec.Raw) -> CompletionRequest:
    """Decode a request. Raises: WireError."""
    return decode(raw, _request_decoder, "a completion request")


def unpack_completion(raw: msgspec.Raw) -> Completion:
    """Decode a completion. Raises: WireError."""
    return decode(raw, _completion_decoder, "a completion")


def unpack_progress(raw: msgspec.Raw) -> Progress:
    """Decode a progress. Raises: WireError."""
    return decode(raw, _progress_decoder, "the progress of a completion")


def unpack_edit_request(raw: msgspec.Raw) -> NextEditRequest:
    """Decode a request for next edits. Raises: WireError."""
    return decode(raw, _edit_request_decoder, "a request for next edits")


def unpack_edits(raw: msgspec.Raw) -> NextEdits:
    """Decode next edits. Raises: WireError."""
    return decode(raw, _edits_decoder, "next edits")
