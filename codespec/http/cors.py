"""Cross-origin resource sharing: pages of origins that the user's settings name may read answers to
requests that show a key. Source: https://fetch.spec.whatwg.org/#http-cors-protocol
"""

from __future__ import annotations

from collections.abc import Collection

_PREFLIGHT_S = 600


def allowed_headers(headers: dict[bytes, bytes], origins: Collection[str]) -> dict[str, str]:
    """Headers of an answer that lets a page read it; {} for a page of another origin, or none."""
    origin = headers.get(b"origin", b"").decode("latin-1")
    return {"Access-Control-Allow-Origin": origin, "Vary": "Origin"} if origin in origins else {}


def preflight_headers(headers: dict[bytes, bytes], origins: Collection[str]) -> dict[str, str]:
    """Headers of the answer to a preflight, in which a browser asks, without a key, if it may send
    a page's request; {} if it may not."""
    allowed = allowed_headers(headers, origins)
    if not allowed or b"access-control-request-method" not in headers:
        return {}
    # Clients in a page have headers of their own (X-Stainless-Lang, ...). None is read here but
    # those of the key, so any may be sent; "*" would leave out Authorization.
    asked = headers.get(b"access-control-request-headers", b"").decode("latin-1")
    return {
        **allowed,
        "Access-Control-Allow-Methods": "GET, POST",
        "Access-Control-Allow-Headers": asked or "Authorization, Content-Type, X-Api-Key",
        "Access-Control-Max-Age": str(_PREFLIGHT_S),
    }
