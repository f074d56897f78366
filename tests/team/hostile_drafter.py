"""Drafter for vLLM that misbehaves on demand: the name of the fault stands in a file. Imported in
vLLM's environment alone."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from codespec.serving.rows import RowDrafter, RowStep
from codespec.serving.vllm_drafter import VllmDrafter

FAULT_FILE = "HOSTILE_FAULT_FILE"
HANG_S = 3.0
Chains = Sequence[Sequence[int]]


def _raise(found: Chains) -> Any:
    raise RuntimeError("on purpose")


def _exit(found: Chains) -> Any:
    raise SystemExit(1)


def _hang(found: Chains) -> Any:
    time.sleep(HANG_S)
    return found


FAULTS: dict[str, Callable[[Chains], Any]] = {
    "raise": _raise,
    "exit": _exit,
    "hang": _hang,
    "beyond the vocabulary": lambda found: [[10**7] * 8 for _ in found],
    "negative": lambda found: [[-5] * 8 for _ in found],
    "wrong": lambda found: [[(7 * i + 11) % 8192 for i in range(8)] for _ in found],
    "too many": lambda found: [[100] * 28 for _ in found],
    "too few rows": lambda found: found[:-1],
    "none": lambda found: None,
    "rows of none": lambda found: [None] * len(found),
    "floats": lambda found: [[1.5] * 3 for _ in found],
    "numpy rows": lambda found: [np.array(row, np.int64) for row in found],
}


class _Hostile:
    def __init__(self, drafter: RowDrafter, file: Path) -> None:
        self._drafter, self._file = drafter, file

    def draft(self, steps: Sequence[RowStep], ended: Sequence[Hashable], ms: float) -> Any:
        found = self._drafter.draft(steps, ended, ms)
        fault = FAULTS.get(self._file.read_text().strip())
        return found if fault is None else fault(found)


class HostileVllmDrafter(VllmDrafter):
    """`VllmDrafter` whose drafter misbehaves; guard and adapter are the product's."""

    def __init__(self, vllm_config: Any) -> None:
        super().__init__(vllm_config)
        file = Path(os.environ[FAULT_FILE])
        self._guard._drafter = _Hostile(self._guard._drafter, file)
