"""Hugging Face transformers: plain, with its prompt lookup, and with a draft model.

One process serves all settings. As with llama-server, the clock starts at the end of the first
pass, which reads the prompt.
"""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from codespec.errors import ModelError
from codespec.system.processes import module_command

from .base import ANSWER_S, Decoded, DecodingTask, MissingPeerError

Options = Mapping[str, Any]
DEFAULTS: dict[str, Options] = {
    "transformers": {},
    "transformers prompt lookup": {"prompt_lookup_num_tokens": 10},
}
DRAFT_DEFAULT: dict[str, Options] = {"transformers assisted": {"assisted": True}}
TUNED: dict[str, Options] = {
    "transformers prompt lookup width=3 n=3": {
        "prompt_lookup_num_tokens": 3,
        "max_matching_ngram_size": 3,
    },
}
DRAFT_TUNED: dict[str, Options] = {
    "transformers assisted max=3": {"assisted": True, "num_assistant_tokens": 3},
}


class Library:
    """The process. Started by the first of its peers, closed by the first that closes."""

    def __init__(self, model: Path, draft: Path | None, n_threads: int) -> None:
        self._models = [str(model), *([str(draft)] if draft else [])]
        self._n_threads = n_threads
        self._starting = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] | None = None

    def start(self) -> None:
        """Raises: MissingPeerError, ModelError."""
        with self._starting:
            if self._process is None:
                self._start()

    def _start(self) -> None:
        for package in ("transformers", "torch"):
            if importlib.util.find_spec(package) is None:
                raise MissingPeerError(
                    "transformers is not installed", "pip install 'codespec[peers]'"
                )
        threads = str(self._n_threads)
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the process
        self._process = subprocess.Popen(
            module_command(
                f"{__package__}.huggingface_worker", *self._models, "--threads", threads
            ),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": threads, "TOKENIZERS_PARALLELISM": "false"},
        )
        self._read()

    def ask(self, question: Mapping[str, Any]) -> dict[str, Any]:
        if self._process is None:
            raise ModelError("transformers ended")
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(question) + "\n")
            self._process.stdin.flush()
        except OSError:
            pass  # reading says why
        return self._read()

    def close(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None
        if self._log is not None:
            self._log.close()
            self._log = None

    def _read(self) -> dict[str, Any]:
        assert self._process is not None
        assert self._process.stdout is not None
        assert self._log is not None
        watchdog = threading.Timer(ANSWER_S, self._process.kill)
        watchdog.start()
        try:
            return json.loads(self._process.stdout.readline())
        except ValueError:
            self._log.seek(0)
            said = self._log.read().decode("utf-8", "replace").strip().splitlines()
            self.close()
            why = said[-1] if said else "without a word"
            raise ModelError(f"transformers ended: {why}") from None
        finally:
            watchdog.cancel()


@dataclass
class HuggingFace:
    """`Peer`. options: of the library's `generate`."""

    config: str
    process: Library
    options: Options
    eog: Sequence[int]

    def start(self) -> None:
        self.process.start()

    def decode(self, job: DecodingTask) -> Decoded:
        found = self.process.ask(
            {
                "prompt": job.context.prompt.tolist(),
                "max_tokens": job.max_tokens,
                "eog": list(self.eog),
                "options": self.options,
            }
        )
        try:
            n_passes, tokens = int(found["n_passes"]), [int(t) for t in found["tokens"]]
            return Decoded(
                tokens,
                float(found["ms"]),
                int(found["n_timed"]),
                n_passes,
                int(found["n_drafted"]),
                max(len(tokens) - n_passes, 0),
            )
        except (LookupError, TypeError, ValueError) as e:
            raise ModelError(f"{self.config}: that is no answer ({e!r})") from e

    def close(self) -> None:
        self.process.close()
