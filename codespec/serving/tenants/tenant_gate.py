"""The gate before an engine's HTTP API: nobody comes in without a tenant's key, and the engine is
told by the gate alone whose request it has.

It is a middleware of ASGI, so that whatever routes the engine has, no other way leads to them.
"""

from __future__ import annotations

import hmac
import secrets
import time
from collections.abc import Collection

from codespec.limits import BODY_BYTES, HTTP_BODIES_BYTES
from codespec.serving.tenants.request_fields import (
    FILE_HEADER,
    WORKSPACE_HEADER,
    FieldsError,
    RequestOrigin,
    opaque,
    rewritten,
)
from codespec.serving.tenants.tenant_exchange import (
    AnswerError,
    App,
    GoneError,
    HeldBodies,
    Receive,
    Scope,
    Send,
    TenantExchange,
)
from codespec.serving.tenants.tenant_keys import TenantKeys, tenant_id
from codespec.serving.tenants.workspace_routes import ROOT, WorkspaceRoutes

OPEN = (("GET", "/health"),)
"""Requests that need no key: whether the engine works, for routers and proxies."""
METRICS = ("GET", "/metrics")
"""A request for counts of all tenants, with the opaque ids of their workspaces."""
PASSED = (
    ("GET", "/v1/models"),
    ("GET", "/version"),
    ("POST", "/detokenize"),
    ("POST", "/tokenize"),
)
"""Requests that the engine gets with the body that they have; they reach no request of anybody."""
WRITTEN = ("/v1/chat/completions", "/v1/completions")
"""Routes whose bodies are rewritten. Any other one is not there."""
USED_S = 60.0
"""Seconds between two notes that a workspace is in use."""
_KEPT_HEADERS = frozenset((b"accept", b"content-type", b"host", b"user-agent"))
"""Headers that the engine gets. Others may say what is dropped of bodies, such as a priority."""
_MOST_USED = 4096


class GateDesk:
    """State of the gate, which its middleware shares with who opens it. operators: names of the
    tenants that are shown metrics."""

    def __init__(self, keys: TenantKeys, operators: Collection[str] = ()) -> None:
        self.keys = keys
        self.operators = frozenset(operators)
        self.bodies = HeldBodies(HTTP_BODIES_BYTES // 2)
        self.routes: WorkspaceRoutes | None = None
        """None until the engine's vocabulary is known: no workspaces are taken before."""
        # Another one after each start: nobody can say what an engine's prefixes were salted with.
        self._secret = secrets.token_bytes(32)
        self._used_s: dict[tuple[str, str], float] = {}

    def origin(self, tenant: str, workspace: str, file: str) -> RequestOrigin:
        salt = hmac.new(self._secret, tenant.encode(), "sha256").hexdigest()
        return RequestOrigin(tenant, salt, workspace, file)

    def use(self, origin: RequestOrigin) -> None:
        """Note now and then that a workspace is in use."""
        key, now = (origin.tenant, origin.workspace), time.monotonic()
        if self.routes is None or not origin.workspace:
            return
        if now - self._used_s.get(key, -USED_S) < USED_S:
            return
        if len(self._used_s) >= _MOST_USED:
            self._used_s.clear()
        self._used_s[key] = now
        self.routes.use(*key)


class Gate:
    """Middleware: the application behind it gets requests of tenants alone."""

    def __init__(self, app: App, desk: GateDesk) -> None:
        self._app = app
        self._desk = desk

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close", "code": 1008})
        elif scope["type"] == "http":
            exchange = TenantExchange(scope, receive, send)
            try:
                await self._answer(exchange)
            except AnswerError as e:
                await exchange.refuse(e)
            except GoneError:
                return

    async def _answer(self, exchange: TenantExchange) -> None:
        asked = exchange.method, exchange.path
        if asked in OPEN:
            await self._app(exchange.scope, exchange.receive, exchange.send)
            return
        name = self._desk.keys.tenant(exchange.headers(b"authorization"))
        if name is None:
            raise AnswerError(401, "a key is needed: Authorization: Bearer KEY")
        tenant, n_held = tenant_id(name), 0

        def hold(n_bytes: int) -> None:
            nonlocal n_held
            self._desk.bodies.hold(tenant, n_bytes)
            n_held += n_bytes

        exchange.hold = hold
        try:
            if (exchange.method, exchange.path) == METRICS and name not in self._desk.operators:
                raise AnswerError(403, "metrics are for tenants that tenants.operators names")
            await self._answer_tenant(exchange, tenant)
        finally:
            self._desk.bodies.release(tenant, n_held)

    async def _answer_tenant(self, exchange: TenantExchange, tenant: str) -> None:
        asked = exchange.method, exchange.path
        if exchange.path.startswith(ROOT):
            if self._desk.routes is None:
                raise AnswerError(503, "the server takes no workspaces yet")
            await self._desk.routes.answer(exchange, tenant)
        elif asked == METRICS or asked in PASSED:
            await self._pass(exchange, await exchange.body(BODY_BYTES))
        elif exchange.method == "POST" and exchange.path in WRITTEN:
            await self._complete(exchange, tenant)
        else:
            raise AnswerError(404, "this server has no such route")

    async def _complete(self, exchange: TenantExchange, tenant: str) -> None:
        workspace, file = map(opaque, map(exchange.header, (WORKSPACE_HEADER, FILE_HEADER)))
        origin = self._desk.origin(tenant, workspace, file)
        try:
            body = rewritten(await exchange.body(BODY_BYTES), origin)
        except FieldsError as e:
            raise AnswerError(400, str(e)) from None
        self._desk.use(origin)
        await self._pass(exchange, body)

    async def _pass(self, exchange: TenantExchange, body: bytes) -> None:
        scope, receive = exchange.with_body(body, _KEPT_HEADERS)
        await self._app(scope, receive, exchange.send)
