"""Routes by which a tenant's clients send workspaces, and delete them.

GET    /codespec/version            what the server takes
POST   /codespec/contents/known     which of these contents the tenant has not sent yet
POST   /codespec/contents           a batch of contents
GET    /codespec/workspaces         the tenant's workspaces
DELETE /codespec/workspaces         everything that the tenant sent
GET, POST, DELETE /codespec/workspaces/ID
                                    one: its state, a new state, its end
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import defaultdict
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import msgspec

from codespec.backends.remote.token_batches import (
    MOST_BATCH_BYTES,
    MOST_SENT_BYTES,
    PROTOCOL,
    BatchError,
    ContentKey,
    unpacked,
)
from codespec.errors import IndexBusyError
from codespec.limits import BODY_BYTES
from codespec.serving.tenants.content_check import ContentCheck, ContentError
from codespec.serving.tenants.tenant_exchange import AnswerError, TenantExchange
from codespec.serving.tenants.tenant_settings import TenantSettings
from codespec.serving.tenants.tenant_store import TenantFolder, TenantStore
from codespec.serving.tenants.workspace_change import (
    MissingError,
    QuotaError,
    StaleError,
    WorkspaceChange,
)

log = logging.getLogger("vllm.codespec")

ROOT = "/codespec/"
MOST_KEYS = 100_000
"""Most keys of one question."""
CLEAN_EVERY_S = 60.0
"""Most seconds between two looks at what is to be taken off the disk."""
_AT_ONCE = 2
"""Most of these requests at work, of one tenant one; the others wait."""
_ONE = re.compile("/codespec/workspaces/([0-9a-f]{32})")

T = TypeVar("T")


class _Keys(msgspec.Struct, forbid_unknown_fields=True):
    keys: Annotated[list[ContentKey], msgspec.Meta(max_length=MOST_KEYS)]


class WorkspaceRoutes:
    """Answers a tenant's requests below `ROOT`.

    vocabularies: hashes of the model's vocabulary, as clients may have it.
    """

    def __init__(
        self,
        store: TenantStore,
        check: ContentCheck,
        settings: TenantSettings,
        vocabularies: tuple[str, ...],
    ) -> None:
        self._store = store
        self._check = check
        self._version = {
            "protocol": PROTOCOL,
            "vocabularies": vocabularies,
            "most_batch_bytes": MOST_BATCH_BYTES,
            "most_sent_bytes": MOST_SENT_BYTES,
            "max_tokens": settings.max_tokens,
            "max_files": settings.max_files,
        }
        self._clean_every_s = min(CLEAN_EVERY_S, max(1.0, settings.removed_s))
        self._turns = asyncio.Semaphore(_AT_ONCE)
        self._turns_of = defaultdict[str, asyncio.Lock](asyncio.Lock)

    async def answer(self, exchange: TenantExchange, tenant: str) -> None:
        """Answer a request of a tenant. Raises: AnswerError."""
        method, path = exchange.method, exchange.path
        one = _ONE.fullmatch(path)
        if (method, path) == ("GET", "/codespec/version"):
            content: Any = self._version
        elif (method, path) == ("POST", "/codespec/contents/known"):
            keys = _decoded(await exchange.body(BODY_BYTES), _Keys).keys
            content = {"missing": await self._do(tenant, lambda folder: folder.missing(keys))}
        elif (method, path) == ("POST", "/codespec/contents"):
            body = await exchange.body(MOST_SENT_BYTES)
            content = {"n_tokens": await self._do(tenant, lambda folder: self._add(folder, body))}
        elif (method, path) == ("GET", "/codespec/workspaces"):
            content = {"workspaces": await self._do(tenant, lambda folder: folder.states())}
        elif (method, path) == ("DELETE", "/codespec/workspaces"):
            content = await self._do(tenant, lambda folder: folder.delete_all()) or {}
        elif one is not None and method == "GET":
            content = await self._do(tenant, lambda folder: folder.state(one[1]))
        elif one is not None and method == "DELETE":
            content = await self._do(tenant, lambda folder: folder.delete(one[1])) or {}
        elif one is not None and method == "POST":
            change = _decoded(await exchange.body(BODY_BYTES), WorkspaceChange)
            content = await self._do(tenant, lambda folder: folder.open(one[1], change))
        else:
            raise AnswerError(404, "there is no such route")
        await exchange.answer(200, content)

    async def keep_clean(self) -> None:
        """Take off the disk, until cancelled, what is due: see `TenantFolder.clean`."""
        while True:
            await asyncio.sleep(self._clean_every_s)
            for tenant in await asyncio.to_thread(self._store.tenants):
                try:
                    async with self._turns_of[tenant], self._turns:
                        await asyncio.to_thread(self._store.clean, tenant)
                except Exception as e:
                    log.warning("codespec: removed text is still on disk: %s", type(e).__name__)

    def use(self, tenant: str, workspace: str) -> None:
        """Note that a request names a workspace; costs a system call or two."""
        self._store.use(tenant, workspace)

    def _add(self, folder: TenantFolder, body: bytes) -> int:
        contents = unpacked(body)
        n_tokens = self._check.check(contents)
        folder.add(contents)
        return n_tokens

    async def _do(self, tenant: str, work: Callable[[TenantFolder], T]) -> T:
        """Work in a thread: the engine's answers to others go on. Raises: AnswerError."""

        def done() -> T:
            with self._store.of(tenant) as folder:
                return work(folder)

        async with self._turns_of[tenant], self._turns:
            try:
                return await asyncio.to_thread(done)
            except (BatchError, ContentError) as e:
                raise AnswerError(422, str(e)) from None
            except QuotaError as e:
                raise AnswerError(413, str(e)) from None
            except StaleError as e:
                raise AnswerError(409, str(e), state=e.state) from None
            except MissingError as e:
                raise AnswerError(409, str(e), missing=e.keys) from None
            except IndexBusyError as e:
                raise AnswerError(503, str(e)) from None
            except OSError as e:
                why = e.strerror or type(e).__name__
                raise AnswerError(507, f"the server's disk does not do that: {why}") from None


def _decoded(body: bytes, kind: type[T]) -> T:
    """Raises: AnswerError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise AnswerError(422, f"the body is not as it should be: {e}") from None
