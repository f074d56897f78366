"""Client of an OpenAI-compatible engine, for figures of drafting: token ids in and out."""

from __future__ import annotations

import http.client
import json
import re
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import median
from typing import Any

import msgspec

from codespec.errors import CodespecError

from .served_places import ServedPlace

_TIMEOUT_S = 600.0
_COUNTERS = {
    "vllm:iteration_tokens_total_count": "steps",
    "vllm:spec_decode_num_draft_tokens_total": "drafted",
    "vllm:spec_decode_num_accepted_tokens_total": "accepted",
}


class EngineError(CodespecError):
    """The engine refused a request."""


class EngineRun(msgspec.Struct):
    """Answers to all places. steps: passes of the engine, prompts included; drafted, accepted:
    tokens. s: wall clock; median_ms: of a request."""

    tokens: list[list[int]]
    steps: int
    drafted: int
    accepted: int
    s: float
    median_ms: float


class EngineClient:
    """One engine on this machine.

    workspace: id under which our drafter knows the repository, "" for another drafter.
    drafts:    False to ask our drafter for none.
    key:       of a tenant; the workspace then is one that the tenant sent, by its opaque name.
    """

    def __init__(self, port: int, workspace: str = "", drafts: bool = True, key: str = "") -> None:
        self._port = port
        self._workspace = workspace
        self._drafts = drafts
        self._headers = {"Content-Type": "application/json"}
        if key:
            self._headers |= {"Authorization": f"Bearer {key}", "X-Session-Id": workspace}

    def is_ready(self) -> bool:
        try:
            return self._call("GET", "/health")[0] == 200
        except OSError:
            return False

    def complete(self, prompt: Sequence[int], n: int, path: str = "") -> list[int]:
        """Tokens after a prompt, greedily. Raises: EngineError, OSError."""
        body: dict[str, Any] = {
            "model": "codespec-base",
            "prompt": list(prompt),
            "max_tokens": n,
            "temperature": 0,
            "return_token_ids": True,
        }
        if self._workspace:
            body["vllm_xargs"] = {
                "codespec_workspace": self._workspace,
                "codespec_path": path,
                "codespec_draft": int(self._drafts),
            }
        status, answer = self._call("POST", "/v1/completions", body)
        if status != 200:
            raise EngineError(f"the engine answered {status}", "Its log says why.")
        return json.loads(answer)["choices"][0]["token_ids"]

    def run(self, places: Sequence[ServedPlace], n: int, at_once: int = 1) -> EngineRun:
        """Ask for `n` tokens at each place."""
        times: list[float] = []

        def ask(place: ServedPlace) -> list[int]:
            start = time.perf_counter()
            tokens = self.complete(place.prompt, n, place.path)
            times.append((time.perf_counter() - start) * 1e3)
            return tokens

        before, start = self.counters(), time.perf_counter()
        with ThreadPoolExecutor(at_once) as pool:
            tokens = list(pool.map(ask, places))
        s = time.perf_counter() - start
        after = self.counters()
        steps, drafted, accepted = (
            after[name] - before[name] for name in ("steps", "drafted", "accepted")
        )
        return EngineRun(tokens, steps, drafted, accepted, s, median(times))

    def counters(self) -> dict[str, int]:
        """Counters of the engine's own /metrics since its start."""
        found = dict.fromkeys(_COUNTERS.values(), 0)
        for line in self._call("GET", "/metrics")[1].decode().splitlines():
            sample = re.match(r"([\w:]+)(?:\{[^}]*\})? ([0-9.e+-]+)$", line)
            if sample and sample[1] in _COUNTERS:
                found[_COUNTERS[sample[1]]] += int(float(sample[2]))
        return found

    def _call(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_TIMEOUT_S)
        try:
            sent = None if body is None else json.dumps(body)
            connection.request(method, path, sent, self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()
