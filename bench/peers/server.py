"""llama.cpp's own server, with and without its speculation, as a child on the loopback interface.

Its figures are its own: the time it says that generation took, without HTTP and JSON.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from codespec.errors import ModelError
from codespec.system import programs

from .base import ANSWER_S, Decoded, DecodingTask, MissingPeerError

START_S = 120.0
# It is a child of ours, whatever the environment says of other machines.
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))

# Each kind of speculation at its defaults, then settings that suit small models and short drafts
# better. Options as of the pinned llama.cpp.
DEFAULTS: dict[str, tuple[str, ...]] = {
    "llama-server": (),
    "llama-server ngram-simple": ("--spec-type", "ngram-simple"),
    "llama-server ngram-map-k": ("--spec-type", "ngram-map-k"),
    "llama-server ngram-map-k4v": ("--spec-type", "ngram-map-k4v"),
    "llama-server ngram-mod": ("--spec-type", "ngram-mod"),
    "llama-server ngram-cache": ("--spec-type", "ngram-cache"),
}
# Ours goes without flash attention on a CPU as well: at these widths it costs more than it saves.
_NO_FLASH = ("--flash-attn", "off")
PLAIN_TUNED: dict[str, tuple[str, ...]] = {"llama-server fa=off": _NO_FLASH}
TUNED: dict[str, tuple[str, ...]] = {
    f"llama-server {kind} n={n} m={m} fa=off": (
        *("--spec-type", kind, *_NO_FLASH),
        *(f"--spec-{kind}-size-n", str(n), f"--spec-{kind}-size-m", str(m)),
    )
    for kind, n, m in (
        ("ngram-simple", 3, 3), ("ngram-simple", 6, 8), ("ngram-simple", 12, 16),
        ("ngram-map-k", 3, 3), ("ngram-map-k", 6, 8),
        ("ngram-map-k4v", 3, 3), ("ngram-map-k4v", 6, 8),
    )
}  # fmt: skip
DRAFT_DEFAULT: dict[str, tuple[str, ...]] = {"llama-server draft": ("--spec-type", "draft-simple")}
DRAFT_TUNED: dict[str, tuple[str, ...]] = {
    f"llama-server draft max={n} p>={p} fa=off": (
        *("--spec-type", "draft-simple", *_NO_FLASH),
        *("--spec-draft-n-max", str(n), "--spec-draft-p-min", str(p)),
    )
    for n, p in ((1, 0.8), (2, 0.9), (4, 0.9))
}


def on_gpu(options: dict[str, tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """The same with flash attention as the server likes it, which costs a GPU nothing."""
    return {
        config.removesuffix(" fa=off"): tuple(flag for flag in flags if flag not in _NO_FLASH)
        for config, flags in options.items()
    }


def find_server(path: str | None) -> str | None:
    """A given file, LLAMA_SERVER, or the one on the PATH."""
    given = path or os.environ.get("LLAMA_SERVER")
    if given and os.path.dirname(given):
        return given if Path(given).is_file() else None
    return programs.find(given or "llama-server")


class Server:
    """`Peer`."""

    def __init__(
        self,
        config: str,
        binary: str | None,
        options: Sequence[str],
        model: Path,
        draft: Path | None,
        n_threads: int,
        n_ctx: int,
        n_gpu_layers: int = 0,
        eog: Collection[int] = (),
    ) -> None:
        """eog: tokens that end a text. The server tells of them, others do not."""
        self.config = config
        self._eog = eog
        self._binary = binary
        needs_draft = "draft-simple" in options
        self._options = [
            *("--model", str(model), "--ctx-size", str(n_ctx), "--parallel", "1"),
            *("--threads", str(n_threads), "--threads-batch", str(n_threads)),
            *("--n-gpu-layers", str(n_gpu_layers), "--host", "127.0.0.1", "--no-webui"),
            *(("--model-draft", str(draft)) if needs_draft and draft else ()),
            *options,
        ]
        self._process: subprocess.Popen[bytes] | None = None
        self._url = ""

    def start(self) -> None:
        if self._binary is None:
            raise MissingPeerError(
                "llama-server is not installed",
                "Build it from llama.cpp (cmake --build build --target llama-server) and give its "
                "path with --llama-server.",
            )
        port = free_port()
        self._url = f"http://127.0.0.1:{port}"
        self._process = subprocess.Popen(
            [self._binary, *self._options, "--port", str(port)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            try:
                if self._get("/health").get("status") == "ok":
                    return
            except (AttributeError, OSError, http.client.HTTPException, ValueError):
                time.sleep(0.05)
        self.close()
        raise ModelError(
            f"{self.config}: llama-server did not start",
            f"Try it by hand: {self._binary} {' '.join(self._options)}",
        )

    def decode(self, job: DecodingTask) -> Decoded:
        body: dict[str, Any] = {
            "prompt": job.context.prompt.tolist(),
            # Greedy, by the cheapest chain of samplers it has.
            "temperature": 0.0,
            "samplers": ["top_k"],
            "top_k": 1,
            "cache_prompt": True,
            "return_tokens": True,
        }
        self._post("/completion", {**body, "n_predict": 0})
        answer = self._post("/completion", {**body, "n_predict": job.max_tokens})
        try:
            return self._decoded(answer)
        except (AttributeError, LookupError, TypeError, ValueError) as e:
            raise ModelError(f"{self.config}: that is no answer of llama-server's ({e!r})") from e

    def _decoded(self, answer: dict[str, Any]) -> Decoded:
        timings = answer["timings"]
        n_drafted = int(timings.get("draft_n", 0))
        n_accepted = int(timings.get("draft_n_accepted", 0))
        said = [int(t) for t in answer["tokens"]]
        tokens = said[: next((i for i, t in enumerate(said) if t in self._eog), len(said))]
        n = int(timings["predicted_n"])
        return Decoded(
            tokens, float(timings["predicted_ms"]), max(n - 1, 0), n - n_accepted, n_drafted,
            n_accepted,
        )  # fmt: skip

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _get(self, path: str) -> dict[str, Any]:
        with _NO_PROXY.open(self._url + path, timeout=10) as answer:
            return json.load(answer)

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        request = urllib.request.Request(
            self._url + path, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        try:
            with _NO_PROXY.open(request, timeout=ANSWER_S) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as e:
            raise ModelError(f"{self.config}: {e.read()[:200].decode('utf-8', 'replace')}") from e
        except (OSError, http.client.HTTPException, ValueError) as e:
            raise ModelError(f"{self.config}: llama-server died ({e or type(e).__name__})") from e


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
