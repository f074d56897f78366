"""Energy of a computation, where the machine has counters that we may read."""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

POWERCAP = Path("/sys/class/powercap")
"""Linux: counters of Intel's and AMD's processors (RAPL). Often readable by root only."""


@dataclass(frozen=True, slots=True)
class _Package:
    """One processor's counter: microjoules, starting again at `range_uj`."""

    file: Path
    range_uj: int

    def read_uj(self) -> int:
        return int(self.file.read_text())


class EnergyMeter:
    """Joules of all processors and NVIDIA GPUs since `start`; other programs' use included.

    powercap: the folder of RAPL's counters.
    nvml:     name of NVIDIA's management library; None: wherever the system has it.
    """

    def __init__(self, powercap: Path = POWERCAP, nvml: str | None = None) -> None:
        self._packages = _packages(powercap)
        self._gpus = _Gpus.open(nvml)
        self.sources: tuple[str, ...] = (
            *(["rapl"] if self._packages else []),
            *(["nvml"] if self._gpus else []),
        )
        """Counters in use: "rapl", "nvml"; none where the machine reports nothing."""
        self.start()

    def start(self) -> None:
        self._start_uj = [p.read_uj() for p in self._packages]
        self._start_mj = self._gpus.read_mj() if self._gpus else 0

    def joules(self) -> float | None:
        """Joules since `start`; None without counters. Counters are exact to a millisecond or so,
        and processors wrap theirs after minutes at full load: measure seconds."""
        if not self.sources:
            return None
        total = 0.0
        for package, start in zip(self._packages, self._start_uj, strict=True):
            used = package.read_uj() - start
            total += (used if used >= 0 else used + package.range_uj) / 1e6
        if self._gpus:
            total += (self._gpus.read_mj() - self._start_mj) / 1e3
        return total


def _packages(powercap: Path) -> list[_Package]:
    """The counter of each processor; the zones inside a processor are counted with it."""
    found: list[_Package] = []
    for zone in sorted(powercap.glob("intel-rapl:*")):
        if zone.name.count(":") != 1 or _is_of_all(zone):
            continue
        try:
            package = _Package(zone / "energy_uj", int((zone / "max_energy_range_uj").read_text()))
            package.read_uj()
        except (OSError, ValueError):
            continue
        found.append(package)
    return found


def _is_of_all(zone: Path) -> bool:
    """True if the zone counts the whole machine, as many laptops have one beside their processor:
    both together would count twice."""
    try:
        return (zone / "name").read_text().strip() == "psys"
    except OSError:
        return False


class _Gpus:
    """Total energy counters of all GPUs through NVML (nvmlDeviceGetTotalEnergyConsumption)."""

    def __init__(self, library: Any, handles: list[ctypes.c_void_p]) -> None:
        self._library = library
        self._handles = handles

    @classmethod
    def open(cls, name: str | None) -> _Gpus | None:
        """None without the library, a GPU, or GPUs that count."""
        standard = "nvml.dll" if sys.platform == "win32" else "libnvidia-ml.so.1"
        try:
            library = ctypes.CDLL(name or standard)
            if library.nvmlInit_v2() != 0:
                return None
            n = ctypes.c_uint()
            if library.nvmlDeviceGetCount_v2(ctypes.byref(n)) != 0:
                return None
            handles: list[ctypes.c_void_p] = []
            for i in range(n.value):
                handle = ctypes.c_void_p()
                if library.nvmlDeviceGetHandleByIndex_v2(i, ctypes.byref(handle)) == 0:
                    handles.append(handle)
            gpus = cls(library, handles)
            gpus.read_mj()
        except (OSError, AttributeError):
            return None
        return gpus if handles else None

    def read_mj(self) -> int:
        total = 0
        for handle in self._handles:
            used = ctypes.c_ulonglong()
            if self._library.nvmlDeviceGetTotalEnergyConsumption(handle, ctypes.byref(used)) != 0:
                raise OSError("this GPU keeps no count of its energy")
            total += used.value
        return total
