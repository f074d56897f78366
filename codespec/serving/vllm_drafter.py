"""Adapter for vLLM: its custom drafter class, of the V1 model runner.

    --speculative-config '{"method": "custom_class", "num_speculative_tokens": 8,
        "model": "codespec.serving.vllm_drafter.VllmDrafter"}'

vLLM hands rows to the class, but not their requests: which workspace one belongs to stands in its
`vllm_xargs`, which the model runner knows. The runner is not passed either; it is the object that
makes the drafter. Upstream calls the seam experimental: `VERSION` is the one that was tested, and
`vllm_contract.py` says in words what another one changed.
"""

from __future__ import annotations

import inspect
import logging
import os
import time
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np
import numpy.typing as npt

from codespec.cost.cost_curve import CostCurve
from codespec.errors import ConfigError
from codespec.limits import PATH_CHARS, Name, PathText
from codespec.serving.batch_cost import WIDE, BatchCost
from codespec.serving.counters import RowCounters
from codespec.serving.lookup_rows import LookupRows
from codespec.serving.row_guard import RowGuard
from codespec.serving.rows import RequestPlace, RowState
from codespec.serving.served_workspaces import ServedWorkspaces
from codespec.serving.tenants.tenant_settings import TenantSettings
from codespec.serving.tokenizer_file import TokenizerFile

log = logging.getLogger("vllm.codespec")

VERSION = "0.32.0"
"""The version of vLLM that this was tested with."""
VARIABLE = "CODESPEC_SERVING"
"""Environment variable with the settings, as JSON."""
PLUGIN = "codespec"
"""Name of our endpoint plug-in, see `vllm_endpoint`."""
_LOG_EVERY_S = 60.0
_MOST_FRAMES = 8


class ServingSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of drafting for an engine."""

    workspaces: dict[Name, PathText] = {}
    """Id of a workspace -> its folder on the server, indexed by `codespec index`."""
    default: Name = ""
    """Workspace of requests that name none."""
    budget_ms: Annotated[float, msgspec.Meta(ge=0.1, le=10_000)] = 5.0
    """Time for the drafts of a step; a step waits twice as long at most."""
    threads: Annotated[int, msgspec.Meta(ge=1, le=64)] = 1
    curve: Annotated[
        dict[
            Annotated[int, msgspec.Meta(ge=1, le=1 << 20)],
            Annotated[float, msgspec.Meta(ge=1e-9, le=1e9)],
        ],
        msgspec.Meta(min_length=1),
    ] = msgspec.field(default_factory=lambda: dict(WIDE))
    """Tokens of a step -> its cost, in any unit where `learns_cost` is off."""
    learns_cost: bool = True
    """Refine the curve by the time of the engine's steps."""
    tenants: TenantSettings | None = None
    """Tenants that send workspaces, by their keys; None: whoever may send requests is one."""
    splitting: Name = "qwen2"
    """Pre-tokenisation of the model, as its GGUF file names it: a part of an index's name."""


def settings_from(environment: Mapping[str, str]) -> ServingSettings:
    """Raises: ConfigError."""
    try:
        found = msgspec.json.decode(environment.get(VARIABLE, "{}"), type=ServingSettings)
    except msgspec.DecodeError as e:
        raise ConfigError(f"{VARIABLE}: {e}", "docs/team-server.md lists its fields.") from e
    if found.tenants is None:
        return found
    if found.workspaces or found.default:
        raise ConfigError(
            f"{VARIABLE}: workspaces and default are of every client, so they go without tenants",
            "Have a client send these workspaces, with the key of the tenant that may use them.",
        )
    if not os.path.isabs(found.tenants.folder) or not os.path.isabs(found.tenants.keys):
        raise ConfigError(
            f"{VARIABLE}: tenants.folder and tenants.keys are no whole paths",
            "Give the whole paths.",
        )
    if PLUGIN not in environment.get("VLLM_PLUGINS", "").split(","):
        raise ConfigError(
            f"{VARIABLE} names tenants, but nothing would ask for their keys",
            f"Set VLLM_PLUGINS={PLUGIN}, by which vLLM loads what does.",
        )
    return found


