"""vLLM's endpoint plug-in: the gate of tenants before its API, the store of their workspaces, and
the drafter's counters on its page of metrics.

    VLLM_PLUGINS=codespec

Entry point group `vllm.endpoint_plugins`. It runs in the process of the HTTP API; workers read what
it writes from the folder of the settings.
"""

from __future__ import annotations

import asyncio
import logging
import os
from argparse import Namespace
from functools import partial
from pathlib import Path
from typing import Any

from codespec.serving.tenants.content_check import ContentCheck
from codespec.serving.tenants.tenant_gate import Gate, GateDesk
from codespec.serving.tenants.tenant_keys import TenantKeys
from codespec.serving.tenants.tenant_store import TenantStore
from codespec.serving.tenants.workspace_routes import WorkspaceRoutes
from codespec.serving.tokenizer_file import TokenizerFile
from codespec.serving.vllm_drafter import PLUGIN, ServingSettings, settings_from
from codespec.serving.vllm_metrics import METHOD, DraftCounters

log = logging.getLogger("vllm.codespec")


class EndpointPlugin:
    """vLLM's protocol of that name. vLLM logs what the constructor raises and goes on without
    the plug-in, so all that may fail is done later, where it ends the start."""

    name = PLUGIN
    required_tasks: tuple[str, ...] | None = None

    def __init__(self) -> None:
        self._settings = ServingSettings()
        self._desk: GateDesk | None = None
        self._counters = DraftCounters()
        self._cleaning: asyncio.Task[None] | None = None

    def attach_router(self, app: Any) -> None:
        """Put the gate before the API, and the drafter's counters on its page of metrics. Raises:
        ConfigError."""
        self._settings = settings_from(os.environ)
        # Before the gate, which then stands before it: nobody without a key has workers asked.
        self._counters.show(app)
        if self._settings.tenants is None:
            log.info("codespec: no tenants are named: anybody may send requests")
            return
        tenants = self._settings.tenants
        self._desk = GateDesk(TenantKeys(Path(tenants.keys)), tenants.operators)
        app.add_middleware(Gate, desk=self._desk)

    async def init_state(self, engine_client: Any, state: Any, args: Namespace) -> None:
        """Take workspaces, now that the model is known. Raises: ModelError, OSError."""
        if engine_client is not None:
            self._counters.ask = partial(engine_client.collective_rpc, METHOD)
        tenants = self._settings.tenants
        if self._desk is None or tenants is None or engine_client is None:
            return
        model = engine_client.model_config
        n_vocab = int(model.get_vocab_size())
        vocabulary = TokenizerFile(Path(model.model), n_vocab, self._settings.splitting)
        loop = asyncio.get_running_loop()

        def tell(method: str, workspaces: list[tuple[str, str]]) -> None:
            names = [f"{tenant}/{workspace}" for tenant, workspace in workspaces]
            asked = engine_client.collective_rpc(method, args=(names,))
            asyncio.run_coroutine_threadsafe(_logged(asked), loop)

        store = TenantStore(
            tenants,
            vocabulary.hash,
            partial(tell, "codespec_forget"),
            partial(tell, "codespec_reopen"),
        )
        routes = self._desk.routes = WorkspaceRoutes(
            store,
            ContentCheck(vocabulary.pieces),
            tenants,
            (vocabulary.hash, vocabulary.json_hash),
        )
        self._cleaning = asyncio.create_task(routes.keep_clean())


async def _logged(asked: Any) -> None:
    try:
        await asked
    except Exception as e:
        log.warning(
            "codespec: workers were not told of workspaces that were deleted or rewritten (%s):"
            " they let go of the old files when they are asked for them next",
            type(e).__name__,
        )
