"""vLLM's worker extension: what the API's process asks of the drafter in each worker.

--worker-extension-cls codespec.serving.vllm_worker.DrafterWorker
"""

from __future__ import annotations

from typing import Any

from codespec.serving.vllm_drafter import VllmDrafter


class DrafterWorker:
    """Mixed into vLLM's worker; its methods are called by `collective_rpc`."""

    model_runner: Any

    def codespec_stats(self) -> dict[str, Any] | None:
        """The drafter's counters; None where there is no drafter of ours."""
        drafter = getattr(self.model_runner, "drafter", None)
        return drafter.stats() if isinstance(drafter, VllmDrafter) else None

    def codespec_forget(self, workspaces: list[str]) -> None:
        """Let go of workspaces of tenants."""
        drafter = getattr(self.model_runner, "drafter", None)
        if isinstance(drafter, VllmDrafter):
            drafter.forget(workspaces)

    def codespec_reopen(self, workspaces: list[str]) -> None:
        """Open workspaces of tenants anew, which were rewritten on disk."""
        drafter = getattr(self.model_runner, "drafter", None)
        if isinstance(drafter, VllmDrafter):
            drafter.reopen(workspaces)