class VllmDrafter:
    """vLLM makes one in each worker, and calls `propose` once a step."""

    def __init__(self, vllm_config: Any) -> None:
        settings = settings_from(os.environ)
        model = vllm_config.model_config
        self._n_max = int(vllm_config.speculative_config.num_speculative_tokens)
        self._n_context = int(model.max_model_len)
        self._default = settings.default
        self._runner = _maker()
        self._counters = RowCounters()
        n_vocab = int(model.get_vocab_size())
        vocabulary = TokenizerFile(Path(model.model), n_vocab, settings.splitting)
        tenants = settings.tenants
        workspaces = self._workspaces = ServedWorkspaces(
            settings.workspaces,
            vocabulary.kinds,
            vocabulary.hash,
            _n_params(model, n_vocab),
            None if tenants is None else Path(tenants.folder),
        )
        self._cost = BatchCost(CostCurve(settings.curve, is_prior=True), settings.learns_cost)
        self._lookups = LookupRows(
            vocabulary.fim, workspaces, self._cost, self._counters, settings.threads
        )
        self._guard = RowGuard(
            self._lookups,
            n_vocab,
            settings.budget_ms,
            self._counters,
        )
        self._last: tuple[frozenset[Hashable], int, float] | None = None
        self._logged_s = time.monotonic()
        for name in workspaces.open_all():
            log.warning(
                "codespec: workspace %s: no index for the tokenizer %s; make one with"
                " codespec index build. Its requests draft from their own text alone.",
                name,
                vocabulary.hash,
            )
        if self._runner is None:
            log.warning(
                "codespec: vLLM's model runner was not found, so nothing is drafted;"
                " this was tested with vLLM %s",
                VERSION,
            )

    def forget(self, workspaces: Sequence[str]) -> None:
        """Let go of workspaces that their tenants deleted. For any thread."""
        self._guard.do(lambda: self._lookups.let_go(workspaces))
        self._guard.do(lambda: self._workspaces.forget(workspaces))

    def reopen(self, workspaces: Sequence[str]) -> None:
        """Open workspaces of tenants anew, which were rewritten on disk. For any thread."""
        self._guard.do(lambda: self._lookups.let_go(workspaces))
        self._guard.do(lambda: self._workspaces.reopen(workspaces))

    def load_model(self, *_: Any, **__: Any) -> None:
        """Nothing to load; called by vLLM."""

    def propose(
        self,
        sampled_token_ids: Sequence[Sequence[int]],
        num_tokens_no_spec: npt.NDArray[np.int32],
        token_ids_cpu: npt.NDArray[np.int32],
        slot_mappings: Any = None,
    ) -> list[list[int]]:
        """A chain for each row of the batch; never raises.

        sampled_token_ids: new tokens by row, none where its prompt is not read yet.
        num_tokens_no_spec, token_ids_cpu: tokens by row, those included, and their number.
        """
        chains: list[list[int]] = [[] for _ in sampled_token_ids]
        try:
            rows = self._rows(sampled_token_ids, num_tokens_no_spec, token_ids_cpu)
            keys = frozenset(state.key for _, state in rows)
            if len(rows) == len(chains):  # else some row reads its prompt still
                self._observe(keys)
            live = self._runner.requests.keys() if self._runner is not None else ()
            found = self._guard.draft([state for _, state in rows], live)
            for (i, _), chain in zip(rows, found, strict=True):
                chains[i] = chain
            n_tokens = sum(map(len, found)) + len(rows)
            self._last = keys, n_tokens, time.perf_counter()
            self._log()
        except Exception as e:  # vLLM ends for good where this raises
            self._last = None
            self._counters.n_failed += 1
            if self._counters.n_failed <= 3:
                log.warning("codespec: %s: a step may lack its drafts", type(e).__name__)
        return chains

    def stats(self) -> dict[str, Any]:
        """Counters since the start, without text."""
        return self._counters.as_dict()

    def _rows(
        self,
        sampled: Sequence[Sequence[int]],
        n_tokens: npt.NDArray[np.int32],
        ids: npt.NDArray[np.int32],
    ) -> list[tuple[int, RowState]]:
        """(number in the batch, row) of each row that may be drafted for."""
        if self._runner is None:
            return []
        names = self._runner.input_batch.req_ids
        rows: list[tuple[int, RowState]] = []
        for i, new in enumerate(sampled):
            n = int(n_tokens[i])
            n_max = min(self._n_max, self._n_context - n - 1)
            if len(new) and n_max > 0:
                request = self._runner.requests[names[i]]
                place = self._place(request.sampling_params)
                n_prompt = int(request.num_prompt_tokens)
                rows.append((i, RowState(names[i], ids[i], n, n_prompt, n_max, place)))
        return rows

    def _place(self, sampling: Any) -> RequestPlace:
        """The place that a request names in its `vllm_xargs`."""
        extra = (sampling.extra_args if sampling is not None else None) or {}
        workspace = str(extra.get("codespec_workspace") or self._default)
        path = str(extra.get("codespec_path") or "")
        if len(path) > PATH_CHARS or "\0" in path:
            path = ""
        return RequestPlace(workspace, path, bool(extra.get("codespec_draft", 1)))

    def _observe(self, keys: frozenset[Hashable]) -> None:
        """Learn what the step behind us cost, where it read no prompt and nobody idled."""
        if self._last is not None and keys and keys <= self._last[0]:
            _, n_tokens, since = self._last
            self._cost.observe(n_tokens, (time.perf_counter() - since) * 1e3)

    def _log(self) -> None:
        now = time.monotonic()
        if now - self._logged_s >= _LOG_EVERY_S:
            self._logged_s = now
            log.info("codespec: %s", msgspec.json.encode(self.stats()).decode())


def _maker() -> Any:
    """The model runner that makes the drafter, a few calls up; None where there is none."""
    frame = inspect.currentframe()
    for _ in range(_MOST_FRAMES):
        if frame is None:
            return None
        owner = frame.f_locals.get("self")
        if hasattr(owner, "propose_draft_token_ids"):
            return owner
        frame = frame.f_back
    return None


def _n_params(model: Any, n_vocab: int) -> int:
    """Parameters of the model, roughly, by its shape."""
    shape = model.hf_config
    width = int(getattr(shape, "hidden_size", 4096))
    n_layers = int(getattr(shape, "num_hidden_layers", 32))
    return 12 * n_layers * width * width + n_vocab * width
