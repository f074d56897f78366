"""Build of an index in a process of its own, beside somebody's work.

The process may die: it lowers its priority and limits its memory, and native code on hostile input
may still end it. Start it again then, a few times: each time it knows which file to leave alone,
see `strikes`.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from codespec.config import IndexSettings
from codespec.index.build import BuildProgress, BuildReport, build_index
from codespec.index.parsers import Parsers
from codespec.index.word_encoder import WordEncoder
from codespec.system.processes import lower_priority

MAX_MEMORY_BYTES = 4 << 30
EMIT_INTERVAL_S = 0.1


def run_indexer(
    root: str | os.PathLike[str],
    encoder: WordEncoder,
    settings: IndexSettings,
    emit: Callable[[BuildProgress], None],
    *,
    n_parsers: int = 1,
    max_memory_bytes: int = MAX_MEMORY_BYTES,
) -> BuildReport:
    """Build or update one index. `emit` is called at most ten times a second and phase.

    Changes the priority and memory limit of the whole process, for good.

    max_memory_bytes: limit of the process.
    Raises: as `build_index`.
    """
    lower_priority(max_memory_bytes)
    with Parsers(n_parsers) as parsers:
        return build_index(root, encoder, settings, throttled(emit), parsers=parsers)


def throttled(
    emit: Callable[[BuildProgress], None], clock: Callable[[], float] = time.monotonic
) -> Callable[[BuildProgress], None]:
    """Wrap `emit`: it gets the first event of each phase, and after that at most one every
    `EMIT_INTERVAL_S`."""
    last_phase, last_time = "", 0.0

    def pass_on(event: BuildProgress) -> None:
        nonlocal last_phase, last_time
        now = clock()
        if event.phase != last_phase or now - last_time >= EMIT_INTERVAL_S:
            last_phase, last_time = event.phase, now
            emit(event)

    return pass_on
