"""llama.cpp as a backend: its device, models from GGUF files, and remarks for `codespec doctor`."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path

from codespec.backends.base import KvType, Model, Remark, TargetBackend
from codespec.backends.llama import kernels
from codespec.backends.llama.loader import build, gpu_backend, lib
from codespec.backends.llama.memory import check_fits
from codespec.backends.llama.model import load_model
from codespec.backends.llama.nextn import has_mtp_layer
from codespec.backends.llama.trial import try_model
from codespec.models.split import size_of
from codespec.system import accelerators, llama_place


class LlamaBackend(TargetBackend):
    """llama.cpp, for GGUF files."""

    name = "llama.cpp"

    def device(self) -> str:
        return gpu_backend()

    def build(self) -> str:
        return build()

    def open(
        self,
        where: str,
        *,
        n_gpu_layers: int = -1,
        mtp_head: bool = False,
        vocab_only: bool = False,
        on_progress: Callable[[float], None] = lambda share: None,
    ) -> Model:
        return load_model(
            Path(where),
            n_gpu_layers=n_gpu_layers,
            mtp_head=mtp_head,
            vocab_only=vocab_only,
            on_progress=on_progress,
        )

    def check_fits(self, where: str) -> None:
        check_fits(Path(where), size_of(Path(where)))

    def try_out(self, where: str) -> None:
        try_model(Path(where))

    def has_mtp_head(self, where: str) -> bool:
        return has_mtp_layer(Path(where))

    def remarks(self) -> Iterator[Remark]:
        """Remarks on the device that computes models, and on a better one that goes unused."""
        for name, known in (
            ("CODESPEC_BACKEND", accelerators.NAMES),
            ("CODESPEC_KERNELS", ("off", *kernels.NAMES)),
        ):
            value = os.environ.get(name)
            if value and value not in known:
                said = f"{name} is {value!r}, which is not known here"
                yield Remark("warning", said, f"Unset it, or take one of: {', '.join(known)}.")
        device = gpu_backend()
        llama = version("llama-cpp-python")
        yield Remark("ok", f"llama-cpp-python {llama}, models run on {device}")
        if device == "cpu":
            what = "products of matrices"
            what += " and attention" if kernels.computes_attention() else ""
            ours = f"our own ({kernels.NAME})"
            whose = ours if kernels.NAME else f"llama.cpp's: {kernels.WHY_NOT}"
            yield Remark("ok", f"{what}: {whose}")
        yield from _idle_device(device)

    def remarks_on(self, where: str, kv_type: KvType) -> Iterator[Remark]:
        """Remarks on the kernels that multiply the model's matrices, and their effect on
        exactness."""
        share = kernels.share_in(Path(where))
        is_cpu = gpu_backend() == "cpu"
        if is_cpu and kv_type == "f16" and share.is_all:
            says = "all its matrix products are our own: drafts change nothing of what it says"
        else:
            says = "drafts change nothing of what it says, but for ties in the last digits"
        yield Remark("ok", says)
        if is_cpu and share.others:
            yield Remark(
                "note",
                f"llama.cpp multiplies what it has in {' and '.join(share.others)}: prompts, and "
                "passes that verify a draft, can take several times as long as with our own "
                "products",
                "Files in Q4_K_M or q8_0 are quicker on a CPU.",
            )


_DEVICES = {
    "metal": "Apple silicon",
    "hip": "an AMD GPU",
    "sycl": "an Intel GPU",
    "vulkan": "a GPU",
}
"""Name of the hardware for an accelerator, the best accelerator for it first."""


def _idle_device(device: str) -> Iterator[Remark]:
    """A remark on an accelerator that CODESPEC_BACKEND names, or that this machine has, where
    models run on something else: what is missing to use it."""
    named = os.environ.get("CODESPEC_BACKEND", "")
    if named in accelerators.ACCELERATORS and named != device:
        said = f"CODESPEC_BACKEND is {named}, but models run on {device}: {_state(named)}"
        yield Remark("warning", said, _step(named))
        return
    if device != "cpu":
        return
    if lib.llama_supports_gpu_offload() and named == "cpu":
        if _has_nvidia() or sys.platform == "darwin":
            said = "this machine has an NVIDIA GPU" if sys.platform != "darwin" else "Metal is here"
            why = f"{said}, but CODESPEC_BACKEND=cpu keeps models off it"
            yield Remark("warning", why, "Unset CODESPEC_BACKEND.")
        return
    if _has_nvidia():
        why = "this machine has an NVIDIA GPU, but llama.cpp was built without CUDA"
        yield Remark("warning", f"{why}: {_state('cuda')}", _step("cuda"))
        return
    for name, hardware in _DEVICES.items():
        if accelerators.has_device(name):
            title = accelerators.ACCELERATORS[name].title
            said = f"this machine has {hardware}, but llama.cpp was built without {title}"
            yield Remark("note", f"{said}: {_state(name)}", _step(name))
            return


def _has_nvidia() -> bool:
    return not accelerators.missing("cuda", "device")


def _state(name: str) -> str:
    """An accelerator's needs: those that are here, and those that are missing."""
    here = ", ".join(accelerators.here(name)) or "nothing"
    lacking = ", ".join(accelerators.missing(name, "compiler", "SDK", "loader", "device"))
    return f"here: {here}; missing: {lacking or 'nothing'}"


def _step(name: str) -> str:
    """The way to make models run on an accelerator: installing what is missing, and the build."""
    lacking = accelerators.missing(name, "compiler", "SDK", "loader")
    how = llama_place.rebuild(name)
    return f"{accelerators.ACCELERATORS[name].step} Then: {how}" if lacking else f"Build it: {how}"


BACKEND = LlamaBackend()
