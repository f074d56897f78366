"""Accelerators that llama.cpp can be built for: what each needs, and what of that is here.

The set-up of a checkout imports this module before any package is installed, so it needs the
standard library alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

from codespec.errors import ConfigError
from codespec.system import programs

Kind = Literal["compiler", "SDK", "loader", "device"]

_TIMEOUT_S = 10.0
_INTEL, _AMD = "0x8086", "0x1002"


class Part(NamedTuple):
    """Something that an accelerator needs. A compiler and an SDK are needed to build for it, a
    loader (the driver's library) and a device to run on it."""

    kind: Kind
    name: str
    is_here: Callable[[], bool]


class Accelerator(NamedTuple):
    """flags: of CMake. step: how to get what is missing."""

    title: str
    flags: tuple[str, ...]
    parts: tuple[Part, ...]
    step: str


def _program(*names: str) -> Callable[[], bool]:
    return lambda: any(programs.find(name) for name in names)


def _file(*places: str) -> Callable[[], bool]:
    """True if a file is there; `$NAME` in a place is a folder in a variable."""

    def is_here() -> bool:
        for place in places:
            whole = os.path.expandvars(place)
            if "$" not in whole and os.path.isabs(whole) and any(_matches(whole)):
                return True
        return False

    return is_here


def _matches(pattern: str) -> list[Path]:
    with contextlib.suppress(OSError, ValueError):
        root = Path(pattern).anchor
        return list(Path(root).glob(str(Path(pattern).relative_to(root))))
    return []


def _library(linux: str, windows: str) -> Callable[[], bool]:
    """True if the driver's library can be loaded."""

    def is_here() -> bool:
        try:
            ctypes.CDLL(windows if os.name == "nt" else linux)
        except OSError:
            return False
        return True

    return is_here


def _has_nvidia() -> bool:
    """A compiler alone is not enough: build servers have nvcc and no GPU."""
    if not programs.find("nvidia-smi"):
        return False
    try:
        listed = subprocess.run(
            programs.command("nvidia-smi", "-L"),
            capture_output=True,
            text=True,
            check=False,
            timeout=_TIMEOUT_S,
        )
    except (OSError, subprocess.SubprocessError):
        return False
    return listed.returncode == 0 and "GPU" in listed.stdout


def _drawn_by(*vendors: str) -> Callable[[], bool]:
    """True if the kernel has a GPU of one of these vendors, or of any; on Windows it is not asked,
    and one is taken for granted."""

    def is_here() -> bool:
        if sys.platform != "linux":
            return sys.platform == "win32"
        for node in Path("/dev/dri").glob("renderD*"):
            vendor = Path("/sys/class/drm", node.name, "device", "vendor")
            with contextlib.suppress(OSError):
                if not vendors or vendor.read_text().strip() in vendors:
                    return True
        return False

    return is_here


def _is_apple_silicon() -> bool:
    return sys.platform == "darwin" and platform.machine() == "arm64"


_INCLUDE = ("/usr/include", "/usr/local/include", "$VULKAN_SDK/include", "$VULKAN_SDK/Include")
_CMAKE = ("/usr/share", "/usr/lib", "/usr/lib/*-linux-gnu", "/usr/local/share", "$VULKAN_SDK/share")
_ROCM = ("$ROCM_PATH/lib", "/opt/rocm/lib", "/usr/lib", "/usr/lib/*-linux-gnu", "/usr/lib64")

_SYCL_COMPILERS = (
    ("-DCMAKE_C_COMPILER=cl", "-DCMAKE_CXX_COMPILER=icx")
    if os.name == "nt"
    else ("-DCMAKE_C_COMPILER=icx", "-DCMAKE_CXX_COMPILER=icpx")
)

ACCELERATORS = {
    "cuda": Accelerator(
        "NVIDIA's CUDA",
        ("-DGGML_CUDA=ON", "-DCMAKE_CUDA_ARCHITECTURES=native"),
        (
            Part("compiler", "nvcc", _program("nvcc")),
            Part("loader", "the driver's libcuda", _library("libcuda.so.1", "nvcuda.dll")),
            Part("device", "an NVIDIA GPU", _has_nvidia),
        ),
        "Install NVIDIA's driver and the CUDA toolkit (nvcc), and have nvcc on the PATH.",
    ),
    "metal": Accelerator(
        "Apple's Metal",
        (),
        (
            Part("compiler", "clang++", _program("clang++")),
            Part("device", "Apple silicon", _is_apple_silicon),
        ),
        "Metal is macOS's: xcode-select --install.",
    ),
    "vulkan": Accelerator(
        "Vulkan",
        ("-DGGML_VULKAN=ON",),
        (
            Part("compiler", "glslc", _program("glslc")),
            Part("SDK", "Vulkan's headers", _file(*(f"{f}/vulkan/vulkan.h" for f in _INCLUDE))),
            Part(
                "SDK",
                "SPIR-V's headers",
                _file(*(f"{f}/cmake/SPIRV-Headers/*.cmake" for f in _CMAKE)),
            ),
            Part("loader", "libvulkan", _library("libvulkan.so.1", "vulkan-1.dll")),
            Part("device", "a GPU", _drawn_by()),
        ),
        "Debian: apt install glslc libvulkan-dev spirv-headers mesa-vulkan-drivers; Windows: the "
        "Vulkan SDK, with VULKAN_SDK set.",
    ),
    "hip": Accelerator(
        "AMD's ROCm (HIP)",
        ("-DGGML_HIP=ON",),
        (
            Part("compiler", "hipcc", _program("hipcc", "hipconfig")),
            Part("SDK", "hipBLAS", _file(*(f"{f}/cmake/hipblas/*.cmake" for f in _ROCM))),
            Part("SDK", "rocBLAS", _file(*(f"{f}/cmake/rocblas/*.cmake" for f in _ROCM))),
            Part("loader", "libamdhip64", _library("libamdhip64.so", "amdhip64.dll")),
            Part("device", "an AMD GPU", _drawn_by(_AMD)),
        ),
        "Install AMD's ROCm with hipBLAS and rocBLAS, and have hipcc on the PATH.",
    ),
    "sycl": Accelerator(
        "Intel's oneAPI (SYCL)",
        ("-DGGML_SYCL=ON", *_SYCL_COMPILERS),
        (
            Part("compiler", "icpx", _program("icpx", "icx")),
            Part("SDK", "oneAPI's folder", _file("$ONEAPI_ROOT")),
            Part("loader", "Level Zero", _library("libze_loader.so.1", "ze_loader.dll")),
            Part("device", "an Intel GPU", _drawn_by(_INTEL)),
        ),
        "Install Intel's oneAPI base toolkit and its GPU driver, then: "
        "source /opt/intel/oneapi/setvars.sh",
    ),
}
"""Hardware that models can be computed on beside the CPU, by the name that CODESPEC_BACKEND gives
it."""

NAMES = ("cpu", *ACCELERATORS)


def chosen(built: str = "cpu") -> str:
    """The one of NAMES to build for: that of CODESPEC_BACKEND, or what this machine can build and
    run by the makers' own tools. Raises: ConfigError for an unknown name.

    built: the one that it is built for already. An accelerator stays where no variable names
    another: an update does not put models back on the CPU.
    """
    named = os.environ.get("CODESPEC_BACKEND", "")
    if named:
        return known(named)
    if built in ACCELERATORS:
        return built
    if sys.platform == "darwin":
        return "metal"
    if programs.find("nvcc") and _has_nvidia():
        return "cuda"
    return "cpu"


def known(name: str) -> str:
    """The name itself. Raises: ConfigError where it is none of NAMES."""
    if name not in NAMES:
        *some, last = NAMES
        raise ConfigError(
            f"the backend {name!r} is not known", f"It can be {', '.join(some)} or {last}."
        )
    return name


def flags(backend: str) -> list[str]:
    """CMake's flags of llama.cpp for one of NAMES."""
    if backend == "cpu":
        return ["-DLLAVA_BUILD=OFF", "-DGGML_CUDA=OFF"]
    return ["-DLLAVA_BUILD=OFF", *ACCELERATORS[backend].flags]


def missing(backend: str, *kinds: Kind) -> list[str]:
    """Parts of these kinds that one of NAMES needs and that are not here, each with its kind."""
    parts = ACCELERATORS[backend].parts if backend != "cpu" else ()
    return [f"{p.kind} {p.name}" for p in parts if p.kind in kinds and not p.is_here()]


def here(backend: str) -> list[str]:
    """Parts of any kind that one of NAMES needs and that are here, each with its kind."""
    parts = ACCELERATORS[backend].parts if backend != "cpu" else ()
    return [f"{part.kind} {part.name}" for part in parts if part.is_here()]


def has_device(name: str) -> bool:
    """True if this machine is seen to have hardware for an accelerator."""
    return sys.platform != "win32" and not missing(name, "device")


def check_buildable(backend: str) -> None:
    """Raises: ConfigError that names all that a build for one of NAMES lacks."""
    lacking = missing(backend, "compiler", "SDK")
    if lacking:
        title = ACCELERATORS[backend].title
        raise ConfigError(
            f"llama.cpp cannot be built for {title} here; not found: {', '.join(lacking)}",
            f"{ACCELERATORS[backend].step} Or build for the CPU: CODESPEC_BACKEND=cpu.",
        )


COMPILERS = (
    "Debian: apt install g++; macOS: xcode-select --install; Windows: Visual Studio's Build Tools, "
    'workload "Desktop development with C++", then the same command in its Developer PowerShell, '
    "or LLVM's clang"
)
"""Compilers to install where there is none, by system."""


def hint(backend: str) -> str:
    """The next step after a failed build for one of NAMES."""
    compiler = f"It needs a C++17 compiler ({COMPILERS})."
    if backend == "cpu":
        return compiler
    return f"{compiler}\n{ACCELERATORS[backend].step} Or build for the CPU: CODESPEC_BACKEND=cpu."
