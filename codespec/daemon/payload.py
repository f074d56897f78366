"""Requests and completions as the opaque bytes that travel in `wire` messages.

Kept apart from `wire` because these types need numpy, and the supervisor, which only routes,
starts faster and stays smaller without it.
"""

from __future__ import annotations

import msgspec

from codespec.daemon.wire import MAX_REQUEST_BYTES, WireError, too_large
from codespec.requests import Completion, CompletionRequest
from codespec.types import Finish

_encoder = msgspec.msgpack.Encoder()
_request_decoder = msgspec.msgpack.Decoder(CompletionRequest)
_completion_decoder = msgspec.msgpack.Decoder(Completion)


def pack(value: CompletionRequest | Completion) -> msgspec.Raw:
    """Raises: WireError for text that is too long, or not Unicode (lone surrogates)."""
    try:
        encoded = _encoder.encode(value)
    except UnicodeEncodeError:
        raise WireError(
            "the text contains lone surrogates", "Replace them with U+FFFD before sending."
        ) from None
    if len(encoded) > MAX_REQUEST_BYTES:
        raise too_large(len(encoded))
    return msgspec.Raw(encoded)


def unpack_request(raw: msgspec.Raw) -> CompletionRequest:
    """Raises: WireError."""
    try:
        return _request_decoder.decode(raw)
    except (msgspec.DecodeError, ValueError) as e:
        raise WireError(f"not a completion request: {_words(e)}") from None


def unpack_completion(raw: msgspec.Raw) -> Completion:
    """Raises: WireError."""
    try:
        return _completion_decoder.decode(raw)
    except (msgspec.DecodeError, ValueError) as e:
        raise WireError(f"not a completion: {_words(e)}") from None


def empty(request: CompletionRequest, finish: Finish, reason: str) -> Completion:
    """No suggestion, and why."""
    return Completion(
        finish=finish,
        doc_version=request.doc_version,
        request_id=request.request_id,
        reason=reason,
    )


def _words(e: Exception) -> str:
    # Messages of decoding errors name fields; those of others might quote text.
    return str(e) if isinstance(e, msgspec.DecodeError) else type(e).__name__
