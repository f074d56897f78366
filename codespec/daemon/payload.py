"""Requests and completions as the opaque bytes that travel in `wire` messages.

Kept apart from `wire` because these types need numpy, and the supervisor, which only routes,
starts faster and stays smaller without it.
"""

from __future__ import annotations

import msgspec

from codespec.daemon.wire import MAX_REQUEST_BYTES, WireError, decode, too_large
from codespec.requests import Completion, CompletionRequest, Progress

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(CompletionRequest)
_completion_decoder = msgspec.msgpack.Decoder(Completion)
_progress_decoder = msgspec.msgpack.Decoder(Progress)


def pack(value: CompletionRequest | Completion | Progress) -> msgspec.Raw:
    """Raises: WireError for text that is too long, or not Unicode (lone surrogates)."""
    try:
        encoded = _encoder.encode(value)
    except UnicodeEncodeError as e:
        if isinstance(value, CompletionRequest) and e.object in (value.path, value.workspace):
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
    """Raises: WireError."""
    return decode(raw, _request_decoder, "a completion request")


def unpack_completion(raw: msgspec.Raw) -> Completion:
    """Raises: WireError."""
    return decode(raw, _completion_decoder, "a completion")


def unpack_progress(raw: msgspec.Raw) -> Progress:
    """Raises: WireError."""
    return decode(raw, _progress_decoder, "the progress of a completion")
