"""The plan of a distillation, and its reports of progress. Without PyTorch: whoever asks how far
one is does not need it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec

from codespec.system.files import write_atomically

CHECKPOINT_SECONDS = 30.0
"""Seconds of asking the target or of training that a killed process loses at most."""


@dataclass(frozen=True, slots=True)
class DistillPlan:
    """How much to ask of the target and how long to train. minutes: most for each of the two."""

    n_tokens: int = 300_000
    minutes: float = 15.0
    tokens: int | None = None
    n_places: int = 60
    n_threads: int = 1
    device: str = "cpu"
    seed: int = 0
    from_text: bool = False
    checkpoint_s: float = CHECKPOINT_SECONDS


Stage = Literal[
    "reading", "asking the target", "training", "measuring", "done", "stopped", "failed"
]
Reporter = Callable[[Stage, float, str], None]
"""Told the stage, how much of it is done, 0 to 1, and a line of detail."""


class StoppedError(Exception):
    """Somebody asked the job to stop; what it did is kept."""


def write_json(path: Path, value: object) -> None:
    """All of it or nothing."""
    write_atomically(path, msgspec.json.encode(value))
