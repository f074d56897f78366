"""A request to the HTTP front as operators see it: numbers, ids, and names that they gave
themselves; no path and no text of a client."""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field

from codespec.http.dialects.base import Api, Route

_SANE_ID = re.compile(rb"[A-Za-z0-9._-]{1,64}")
NO_ROUTE = "other"
"""In place of a path that is no route: paths are the client's own text."""


@dataclass(slots=True)
class ServedRequest:
    """One request and its answer.

    route:     the route's path, which may begin the request's; `NO_ROUTE` for none.
    method:    of HTTP; "other" for one that no route has.
    client_id: the request's X-Request-Id; "" for none, for one with other characters than letters,
        digits and "._-", and for one of more than 64.
    is_known:  it may ask for anything here: it showed a key where there are some.
    key:       name of its key, "" without keys or before one was shown.
    workspace: number of its workspace, "" for none, see `Access.number_of`.
    status:    of the answer; 0 while none began.
    is_over:   the whole answer was sent. has_failed: a stream ended with an error.
    n_read, n_written: tokens of the prompts, the cached ones included, and of the texts.
    first_ms:  from the request's head to the first token; None without one.
    """

    route: str
    method: str
    client_id: str
    request_id: str = field(default_factory=lambda: secrets.token_hex(8))
    began_s: float = field(default_factory=time.monotonic)
    is_known: bool = False
    key: str = ""
    workspace: str = ""
    status: int = 0
    is_over: bool = False
    has_failed: bool = False
    n_read: int = 0
    n_written: int = 0
    first_ms: float | None = None

    @classmethod
    def of(
        cls, api: Api, route: Route | None, method: str, headers: dict[bytes, bytes]
    ) -> ServedRequest:
        """The request as it begins."""
        paths = (path or "/" for path, each in api.routes.items() if each is route)
        shown = headers.get(b"x-request-id", b"")
        return cls(
            route=next(paths, NO_ROUTE),
            method=method if method in ("GET", "HEAD", "OPTIONS", "POST") else "other",
            client_id=shown.decode() if _SANE_ID.fullmatch(shown) else "",
        )

    @property
    def shown_id(self) -> str:
        """Id in the answer's header: the client's own, else ours."""
        return self.client_id or self.request_id

    @property
    def outcome(self) -> str:
        """The end that it came to: "answered"; "refused", an error of the client's (4xx); "failed",
        one of the server's; "left", the client did so first."""
        if not self.is_over:
            return "left"
        if self.has_failed or self.status >= 500:
            return "failed"
        return "refused" if self.status >= 400 else "answered"

    @property
    def ms(self) -> float:
        """Milliseconds since its head came."""
        return (time.monotonic() - self.began_s) * 1e3
