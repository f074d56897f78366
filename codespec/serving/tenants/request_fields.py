"""Fields of a completion that a server of tenants writes itself, whatever a client sent of them."""

from __future__ import annotations

import re
from typing import Any, NamedTuple, cast

import msgspec

from codespec.errors import CodespecError
from codespec.limits import is_deeper

WORKSPACE_HEADER = b"x-session-id"
"""Header with the opaque id of a workspace. Routers keep requests with the same one together."""
FILE_HEADER = b"x-codespec-file"
"""Header with the opaque id of the file at hand."""
DRAFT = "codespec_draft"
OURS = "codespec_"
DROPPED = (
    "cache_salt",
    "ec_transfer_params",
    "kv_transfer_params",
    "priority",
    "request_id",
    "session_id",
)
"""Fields by which one request could reach another's state, or go before it. As arguments of the
engine (`vllm_xargs`) some of them are read, too."""
_OPAQUE = re.compile(rb"[0-9a-f]{32}")


class FieldsError(CodespecError):
    """A body that is no request."""


class RequestOrigin(NamedTuple):
    """The origin of a request, as the server knows it. tenant: opaque id; salt: secret of the
    tenant's prefixes; workspace, file: opaque ids, "" where the client names none."""

    tenant: str
    salt: str
    workspace: str = ""
    file: str = ""


def opaque(header: bytes) -> str:
    """The opaque id in a header; "" for anything else."""
    return header.decode() if _OPAQUE.fullmatch(header) else ""


def rewritten(body: bytes, origin: RequestOrigin) -> bytes:
    """The body for the engine, in our own writing: what another reader might find in the client's,
    such as a field twice, is not passed on. Raises: FieldsError."""
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise FieldsError(f"the body is no JSON: {type(e).__name__}", "Send an object.") from None
    if not isinstance(said, dict) or is_deeper(said):
        raise FieldsError("the body is no object, or too deep", "Send a completion's fields.")
    fields = cast("dict[str, Any]", said)
    for name in DROPPED:
        fields.pop(name, None)
    sent = fields.get("vllm_xargs")
    if sent is not None and not isinstance(sent, dict):
        raise FieldsError("vllm_xargs is no object", "Leave it out.")
    arguments = cast("dict[str, Any]", sent or {})
    drafts = arguments.get(DRAFT) != 0
    kept = {
        name: value
        for name, value in arguments.items()
        if name not in DROPPED and not _is_ours(name)
    }
    ours = {
        "codespec_workspace": f"{origin.tenant}/{origin.workspace}",
        "codespec_path": origin.file,
        DRAFT: int(drafts),
    }
    fields["vllm_xargs"] = {**kept, **ours}
    fields["cache_salt"] = origin.salt
    return msgspec.json.encode(fields)


def _is_ours(name: str) -> bool:
    """True for any spelling of a name that an engine might take for one of ours."""
    return name.strip().casefold().startswith(OURS)
